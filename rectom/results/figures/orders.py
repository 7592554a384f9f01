"""The accuracy of each method by order, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from textwrap import fill
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rectom.results.figures.picture import ACCURACY, Picture, legend, level, marker, plain, sentence, sheet
from rectom.results.figures.theme import Look, Theme
from rectom.results.statistics import Interval

#: Of the room of an order: how much all methods take, and at most two neighbours.
_DODGE, _APART = 0.72, 0.13
#: The letters for which the axis has room.
_LETTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Line:
    """The accuracy of a method, by order; `orders`, `accuracy` and `intervals` are parallel, shares are 0 to 1."""

    name: str
    orders: Sequence[str]
    accuracy: Sequence[float]
    intervals: Sequence[Interval]


def by_order(lines: Sequence[Line], title: str, among: Sequence[str] = ()) -> Picture:
    """Points with interval bars for each method and order, beside each other; numbered orders are joined by a line.

    `among` are the names of all methods of several figures, in which each then looks alike.
    """
    if not any(line.orders for line in lines):
        return sentence(title, "No question was answered.")
    return partial(_draw, lines, title, among)


def _draw(lines: Sequence[Line], title: str, among: Sequence[str], theme: Theme) -> Figure:
    figure = sheet(title, 3.6)
    axes = figure.subplots()
    orders = _orders(lines)
    _ground(axes, orders, theme)
    apart = min(_APART, _DODGE / len(lines))
    looks = [theme.look(among.index(line.name) if among else place) for place, line in enumerate(lines)]
    for place, (line, look) in enumerate(zip(lines, looks, strict=True)):
        _line(axes, line, look, orders, (place - (len(lines) - 1) / 2) * apart, theme)
    legend(figure, [(line.name, marker(look, theme, joined=True)) for line, look in zip(lines, looks, strict=True)])
    return figure


def _orders(lines: Sequence[Line]) -> dict[str, int]:
    """The places of all orders: those with numbers first, by number, the others as they come."""
    known = dict.fromkeys(order for line in lines for order in line.orders)
    ordered = sorted(known, key=lambda order: int(order) if order.isdecimal() else inf)
    return {order: place for place, order in enumerate(ordered)}


def _ground(axes: Axes, orders: dict[str, int], theme: Theme) -> None:
    for place in range(0, len(orders), 2):
        axes.axvspan(place - 0.5, place + 0.5, color=theme.tint, linewidth=0, zorder=0)
    room = max(8, _LETTERS // len(orders))
    axes.set_xticks(range(len(orders)), [fill(plain(order, 3 * room), room) for order in orders])
    axes.set_xlim(-0.5, len(orders) - 0.5)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("order" if any(map(str.isdecimal, orders)) else "")
    axes.set_ylim(0, 100)
    axes.set_ylabel(ACCURACY)
    level(axes)


def _line(axes: Axes, line: Line, look: Look, orders: dict[str, int], shift: float, theme: Theme) -> None:
    points = sorted(
        (orders[order] + shift, 100 * share, 100 * low, 100 * high, order.isdecimal())
        for order, share, (low, high) in zip(line.orders, line.accuracy, line.intervals, strict=True)
    )
    x, y, low, high, numbered = zip(*points, strict=True) if points else ([],) * 5
    axes.vlines(x, low, high, look.colour, lw=1.1)
    joined = sum(numbered)
    axes.add_line(marker(look, theme, x[:joined], y[:joined], joined=True))
    axes.add_line(marker(look, theme, x[joined:], y[joined:], joined=False))
