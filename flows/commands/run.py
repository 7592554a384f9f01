"""`rectom run`: evaluate a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from flows import loop
from flows.cli import PARTIAL
from flows.commandline import CommandLine
from flows.evaluate import Conduct, Evaluated, conduct_plainly, evaluate
from flows.options import run_options, settings_from
from flows.progress import Bars
from flows.settings import PERMUTABLE
from flows.tolerance import kinds
from rectom.printable import shown
from rectom.results.summary import Cost, Money
from rectom.results.tables import (
    GROUPS_HEADER,
    HEADER,
    OFFICIAL_HEADER,
    accuracy_rows,
    group_rows,
    official_rows,
)


@click.command(name="run")
@run_options
@click.option("--plain", is_flag=True, help="Without Prefect: no server, nothing to wait for.")
@click.option("--json", "as_json", is_flag=True, help="End with one line of JSON on standard output.")
def command(plain: bool, as_json: bool, **options: Any) -> int:
    """Evaluate RecToM, or another method, on a benchmark: a run folder with tables, traces and a page.

    The same command again takes the run up where it was, and sends nothing that was answered before.
    """
    settings = settings_from(options)
    settings.by_step()  # a wrong option is said before anything is imported or read
    told = Console(stderr=True)
    if settings.doubt:
        told.print(shown(f"note: {settings.doubt}"), soft_wrap=True)
    with told.status("starting Prefect …") if not plain else told.status("starting …"):
        conduct = conduct_plainly if plain else _under_prefect()
    line = CommandLine.of(click.get_current_context())
    done = loop.run(evaluate(settings, conduct, Bars(told), command=line))
    _print(done, settings.samples, told if as_json else Console())
    if as_json:
        click.echo(orjson.dumps(done.line).decode())
    return PARTIAL if done.line["failed"] else 0


def _under_prefect() -> Conduct:
    from flows import prefect_server

    prefect_server.prepare()
    from flows.prefect_flow import conduct

    return conduct


def _print(done: Evaluated, samples: int, console: Console) -> None:
    line = done.line
    title = f"{line['method']} · {line['benchmark']}/{line['subset']} · {line['model']}"
    rows = accuracy_rows(done.outcomes, samples)
    console.print(_table(title, HEADER, rows, set_apart=len(rows) > 1))
    groups, measures = group_rows(done.outcomes, samples), official_rows(done.measures)
    for header, more in ((GROUPS_HEADER, groups), (OFFICIAL_HEADER, measures)):
        if more:
            console.print(_table(None, header, more))
    for warning in done.warnings:
        console.print(shown(f"note: {warning}"))
    if any(f"+{kind}." in line["subset"] for kind in PERMUTABLE):
        console.print(_beside(line, done.unpermuted), highlight=False, soft_wrap=True)
    if done.failures:
        console.print(shown(f"failed, and counted as wrong: {kinds(done.failures)}"), soft_wrap=True)
    console.print(_cost(done.cost, line["questions"]), highlight=False, soft_wrap=True)
    if done.cost.sent + done.cost.cached:
        console.print(shown(_money(done.money, line["model"])), soft_wrap=True)
    console.print(shown(f"report: {done.report}"), soft_wrap=True)


def _table(
    title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]], *, set_apart: bool = False
) -> Table:
    """A table whose last row is set apart where it sums up the others."""
    table = Table(title=title and shown(title, "table.title"))
    for name in header:
        table.add_column(name, justify="left" if name == header[0] else "right")
    for number, row in enumerate(rows, 2):
        table.add_row(*map(shown, row), end_section=set_apart and number == len(rows))
    return table


def _beside(line: Mapping[str, Any], plain: Mapping[str, Any] | None) -> str:
    """The score of a permuted benchmark beside that of the benchmark as it is."""
    if plain is None:
        return "unpermuted: not run yet; the same command without --permute shows both scores"
    change = 100 * (line["accuracy"] - plain["accuracy"])
    return (
        f"unpermuted: {plain['correct']} of {plain['questions']} right; permuted: {line['correct']} of "
        f"{line['questions']} ({change:+.2f} points)"
    )


def _cost(cost: Cost, questions: int) -> str:
    if not cost.sent + cost.cached:
        return "calls: none, everything was read by rule"
    share = (cost.sent + cost.cached) / max(1, questions)
    return (
        f"calls: {cost.sent} sent, {cost.cached} from the store, {cost.shared} shared, {cost.retried} retried"
        f" ({share:.2f} a question) · tokens: {cost.billed} billed, {cost.standalone} without sharing"
    )


def _money(money: Money, model: str) -> str:
    if money.whole is None:
        return f"money: unknown, since the price of {model} is not declared"
    billed = "unknown" if money.billed is None else f"{money.billed:.4f} {money.currency}"
    return f"money: {billed} billed, {money.whole:.4f} {money.currency} for all replies (prices of {money.date})"
