"""Which folders the names on a command line mean: runs, and sweeps, which stand for their cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rectom.errors import DataError
from rectom.results import sweep

_MANIFEST = "manifest.json"


def run_folders(names: Sequence[str], place: Path) -> list[Path]:
    """The folders of runs, each once, in order; `place` is where runs are. Raises DataError for an unknown name."""
    return _once([_run_folder(name, place) for name in names])


def all_folders(names: Sequence[str], place: Path) -> list[Path]:
    """The same, where a name may be a sweep's as well, for all its finished cells whose runs are there."""
    return _once([folder for name in names for folder in _runs_or_cells(name, place)])


def swept_cells(names: Sequence[str], place: Path) -> list[tuple[sweep.Cell, Path | None]]:
    """The finished cells of the sweeps among these names, each with its run's folder; None where that is gone."""
    sweeps = [folder for name in names if _is_sweep(folder := run_or_sweep(name, place))]
    return [found for folder in sweeps for found in _finished(folder)]


def _once(folders: Sequence[Path]) -> list[Path]:
    return list({folder.resolve(): folder for folder in folders}.values())


def _run_folder(name: str, place: Path) -> Path:
    for folder in (Path(name), place / name):
        if (folder / _MANIFEST).is_file():
            return folder
        if (folder / sweep.FILE).is_file():
            raise DataError(f"{name} is a sweep: give runs of it, which {folder / sweep.FILE} names")
    raise DataError(f"there is no run {name} in {place}; {_known(place, _MANIFEST)}")


def run_or_sweep(name: str, place: Path) -> Path:
    """The folder of a run or a sweep; of another folder of that name nothing is meant. Raises DataError if none is."""
    files = (sweep.FILE, _MANIFEST)
    for folder in (Path(name), place / name):
        if any((folder / file).is_file() for file in files):
            return folder
    raise DataError(f"there is no run or sweep {name} in {place}; {_known(place, *files)}")


def _runs_or_cells(name: str, place: Path) -> list[Path]:
    folder = run_or_sweep(name, place)
    return _cells(folder) if _is_sweep(folder) else [folder]


def _is_sweep(folder: Path) -> bool:
    return (folder / sweep.FILE).is_file()


def _known(place: Path, *files: str) -> str:
    known = sorted({found.parent.name for file in files for found in place.glob(f"*/{file}")})
    more = ", …" if len(known) > 8 else ""
    return f"there are {', '.join(known[:8]) or 'none'}{more}"


def _cells(folder: Path) -> list[Path]:
    finished = _finished(folder)
    if not finished:
        raise DataError(f"no cell of the sweep {folder} is finished: run the sweep, then export it")
    return [run for _, run in finished if run]


def _finished(folder: Path) -> list[tuple[sweep.Cell, Path | None]]:
    place = folder.resolve().parent
    cells = sweep.Sweep.read(folder).cells
    return [(cell, _run_of(cell, place)) for cell in cells if cell.state == sweep.FINISHED]


def _run_of(cell: sweep.Cell, place: Path) -> Path | None:
    run = place / cell.run
    return run if cell.names_a_run and (run / _MANIFEST).is_file() else None
