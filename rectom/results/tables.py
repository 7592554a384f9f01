"""The accuracy table of a run: for the terminal, as markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rectom.results.outcome import Outcome
from rectom.results.summary import Score, by_order

HEADER = ("order", "questions", "correct", "accuracy", "95 % interval")

Row = tuple[str, int, int, str, str]


def accuracy_rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """A row an order and one for all, with accuracy and Wilson's interval in percent."""
    rows = [_row(order, score) for order, score in by_order(outcomes).items()]
    return [*rows, _row("all", Score.of(outcomes))]


def _row(name: str, score: Score) -> Row:
    low, high = score.interval()
    return name, score.questions, score.correct, f"{100 * score.accuracy:.2f}", f"{100 * low:.1f} to {100 * high:.1f}"


def markdown(rows: Sequence[Row]) -> str:
    """A GitHub table."""
    lines = [HEADER, ("---", *["---:"] * 4), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """Comma-separated values with a header."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows([HEADER, *rows])
    return sink.getvalue()


def latex(rows: Sequence[Row]) -> str:
    """A booktabs table."""
    lines = [r" & ".join(map(_escape, map(str, row))) + r" \\" for row in rows]
    head = r" & ".join(map(_escape, HEADER)) + r" \\"
    body = [*lines[:-1], r"\midrule", lines[-1]]
    return "\n".join(
        [r"\begin{tabular}{lrrrr}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    )


def _escape(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("&", r"\&")
