"""Figures of runs, each in light and dark, as SVG and PNG.

A picture is made of plain data and a title, and drawn only where its files are asked for:
`files(by_order(lines, "Hi-ToM"), "orders")`. Colours are told apart by the colour-blind, and nothing is told by
colour alone.
"""

from rectom.results.figures.orders import Line, by_order
from rectom.results.figures.picture import Picture
from rectom.results.figures.saving import files
from rectom.results.figures.steps import Faults, by_step
from rectom.results.figures.times import Ask, over_time
from rectom.results.figures.tokens import Point, by_tokens

__all__ = [
    "Ask",
    "Faults",
    "Line",
    "Picture",
    "Point",
    "by_order",
    "by_step",
    "by_tokens",
    "files",
    "over_time",
]
