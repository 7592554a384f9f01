from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from flows.cell_table import fitting
from rectom.results.sweep import Cell

CELLS = [Cell("a-model-of-many-letters", method, "benchmark/subset") for method in ("cot", "rectom")]
WHOLE = [cell.name for cell in CELLS]


def printed(cells: Sequence[Cell], width: int, *, terminal: bool) -> str:
    def table(title: str, names: Sequence[str]) -> Table:
        made = Table(title=title, title_justify="left")
        made.add_column("cell", overflow="fold")
        made.add_column("figures")
        for name in names:
            made.add_row(name, "0" * 40)
        return made

    sink = io.StringIO()
    console = Console(file=sink, width=width, force_terminal=terminal, no_color=True)
    console.print(fitting(console, "night", cells, table))
    return sink.getvalue()


def test_without_a_terminal_names_are_whole_in_a_table_as_wide_as_it_takes() -> None:
    assert all(name in printed(CELLS, 20, terminal=False) for name in WHOLE)


def test_a_terminal_with_room_has_whole_names() -> None:
    assert all(name in printed(CELLS, 120, terminal=True) for name in WHOLE)


def test_in_a_narrow_terminal_what_cells_share_is_in_the_title_alone() -> None:
    said = printed(CELLS, 60, terminal=True)
    assert said.count("a-model-of-many-letters") == 1
    assert "night" in said
    assert all(cell.method in said.split("cell")[1] for cell in CELLS)
