"""The figures of a report: what is drawn of its runs, each with the words that stand for it."""

from __future__ import annotations

import csv
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rectom.results.comparison import Figures
from rectom.results.fault import FAULTS, UNTOLD, UNTOLD_MEANS
from rectom.results.figures import Ask, Faults, Line, Picture, Point, by_order, by_step, by_tokens, files, over_time
from rectom.results.finished import Answered
from rectom.results.folder import TIMES
from rectom.results.grid import Filled, Grid
from rectom.results.readers import has_steps
from rectom.results.wording import line_name

#: What explains a figure, by the kind that its name begins with.
_NOTES: Final = {
    "tokens": "Alone: as if questions shared nothing. The frontier joins the methods that are better than every one "
    "that takes fewer tokens.",
    "faults": f"The wrong answers of these runs, taken together. {UNTOLD_MEANS}",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure that is drawn: its name, its title, the bytes of its files by their names, and what explains it."""

    name: str
    title: str
    files: dict[str, bytes]
    note: str = ""

    def address(self, ending: str) -> str:
        """The SVG of that ending (`.svg`, `.dark.svg`) as an address that a page can hold."""
        return f"data:image/svg+xml;base64,{b64encode(self.files[self.name + ending]).decode()}"


def drawn(grid: Grid) -> Iterator[Drawn]:
    """All figures of a report."""
    for name, title, picture in _pictures(grid):
        yield Drawn(name, title, dict(files(picture, name)), _NOTES.get(name.partition("-")[0], ""))


def _pictures(grid: Grid) -> Iterator[tuple[str, str, Picture]]:
    among = list(map(line_name, grid.lines))
    for benchmark in grid.benchmarks:
        mark = _mark(benchmark)
        for model in grid.models:
            if lines := _lines(grid.of(benchmark, model)):
                title = f"{benchmark}, {model}: accuracy by order"
                yield f"orders-{mark}-{_mark(model)}", title, by_order(lines, title, among)
        points = _points(grid.of(benchmark))
        if any(point.tokens for point in points):
            title = f"{benchmark}: accuracy against tokens a question"
            yield f"tokens-{mark}", title, by_tokens(points, title, among, grid.models)
        if faults := _faults(grid.of(benchmark)):
            title = f"{benchmark}: where wrong answers of {_names(grid.of(benchmark))} went wrong"
            yield f"faults-{mark}", title, by_step(faults, title)
    if asks := [ask for cell in grid.cells.values() for _, folder in cell.finished for ask in _asks(folder)]:
        title = "calls and their latency over time"
        yield "times", title, over_time(asks, title)


def _lines(cells: Sequence[Filled]) -> list[Line]:
    found = []
    for cell in cells:
        groups = _by_order(cell.questions)
        figures = [Figures.of(some) for some in groups.values()]
        accuracy, intervals = [one.accuracy for one in figures], [one.interval for one in figures]
        if groups:
            found.append(Line(line_name(cell.labels.line), list(groups), accuracy, intervals))
    return found


def _by_order(questions: Sequence[Answered]) -> dict[str, list[Answered]]:
    groups: dict[str, list[Answered]] = {}
    for question in sorted(questions, key=lambda question: -1 if question.order is None else question.order):
        groups.setdefault("-" if question.order is None else str(question.order), []).append(question)
    return groups


def _points(cells: Sequence[Filled]) -> list[Point]:
    return [
        Point(line_name(cell.labels.line), cell.figures.tokens, cell.figures.accuracy, cell.figures.interval, model)
        for cell in cells
        if cell.figures
        for model in (cell.labels.model,)
    ]


def _names(cells: Sequence[Filled]) -> str:
    """The methods of the cells with wrong answers whose steps can be told, and where there are several the models."""
    told = [cell.labels for cell in cells if _is_told(cell) and _is_wrong(cell)]
    models = dict.fromkeys(labels.model for labels in told)
    names = ", ".join(dict.fromkeys(line_name(labels.line) for labels in told))
    return f"{names} with {', '.join(models)}" if len(models) > 1 else names


def _is_told(cell: Filled) -> bool:
    methods = (str(run.settings.get("method")) for run, _ in cell.finished)
    return any(map(has_steps, methods)) or any(question.faults for question in cell.questions)


def _is_wrong(cell: Filled) -> bool:
    return any(question.faults or question.untold for question in cell.questions)


def _faults(cells: Sequence[Filled]) -> Faults | None:
    """The steps at fault of all cells that have such steps."""
    told = [question for cell in cells if _is_told(cell) for question in cell.questions]
    groups = _by_order([question for question in told if question.faults or question.untold])
    steps = [step for step in (*FAULTS, UNTOLD) if any(question.wrong_at(step) for question in told)]
    counts = [[sum(one.wrong_at(step) for one in some) for some in groups.values()] for step in steps]
    return Faults(steps, list(groups), counts) if steps else None


def _asks(folder: Path) -> Iterator[Ask]:
    """When the replies of a run came. Runs of older days do not tell."""
    try:
        with (folder / TIMES).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield Ask(float(row["at"]), float(row["latency_s"]))
    except (OSError, KeyError, ValueError, TypeError):
        return


def _mark(name: str) -> str:
    """A name as a part of a file's name."""
    return re.sub(r"[^\w.=-]+", "-", name).strip("-") or "-"
