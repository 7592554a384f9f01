from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rectom.results.outcome import Outcome
from rectom.results.tables import accuracy_rows, group_rows


def outcomes(*orders: int | None) -> Sequence[Outcome]:
    """An outcome of each order, of which the first is wrong."""
    return [
        Outcome(str(place), "s", order, "box", "box" if place else "bag", place > 0, None, 0, 0)
        for place, order in enumerate(orders)
    ]


ROWS = accuracy_rows(outcomes(0, 0, 0, 4, None))


def test_there_is_a_row_an_order_and_one_for_all() -> None:
    assert [row[:3] for row in ROWS] == [("-", 1, 1), ("0", 3, 2), ("4", 1, 1), ("all", 5, 4)]
    assert ROWS[1][3] == "66.67"
    assert re.fullmatch(r"\d+\.\d to \d+\.\d", ROWS[1][4])


def test_samples_do_not_narrow_the_intervals() -> None:
    some = outcomes(0, 1)
    assert [row[4] for row in accuracy_rows([*some] * 4, 4)] == [row[4] for row in accuracy_rows(some)]
    kinds = [replace(one, group=str(one.order)) for one in some]
    assert [row[4] for row in group_rows(kinds * 4, 4)] == [row[4] for row in group_rows(kinds)]


def test_a_run_without_questions_has_the_row_for_all() -> None:
    assert accuracy_rows([]) == [("all", 0, 0, "0.00", "0.0 to 100.0")]
