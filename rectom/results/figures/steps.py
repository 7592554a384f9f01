"""Where wrong answers went wrong, by step and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from rectom.results.figures.picture import Picture, plain, sentence, sheet
from rectom.results.figures.theme import Theme

#: Red, green and blue, 0 to 1.
Colour: TypeAlias = tuple[float, float, float]

#: In inches.
_ROW: Final = 0.3


@dataclass(frozen=True, slots=True)
class Faults:
    """How many wrong answers have a step at fault: a row of `counts` a step, and in it a number an order."""

    steps: Sequence[str]
    orders: Sequence[str]
    counts: Sequence[Sequence[int]]


def by_step(faults: Faults, title: str) -> Picture:
    """A field a step and order, the darker the more answers went wrong there, with the number; and bars of all orders.

    In the dark theme, the lighter.
    """
    if not any(map(any, faults.counts)):
        return sentence(title, "No wrong answer has a step at fault.")
    return partial(_draw, faults, title)


def _draw(faults: Faults, title: str, theme: Theme) -> Figure:
    figure = sheet(title, 1.1 + _ROW * len(faults.steps))
    fields, bars = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    _fields(fields, faults, theme)
    _bars(bars, [sum(row) for row in faults.counts], theme)
    fields.set_yticks(range(len(faults.steps)), [plain(step, 28) for step in faults.steps])
    fields.set_ylim(len(faults.steps) - 0.5, -0.5)
    return figure


def _fields(axes: Axes, faults: Faults, theme: Theme) -> None:
    shades = LinearSegmentedColormap.from_list("faults", [theme.tint, theme.accent])
    most = max(map(max, faults.counts))
    edges = [np.arange(many + 1) - 0.5 for many in (len(faults.orders), len(faults.steps))]
    axes.pcolormesh(*edges, faults.counts, cmap=shades, vmin=0, vmax=most, edgecolors=theme.paper, linewidth=2)
    for row, numbers in enumerate(faults.counts):
        for column, number in enumerate(numbers):
            colour = _readable(to_rgb(shades(number / most)))
            axes.text(column, row, f"{number:,}" if number else "·", ha="center", va="center", color=colour)
    totals = [sum(column) for column in zip(*faults.counts, strict=True)]
    names = [f"{fill(plain(order, 24), 12)}\n({total:,})" for order, total in zip(faults.orders, totals, strict=True)]
    axes.set_xticks(range(len(faults.orders)), names)
    axes.set_xlabel("order (wrong answers)")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _bars(axes: Axes, totals: Sequence[int], theme: Theme) -> None:
    axes.barh(range(len(totals)), totals, height=0.7, color=theme.accent)
    for row, total in enumerate(totals):
        share = 100 * total / sum(totals)
        told = f"{total:,} ({share:.0f} %)" if share >= 0.5 or not total else f"{total:,} (< 1 %)"
        axes.annotate(told, (total, row), (3, 0), textcoords="offset points", va="center")
    axes.set_xlim(0, max(totals) * 2.2)
    axes.set_xticks([])
    axes.set_xlabel("all orders", loc="left")
    axes.tick_params(length=0, labelleft=False)
    axes.spines["bottom"].set_visible(False)


def _readable(ground: Colour) -> str:
    """Of black and white, what stands out more from a ground: at least by 4.5."""
    return max(("#000000", "#ffffff"), key=lambda colour: contrast(to_rgb(colour), ground))


def contrast(one: Colour, other: Colour) -> float:
    """The contrast of two colours by WCAG 2.2, 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = ((part / 12.92) if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
