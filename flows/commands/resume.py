"""`rectom resume NAME`: takes up a run or a sweep again, with the command that was last given for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from flows.cli import PARTIAL, rectom
from flows.commandline import CommandLine
from rectom.errors import DataError, Occupied
from rectom.printable import printable
from rectom.results.listing import FINISHED, Listed, is_held, look
from rectom.results.listing import PARTIAL as WITH_FAILURES


@click.command(
    name="resume", context_settings={"ignore_unknown_options": True}, short_help="Go on with a run or a sweep."
)
@click.argument("name")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--trust", is_flag=True, help="Take the command of a run that you did not begin here, as it is printed.")
def command(name: str, options: tuple[str, ...], place: Path, trust: bool) -> Any:
    """Go on with a run or a sweep that was interrupted, killed or stopped.

    OPTIONS are further ones of `rectom run` or `rectom sweep`, such as --base-url or a larger --max-calls. They stand
    instead of those that were last given, and are kept; --retry-failed and --force are for once. Those that would
    change its results are refused. A command that you did not give on this machine is printed, and needs --trust.
    """
    folder, found = _found(name, place)
    if is_held(folder):
        raise Occupied(f"another process works on {folder}: it needs no resuming")
    if found.state in {FINISHED, WITH_FAILURES} and not found.is_sweep and not options:
        return _told(found)
    again = _again(CommandLine.kept(folder, trusted=trust), options, folder)
    with again.circumstances():
        click.echo(printable(str(again)), err=True)
        return rectom.main([again.name, *again.arguments], prog_name="rectom", standalone_mode=False)


def _found(name: str, place: Path) -> tuple[Path, Listed]:
    """A run by its name or by its folder. Raises DataError if there is none."""
    for folder in (place / name, Path(name)):
        if folder.is_dir() and (found := look(folder.resolve())):
            return folder.resolve(), found
    first = "; give the name first, then options" if name.startswith("-") else ""
    raise DataError(f"there is no run {name} in {place}{first}; `rectom runs` lists them")


def _told(found: Listed) -> int:
    """A finished run needs no resuming."""
    if not found.failed:
        click.echo(f"{found.name} is finished")
        return 0
    click.echo(f"{found.name} is finished, but {found.failed} of its questions failed: --retry-failed asks them again")
    return PARTIAL


def _again(line: CommandLine, options: tuple[str, ...], folder: Path) -> CommandLine:
    """The command with further options, bound to the folder, whose settings then have to be those of the command."""
    bound = ("--runs", str(folder.parent), *(("--name", folder.name) if line.name == "run" else ()))
    with line.circumstances():
        kept = _placed(line.name, line.arguments)  # a cell's places are as the file of its sweep has them
    return replace(line, arguments=_placed(line.name, [*kept, *options, *bound]))


def _placed(name: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments of a command that is given here, with places that hold in any folder."""
    root = click.get_current_context().find_root()
    command = rectom.get_command(root, name)
    assert command
    with command.make_context(name, [*arguments], root) as context:
        return CommandLine.of(context, once=True).arguments
