"""Figures as files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

from matplotlib import style

from rectom.results.figures.picture import Picture
from rectom.results.figures.theme import DARK, LIGHT, Theme

#: How each format is written: without the day and the program, so that the same figure has the same bytes.
_FORMATS: Final[dict[str, dict[str, Any]]] = {
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "png": {"metadata": {"Software": None}, "dpi": 200},
}


def files(picture: Picture, name: str) -> Iterator[tuple[str, bytes]]:
    """NAME.svg, NAME.png, NAME.dark.svg and NAME.dark.png, each with its name. PNG are 1,400 pixels wide; the text of
    SVG is text.

    Not to be called in two threads at once: the settings of matplotlib are those of the process.
    """
    for theme in (LIGHT, DARK):
        for form, data in _drawn(picture, theme).items():
            yield f"{name}{theme.suffix}.{form}", data


def _drawn(picture: Picture, theme: Theme) -> dict[str, bytes]:
    drawn = {}
    with style.context(theme.style(), after_reset=True), warnings.catch_warnings():
        # A name may have letters that the font lacks: the SVG has them all the same, and the PNG shows boxes.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        figure = picture(theme)
        for form, settings in _FORMATS.items():
            sink = BytesIO()
            figure.savefig(sink, format=form, **settings)
            drawn[form] = sink.getvalue()
    return drawn
