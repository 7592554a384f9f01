"""`rectom runs`: the runs and sweeps there are."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import orjson

from rectom.results.folder import in_name
from rectom.results.listing import (
    DAMAGED,
    FAILED,
    FINISHED,
    KILLED,
    RUNNING,
    STATES,
    Listed,
    is_called,
    listed,
    printed,
)

_SORTS: Final[dict[str, Callable[[Listed], Any]]] = {
    "age": lambda one: -(one.since.timestamp() if one.since else 0.0),
    "accuracy": lambda one: -(one.accuracy if one.accuracy is not None else -1.0),
    "cost": lambda one: (-(one.money or 0), -(one.tokens or 0)),
    "name": lambda one: one.name,
}

_STYLES: Final = {FINISHED: "green", RUNNING: "cyan", FAILED: "red", DAMAGED: "red", KILLED: "red"}

#: The columns of figures, between the name and what else there is to say.
_HEADER: Final = ("state", "accuracy", "done", "calls", "tokens", "money", "took", "age")


@click.command(name="runs", short_help="List runs and sweeps: state, accuracy, cost, age.")
@click.argument("patterns", nargs=-1, metavar="[NAME...]")
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option(
    "--sort",
    type=click.Choice(list(_SORTS)),
    default="age",
    show_default=True,
    help="Latest, most right, dearest or first by name on top.",
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON a run.")
def command(patterns: tuple[str, ...], place: Path, state: str | None, sort: str, as_json: bool) -> None:
    """List runs and sweeps: state, accuracy with its interval in percent, cost and age. NAME may hold `*`; that of a
    sweep lists the runs of its cells as well.

    A run is `partial` if it is finished but questions failed, `unbegun` if it ended before it asked anything, and
    `killed` if nobody works on it although it has not ended; `rectom resume` takes it up again.
    """
    there = list(listed(place))
    meant = _meant(there, patterns) if patterns else there
    found = sorted((one for one in meant if state in {None, one.state}), key=_SORTS[sort])
    if not found:
        click.echo(_nothing(len(there), place), err=True)
    elif as_json:
        for one in found:
            click.echo(orjson.dumps(one.to_json()).decode())
    else:
        _print(found)


def _meant(there: Sequence[Listed], patterns: Sequence[str]) -> list[Listed]:
    """What the names mean: of a sweep its runs, too."""
    named = [one for one in there if any(is_called(one.name, pattern) for pattern in patterns)]
    names = {name for one in named for name in (one.name, *one.runs)}
    return [one for one in there if one.name in names]


def _nothing(there: int, place: Path) -> str:
    if there:
        return f"none of the {there} runs in {place} is meant: rectom runs lists all"
    return f"no runs in {place}: `rectom run` makes one, --runs says where they are"


def _print(found: Sequence[Listed]) -> None:
    """A line each; two lines in a terminal that is too narrow, so that a name can be copied."""
    now = datetime.now(UTC)
    rows = [_HEADER, *(_figures(one, now) for one in found)]
    widths = [max(map(len, cells)) for cells in list(zip(*rows[1:], strict=True))]
    widths = [max(width, len(head)) if width else 0 for width, head in zip(widths, _HEADER, strict=True)]
    names = ["name", *map(printed, (one.name for one in found))]
    more = ["", *map(_more, found)]
    longest = max(map(len, names))
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    narrow = room < longest + sum(width + 2 for width in widths) + max(map(len, more))
    for name, cells, also in zip(names, rows, more, strict=True):
        figures = _line(cells, widths)
        if narrow:
            click.echo(f"{name}  {also}".rstrip() + f"\n{figures}")
        else:
            click.echo(f"{name:{longest}}{figures}  {also}".rstrip())


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The figures of a run below one another; a column in which nobody has any is left out."""
    state, *numbers = cells
    told = [click.style(f"{state:{widths[0]}}", _STYLES.get(state))]
    told += [f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True) if width]
    return "".join(f"  {cell}" for cell in told)


def _figures(one: Listed, now: datetime) -> tuple[str, ...]:
    accuracy = ""
    if one.accuracy is not None and one.interval is not None:
        low, high = (100 * end for end in one.interval)
        accuracy = f"{100 * one.accuracy:.1f} [{low:.0f},{high:.0f}]"
    whole = "" if one.questions in {None, one.answered} else f"/{one.questions}"
    return (
        one.state,
        accuracy,
        "" if one.answered is None else f"{one.answered}{whole}",
        _short(one.calls),
        _short(one.tokens),
        "" if one.money is None else f"{one.money:.2f} {printed(one.currency)}",
        "" if one.wall_s is None else _span(one.wall_s),
        "" if one.since is None else _span((now - one.since).total_seconds()),
    )


def _more(one: Listed) -> str:
    """What the figures leave out."""
    if one.cells is not None:
        cells = ", ".join(f"{count} {state}" for state, count in one.cells.items())
        return f"sweep: {cells or 'no cells'}"
    failed = [f"{one.failed} failed"] if one.failed else []
    is_named = one.name.startswith(f"{one.benchmark.replace('/', '-')}.{in_name(one.method)}")
    named = [] if is_named else [one.benchmark, one.method, one.model]
    return printed(" · ".join(filter(None, [*named, one.setting, *failed])))


def _short(number: int | None) -> str:
    if number is None:
        return ""
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if number >= 10 * size:
            return f"{number / size:.0f}{unit}"
    return str(number)


def _span(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
