"""What a list of many runs takes: `rectom runs` in a process of its own, beside `rectom --help`.

    python bench/listing.py [--runs 500] [--questions 400] [--times 5]

Makes finished runs, each with results, 3 kilobytes of trace a question, and calls, none of which the command may read.
Prints the median time of each command in seconds, and the ratio.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click

from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome
from rectom.results.summary import Cost, summary_line

#: About what a run writes to its other files, for each question.
RESULT, TRACE = b'{"id":"0","correct":true}' * 12 + b"\n", b"x" * 3000 + b"\n"

SETTINGS = {"benchmark": "hitom/400", "data": "d" * 64, "method": "rectom", "model": "gpt-5.4"}
MOST_S = 1.0


def fill(folder: Path, questions: int, chance: random.Random) -> None:
    right = [chance.random() < 0.9 for _ in range(questions)]
    found = [
        Outcome(str(n), f"s{n // 5}", n % 5, "box", "box", correct, None, 4, 6600) for n, correct in enumerate(right)
    ]
    run = RunFolder(folder)
    run.write("results.jsonl", RESULT * questions)
    run.write("traces.jsonl", TRACE * questions)
    run.write("calls.jsonl.gz", TRACE * questions)
    line = summary_line({"run": folder.name}, found, Cost(sent=4 * questions, prompt=6000 * questions), 1.0)
    sessions = [{"started": "2026-05-21T20:00:00+00:00", "ended": "2026-05-21T23:00:00+00:00"}]
    run.write_manifest(
        {"run": folder.name, "state": "finished", "settings": SETTINGS, "sessions": sessions, "summary": line}
    )


def seconds(times: int, *words: object) -> float:
    """The median time of a command."""
    command = [str(Path(sys.executable).with_name("rectom")), *map(str, words)]
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - begun)
    return median(taken)


@click.command()
@click.option("--runs", default=500)
@click.option("--questions", default=400)
@click.option("--times", default=5)
def main(runs: int, questions: int, times: int) -> None:
    """Measure both commands."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(runs):
            fill(Path(folder) / f"hitom-400.rectom.gpt-5.4.{number:06x}", questions, chance)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*")) / 1e6
        listed, helped = seconds(times, "runs", "--runs", folder), seconds(times, "--help")
    print(
        f"{runs} runs of {questions} questions, {size:,.0f} MB: rectom runs {listed:.2f} s (at most {MOST_S:.0f}), "
        f"rectom --help {helped:.2f} s, ratio {listed / helped:.1f}"
    )
    sys.exit(listed > MOST_S)


if __name__ == "__main__":
    main()
