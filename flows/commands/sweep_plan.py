"""`rectom sweep FILE --plan`: the cells, and what each would send and may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from flows import loop
from flows.cell_table import fitting
from flows.matrix import Planned
from flows.plan import CHARACTERS, IN_JSON_TOKENS, IN_WORDS_TOKENS, Estimate, Planner, total
from flows.purse import Purse
from flows.shared import sharing
from rectom.printable import shown
from rectom.results.sweep import FAILED, FINISHED

_NOTES = (
    "calls: requests to be sent that the store has no reply to, counted with the first cell that would send them;",
    "       what follows a reply that is not there yet is told by rule, where rules read the text, or guessed",
    f"tokens: prompts at {CHARACTERS} characters a token, without reply schemas, which some services count, too;",
    f"       replies as long as those in the store to the same step, or {IN_WORDS_TOKENS} tokens in words and",
    f"       {IN_JSON_TOKENS} in JSON where there are none",
)


def show(name: str, planned: Sequence[Planned], purse: Purse, retry: bool, as_json: bool) -> bool:
    """Print what the cells of a sweep would come to. False if none of them can be begun."""
    told = Console(stderr=True)
    with sharing(planned[0].settings.cache, purse, []) as shared, told.status("planning …"):
        estimates = loop.run(_estimates(Planner(shared, retry), planned))
    if as_json:
        click.echo(orjson.dumps(_json(name, estimates)).decode())
    else:
        _print(name, estimates, Console())
    return any(one.state != FAILED for one in estimates)


async def _estimates(planner: Planner, planned: Sequence[Planned]) -> list[Estimate]:
    return [await planner.estimate(one) for one in planned]


def _print(name: str, estimates: Sequence[Estimate], console: Console) -> None:
    def table(title: str, names: Sequence[str]) -> Table:
        return _table(title, names, estimates)

    console.print(fitting(console, f"sweep {name}: what would be sent", [one.cell for one in estimates], table))
    for one in estimates:
        if one.state == FAILED:
            console.print(shown(f"cannot begin: {one.cell.name}: {one.why}"), soft_wrap=True)
    console.print(*_NOTES, sep="\n", highlight=False)


def _table(title: str, names: Sequence[str], estimates: Sequence[Estimate]) -> Table:
    table = Table(title=shown(title, "table.title"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("cell", "questions", "in store", "calls", "tokens in", "tokens out", "money"):
        table.add_column(heading, justify="left" if heading == "cell" else "right", overflow="fold")
    for name, one in zip(names, estimates, strict=True):
        table.add_row(shown(name), *_row(one), end_section=one is estimates[-1])
    table.add_row("all cells", *_row(total(estimates)))
    return table


def _row(one: Estimate) -> list[str]:
    if one.state in {FINISHED, FAILED}:
        return [f"{one.questions:,}" if one.questions else "", one.state, "0", "0", "0", ""]
    numbers = (one.questions, one.held, one.calls, one.prompt, one.completion)
    return [*(f"{number:,}" for number in numbers), _money(one)]


def _money(one: Estimate) -> str:
    if one.money is None:
        return "unknown"
    return f"{one.money:.2f} {one.currency}".strip() if one.money else "0"


def _json(name: str, estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {"sweep": name, "cells": [_line(one) for one in estimates], "all": _line(total(estimates))}


def _line(one: Estimate) -> dict[str, Any]:
    money = None if one.money is None else str(one.money.quantize(Decimal("0.000001")))
    return {**asdict(one), "cell": one.cell.name, "money": money}
