"""`rectom explain run …`: what a run would compute, and why. Nothing is sent or stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cache import Reason, Store
from flows import loop
from flows.evaluate import load_benchmark, samples
from flows.model import open_client
from flows.options import run_options, settings_from
from flows.pipeline import STAGES, pipeline, run_plainly, shards
from flows.settings import Settings
from rectom.printable import shown
from tasks.run import Run, running


@click.command(name="explain", short_help="Say what a run would compute, and why.")
@click.argument("run", type=click.Choice(["run"]), required=True)
@run_options
@click.option("--plain", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, hidden=True)
def command(run: str, plain: bool, as_json: bool, **options: Any) -> None:
    """Explain `rectom run …`: per stage, how many items would be computed, and the reason with the field that differs.

    Write the whole run command behind `explain`. Nothing is sent, nothing is stored.
    """
    settings = settings_from(options)
    plan = loop.run(_plan(settings))
    Console(markup=False).print(_table(plan))


async def _plan(settings: Settings) -> list[Run]:
    benchmark = load_benchmark(settings)
    with Store(settings.cache) as store:
        async with open_client(settings, store, offline=True) as client:
            runs = samples(settings, benchmark, store, client, dry=True)
            for run in runs:
                with running(run):
                    await pipeline(shards(run, settings.shard), run_plainly, answers_only=run.method is not None)
    return runs


def _table(runs: Sequence[Run]) -> Table:
    table = Table(title="what a run would compute")
    for name, justify in (("stage", "left"), ("items", "right"), ("in the store", "right"), ("to compute", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left")
    table.add_column("why", overflow="fold")
    for stage in STAGES if runs[0].method is None else ("answering",):
        verdicts = [verdict for run in runs for (name, _), verdict in run.verdicts.items() if name == stage]
        hits = sum(verdict.reason is Reason.HIT for verdict in verdicts)
        why = Counter(str(verdict) for verdict in verdicts if verdict.reason is not Reason.HIT)
        words = Text("\n").join(shown(f"{count} {reason}") for reason, count in _shortened(why).most_common())
        if not verdicts:
            words = Text("nothing: there are no states" if runs[0].historian else "known once the questions are read")
        table.add_row(stage.replace("_", " "), str(len(verdicts)), str(hits), str(len(verdicts) - hits), words)
    return table


def _shortened(why: Counter[str]) -> Counter[str]:
    """The few most frequent reasons; what differs from item to item is summed up by its fields."""
    if len(why) <= 5:
        return why
    grouped: Counter[str] = Counter()
    for reason, count in why.items():
        kind, _, details = reason.partition(": ")
        names = ", ".join(detail.split(" ")[0] for detail in details.split(", "))
        grouped[f"{kind}: {names} (differs from item to item)" if details else kind] += count
    return grouped
