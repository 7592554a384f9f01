from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from rectom.results.comparison import compare
from rectom.results.comparison_tables import (
    ACCURACY_HEADER,
    DIFFERENCE_HEADER,
    PAID_HEADER,
    accuracy_rows,
    difference_rows,
    figures_table,
    paid_rows,
)
from rectom.results.finished import Paid
from tests.test_comparison import A, B, run

NAMES = ("A", "B")
COMPARED = compare([A, B])


def test_every_run_has_a_row_an_order_and_one_for_all() -> None:
    rows = accuracy_rows(COMPARED, NAMES)
    assert [row[:3] for row in rows[:2]] == [("0", 2, "A"), ("0", 2, "B")]
    assert rows[-2:] == [
        ("all", 10, "A", "30.00", "10.8 to 60.3", 0, "1.00", "600"),
        ("all", 10, "B", "60.00", "31.3 to 83.2", 0, "4.00", "2600"),
    ]
    assert {len(row) for row in rows} == {len(ACCURACY_HEADER)}


def test_the_differences_are_in_points_and_bear_their_sign() -> None:
    rows = difference_rows(COMPARED, NAMES)
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4", "all"]
    assert {len(row) for row in rows} == {len(DIFFERENCE_HEADER)}
    assert rows[0] == ("0", "B", "+0.00", "+0.0 to +0.0", 0, 0, "1.0000", "1.0000", "+0.00")
    assert rows[-1][:3] == ("all", "B", "+30.00")
    assert rows[-1][4:] == (1, 4, "0.3750", "0.3750", "+15.00")
    assert difference_rows(compare([B, A]), NAMES)[-1][2] == "-30.00"


def test_a_difference_that_is_rounded_to_nothing_has_no_minus() -> None:
    one = replace(COMPARED.rows[-1].differences[0], accuracy=-0.00001, interval=(-0.0001, 0.2), eff=-0.001)
    last = replace(COMPARED.rows[-1], differences=(one,))
    (told,) = difference_rows(replace(COMPARED, rows=(last,)), NAMES)
    assert (told[2], told[3], told[-1]) == ("+0.00", "+0.0 to +20.0", "+0.00")


def test_a_difference_of_one_story_has_no_interval_and_no_further_tokens_no_eff() -> None:
    rows = difference_rows(compare([run("a", [1, 0, 1]), run("b", [1, 1, 1])]), NAMES)
    assert (rows[-1][3], rows[-1][-1]) == ("unknown", "-")


def test_a_very_small_p_is_told_by_its_power() -> None:
    rows = difference_rows(compare([run("a", [0] * 100), run("b", [1] * 100)]), NAMES)
    assert rows[-1][6:8] == ("2e-30", "2e-30")


@pytest.mark.parametrize(
    ("paid", "shown"),
    [
        (Paid(20, 9000, Decimal("0.5"), Decimal("0.25"), "USD"), ("2.00", "2600", "900", "0.5000 USD", "0.2500 USD")),
        (Paid(20, None, Decimal("0.5"), None, "USD"), ("2.00", "2600", "unknown", "0.5000 USD", "unknown")),
        (Paid(20, 0), ("2.00", "2600", "0", "unknown", "unknown")),
        (Paid(0, 0), ("0.00", "2600", "0", "none", "none")),
    ],
)
def test_money_is_told_or_unknown_and_none_where_no_model_was_asked(paid: Paid, shown: tuple[str, ...]) -> None:
    rows = paid_rows(compare([A, replace(B, paid=paid)]), NAMES)
    assert rows[-1] == ("B", "4.00", *shown)
    assert len(rows[-1]) == len(PAID_HEADER)


def test_what_was_paid_is_shared_among_all_answers_samples_included() -> None:
    sampled = replace(
        B, questions=tuple(replace(q, tries=3) for q in B.questions), paid=Paid(60, 30_000, None, None, "")
    )
    assert paid_rows(compare([A, sampled]), NAMES)[-1][2:5] == ("2.00", "2600", "1000")


def test_the_plain_figures_are_those_of_the_line_of_json() -> None:
    header, rows = figures_table(COMPARED)
    assert len(header) == len(set(header))
    assert {len(row) for row in rows} == {len(header)}
    baseline, told = (dict(zip(header, row, strict=True)) for row in rows[-2:])
    assert baseline["run"] == "a"
    assert [baseline[name] for name in ("accuracy", "calls", "tokens", "difference", "p")] == [0.3, 1, 600, None, None]
    (line,) = COMPARED.to_json()
    whole = line["all"]
    for name in ("difference", "b", "c", "p", "p_holm", "eff"):
        assert told[name] == whole[name]
    for name in ("accuracy", "failed", "tokens", "calls"):
        assert told[name] == whole["run"][name]
    assert [told["interval_low"], told["interval_high"]] == whole["run"]["interval"]
    assert [told["difference_interval_low"], told["difference_interval_high"]] == whole["difference_interval"]
    assert (told["calls_different"], rows[0][header.index("calls_different")]) == (0, None)


def test_an_interval_that_is_unknown_leaves_its_cells_empty() -> None:
    header, rows = figures_table(compare([run("a", [1, 0, 1]), run("b", [1, 1, 1])]))
    assert dict(zip(header, rows[-1], strict=True))["difference_interval_low"] is None
