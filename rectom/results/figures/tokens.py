"""Accuracy against the tokens of a question, with the frontier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from rectom.results.figures.labels import Place, label
from rectom.results.figures.picture import ACCURACY, Picture, ladder, legend, level, marker, plain, sentence, sheet
from rectom.results.figures.theme import Theme
from rectom.results.statistics import Interval

#: The letters of a label.
_LABEL: Final = 40


@dataclass(frozen=True, slots=True)
class Point:
    """A method with a model: `tokens` a question, 0 where no model was asked; its accuracy with interval, 0 to 1.

    `name` is the method, `group` the model.
    """

    name: str
    tokens: float
    accuracy: float
    interval: Interval
    group: str = ""


def by_tokens(points: Sequence[Point], title: str, among: Sequence[str] = (), groups: Sequence[str] = ()) -> Picture:
    """Points with interval bars over a logarithmic axis, and the frontier with its labels.

    Methods have a colour and a marker each, those of `by_order` where they come in the same order; models fill the
    markers. Eight methods with six models are told apart. `among` and `groups` are the names of all methods and models
    of several figures, in which each then looks alike.
    """
    return partial(_draw, points, title, among, groups) if points else sentence(title, "No question was answered.")


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points than which no other takes fewer tokens and is better; lowest first, of equals one."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tokens, -point.accuracy)):
        if not found or point.accuracy > found[-1].accuracy:
            found.append(point)
    return found


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis of the tokens, in powers of ten: its ends, those of the data, and where points without tokens stand."""

    left: float
    low: float
    high: float
    right: float
    zero: float

    @classmethod
    def of(cls, points: Iterable[Point]) -> _Scale:
        asked = [log10(point.tokens) for point in points if point.tokens > 0] or [0.0]
        low, high = min(asked), max(asked)
        room = max(0.12 * (high - low), 0.05)
        all_asked = all(point.tokens > 0 for point in points)
        return cls(low - (1 if all_asked else 3) * room, low, high, high + room, low - 2 * room)

    def place(self, point: Point) -> Place:
        """Where a point stands, in tokens and percent."""
        return point.tokens if point.tokens > 0 else 10**self.zero, 100 * point.accuracy

    @property
    def ticks(self) -> dict[float, str]:
        """Round numbers of tokens, as they are written."""
        rungs = [rung for rung in ladder(10**self.low, 10**self.high) if self.low < log10(rung) < self.right]
        tens = [rung for rung in rungs if log10(rung).is_integer()]
        return {rung: f"{rung:,g}" for rung in (tens if len(rungs) > 8 else rungs)}


def _draw(points: Sequence[Point], title: str, among: Sequence[str], groups: Sequence[str], theme: Theme) -> Figure:
    methods, models = (list(dict.fromkeys(names)) for names in zip(*((p.name, p.group) for p in points), strict=True))
    looks, fills = ({name: place for place, name in enumerate(names)} for names in (among or methods, groups or models))
    figure, scale = sheet(title, 3.8), _Scale.of(points)
    axes = figure.subplots()
    _ground(axes, points, scale, theme)
    bars = [[scale.place(replace(point, accuracy=end)) for end in point.interval] for point in points]
    for point, bar in zip(points, bars, strict=True):
        look, (x, y) = theme.look(looks[point.name], fills[point.group]), scale.place(point)
        axes.plot(*zip(*bar, strict=True), color=look.colour, linewidth=1, alpha=0.7)
        axes.add_line(marker(look, theme, [x], [y], joined=False))
    best = frontier(points)
    corners = _corners([*map(scale.place, best), (10**scale.right, 100 * best[-1].accuracy)])
    edge = Line2D(*zip(*corners, strict=True), color=theme.soft, linewidth=1.2, zorder=1)
    axes.add_line(edge)
    several = len(models) > 1
    by_method = [(name, marker(theme.look(looks[name]), theme, joined=False)) for name in methods]
    by_model = [(name, _of_model(fills[name], theme)) for name in models] if several else []
    legend(figure, by_method, [*by_model, ("frontier", edge)], length=1.8)
    names = [plain(f"{point.name} · {point.group}" if several else point.name, _LABEL) for point in best]
    label(figure, axes, names, list(map(scale.place, best)), [*bars, *pairwise(corners)])
    return figure


def _of_model(place: int, theme: Theme) -> Line2D:
    """What stands for a model in a legend: a marker of no method, as the model fills them."""
    return marker(replace(theme.look(0, place), colour=theme.soft, marker="H", size=7.0), theme, joined=False)


def _ground(axes: Axes, points: Sequence[Point], scale: _Scale, theme: Theme) -> None:
    ticks = scale.ticks
    if not all(point.tokens > 0 for point in points):
        axes.axvspan(10**scale.left, 10 ** ((scale.zero + scale.low) / 2), color=theme.tint, linewidth=0, zorder=0)
        ticks = {10**scale.zero: "0\n(no model)", **ticks}
    axes.set_xscale("log")
    axes.set_xlim(10**scale.left, 10**scale.right)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("tokens a question, alone")
    lows, highs = zip(*(point.interval for point in points), strict=True)
    axes.set_ylim(max(0, 10 * floor(10 * min(lows) - 0.2)), min(100, 10 * ceil(10 * max(highs) + 0.2)))
    axes.set_ylabel(ACCURACY)
    level(axes)


def _corners(places: Sequence[Place]) -> list[Place]:
    """The steps from each place to the next: to the right, then up."""
    turns = [[place, (after[0], place[1])] for place, after in pairwise(places)]
    return [*(corner for turn in turns for corner in turn), places[-1]]
