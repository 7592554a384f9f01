"""Cells in words: what methods and benchmarks are called, and what is to be known of the questions and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rectom.results.grid import COT, Filled
from rectom.results.paper import BENCHMARKS
from rectom.results.readers import RECTOM

#: What the paper calls things.
_TITLES: Final = {
    "hitom": "Hi-ToM",
    "bigtom": "Big-ToM",
    "fantom": "FanToM",
    COT: "CoT",
    "simtom": "SimToM",
    "timetom": "TimeToM",
    "perceptom": "PercepToM",
    RECTOM: "RecToM",
    "rectom-lite": "RecToM lite",
    "direct": "Direct",
}


def titled(name: str) -> str:
    """What the paper calls a method or a benchmark; the name as it is for others."""
    return _TITLES.get(name, name)


def line_name(line: tuple[str, str]) -> str:
    """A method with its setting: `RecToM, window 5`."""
    return ", ".join(filter(None, [titled(line[0]), line[1]]))


def cell_name(cell: Filled) -> str:
    """`RecToM with gpt-5.4 on hitom/400`."""
    return f"{line_name(cell.labels.line)} with {cell.labels.model} on {cell.labels.benchmark}"


def order_name(order: int | None) -> str:
    """`2nd-Order`, as the paper has it."""
    if order is None:
        return "No order"
    return f"{order}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(order, 'th') }-Order"


def counts(cells: Iterable[Filled]) -> str:
    """How many questions each benchmark has: `hitom/400: 400 questions`."""
    found: dict[str, set[int]] = {}
    for cell in cells:
        if cell.questions:
            found.setdefault(cell.labels.benchmark, set()).add(len(cell.questions))
    return "; ".join(f"{name}: {' or '.join(map(str, sorted(some)))} questions" for name, some in found.items())


def missing(cells: Iterable[Filled]) -> Iterator[str]:
    """What is not there, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for cell in cells:
        for one in cell.missing:
            # One try of several is told by its seed.
            name = f"{cell_name(cell)} ({one.name})" if len(cell.tried) > 1 else cell_name(cell)
            by_reason.setdefault(one.why, []).append(name)
    for why, names in by_reason.items():
        yield f"Missing: {'; '.join(names)}: {why}."


def pooled(cells: Iterable[Filled]) -> Iterator[str]:
    """Which cells are of several runs, or of several samples of a question."""
    tries: dict[str, list[str]] = {}
    for cell in cells:
        runs, most = len(cell.finished), max((question.tries for question in cell.questions), default=0)
        if runs > 1 or most > 1:
            what = f"{runs} runs" if runs > 1 else f"up to {most} tries a question"
            tries.setdefault(what, []).append(cell_name(cell))
    for what, names in tries.items():
        yield (
            f"Pooled from {what}, where a question counts once, with the share of its tries that are right: "
            f"{'; '.join(names)}."
        )


def other_questions(cells: Sequence[Filled]) -> Iterator[str]:
    """Which benchmarks have rows over different questions."""
    for name, some in _by_benchmark(cells).items():
        if len({cell.keys for cell in some if cell.questions}) > 1:
            yield f"Not all rows are over the same questions of {name}; those that are not are not paired."


def narrowed(cells: Sequence[Filled]) -> Iterator[str]:
    """What the label of a benchmark does not tell of its questions."""
    for name, some in _by_benchmark(cells).items():
        asked = sorted({run.benchmark for cell in some for run, _ in cell.finished})
        if not all(one.partition("+")[0] in name for one in asked):
            yield f"{name} is {', '.join(asked)}."
        drawn = sorted({part for one in asked for part in one.split("+") if part.startswith("stories.")})
        if drawn and "stories" not in name:
            yield f"{name}: only {' or '.join(map(_sample, drawn))}."
        limits = sorted({str(run.settings.get("limit")) for cell in some for run, _ in cell.finished} - {"None"})
        if limits and "first" not in name:
            yield f"{name}: only the first {' or '.join(limits)} questions."


def _sample(part: str) -> str:
    """What `stories.64.0` in the name of a subset says."""
    count, _, seed = part.removeprefix("stories.").partition(".")
    return f"{count} stories, drawn with seed {seed}"


def not_of_paper(cells: Sequence[Filled]) -> Iterator[str]:
    """Where ours are not the paper's questions."""
    for name, some in _by_benchmark(cells).items():
        family = next((cell.family for cell in some if cell.questions), "")
        limited = any(run.settings.get("limit") for cell in some for run, _ in cell.finished)
        theirs = BENCHMARKS.get(family)
        if theirs and (limited or any(run.benchmark != theirs for cell in some for run, _ in cell.finished)):
            ours = f"a part of {name}" if name == theirs else name
            yield f"The paper's numbers are over {theirs}, ours over {ours}: these are not the same questions."


def labels_of_paper(cells: Iterable[Filled]) -> Iterator[str]:
    """What is to be known of Hi-ToM's labels by whoever sets ours beside the paper's."""
    if any(cell.family == "hitom" for cell in cells):
        yield (
            "Which 400 questions of Hi-ToM the paper took is not known. On ours, hitom/400, a reader without a fault "
            "scores 393 (98.25 %), since the other labels are wrong: differences are to be read with that in mind."
        )


def _by_benchmark(cells: Iterable[Filled]) -> dict[str, list[Filled]]:
    found: dict[str, list[Filled]] = {}
    for cell in cells:
        found.setdefault(cell.labels.benchmark, []).append(cell)
    return found
