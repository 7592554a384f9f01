"""`rectom resume NAME`: takes up a run or a sweep again, with the command that it was begun with."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from flows.cli import rectom
from flows.commandline import CommandLine
from rectom.errors import DataError, Occupied
from rectom.results.listing import is_held


@click.command(name="resume", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
def command(name: str, options: tuple[str, ...], place: Path) -> Any:
    """Go on with a run or a sweep that was interrupted, killed or stopped.

    OPTIONS are further ones of `rectom run` or `rectom sweep`, such as --retry-failed, --base-url or a larger
    --max-calls: they stand instead of those it was begun with. What is finished sends nothing.
    """
    folder = place / name if (place / name).is_dir() else Path(name)
    if not folder.is_dir():
        raise DataError(f"there is no run {name} in {place}; rectom runs lists them")
    if is_held(folder):
        raise Occupied(f"another process works on {folder}: it needs no resuming")
    line = CommandLine.kept(folder)
    words = [line.name, *line.arguments, *options]
    click.echo(f"rectom {shlex.join(words)}", err=True)
    for variable, value in line.environment.items():
        os.environ.setdefault(variable, value)
    if line.folder.is_dir():
        os.chdir(line.folder)
    return rectom.main(words, prog_name="rectom", standalone_mode=False)
