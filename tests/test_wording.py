from __future__ import annotations

from pathlib import Path

import pytest

from rectom.results.grid import Grid, read
from rectom.results.wording import (
    cell_name,
    counts,
    line_name,
    missing,
    narrowed,
    not_of_paper,
    order_name,
    pooled,
    titled,
)
from tests.reported import cell, outcome, write, write_sweep


@pytest.mark.parametrize(("order", "name"), [(0, "0th"), (1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th")])
def test_orders_are_named_as_in_the_paper(order: int, name: str) -> None:
    assert order_name(order) == f"{name}-Order"
    assert order_name(None) == "No order"


def test_methods_and_benchmarks_are_called_as_in_the_paper() -> None:
    assert [titled(name) for name in ("cot", "rectom", "hitom", "sc:n=5")] == ["CoT", "RecToM", "Hi-ToM", "sc:n=5"]
    assert line_name(("rectom", "window 5")) == "RecToM, window 5"


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    write(tmp_path, "a", "11111")
    write(tmp_path, "b", "1111111", draw=1, limit=7)
    write(tmp_path, "c", [outcome(0, n > 0, id=f"q0#{n}") for n in range(3)], method="cot", samples=3)
    late = [cell("d", "sc", "waiting"), cell("e", "simtom", "waiting")]
    write_sweep(tmp_path, "night", cell("a"), cell("b", seed=1), cell("c", "cot"), *late)
    return read(["night"], tmp_path)


def test_cells_are_told_in_words(grid: Grid) -> None:
    cells = [*grid.cells.values()]
    assert cell_name(cells[0]) == "RecToM with gpt-5.4 on hitom/400"
    assert counts(cells) == "hitom/400: 1 or 7 questions"
    assert list(narrowed(cells)) == ["hitom/400: only the first 7 questions."]


def test_drawn_stories_are_told(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", benchmark="hitom/400+stories.64.0")
    write_sweep(tmp_path, "night", cell("a"))
    (swept,) = read(["night"], tmp_path).cells.values()
    assert list(narrowed([swept])) == ["hitom/400: only 64 stories, drawn with seed 0."]
    assert list(not_of_paper([swept])) == [
        "The paper's numbers are over hitom/400, ours over a part of hitom/400: these are not the same questions."
    ]


def test_what_is_pooled_and_what_is_missing_is_told_once_a_reason(grid: Grid) -> None:
    cells = [*grid.cells.values()]
    assert list(missing(cells)) == ["Missing: sc with gpt-5.4 on hitom/400; SimToM with gpt-5.4 on hitom/400: waiting."]
    assert [note.rpartition(": ")[2] for note in pooled(cells)] == [
        "RecToM with gpt-5.4 on hitom/400.",
        "CoT with gpt-5.4 on hitom/400.",
    ]
    assert [note.split(",")[0] for note in pooled(cells)] == [
        "Pooled from 2 runs",
        "Pooled from up to 3 tries a question",
    ]
