"""A table, whatever it is written as: cells with a figure, its interval, its rank, and the paper's figure beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Final

from rectom.results.statistics import Interval

#: What stands in a cell without a figure.
NONE: Final = "–"

#: The most lines that a landscape page has room for.
_MOST_LINES: Final = 32


class Mark(Enum):
    """The rank of a figure in its column, among those of one model. Figures that look alike share a rank."""

    BEST = "best"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Value:
    """A cell.

    `text` and `span` are the figure and its interval as they are shown, `number` and `ends` the same, not rounded.
    `significant` says that the run differs from the one that it is tested against. `paper` is the paper's figure and
    `apart` ours less the paper's, both as shown. `link` is an address, relative to the report.
    """

    text: str = NONE
    number: float | None = None
    span: str = ""
    ends: Interval | None = None
    mark: Mark | None = None
    significant: bool = False
    paper: str = ""
    paper_number: float | None = None
    apart: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, and what it shares with its neighbours."""

    name: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The heads of a row, the outermost first, and its cells; `paper` says that it is the paper's and not ours.

    `link` is an address that the last head leads to, relative to the report.
    """

    heads: tuple[str, ...]
    values: tuple[Value, ...]
    paper: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table.

    `name` is that of its files, `corner` are the names of the heads. Rows that share the first head follow each other.
    """

    name: str
    title: str
    corner: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The groups of columns, each with how many columns it is over."""
        return [(group, len(list(some))) for group, some in groupby(column.group for column in self.columns)]

    @property
    def has_groups(self) -> bool:
        """Whether the columns have a second heading over them."""
        return any(column.group for column in self.columns)

    @property
    def is_long(self) -> bool:
        """Whether it takes more than a page."""
        return len(self.rows) + sum(any(value.paper for value in row.values) for row in self.rows) > _MOST_LINES

    def shown(self) -> Iterator[tuple[Row, tuple[str, ...], bool]]:
        """Each row with its heads, where those that repeat are blank, and whether a new block begins with it."""
        before: tuple[str, ...] = ()
        for row in self.rows:
            differing = (
                place for place, (one, other) in enumerate(zip(row.heads, before, strict=False)) if one != other
            )
            same = next(differing, len(row.heads) - 1) if before else 0
            yield row, ("",) * same + row.heads[same:], bool(before) and same == 0 and len(row.heads) > 1
            before = row.heads


def ranked(rows: Sequence[Row], columns: Sequence[int]) -> list[Row]:
    """The rows of one model with the best figure of each of these columns marked, and the second; more is better.

    Ties share the mark. A figure that has none beside it is not the best of anything, nor are the paper's.
    """
    ours = [row for row in rows if not row.paper]
    marks: dict[tuple[int, str], Mark] = {}
    for column in columns:
        figures = {row.values[column].text: float(row.values[column].text) for row in ours if _has(row, column)}
        if sum(_has(row, column) for row in ours) > 1:
            order = sorted(figures, key=lambda text: -figures[text])
            marks |= {(column, text): mark for text, mark in zip(order, Mark, strict=False)}
    return [row if row.paper else _marked(row, marks) for row in rows]


def _has(row: Row, column: int) -> bool:
    return row.values[column].number is not None


def _marked(row: Row, marks: dict[tuple[int, str], Mark]) -> Row:
    values = (replace(value, mark=marks.get((place, value.text))) for place, value in enumerate(row.values))
    return replace(row, values=tuple(values))
