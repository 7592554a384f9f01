"""Light and dark: the colours of a figure, and the looks by which its series are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Fill: TypeAlias = Literal["full", "none", "left", "bottom", "right", "top"]

#: What is written in figures is at least so large, in points: 11 pixels where a figure is shown 700 pixels wide.
SMALL: Final = 8.0

_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
#: A star looks smaller than a square of the same size.
_SIZES: Final = {"o": 6.0, "s": 5.5, "^": 6.5, "D": 5.2, "v": 6.5, "P": 7.0, "X": 7.0, "*": 9.0}
#: Solid, dashed, dotted and mixed, in multiples of the width of the line.
_DASHES: Final = (
    (0, ()),
    (0, (5, 1.5)),
    (0, (1, 1.5)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (9, 2)),
    (0, (2, 1, 1, 1)),
)
#: How markers are filled: by group, and differently again where there are more series than colours.
_FILLS: Final[tuple[Fill, ...]] = ("full", "none", "left", "bottom", "right", "top")


@dataclass(frozen=True, slots=True)
class Look:
    """How a series is drawn: its colour, its marker with its size in points and its fill, and the dashes of its line.

    What is not filled has the colour of the paper.
    """

    colour: str
    marker: str
    size: float
    fill: Fill
    dashes: tuple[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a figure, as `#rrggbb`.

    `paper` is the background, `ink` what is written, `soft` what matters less, `rule` and `tint` lines and areas behind
    the data, and `accent` areas that are data. `series` have a contrast of at least 3 to the paper, and in greys each
    differs from the next. `suffix` marks the files of the theme.
    """

    suffix: str
    paper: str
    ink: str
    soft: str
    rule: str
    tint: str
    accent: str
    series: tuple[str, ...]

    def look(self, series: int, group: int = 0) -> Look:
        """The look of a series in a group, both from 0.

        Eight series are told apart in each of six groups, or forty-eight where there is one group alone.
        """
        turn, place = divmod(series, len(self.series))
        marker, fill = _MARKERS[place], _FILLS[(turn + group) % len(_FILLS)]
        return Look(self.series[place], marker, _SIZES[marker], fill, _DASHES[place])

    def style(self) -> dict[str, Any]:
        """The theme as settings of matplotlib, over its defaults."""
        return {
            **dict.fromkeys(("figure.facecolor", "axes.facecolor"), self.paper),
            **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), self.ink),
            **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), self.soft),
            **dict.fromkeys(("axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 9),
            **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
            "grid.color": self.rule,
            "axes.axisbelow": True,
            "figure.titlesize": 11,
            "figure.constrained_layout.use": True,
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
            "font.size": 9,
            # Names come from files: a dollar sign in one is a dollar sign.
            "text.parse_math": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "rectom",
        }


LIGHT: Final = Theme(
    suffix="",
    paper="#ffffff",
    ink="#1d2330",
    soft="#5c6577",
    rule="#d9dde5",
    tint="#f4f6f9",
    accent="#1f5fbf",
    series=("#1d2330", "#d47b00", "#003d94", "#99639d", "#842c19", "#0f95fc", "#257b5b", "#8c9755"),
)
DARK: Final = Theme(
    suffix=".dark",
    paper="#14171d",
    ink="#e4e7ed",
    soft="#9aa4b5",
    rule="#333a47",
    tint="#1c2029",
    accent="#85b4ff",
    series=("#e4e7ed", "#d99000", "#105fda", "#f05ab1", "#c72623", "#09cfff", "#2f9e5e", "#ffd17c"),
)
