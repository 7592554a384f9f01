"""`rectom data get|audit`: the benchmark files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from rectom.benchmarks.audit import Finding

#: The kinds of findings, each with the line that heads it.
_KINDS = {
    "prompting-type": "questions are labelled differently in their VP and CoTP rows (VP label, CoTP label):",
    "structure": "pairs of questions have the same structure and contradicting labels:",
    "unreachable": "CoTP labels cannot be reached by the rules `hitom`:",
}


@click.group(name="data")
def command() -> None:
    """The benchmark files: get them, audit their labels."""


@command.command(name="get")
@click.argument("name", type=click.Choice(["hitom"]))
@click.option("--folder", type=click.Path(path_type=Path), help="Where to; by default the user's data folder.")
def get(name: str, folder: Path | None) -> None:
    """Download a benchmark from its official address, and check it."""
    from rectom.benchmarks.fetch import data_folder, fetch

    with Progress(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(name, total=None)
        path = asyncio.run(
            fetch(name, folder or data_folder(), lambda done, total: bar.update(line, completed=done, total=total))
        )
    click.echo(path)


@command.command(name="audit")
@click.argument("name", type=click.Choice(["hitom"]))
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark's file [RECTOM_DATA].")
def audit(name: str, data: Path | None) -> None:
    """List the labels that contradict each other, and those that the rules cannot reach, with the reason."""
    from rectom.benchmarks import hitom
    from rectom.benchmarks.audit import audit as findings_of
    from rectom.benchmarks.fetch import find

    file = find(name, data)
    findings = findings_of(hitom.read_rows(hitom.read_bytes(file), file))
    console = Console()
    for kind, title in _KINDS.items():
        found = [finding for finding in findings if finding.kind == kind]
        console.print(f"[bold]{len(found)}[/] {title}", highlight=False)
        console.print(_listed(found) if kind == "prompting-type" else _explained(found))


def _listed(findings: list[Finding]) -> Columns:
    """Findings that are all of one reason: the label in doubt and the one that stands."""
    return Columns(escape(f"  {f.ids[0]}: {f.label}, {f.ids[1]}: {f.expected}") for f in findings)


def _explained(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    for f in findings:
        ids = ", ".join(map(str, f.ids))
        table.add_row(f"  {ids}", Text(f"labelled {f.label}, not {f.expected}: {f.reason}"))
    return table
