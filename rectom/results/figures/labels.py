"""Labels beside points, where they hide least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rectom.results.figures.theme import SMALL

Place: TypeAlias = tuple[float, float]
#: In pixels: left, bottom, right and top.
_Box: TypeAlias = tuple[float, float, float, float]

#: Where the label of a point may stand, in points from it: the nearest first, and of those the upper left.
_OFFSETS: Final = [
    *((x, y) for far in (6, 16) for y, x in product((far, 0, -far), (-6, 6))),
    *((0, y) for far in (8, 16, 24, 32, 40) for y in (far, -far)),
]
#: What a point of distance counts as, in square pixels that are hidden.
_FAR: Final = 8.0
#: The share of a label that is left of or below where it is fixed, by `_side`.
_BEFORE: Final = (0.5, 0.0, 1.0)
#: In pixels: what is kept free around points and bars.
_FREE: Final = 4.0


def label(
    figure: Figure, axes: Axes, names: Sequence[str], places: Sequence[Place], bars: Iterable[Sequence[Place]]
) -> None:
    """Write each name beside its place, so that it hides little: of the bars, the places and the other names.

    A bar is its two ends. The limits of the axes are to be set before.
    """
    figure.draw_without_rendering()
    taken = [_around(axes.transData.transform(bar).tolist()) for bar in (*bars, *([place] for place in places))]
    left, bottom, right, top = axes.bbox.extents
    inside = (left, bottom, right, top)
    for name, place in zip(names, places, strict=True):
        text = axes.annotate(name, place, (0, 0), textcoords="offset points", fontsize=SMALL, fontweight="bold")
        text.set_in_layout(False)
        (x, y), size = axes.transData.transform(place).tolist(), text.get_window_extent()
        boxes = [_box((x, y), (size.width, size.height), offset, figure.dpi / 72) for offset in _OFFSETS]
        costs = [_hidden(box, taken, inside) + _FAR * abs(up) for box, (_, up) in zip(boxes, _OFFSETS, strict=True)]
        best = costs.index(min(costs))
        text.xyann = across, up = _OFFSETS[best]
        text.set(ha=("center", "left", "right")[_side(across)], va=("center", "bottom", "top")[_side(up)])
        taken.append(boxes[best])


def _around(corners: Sequence[Sequence[float]]) -> _Box:
    across, up = zip(*corners, strict=True)
    return min(across) - _FREE, min(up) - _FREE, max(across) + _FREE, max(up) + _FREE


def _box(place: Place, size: Place, offset: Place, pixels: float) -> _Box:
    """Where a text of a size stands with an offset from a place; a point has so many `pixels`."""
    (across, up), (width, height) = offset, size
    left = place[0] + pixels * across - width * _BEFORE[_side(across)]
    bottom = place[1] + pixels * up - height * _BEFORE[_side(up)]
    return left, bottom, left + width, bottom + height


def _side(offset: float) -> int:
    """0 for none, 1 for right or above, -1 for left or below."""
    return (offset > 0) - (offset < 0)


def _hidden(box: _Box, taken: Iterable[_Box], inside: _Box) -> float:
    """How much a label would hide, as an area; what it has outside of the axes counts ten times."""
    return 10 * (_shared(box, box) - _shared(box, inside)) + sum(_shared(box, other) for other in taken)


def _shared(one: _Box, other: _Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0) * max(height, 0)
