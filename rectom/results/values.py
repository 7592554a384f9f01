"""Figures as the cells of a sheet: rounded, with their intervals, and with the paper's beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rectom.results.comparison import Figures
from rectom.results.finished import Answered
from rectom.results.grid import Filled
from rectom.results.sheet import Value
from rectom.results.statistics import Interval


def accuracy(questions: Sequence[Answered], significant: bool = False) -> Value:
    """The accuracy on some questions, in percent, with Wilson's interval."""
    if not questions:
        return Value()
    figures = Figures.of(questions)
    return percent(figures.accuracy, figures.interval, significant)


def percent(share: float, ends: Interval | None, significant: bool = False) -> Value:
    """A share, or a difference of two, in percent."""
    return _figure(100 * share, ends and (100 * ends[0], 100 * ends[1]), ".1f", significant)


def eff(points: float, ends: Interval | None) -> Value:
    """Points of accuracy for each further 1,000 tokens."""
    return _figure(points, ends, ".2f")


def thousands(tokens: float, ends: Interval | None) -> Value:
    """Tokens in thousands: `6.62K`; the number in the cell is that of tokens."""
    inner = ends and (ends[0] / 1000, ends[1] / 1000)
    return Value(f"{tokens / 1000:.2f}K", tokens, _span(inner, ".2f"), ends)


def count(number: int) -> Value:
    """A number of things."""
    return Value(str(number), number)


def many(number: float) -> Value:
    """A large number of things: `458,743`."""
    return Value(f"{number:,.0f}", number)


def duration(seconds: float | None) -> Value:
    """Seconds as `1:07:45`, hours, minutes and seconds; the number in the cell is that of seconds."""
    if seconds is None:
        return Value()
    minutes, rest = divmod(round(seconds), 60)
    return Value(f"{minutes // 60}:{minutes % 60:02}:{rest:02}", seconds)


def official(cell: Filled) -> Value:
    """The official measure over all questions of a cell, as its runs' tables tell it: the mean of theirs."""
    found = [measure[1] for _, folder in cell.finished if (measure := official_of(folder))]
    return eff(sum(found) / len(found), None) if found else Value()


def official_of(folder: Path) -> tuple[str, float] | None:
    """The official measure of a run, where that is not the accuracy: its name, and its value in percent."""
    try:
        with (folder / "tables" / "official.csv").open(encoding="utf-8", newline="") as file:
            # Those of single groups have the group after a colon.
            name, _, value = next(row for row in csv.reader(file) if row[1].isdigit() and ":" not in row[0])
            return name, float(value)
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def printed(number: float | None, key: str) -> Value:
    """A number of the paper's, as it is printed there; `key` is its column in `paper.toml`."""
    if number is None:
        return Value()
    if key.endswith(" tok"):
        return Value(f"{number:.1f}K", 1000 * number)
    return Value(f"{number:.1f}" if key.endswith(" eff") else f"{number:.2f}", number)


def beside(value: Value, number: float | None, key: str) -> Value:
    """A value with the paper's number beside it, and ours less the paper's where both are there."""
    theirs = printed(number, key)
    if theirs.number is None:
        return value
    apart = ""
    if value.number is not None:
        less = value.number - theirs.number
        apart = f"{less / 1000:+z.2f}K" if key.endswith(" tok") else f"{less:+z.2f}"
    return replace(value, paper=theirs.text, paper_number=theirs.number, apart=apart)


def _figure(number: float, ends: Interval | None, form: str, significant: bool = False) -> Value:
    return Value(_plain(number, ".2f"), number, _span(ends, form), ends, significant=significant)


def _span(ends: Interval | None, form: str) -> str:
    return f"{_plain(ends[0], form)}, {_plain(ends[1], form)}" if ends else ""


def _plain(number: float, form: str) -> str:
    """A figure without a minus where it is rounded to nothing."""
    text = format(number, form)
    return text if float(text) else text.removeprefix("-")
