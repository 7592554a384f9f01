"""`rectom cache stats|verify|prune|export|import`: care of the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

import cache
from cache import CacheCorrupt, Rescued, Store
from flows.cli import PARTIAL
from flows.home import home
from flows.options import Finite
from rectom.errors import SettingsError
from rectom.results.folder import RunFolder
from rectom.results.named import all_folders

#: What is made again for nothing. The latest fields of each item stay: they tell why it is made again.
_STAGES = ("stage",)

_folder = click.option(
    "--cache", "folder", type=click.Path(path_type=Path), envvar="RECTOM_CACHE", help="The store [RECTOM_CACHE]."
)


def _open(folder: Path | None, *, made: bool = False) -> Store:
    """The store; it is only made where something is to be put into it."""
    folder = folder or _usual()
    if not made and not folder.exists():
        raise SettingsError(f"there is no cache at {folder}; give --cache DIR")
    return Store(folder)


def _usual() -> Path:
    return home() / "cache"


@click.group(name="cache")
def command() -> None:
    """The store of model replies and stage results."""


@command.command()
@_folder
def stats(folder: Path | None) -> None:
    """How much is in it."""
    with _open(folder) as store:
        found = cache.stats(store)
    for kind, size in found.kinds.items():
        click.echo(f"{kind:8}{size.entries:10,} entries {size.size / 1e6:10.1f} MB")
    click.echo(f"{'on disk':8}{'':10}         {found.size / 1e6:10.1f} MB in {found.folder}")


@command.command()
@_folder
def verify(folder: Path | None) -> int:
    """Read every entry, and check that it is what its key says."""
    with _open(folder) as store:
        problems = cache.verify(store)
    for problem in problems:
        click.echo(str(problem))
    click.echo(f"{len(problems)} problems" if problems else "all entries are sound")
    return 1 if problems else 0


@command.command()
@_folder
@click.option("--older-than", type=Finite(0, 36500), metavar="DAYS", help="Only what was stored before.")
@click.option("--replies", is_flag=True, help="Model replies as well: they were paid for and cannot be made again.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--yes", is_flag=True, help="Do not ask before replies are deleted.")
def prune(folder: Path | None, older_than: float | None, replies: bool, dry_run: bool, yes: bool) -> int:
    """Delete stage results, which are computed again from the replies for nothing."""
    if replies and not dry_run and not yes and not _confirmed():
        click.echo("nothing deleted")
        return 1
    kinds = (*_STAGES, "reply") if replies else _STAGES
    age = None if older_than is None else timedelta(days=older_than)
    with _open(folder) as store:
        count = cache.prune(store, kinds, age, dry_run)
    click.echo(f"{count:,} entries {'would be ' if dry_run else ''}deleted")
    return 0


def _confirmed() -> bool:
    try:
        return click.confirm("Delete model replies that were paid for?")
    except click.Abort:  # nobody there to answer
        return False


@command.command()
@_folder
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--stages", is_flag=True, help="Stage results as well.")
@click.option("--run", "names", multiple=True, help="Only the replies of this run or sweep; repeatable.")
@click.option("--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), help="Where runs are.")
@click.option("--bare", is_flag=True, help="Without what was asked, which replies may quote: far smaller.")
def export(folder: Path | None, file: Path, stages: bool, names: tuple[str, ...], place: Path, bare: bool) -> int:
    """Write the replies to an archive, for another machine or a colleague.

    With --run, whoever takes in the archive repeats those runs, and nothing is sent. Of a store whose database is
    damaged all is written that can be read; the exit status is then 3.
    """
    if stages and (names or bare):
        option = "--run" if names else "--bare"
        raise click.UsageError(f"{option} takes replies alone, from which stages are computed: leave out --stages")
    kinds: tuple[Any, ...] = ("reply", "stage") if stages else ("reply",)
    keys = _keys(names, place) if names else None
    aside = ""
    try:
        with _open(folder) as store:
            done = Rescued(cache.export(store, file, kinds, keys, requests=not bare), len(store.damaged))
    except CacheCorrupt:
        folder = folder or _usual()
        done = cache.rescue(folder, file, kinds, keys, requests=not bare)
        aside = f"; the cache database is damaged: move {folder} aside and import {file}"
    click.echo(f"{file}: {done.entries:,} entries")
    if done.lost or aside:
        click.echo(f"rectom: {done.lost:,} entries could not be read{aside}", err=True)
    return PARTIAL if done.lost else 0


def _keys(names: Sequence[str], place: Path) -> set[str]:
    """The keys of all replies that runs used."""
    return {call["key"] for folder in all_folders(names, place) for call in RunFolder(folder).calls()}


@command.command(name="import")
@_folder
@click.argument("file", type=click.Path(path_type=Path))
def import_(folder: Path | None, file: Path) -> int:
    """Take in an archive; what is there already stays."""
    with _open(folder, made=True) as store:
        taken = cache.import_(store, file)
    click.echo(f"{taken.added:,} added, {taken.present:,} present already, {taken.refused:,} refused")
    return 1 if taken.refused else 0
