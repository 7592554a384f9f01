"""Tables with a line a cell of a sweep, whose names are long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from rectom.results.sweep import Cell

#: What tells cells apart, and a cell without any of it.
_NAMELESS: Final = Cell("", "", "")
_LABELS: Final = ("benchmark", "method", "model", "setting", "seed")

#: More columns than any table needs.
_ANY: Final = 10_000


def fitting(console: Console, title: str, cells: Sequence[Cell], make: Callable[[str, Sequence[str]], Table]) -> Table:
    """The table that `make` gives for a title and the names of cells, with as few folded names as can be.

    Where there is no terminal, the console is made as wide as it takes; in a narrow one, what all cells have in common
    is said in the title alone.
    """
    table = make(title, [cell.name for cell in cells])
    needed = width_of(table, console)
    if not console.is_terminal:
        console.width = max(console.width, needed)
    elif needed > console.width:
        shared, names = _apart(cells)
        table = make(" · ".join(filter(None, [title, shared])), names)
        table.show_edge, table.padding = False, (0, 1, 0, 0)
    return table


def width_of(table: Table, console: Console) -> int:
    """How many columns a table takes if nothing in it is folded."""
    return Measurement.get(console, console.options.update(width=_ANY), table).maximum


def _apart(cells: Sequence[Cell]) -> tuple[str, list[str]]:
    """What all cells have in common, and what each is called without it."""
    labels = [{name: getattr(cell, name) for name in _LABELS} for cell in cells]
    common = dict(set.intersection(*(set(one.items()) for one in labels))) if len(cells) > 1 else {}
    rest = [{name: value for name, value in one.items() if name not in common} for one in labels]
    return replace(_NAMELESS, **common).name, [replace(_NAMELESS, **one).name for one in rest]
