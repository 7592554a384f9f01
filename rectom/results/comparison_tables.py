"""The tables of a comparison: for `rectom.results.writing` to write, and one of plain figures for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from rectom.results.comparison import Comparison, Figures
from rectom.results.finished import Finished
from rectom.results.statistics import Interval

#: Accuracy in percent; calls and tokens of a question, if it had shared nothing.
ACCURACY_HEADER = ("order", "questions", "run", "accuracy", "95 % interval", "failed", "calls", "tokens")

#: The difference in points, McNemar's counts and p, and points for each further 1,000 tokens.
DIFFERENCE_HEADER = ("order", "run", "difference", "95 % interval", "b", "c", "p", "p, Holm", "Eff")

#: Calls and tokens as above; different calls and billed tokens an answer; the run's money, for all replies and billed.
PAID_HEADER = ("run", "calls", "different calls", "tokens", "tokens billed", "money", "money billed")

Rows: TypeAlias = list[tuple[object, ...]]


def accuracy_rows(comparison: Comparison, names: Sequence[str]) -> Rows:
    """A row an order and run, the baseline first. `names` are what the runs are called, in their order."""
    return [
        (
            row.order,
            row.figures[0].questions,
            name,
            f"{100 * figures.accuracy:.2f}",
            _percent(figures.interval, ".1f"),
            figures.failed,
            f"{figures.calls:.2f}",
            f"{figures.tokens:.0f}",
        )
        for row in comparison.rows
        for name, figures in zip(names, row.figures, strict=True)
    ]


def difference_rows(comparison: Comparison, names: Sequence[str]) -> Rows:
    """A row an order and run, without the baseline."""
    return [
        (
            row.order,
            name,
            f"{100 * one.accuracy:+z.2f}",
            "unknown" if one.interval is None else _percent(one.interval, "+z.1f"),
            one.b,
            one.c,
            p_text(one.p),
            p_text(one.holm),
            "-" if one.eff is None else f"{one.eff:+z.2f}",
        )
        for row in comparison.rows
        for name, one in zip(names[1:], row.differences, strict=True)
    ]


def paid_rows(comparison: Comparison, names: Sequence[str]) -> Rows:
    """A row a run, over all its questions."""
    return [(name, *_paid(run)) for name, run in zip(names, comparison.runs, strict=True)]


def figures_table(comparison: Comparison) -> tuple[list[str], Rows]:
    """A header, and a row an order and run, with the figures of the JSON line; what does not apply is None.

    What was paid is known of a run as a whole alone, and stands in its last row.
    """
    rows = []
    for row in comparison.rows:
        differences = [{}, *(one.to_json() for one in row.differences)]
        for run, figures, difference in zip(comparison.runs, row.figures, differences, strict=True):
            which = {"order": row.order, "run": run.name, "questions": figures.questions, "stories": row.stories}
            paid = run.paid.to_json() if row is comparison.rows[-1] else {}
            rows.append(_flat({**which, **figures.to_json(), **difference, **paid}))
    header = list(rows[-1])
    return header, [tuple(row.get(name) for name in header) for row in rows]


def _paid(run: Finished) -> tuple[object, ...]:
    paid, answers, alone = run.paid, run.answers, Figures.of(run.questions)
    billed = "unknown" if paid.billed is None else f"{paid.billed / answers:.0f}"
    amounts = (_money(amount, run) for amount in (paid.whole, paid.money))
    return f"{alone.calls:.2f}", f"{paid.calls / answers:.2f}", f"{alone.tokens:.0f}", billed, *amounts


def _money(amount: Decimal | None, run: Finished) -> str:
    if not run.paid.calls:
        return "none"
    return "unknown" if amount is None else f"{amount:.4f} {run.paid.currency}".strip()


def _percent(interval: Interval, form: str) -> str:
    low, high = (format(100 * end, form) for end in interval)
    return f"{low} to {high}"


def p_text(p: float) -> str:
    """A p as it is shown: by its power where it is very small."""
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.0e}"


def _flat(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures with an interval's ends as two."""
    found: dict[str, Any] = {}
    for name, value in figures.items():
        if name.endswith("interval"):
            found |= dict(zip((f"{name}_low", f"{name}_high"), value or (None, None), strict=True))
        else:
            found[name] = value
    return found
