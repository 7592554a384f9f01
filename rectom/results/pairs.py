"""Cells over the same questions, in pairs: differences with intervals, paired tests, and what further tokens bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rectom.errors import SettingsError
from rectom.results.comparison import Difference, difference
from rectom.results.finished import Answered
from rectom.results.grid import COT, Filled, Grid, Labels
from rectom.results.readers import RECTOM
from rectom.results.resampling import Resampled, middle
from rectom.results.statistics import Interval, holm

#: A test that speaks for a difference has a smaller p than this, after Holm's correction.
ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Trial:
    """A cell against its baseline; the difference is None where they are not over the same questions."""

    cell: Filled
    baseline: Filled
    difference: Difference | None

    @property
    def is_significant(self) -> bool:
        """Whether the two differ, after Holm's correction."""
        return self.difference is not None and self.difference.holm < ALPHA


class Pairs:
    """The cells of a grid, ready to be paired; the stories of cells over the same questions are drawn together."""

    def __init__(self, grid: Grid, resamples: int = 2000, seed: int = 0) -> None:
        self._grid = grid
        self._aligned: dict[Labels, Sequence[Answered]] = {}
        self._resampled: dict[Labels, tuple[Resampled, int]] = {}
        groups: dict[tuple[str, frozenset[str]], list[Filled]] = {}
        for cell in grid.cells.values():
            if cell.questions:
                groups.setdefault((cell.labels.benchmark, cell.keys), []).append(cell)
        for cells in groups.values():
            aligned = [_aligned(cell, cells[0]) for cell in cells]
            resampled = Resampled.of(aligned, resamples, seed)
            for place, cell in enumerate(cells):
                self._aligned[cell.labels] = aligned[place]
                self._resampled[cell.labels] = resampled, place

    def tokens(self, cell: Filled) -> Interval | None:
        """The interval of the tokens a question."""
        resampled, place = self._resampled[cell.labels]
        return middle(resampled.tokens[place])

    def difference(self, cell: Filled, baseline: Filled) -> Difference | None:
        """A cell less another; None if they are not over the same questions."""
        ours, (resampled, place) = self._aligned[cell.labels], self._resampled[cell.labels]
        theirs, (other, before) = self._aligned[baseline.labels], self._resampled[baseline.labels]
        if resampled is not other or cell.figures is None or baseline.figures is None:
            return None
        interval = middle(resampled.accuracy[place] - resampled.accuracy[before])
        scores = [(one.score, two.score) for one, two in zip(theirs, ours, strict=True)]
        return difference(baseline.figures, cell.figures, interval, scores)

    def eff(self, cell: Filled, baseline: Filled) -> Interval | None:
        """The interval of Eff, of a cell over the same questions as the baseline.

        None where a resample takes no more tokens than the baseline, since Eff has no meaning there.
        """
        resampled, place = self._resampled[cell.labels]
        _, before = self._resampled[baseline.labels]
        more = resampled.tokens[place] - resampled.tokens[before]
        if not (more > 0).all():
            return None
        return middle(100_000 * (resampled.accuracy[place] - resampled.accuracy[before]) / np.maximum(more, 1e-9))

    def trials(self, against: str | None = None) -> list[Trial]:
        """Every cell against the baseline of its model and benchmark.

        The baseline is the method `against`, by its name or label; else RecToM, else chain of thought, else the first
        one; where there is one method alone, the first setting. Holm's correction is over all tests of a benchmark.
        """
        return [test for benchmark in self._grid.benchmarks for test in self._trials(benchmark, against)]

    def _trials(self, benchmark: str, against: str | None) -> list[Trial]:
        cells = [cell for cell in self._grid.of(benchmark) if cell.questions]
        pairs = [(cell, self._baseline(cell, against)) for cell in cells]
        found = [
            Trial(cell, baseline, self.difference(cell, baseline))
            for cell, baseline in pairs
            if baseline is not None and baseline is not cell
        ]
        adjusted = iter(holm([test.difference.p for test in found if test.difference]))
        return [
            replace(test, difference=replace(test.difference, holm=next(adjusted))) if test.difference else test
            for test in found
        ]

    def _baseline(self, cell: Filled, against: str | None) -> Filled | None:
        beside = [one for one in self._grid.of(cell.labels.benchmark, cell.labels.model) if one.questions]
        if against is not None:
            return self._grid.peer(cell, against)
        if len({one.role for one in beside}) == 1:
            return beside[0]
        return self._grid.peer(cell, RECTOM) or self._grid.peer(cell, COT) or beside[0]


def check(grid: Grid, against: str) -> None:
    """Raise SettingsError if a grid has no finished run of a method."""
    known = {name for cell in grid.cells.values() if cell.questions for name in (cell.role, cell.labels.method)}
    if against not in known:
        raise SettingsError(f"--against {against}: there is no such method here; there are {', '.join(sorted(known))}")


def _aligned(cell: Filled, first: Filled) -> Sequence[Answered]:
    """The questions of a cell in the order of those of another."""
    known = {question.key: question for question in cell.questions}
    return [known[question.key] for question in first.questions]
