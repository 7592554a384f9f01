"""`rectom export RUN…`: the results and calls of runs, as files that other programs read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from flows.cli import PARTIAL
from rectom.errors import SettingsError
from rectom.printable import printable
from rectom.results import export, inspect_log
from rectom.results.exported import Exported
from rectom.results.named import all_folders, swept_cells

#: What a single log of inspect_ai is called, if `--out` is to be a file.
_LOG: Final = ".eval"


@click.command(name="export", short_help="Write runs for other programs: CSV, Parquet, datasets, inspect.")
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--to", "form", type=click.Choice(["csv", "parquet", "datasets", "inspect"]), required=True, help="In what form."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder to write; with --to inspect and one run, also a file that ends in .eval.",
)
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--force", is_flag=True, help="Write over what is there; other files in the folder stay.")
def command(names: tuple[str, ...], form: str, out: Path, place: Path, force: bool) -> int:
    """Write finished runs for other programs.

    RUN is the name of a run or of a sweep, or its folder; a sweep stands for all its finished cells. Where the run of
    one is gone, that is said and the others are written; the exit status is then 3.

    \b
    csv       results.csv, a row a question, and calls.csv, a row a different call to the model
    parquet   the same two tables, typed and compressed (needs pip install 'rectom[export]')
    datasets  the same, as a folder that datasets.load_dataset("OUT", "results") reads
    inspect   a log of inspect_ai a run, for `inspect view --log-dir OUT`

    In CSV, a text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a carriage return) begins
    with an apostrophe. Parquet holds every text as it is.
    """  # noqa: D301  a backspace, which tells click to leave the list as it is
    if not force and _taken(out):
        raise SettingsError(f"{out} holds something already: choose another --out, or --force to write over it")
    cells = swept_cells(names, place)
    by_run = {run.resolve(): cell for cell, run in reversed(cells) if run}  # of several cells the first
    runs = [Exported.read(folder, by_run.get(folder.resolve())) for folder in all_folders(names, place)]
    _different_names(runs)
    for path in _FORMS[form](runs, out):
        click.echo(path)
    missing = [cell.name for cell, run in cells if run is None]
    for name in missing:
        click.echo(f"rectom: left out, since its run is gone: {printable(name)}; run the sweep again", err=True)
    return PARTIAL if missing else 0


def _taken(out: Path) -> bool:
    return any(out.iterdir()) if out.is_dir() else out.exists()


def _different_names(runs: Sequence[Exported]) -> None:
    """Raises SettingsError if two runs could not be told apart."""
    names = [run.name for run in runs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"two of the runs are called {twice}: rename the folder of one")


def _inspect(runs: Sequence[Exported], out: Path) -> list[Path]:
    files = [out] if out.suffix == _LOG and len(runs) == 1 else [out / f"{run.name}{_LOG}" for run in runs]
    for run, file in zip(runs, files, strict=True):
        inspect_log.write_log(run, file)
    return files


_FORMS: Final[Mapping[str, Callable[[Sequence[Exported], Path], list[Path]]]] = {
    "csv": export.export_csv,
    "parquet": export.export_parquet,
    "datasets": export.export_dataset,
    "inspect": _inspect,
}
