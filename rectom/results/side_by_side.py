"""Pages that show several runs over the same questions, of each two side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from rectom.errors import DataError
from rectom.results.grid import Filled, Grid
from rectom.results.paged import Paged
from rectom.results.report import pages
from rectom.results.wording import line_name

#: So many answers are shown on such pages: more take long to draw, and each run has a page of its own besides.
MOST: Final = 6000


@dataclass(frozen=True, slots=True)
class Beside:
    """Pages of the runs of one benchmark and model: what they are called, and their files, the first page first."""

    title: str
    files: dict[str, bytes]


def side_by_side(grid: Grid) -> Iterator[Beside]:
    """A page for each benchmark and model with several runs that have few enough answers together."""
    left = MOST
    for benchmark in grid.benchmarks:
        for model in grid.models:
            cells = [cell for cell in grid.of(benchmark, model) if len(cell.finished) == 1]
            answers = sum(run.answers for cell in cells for run, _ in cell.finished)
            if len(cells) > 1 and answers <= left:
                left -= answers
                with suppress(DataError):  # each run has its own page, or says itself what is wrong with it
                    yield _beside(benchmark, model, cells)


def _beside(benchmark: str, model: str, cells: list[Filled]) -> Beside:
    shown = [replace(Paged.read(cell.finished[0][1]), name=line_name(cell.labels.line)) for cell in cells]
    name = re.sub(r"[^\w.=-]+", "-", f"answers-{benchmark}-{model}")
    return Beside(f"Every answer: {benchmark}, {model}", pages(shown, name))
