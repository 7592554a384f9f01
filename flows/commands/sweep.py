"""`rectom sweep FILE.toml`: models x methods x benchmarks x settings x seeds, each cell a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from flows import loop
from flows.cell_table import fitting
from flows.cli import PARTIAL
from flows.commandline import CommandLine
from flows.evaluate import Conduct, conduct_plainly
from flows.home import home
from flows.matrix import Matrix, Planned, read
from flows.options import Finite
from flows.progress import Bars
from flows.purse import Purse
from flows.shared import Shared, sharing
from flows.sweep import Sweeper, chosen, figures
from rectom.errors import DataError
from rectom.printable import shown
from rectom.results.folder import hold
from rectom.results.statistics import wilson
from rectom.results.summary import different_of
from rectom.results.sweep import FAILED, FINISHED, Cell, Sweep

#: Does the work of a sweep: as it is, or as a flow of Prefect's.
Work: TypeAlias = Callable[[], Coroutine[Any, Any, Sweep]]
Within: TypeAlias = Callable[[Sweeper, Work], Coroutine[Any, Any, Sweep]]

_STYLES: Final = {FINISHED: "green", FAILED: "red"}


@click.command(name="sweep", short_help="Run a matrix of models, methods and benchmarks.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--plan", is_flag=True, help="Say what would be sent, and what it may cost; send nothing.")
@click.option("--only", "patterns", multiple=True, metavar="TEXT", help="Only cells whose names hold TEXT; repeatable.")
@click.option("--model", "models", multiple=True, help="A model instead of those of the file; repeatable.")
@click.option("--at-once", type=click.IntRange(1), help="Cells under way together, instead of what the file says.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions of every cell.")
@click.option("--retry-failed", is_flag=True, help="Ask again what failed, and only that.")
@click.option("--max-calls", type=click.IntRange(0), help="Stop when all cells together sent so many requests.")
@click.option("--max-tokens-total", type=click.IntRange(0), help="Stop when so many tokens were used.")
@click.option("--max-cost", type=Finite(0), help="Stop when so much money was spent.")
@click.option("--cache", type=click.Path(path_type=Path), envvar="RECTOM_CACHE", help="The store [RECTOM_CACHE].")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go.")
@click.option("--plain", is_flag=True, help="Without Prefect: no server, nothing to wait for.")
@click.option("--json", "as_json", is_flag=True, help="End with one line of JSON on standard output.")
def command(
    file: Path,
    plan: bool,
    patterns: tuple[str, ...],
    models: tuple[str, ...],
    at_once: int | None,
    limit: int | None,
    retry_failed: bool,
    cache: Path | None,
    runs: Path,
    plain: bool,
    as_json: bool,
    **budget: Any,
) -> int:
    """Run the cells of FILE, a TOML file of models, methods, benchmarks, settings and seeds.

    The same command again takes the sweep up where it was; cells that are finished are not done again. A cell is an
    ordinary run: `rectom runs` lists it, `rectom show` and `rectom compare` read it.
    """
    more = {**({"limit": limit} if limit else {}), **({"retry-failed": True} if retry_failed else {})}
    matrix = read(file, cache or home() / "cache", runs, more, models)
    planned = chosen(matrix.cells, patterns)
    purse = _purse(matrix, budget)
    if plan:
        return _plan(matrix.name, planned, purse, retry_failed, as_json)
    told = Console(stderr=True)
    for doubt in dict.fromkeys(filter(None, (one.settings.doubt for one in planned))):
        told.print(shown(f"note: {doubt}"), soft_wrap=True)
    with told.status("starting Prefect …") if not plain else told.status("starting …"):
        conduct, within = _conductors(plain)
    folder = runs / matrix.name
    with (
        closing(hold(folder, f"choose another name in {file}")),
        sharing(planned[0].settings.cache, purse, _endpoints(planned)) as shared,
    ):
        CommandLine.of(click.get_current_context()).keep(folder)
        purse.admit_currencies([one.settings.budget for one in planned if one.settings.asks_a_model()])
        sweeper = _sweeper(matrix, planned, folder, shared, conduct, retry_failed, told)
        sweep = loop.run(within(sweeper, lambda: sweeper.run(at_once or matrix.at_once)))
    with told.status("writing the report …"):
        page = _report(matrix.name, runs)
    console = told if as_json else Console()
    _print(sweep, runs, console)
    console.print(shown(f"report: {page}" if page else "no report, since no cell is finished"), soft_wrap=True)
    if as_json:
        click.echo(orjson.dumps(_json(sweep, runs)).decode())
    return 0 if _is_whole(sweep, runs) else PARTIAL


def _plan(name: str, planned: Sequence[Planned], purse: Purse, retry: bool, as_json: bool) -> int:
    from flows.commands.sweep_plan import show

    return 0 if show(name, planned, purse, retry, as_json) else PARTIAL


def _conductors(plain: bool) -> tuple[Conduct, Within]:
    if plain:
        return conduct_plainly, lambda _, work: work()
    from flows import prefect_server

    prefect_server.prepare()
    from flows.prefect_flow import conduct
    from flows.prefect_sweep import within

    return conduct, within


def _report(name: str, runs: Path) -> Path | None:
    """Write the report; None if there is nothing to report."""
    from flows.commands import report

    try:
        return report.make(name, runs)
    except DataError:
        return None


def _purse(matrix: Matrix, given: Mapping[str, Any]) -> Purse:
    """The budget of the command line, and of the file where the command line says nothing."""
    told = matrix.budget.model_dump() | {name: value for name, value in given.items() if value is not None}
    cost = told["max_cost"]
    return Purse(told["max_calls"], told["max_tokens_total"], None if cost is None else Decimal(str(cost)))


def _sweeper(
    matrix: Matrix,
    planned: Sequence[Planned],
    folder: Path,
    shared: Shared,
    conduct: Conduct,
    retry: bool,
    console: Console,
) -> Sweeper:
    """Who does the planned cells of a matrix; the others are as they were left."""
    return Sweeper(
        matrix.name,
        folder,
        matrix.cells,
        shared,
        conduct,
        Bars(console, named=True),
        others={one.cell.name for one in matrix.cells} - {one.cell.name for one in planned},
        retry=retry,
        told=lambda cell: _tell(console, cell),
        debug=os.environ.get("RECTOM_DEBUG") == "1",
    )


def _endpoints(planned: Sequence[Planned]) -> list[Any]:
    return [one.settings.endpoint for one in planned if one.settings.asks_a_model()]


def _tell(console: Console, cell: Cell) -> None:
    """A line when a cell has ended, or has to wait."""
    if cell.state in {"running"}:
        return
    why = f": {cell.why}" if cell.why else ""
    console.print(shown(f"{cell.state:>8}  {cell.name}{why}", _STYLES.get(cell.state, "yellow")), soft_wrap=True)


def _print(sweep: Sweep, runs: Path, console: Console) -> None:
    def table(title: str, names: Sequence[str]) -> Table:
        made = Table(title=shown(title, "table.title"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("cell", "accuracy", "95 % interval", "failed", "calls", "tokens"):
            made.add_column(name, justify="left" if name == "cell" else "right", overflow="fold")
        for name, cell in zip(names, sweep.cells, strict=True):
            made.add_row(shown(name), *_figures(cell, runs))
        return made

    console.print(fitting(console, f"sweep {sweep.name}: {sweep.state}", sweep.cells, table))
    for cell in sweep.cells:
        if cell.state != FINISHED:
            console.print(shown(f"{cell.state}: {cell.name}: {cell.why}"), soft_wrap=True)


def _figures(cell: Cell, runs: Path) -> list[str]:
    line = figures(cell, runs)
    if not line:
        return [cell.state, "", "", "", ""]
    low, high = wilson(line["accuracy"], different_of(line))
    calls, tokens = line["calls"], line["tokens"]
    numbers = (line["failed"], calls["sent"] + calls["cached"], tokens["prompt"] + tokens["completion"])
    return [f"{100 * line['accuracy']:.2f}", f"{100 * low:.1f} to {100 * high:.1f}", *(f"{n:,}" for n in numbers)]


def _json(sweep: Sweep, runs: Path) -> dict[str, Any]:
    cells = [{**asdict(cell), "summary": figures(cell, runs) or None} for cell in sweep.cells]
    return {"sweep": sweep.name, "state": sweep.state, "cells": cells}


def _is_whole(sweep: Sweep, runs: Path) -> bool:
    """Whether every cell is finished and no question failed."""
    return all(cell.state == FINISHED and not figures(cell, runs).get("failed") for cell in sweep.cells)
