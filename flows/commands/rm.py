"""`rectom rm NAME…`: removes runs and sweeps. The replies that were paid for stay in the store."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from rectom.errors import DataError, Occupied, SettingsError
from rectom.results.folder import hold
from rectom.results.listing import folders, is_called, is_held, look, printed
from rectom.results.sweep import FILE as SWEEP
from rectom.results.sweep import Sweep

#: What is removed last, in this order: of a removal that was cut short a run is left, which can be removed again.
_LAST: Final = ("manifest.json", SWEEP, "lock")

#: Names that are shown in a question or a report; of more the number has to do.
_SHOWN: Final = 6


@click.command(name="rm", short_help="Remove runs and sweeps; replies stay in the store.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--with-runs", is_flag=True, help="Of a sweep, remove the runs of its cells as well.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(names: tuple[str, ...], place: Path, with_runs: bool, yes: bool) -> int:
    """Remove the folders of runs and sweeps. NAME may hold `*`.

    Replies and results stay in the store, so that the same run again costs nothing. Of a sweep the runs stay, too,
    unless --with-runs is given: then those go that no other sweep has.
    """
    chosen = _chosen(place, names)
    runs, shared = _runs_of(chosen, place) if with_runs else ([], [])
    chosen += runs
    if busy := next(filter(is_held, chosen), None):
        raise Occupied(f"a process works on {busy}: stop it first; nothing was removed")
    if not yes and not _confirmed(chosen):
        click.echo("nothing removed")
        return 1
    for folder in chosen:
        _remove(folder)
    click.echo(f"removed {_told(chosen)}; replies stay in the store: the same run again costs nothing")
    if shared:
        click.echo(f"kept {_told(shared)}, which other sweeps have, too")
    return 0


def _chosen(place: Path, names: Sequence[str]) -> list[Path]:
    """The folders of the names, each once. Raises DataError for a name that no run has."""
    there = {path.name: path for path in folders(place)}
    chosen: dict[str, Path] = {}
    for name in names:
        found = {own: path for own, path in there.items() if is_called(own, name) and _is_run(path)}
        if not found:
            raise DataError(f"there is no run {name} in {place}{_why(there, name)}; `rectom runs` lists them")
        chosen |= found
    return list(chosen.values())


def _runs_of(chosen: Sequence[Path], place: Path) -> tuple[list[Path], list[Path]]:
    """The runs of the sweeps that are chosen: those that are theirs alone, and those that other sweeps have, too."""
    others = [path for path in folders(place) if path not in chosen and not path.is_symlink()]
    ours, theirs = ({cell for path in some for cell in _cells(path)} for some in (chosen, others))
    runs = [path for path in others if path.name in ours and _is_run(path)]
    return [path for path in runs if path.name not in theirs], [path for path in runs if path.name in theirs]


def _is_run(path: Path) -> bool:
    return not path.is_symlink() and look(path) is not None


def _why(there: Mapping[str, Path], name: str) -> str:
    """Why a folder that is there is no run."""
    if name not in there:
        return ""
    return " (it is a link to another place)" if there[name].is_symlink() else " (the folder of that name holds none)"


def _cells(path: Path) -> list[str]:
    if not (path / SWEEP).exists():
        return []
    try:
        return [cell.run for cell in Sweep.read(path).cells]
    except DataError as error:
        raise DataError(f"which runs it has cannot be told, so that nothing was removed: {error}") from None


def _confirmed(chosen: Sequence[Path]) -> bool:
    """Ask whether to go on. Raises SettingsError where nobody could answer."""
    if not sys.stdin.isatty():
        raise SettingsError(f"{_told(chosen)} would be removed, and there is nobody to ask: give --yes")
    try:
        return click.confirm(f"Remove {_told(chosen)}?")
    except click.Abort:  # no answer is no
        click.echo()
        return False


def _told(chosen: Sequence[Path]) -> str:
    names = ", ".join(printed(path.name) for path in chosen[:_SHOWN])
    return f"{len(chosen)} runs ({names}, …)" if len(chosen) > _SHOWN else names


def _remove(folder: Path) -> None:
    try:
        with closing(hold(folder)):
            for path in sorted(folder.iterdir(), key=_place):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            folder.rmdir()
    except OSError as error:
        raise SettingsError(f"cannot remove {folder}: {error.strerror}") from None


def _place(path: Path) -> int:
    return _LAST.index(path.name) if path.name in _LAST else -1
