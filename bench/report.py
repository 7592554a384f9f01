"""What a report takes over large runs: time and memory of `rectom report` in a process of its own.

    python bench/report.py [--questions 10000] [--story 5] [--runs 3]

Makes four runs (three methods and RecToM) over the same questions, `--story` of them about one story, with traces of
several kilobytes a question, which the command does not read. Prints the median time and the largest memory.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import click
import orjson

from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome
from rectom.results.summary import Cost, summary_line

#: The methods, each with the share that it answers right at order 0, what an order costs it, and its tokens.
METHODS = {
    "cot": (0.99, 0.08, 600),
    "simtom": (0.99, 0.05, 2300),
    "timetom": (0.99, 0.05, 3000),
    "rectom": (1.0, 0.01, 6600),
}
FAULTS = ("abstraction", "state observability", "event observability", "answer")
LINE = "Anne moved the ball to the blue_container, which is in the hall. "
#: Runs a command, and tells how much memory it took.
MEASURED = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)


def outcomes(method: str, questions: int, story: int) -> Iterator[Outcome]:
    right, less, tokens = METHODS[method]
    chance = random.Random(method)
    for number in range(questions):
        order = number % 5
        correct, failed = chance.random() < right - less * order, chance.random() < 0.01
        correct = correct and not failed
        wrong = not correct and not failed and method == "rectom"
        yield Outcome(
            f"{number:05d}",
            f"s{number // story}",
            order,
            "box",
            None if failed else "box" if correct else "bag",
            correct,
            "answer" if failed else None,
            4,
            int(tokens * chance.uniform(0.7, 1.3)),
            asked=f"{number:064x}",
            fault=chance.choice(FAULTS) if wrong else "",
        )


def fill(folder: Path, method: str, questions: int, story: int) -> None:
    run, found = RunFolder(folder), list(outcomes(method, questions, story))
    run.finish(found, [])
    with (folder / "traces.jsonl").open("wb") as file:
        for one in found:
            trace = {"id": one.id, "question": "Where?", "choices": ["box", "bag"], "lines": [LINE] * 40, "gold": "box"}
            steps = [{"step": step, "facts": [LINE]} for step in range(40)]
            file.write(orjson.dumps({**trace, "world": steps}, option=orjson.OPT_APPEND_NEWLINE))
    settings = {"benchmark": "hitom/400", "data": "d" * 64, "method": method, "model": "gpt-5.4"}
    line = summary_line({"run": method}, found, Cost(sent=questions), 1.0)
    run.write_manifest({"run": method, "state": "finished", "settings": settings, "summary": line})


def measure(runs: Path) -> tuple[float, float]:
    """Seconds and megabytes of the command."""
    rectom = str(Path(sys.executable).with_name("rectom"))
    command = [rectom, "report", *METHODS, "--beside-paper", "--runs", str(runs), "--out", str(runs / "report")]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, check=True, text=True)
    return time.perf_counter() - began, int(done.stdout) / 1024


@click.command()
@click.option("--questions", default=10_000)
@click.option("--story", default=5)
@click.option("--runs", "times", default=3)
def main(questions: int, story: int, times: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for method in METHODS:
            fill(Path(name) / method, method, questions, story)
        size = sum(file.stat().st_size for file in Path(name).glob("*/traces.jsonl")) / 1e6
        found = [measure(Path(name)) for _ in range(times)]
    seconds, megabytes = median(one[0] for one in found), max(one[1] for one in found)
    asked = f"{questions} questions x {len(METHODS)} methods"
    print(f"{asked}: {seconds:.2f} s (at most 10), {megabytes:.0f} MB (at most 1,000)")
    print(f"beside {size:.0f} MB of traces, which are not read")


if __name__ == "__main__":
    main()
