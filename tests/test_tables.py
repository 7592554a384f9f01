from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import pytest

from rectom.results.outcome import Outcome
from rectom.results.tables import HEADER, accuracy_rows, as_csv, latex, markdown


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


def test_a_run_without_questions_has_the_row_for_all() -> None:
    assert accuracy_rows([]) == [("all", 0, 0, "0.00", "0.0 to 100.0")]


@pytest.mark.parametrize("rows", [ROWS, accuracy_rows([])])
def test_markdown_has_a_head_a_rule_and_as_many_cells_in_every_line(rows: list[tuple[str, int, int, str, str]]) -> None:
    lines = markdown(HEADER, rows).splitlines()
    assert len(lines) == 2 + len(rows)
    assert {line.count("|") for line in lines} == {len(HEADER) + 1}
    assert set(lines[1]) <= set("|-: ")
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)


def test_csv_reads_back() -> None:
    text = as_csv(HEADER, ROWS)
    assert "\r" not in text
    assert list(csv.reader(text.splitlines())) == [list(HEADER), *([str(cell) for cell in row] for row in ROWS)]


def test_latex_sets_the_row_for_all_apart() -> None:
    lines = latex(HEADER, ROWS).splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{lrrrr}", r"\end{tabular}")
    assert lines[-4:-2] == [r"\midrule", r"all & 5 & 4 & 80.00 & " + ROWS[-1][4] + r" \\"]
    bodies = [line for line in lines if line.endswith(r"\\")]
    assert len(bodies) == 1 + len(ROWS)
    assert {line.count("&") for line in bodies} == {len(HEADER) - 1}


def test_latex_escapes_what_means_something_to_it() -> None:
    text = latex(HEADER, [("50 % of a_b & c", 1, 1, "1", "1")])
    assert r"50 \% of a\_b \& c & 1" in text
    assert not re.search(r"(?<!\\)[%_]", text)
    assert r"95 \% interval" in text
