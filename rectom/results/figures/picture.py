"""What all figures share: the sheet with its title, legends, plain text, and figures of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill
from typing import Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rectom.printable import printable
from rectom.results.figures.theme import Look, Theme

#: A figure, drawn in a theme.
Picture: TypeAlias = Callable[[Theme], Figure]

#: What an axis of accuracies is called.
ACCURACY: Final = "accuracy (%), with 95 % intervals"
#: In inches: 700 pixels at 100 to the inch.
WIDTH: Final = 7.0
#: The letters of a title that go into a line, those that it keeps, and those that a name keeps.
_TITLE, _TITLES, _NAME = 76, 250, 36
#: In inches: a letter of a name, the room between columns of a legend, the measure of its handles, and a line.
_LETTER, _HANDLE, _EM, _ROW = 0.075, 0.3, 0.125, 0.19


def sheet(title: str, height: float) -> Figure:
    """A sheet with room for axes `height` inches high, and the title over them."""
    text = fill(plain(title, _TITLES), _TITLE)
    figure = Figure(figsize=(WIDTH, height + _ROW * text.count("\n")))
    if text:
        figure.suptitle(text, x=0.01, ha="left", fontweight="bold")
    return figure


def legend(figure: Figure, *parts: Sequence[tuple[str, Line2D]], length: float = 3.2) -> None:
    """A legend below the axes, which makes the sheet higher; parts begin a row each, if they do not all go into one.

    `length` is that of the handles, in letters.
    """
    named = [[(plain(name, _NAME), handle) for name, handle in part] for part in parts]
    together = [[entry for part in named for entry in part]]
    if _width(together, length) <= WIDTH:
        named = together
    most = max(map(len, named))
    across = next((many for many in range(most, 1, -1) if _width(_rows(named, many), length) <= WIDTH), 1)
    rows = _rows(named, across)
    figure.set_figheight(figure.get_figheight() + _ROW * len(rows))
    # A legend goes column by column.
    names, handles = zip(*(entry for column in zip(*rows, strict=True) for entry in column), strict=True)
    figure.legend(handles, names, loc="outside lower center", ncols=across, columnspacing=1.5, handlelength=length)


def _rows(parts: Iterable[Sequence[tuple[str, Line2D]]], across: int) -> list[list[tuple[str, Line2D]]]:
    """The entries in rows, each part with its last row filled up by empty entries."""
    empty = ("", Line2D([], [], linestyle="none"))
    rows = ([*part[first : first + across]] for part in parts for first in range(0, len(part), across))
    return [row + [empty] * (across - len(row)) for row in rows]


def _width(rows: Iterable[Sequence[tuple[str, Line2D]]], length: float) -> float:
    """How wide a legend is in inches, about."""
    letters = (max(len(name) for name, _ in column) for column in zip(*rows, strict=True))
    return sum(_LETTER * many + _HANDLE + _EM * length for many in letters)


def marker(look: Look, theme: Theme, x: Sequence[float] = (), y: Sequence[float] = (), *, joined: bool) -> Line2D:
    """Points in a look, joined by its line or not; without places, what stands for them in a legend."""
    hollow = look.fill == "none"
    line = Line2D(
        x,
        y,
        color=look.colour,
        linestyle=look.dashes if joined else "none",
        linewidth=1,
        marker=look.marker,
        markersize=look.size,
        markerfacecolor=theme.paper if hollow else look.colour,
        markerfacecoloralt=theme.paper,
        fillstyle="full" if hollow else look.fill,
        clip_on=False,
        zorder=3,
    )
    line.set_in_layout(False)
    return line


def sentence(title: str, text: str) -> Picture:
    """A figure of nothing, which says so."""

    def draw(theme: Theme) -> Figure:
        figure = sheet(title, 1.2)
        axes = figure.subplots()
        axes.set_axis_off()
        axes.text(0.5, 0.5, text, ha="center", va="center", color=theme.soft)
        return figure

    return draw


def level(axes: Axes) -> None:
    """Lines behind the data, at the ticks of the y axis."""
    axes.grid(axis="y", linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def plain(text: str, most: int | None = None) -> str:
    """A text in one line of printable letters, at most so many; what is too long loses its middle."""
    line = " ".join(printable(text).split())
    if most is None or len(line) <= most:
        return line
    return f"{line[: most // 2]}…{line[len(line) - (most - 1) // 2 :]}"


def ladder(low: float, high: float) -> Iterator[float]:
    """The numbers 1, 2 and 5 and their tenfolds and tenths: from the last up to `low`, to the first from `high`."""
    rungs = [digit * 10.0**power for power in range(-4, 13) for digit in (1, 2, 5)]
    first = max((place for place, rung in enumerate(rungs) if rung <= low), default=0)
    for rung in rungs[first:]:
        yield rung
        if rung >= high:
            return
