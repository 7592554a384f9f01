"""The replies of a real model that tests replay: `tests/recorded/replies.gz`, and what came of them.

After a change of prompts or schemas they are recorded anew, with the model on this machine:

    rectom models get qwen2.5-coder-1.5b
    rectom sweep experiments/recorded.toml
    rectom serve ~/.local/share/rectom/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf --port 9101
    rectom run … --base-url http://127.0.0.1:9101/v1          # … as FREE has it: without schemas
    rectom cache export tests/recorded/replies.gz --run recorded --run free
    python -m tests.recording runs > tests/recorded/manifest.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rectom.results.folder import RunFolder
from rectom.results.sweep import Sweep

RECORDED: Final = Path(__file__).parent / "recorded"
REPLIES: Final = RECORDED / "replies.gz"
MANIFEST: Final = RECORDED / "manifest.json"

#: The sweep, in which the server keeps the replies to their schemas.
SWEEP: Final = Path(__file__).parents[1] / "experiments" / "recorded.toml"

#: A run in which it does not. The revision keeps its replies apart from those of the sweep.
FREE: Final = (
    *("fresh/400", "--stories", 4, "--method", "rectom", "--name", "free"),
    *("--model", "qwen2.5-coder-1.5b-instruct-q4_k_m", "--model-revision", "cc324af070c2ecbf-free"),
    *("--structured", "text", "--max-tokens", 1200),
)


def found(runs: Path) -> dict[str, Any]:
    """What came of it, by the labels of the methods and `free`: how the model was asked, and every answer."""
    return {label: _of(run) for label, run in _runs(runs)}


def sent(runs: Path) -> int:
    """The calls that were sent for it."""
    return sum(session["sent"] for _, run in _runs(runs) for session in run.manifest()["sessions"])


def calls(runs: Path) -> Iterator[dict[str, Any]]:
    """All calls of all traces."""
    for _, run in _runs(runs):
        for line in (run.folder / "traces.jsonl").read_text().splitlines():
            yield from json.loads(line)["calls"]


def _runs(runs: Path) -> Iterator[tuple[str, RunFolder]]:
    for cell in Sweep.read(runs / "recorded").cells:
        yield cell.method, RunFolder(runs / cell.run)
    yield "free", RunFolder(runs / "free")


def _of(run: RunFolder) -> dict[str, Any]:
    manifest, results = run.manifest(), run.results()
    settings = {name: manifest["settings"][name] for name in ("benchmark", "method", "revision", "max_tokens", "data")}
    return {
        "settings": settings,
        "prompts": manifest["prompts"],
        "questions": len(results),
        "correct": sum(line["correct"] for line in results.values()),
        "calls": sum(line["calls"] for line in results.values()),
        "tokens": sum(line["tokens"] for line in results.values()),
        "answers": {name: line["predicted"] for name, line in sorted(results.items(), key=lambda item: int(item[0]))},
    }


if __name__ == "__main__":
    print(json.dumps(found(Path(sys.argv[1])), indent=1))
