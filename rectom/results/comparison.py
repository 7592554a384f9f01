"""Runs over the same questions, compared: each with a baseline, by order and in all.

What is paired is the question. One that was asked several times, in samples or in the tries of a ballot, counts once,
with the share of its tries that were right. What failed is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, TypeAlias

from rectom.errors import SettingsError
from rectom.results.finished import Answered, Finished
from rectom.results.resampling import cluster_bootstrap
from rectom.results.statistics import Interval, holm, mcnemar, wilson


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to on some questions.

    `accuracy` is 0 to 1, `failed` counts the answers that failed, `calls` and `tokens` are those of a question if it
    had shared nothing.
    """

    questions: int
    accuracy: float
    failed: int
    calls: float
    tokens: float

    @classmethod
    def of(cls, answered: Sequence[Answered]) -> Figures:
        """The figures of some questions, at least one."""
        count = len(answered)
        shares = [
            fsum(values) / count for values in zip(*((q.score, q.calls, q.tokens) for q in answered), strict=True)
        ]
        return cls(count, shares[0], sum(q.failed for q in answered), shares[1], shares[2])

    @property
    def interval(self) -> Interval:
        """Wilson's interval for the accuracy. Further samples of a question do not narrow it."""
        return wilson(self.accuracy, self.questions)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "accuracy": round(self.accuracy, 6),
            "interval": _rounded(self.interval),
            "failed": self.failed,
            "tokens": round(self.tokens, 3),
            "calls": round(self.calls, 3),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A run less the baseline, on the same questions.

    `interval` is the clustered one of the difference of the accuracies; None where there is one story alone. The
    baseline is better on `b` questions, the run on `c`; `p` is McNemar's, `holm` adjusted. `eff` is the paper's
    ΔAcc/ΔTok, in points of accuracy for each further 1,000 tokens a question; None where the run takes no more tokens
    than the baseline.
    """

    accuracy: float
    interval: Interval | None
    b: int
    c: int
    p: float
    holm: float
    eff: float | None

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "difference": round(self.accuracy, 6),
            "difference_interval": _rounded(self.interval),
            "b": self.b,
            "c": self.c,
            "p": self.p,
            "p_holm": self.holm,
            "eff": None if self.eff is None else round(self.eff, 6),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """An order, or `all`: the figures of each run, the baseline first, and the difference of each of the others."""

    order: str
    stories: int
    figures: tuple[Figures, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs, the baseline first; how many questions of each were left out; and the rows, lowest order first, then all.

    Where the questions have one order alone, the row for all is the only one.
    """

    runs: tuple[Finished, ...]
    left_out: tuple[int, ...]
    rows: tuple[Row, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """A mapping for each run but the baseline."""
        return [self._line(place) for place in range(1, len(self.runs))]

    def _line(self, place: int) -> dict[str, Any]:
        rows = {row.order: _row_json(row, place) for row in self.rows}
        run, baseline = self.runs[place], self.runs[0]
        return {
            "run": run.name,
            "against": baseline.name,
            "benchmark": {"run": run.benchmark, "against": baseline.benchmark},
            "left_out": {"run": self.left_out[place], "against": self.left_out[0]},
            "paid": {"run": run.paid.to_json(), "against": baseline.paid.to_json()},
            "all": rows.pop("all"),
            "by_order": rows,
        }


#: One question as each run answered it, the baseline first.
Paired: TypeAlias = tuple[Answered, ...]


def compare(runs: Sequence[Finished], *, intersect: bool = False, resamples: int = 2000, seed: int = 0) -> Comparison:
    """Compare runs with the first of them.

    `resamples` and `seed` are those of the bootstrap. Holm's correction is made over the comparisons in all, and apart
    from them over those by order. Raises SettingsError if the runs are not over the same questions; with `intersect`,
    only if they share none.
    """
    paired = _paired(runs, intersect)
    parts = _by_order(paired)
    by_order = [_row(name, part, resamples, seed) for name, part in parts.items()] if len(parts) > 1 else []
    rows = [*_adjusted(by_order), *_adjusted([_row("all", paired, resamples, seed)])]
    return Comparison(tuple(runs), tuple(len(run.questions) - len(paired) for run in runs), tuple(rows))


def _paired(runs: Sequence[Finished], intersect: bool) -> list[Paired]:
    """The questions that all runs share, in the order of the baseline."""
    known = [{question.key: question for question in run.questions} for run in runs]
    shared = [key for key in known[0] if all(key in others for others in known)]
    alike = len({(run.benchmark, run.data) for run in runs}) == 1 and all(len(one) == len(shared) for one in known)
    if not shared or not (alike or intersect):
        raise SettingsError(_refusal(runs, len(shared)))
    return [tuple(questions[key] for questions in known) for key in shared]


def _refusal(runs: Sequence[Finished], shared: int) -> str:
    by_data = len({run.data for run in runs}) > 1
    told = [
        f"{run.name} has {len(run.questions)} ({run.benchmark}{f' of data {run.data[:8]}' if by_data else ''})"
        for run in runs
    ]
    what = f"they share {shared}: --intersect compares those" if shared else "they share none: compare others"
    return f"the runs are not over the same questions: {', '.join(told)}; {what}"


def _by_order(paired: Iterable[Paired]) -> dict[str, list[Paired]]:
    """The questions of each order, lowest first; `-` where the benchmark states none."""
    groups: dict[int | None, list[Paired]] = {}
    for together in paired:
        groups.setdefault(together[0].order, []).append(together)
    orders = sorted(groups, key=lambda order: -1 if order is None else order)
    return {"-" if order is None else str(order): groups[order] for order in orders}


def _row(order: str, paired: Sequence[Paired], resamples: int, seed: int) -> Row:
    stories: dict[str, list[Paired]] = {}
    for together in paired:
        stories.setdefault(together[0].story_id, []).append(together)
    figures = [Figures.of(answered) for answered in zip(*paired, strict=True)]
    others = range(1, len(figures))
    sums = [[fsum(one[place].score - one[0].score for one in told) for told in stories.values()] for place in others]
    intervals = cluster_bootstrap(sums, [len(told) for told in stories.values()], resamples, seed)
    differences = [
        difference(figures[0], figures[place], interval, [(one[0].score, one[place].score) for one in paired])
        for place, interval in zip(others, intervals, strict=True)
    ]
    return Row(order, len(stories), tuple(figures), tuple(differences))


def difference(
    baseline: Figures, run: Figures, interval: Interval | None, scores: Sequence[tuple[float, float]]
) -> Difference:
    """A run less the baseline, from the figures and `scores` of both on the same questions; not yet adjusted."""
    b, c = sum(before > after for before, after in scores), sum(before < after for before, after in scores)
    p, gain, more = mcnemar(b, c), run.accuracy - baseline.accuracy, run.tokens - baseline.tokens
    return Difference(gain, interval, b, c, p, p, 100 * gain / (more / 1000) if more > 0 else None)


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    """The rows with Holm's correction over all their comparisons."""
    adjusted = iter(holm([difference.p for row in rows for difference in row.differences]))
    return [
        replace(row, differences=tuple(replace(one, holm=next(adjusted)) for one in row.differences)) for row in rows
    ]


def _row_json(row: Row, place: int) -> dict[str, Any]:
    run, baseline = row.figures[place], row.figures[0]
    figures = {"run": run.to_json(), "against": baseline.to_json()}
    return {"questions": run.questions, "stories": row.stories, **figures, **row.differences[place - 1].to_json()}


def _rounded(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [round(end, 6) for end in interval]
