"""`rectom data get|audit`: the benchmark files."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table


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
    table = Table(title=f"labels of {file.name}")
    for column in ("kind", "ids", "label", "expected", "reason"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(finding.kind, ", ".join(map(str, finding.ids)), finding.label, finding.expected, finding.reason)
    Console().print(table)
    for kind, count in Counter(finding.kind for finding in findings).items():
        click.echo(f"{kind}: {count}")
