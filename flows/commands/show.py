"""`rectom show RUN ID`: how the answer to one question came about."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rectom.results.folder import RunFolder


@click.command(name="show")
@click.argument("run")
@click.argument("question")
@click.option(
    "--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
def command(run: str, question: str, runs: Path) -> None:
    """Show question QUESTION of RUN as a table: a row a step, a column a perspective along the chain."""
    from rectom.results import show

    folder = Path(run) if (Path(run) / "manifest.json").exists() else runs / run
    run_folder = RunFolder(folder)
    trace, told = run_folder.trace(question), run_folder.manifest().get("settings") or {}
    Console().print(show.table(trace, str(told.get("method", "rectom"))))
