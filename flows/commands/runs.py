"""`rectom runs`: the runs and sweeps there are."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from rectom.results.listing import Listed, listed

_SORTS: Final[dict[str, Callable[[Listed], Any]]] = {
    "age": lambda one: -(one.since.timestamp() if one.since else 0.0),
    "accuracy": lambda one: -(one.accuracy if one.accuracy is not None else -1.0),
    "cost": lambda one: -(one.tokens or 0),
    "name": lambda one: one.name,
}

_STYLES: Final = {"finished": "green", "running": "cyan", "failed": "red", "damaged": "red", "killed": "red"}


@click.command(name="runs")
@click.argument("patterns", nargs=-1, metavar="[NAME...]")
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--state", help="Only those in this state: finished, partial, running, killed, stopped, …")
@click.option("--sort", type=click.Choice(list(_SORTS)), default="age", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON a run.")
def command(patterns: tuple[str, ...], place: Path, state: str | None, sort: str, as_json: bool) -> None:
    """List runs and sweeps: state, accuracy, cost and age. NAME may hold `*`.

    A run is `killed` if it did not come to its end and nobody works on it; `rectom resume` takes it up again.
    """
    found = [
        one
        for one in listed(place)
        if (not patterns or any(fnmatch.fnmatch(one.name, pattern) for pattern in patterns))
        and state in {None, one.state}
    ]
    found.sort(key=_SORTS[sort])
    if as_json:
        import orjson

        for one in found:
            click.echo(orjson.dumps(asdict(one)).decode())
    else:
        _print(found, place)


def _print(found: Sequence[Listed], place: Path) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not found:
        console.print(f"no such runs in {place}; rectom run makes one", highlight=False, soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "state", "accuracy", "calls", "tokens", "money", "age"):
        left = heading in {"name", "state"}
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    now = datetime.now(UTC)
    for one in found:
        table.add_row(Text(one.name), Text(one.state, _STYLES.get(one.state, "yellow")), *_figures(one), _age(one, now))
    console.print(table)


def _figures(one: Listed) -> tuple[str, str, str, str]:
    if one.cells is not None:
        cells = ", ".join(f"{count} {state}" for state, count in one.cells.items())
        return cells, "", "", ""
    if one.accuracy is None or one.interval is None:
        return f"{one.answered} answered" if one.answered is not None else "", "", "", ""
    low, high = one.interval
    failed = f", {one.failed} failed" if one.failed else ""
    accuracy = f"{100 * one.accuracy:.1f} [{100 * low:.0f}, {100 * high:.0f}]{failed}"
    return accuracy, f"{one.calls:,}", f"{one.tokens:,}", one.money


def _age(one: Listed, now: datetime) -> str:
    if one.since is None:
        return ""
    seconds = max(0, int((now - one.since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
