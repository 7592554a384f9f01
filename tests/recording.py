"""The replies of a real model that tests replay: `tests/recorded/replies.gz`, and what came of them.

After a change of prompts or schemas they are recorded anew, with the model on this machine:

    rectom models get qwen2.5-coder-1.5b
    rectom sweep experiments/recorded.toml
    rectom cache export tests/recorded/replies.gz --run recorded
    python -m tests.recording runs/recorded > tests/recorded/manifest.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from rectom.results.folder import RunFolder
from rectom.results.sweep import Sweep

RECORDED: Final = Path(__file__).parent / "recorded"
REPLIES: Final = RECORDED / "replies.gz"
MANIFEST: Final = RECORDED / "manifest.json"


def found(sweep: Path) -> dict[str, Any]:
    """What a sweep came to, by method: how the model was asked, the calls, and every answer."""
    return {cell.method: _run(RunFolder(sweep.parent / cell.run)) for cell in Sweep.read(sweep).cells}


def _run(folder: RunFolder) -> dict[str, Any]:
    manifest, results = folder.manifest(), folder.results()
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


def sent(sweep: Path) -> int:
    """The calls that a sweep sent."""
    runs = [RunFolder(sweep.parent / cell.run).manifest() for cell in Sweep.read(sweep).cells]
    return sum(session["sent"] for run in runs for session in run["sessions"])


if __name__ == "__main__":
    print(json.dumps(found(Path(sys.argv[1])), indent=1))
