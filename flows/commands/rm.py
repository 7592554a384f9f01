"""`rectom rm NAME…`: removes runs and sweeps. The replies that were paid for stay in the store."""

from __future__ import annotations

import fnmatch
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from rectom.errors import DataError, Occupied, SettingsError
from rectom.results.listing import is_held
from rectom.results.sweep import FILE as SWEEP
from rectom.results.sweep import Sweep

#: A folder that holds one of these is a run or a sweep.
_MARKS = ("manifest.json", SWEEP, "results.jsonl")


@click.command(name="rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--with-runs", is_flag=True, help="Of a sweep, remove the runs of its cells as well.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(names: tuple[str, ...], place: Path, with_runs: bool, yes: bool) -> None:
    """Remove the folders of runs and sweeps. NAME may hold `*`.

    Replies and results stay in the store, so that the same run again costs nothing.
    """
    folders = _chosen(place, names, with_runs)
    if held := [folder.name for folder in folders if is_held(folder)]:
        raise Occupied(f"a process works on {held[0]}: stop it first")
    if not yes:
        _ask(folders)
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise SettingsError(f"cannot remove {folder}: {error.strerror}") from None
    click.echo(f"removed {', '.join(folder.name for folder in folders)}; the replies are still in the store")


def _chosen(place: Path, names: Sequence[str], with_runs: bool) -> list[Path]:
    """The folders of the names, each once. Raises DataError for a name that no run has."""
    there = [path for path in sorted(place.iterdir()) if _is_run(path)] if place.is_dir() else []
    chosen: dict[str, Path] = {}
    for name in names:
        found = [path for path in there if fnmatch.fnmatchcase(path.name, name)]
        if not found:
            raise DataError(f"there is no run {name} in {place}; rectom runs lists them")
        chosen |= {path.name: path for path in found}
    if with_runs:
        cells = {cell for path in chosen.values() for cell in _cells(path)}
        chosen |= {path.name: path for path in there if path.name in cells}
    return list(chosen.values())


def _is_run(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and any((path / mark).is_file() for mark in _MARKS)


def _cells(path: Path) -> list[str]:
    return [cell.run for cell in Sweep.read(path).cells] if (path / SWEEP).is_file() else []


def _ask(folders: Sequence[Path]) -> None:
    """Ask whether to go on. Raises SettingsError where nobody could answer."""
    if not sys.stdin.isatty():
        raise SettingsError(f"{len(folders)} to remove, and nobody to ask: give --yes")
    click.confirm(f"remove {', '.join(folder.name for folder in folders)}?", abort=True)
