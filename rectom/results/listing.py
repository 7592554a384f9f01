"""Runs and sweeps as a list tells of them: from their manifests alone, so that hundreds are listed in a moment."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rectom.errors import DataError
from rectom.results.folder import RunFolder
from rectom.results.statistics import Interval, wilson
from rectom.results.sweep import FILE as SWEEP
from rectom.results.sweep import Sweep

#: States that a list knows besides those of a manifest: a finished run some of whose questions failed, one that says it
#: is running although nobody works on it, and one whose manifest cannot be read.
PARTIAL, KILLED, DAMAGED = "partial", "killed", "damaged"

_RUNNING: Final = "running"


@dataclass(frozen=True, slots=True)
class Listed:
    """A run, or a sweep, of the list.

    `accuracy` (0 to 1) and `interval` are those of a finished run; `answered` of how many `questions` are done, None
    where that is not known. `calls` are the different ones, `tokens` those of their replies; `money` is as it is told.
    `since` is when it ended, or began if it has not; `cells` counts a sweep's cells by their states.
    """

    name: str
    state: str
    benchmark: str = ""
    method: str = ""
    model: str = ""
    questions: int | None = None
    answered: int | None = None
    failed: int = 0
    accuracy: float | None = None
    interval: Interval | None = None
    calls: int | None = None
    tokens: int | None = None
    money: str = ""
    wall_s: float | None = None
    since: datetime | None = None
    cells: Mapping[str, int] | None = None

    @property
    def is_sweep(self) -> bool:
        """Whether it is a sweep."""
        return self.cells is not None


def listed(place: Path) -> Iterator[Listed]:
    """The runs and sweeps in a folder, by name. Raises DataError if the folder cannot be read."""
    try:
        folders = sorted(path for path in place.iterdir() if path.is_dir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"cannot read {place}: {error.strerror}; give --runs FOLDER") from None
    for folder in folders:
        if (folder / SWEEP).is_file():
            yield _sweep(folder)
        elif (folder / "manifest.json").is_file():
            yield _run(folder)


def is_held(folder: Path) -> bool:
    """Whether a process works on a run or a sweep."""
    try:
        with (folder / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _sweep(folder: Path) -> Listed:
    try:
        sweep = Sweep.read(folder)
    except DataError:
        return Listed(folder.name, DAMAGED, cells={})
    state = KILLED if sweep.state == _RUNNING and not is_held(folder) else sweep.state
    cells = Counter(cell.state for cell in sweep.cells)
    return Listed(folder.name, state, since=_time(sweep.ended or sweep.started), cells=cells)


def _run(folder: Path) -> Listed:
    try:
        return _told(folder, RunFolder(folder).manifest())
    except (DataError, KeyError, TypeError, ValueError, AttributeError):
        return Listed(folder.name, DAMAGED)


def _told(folder: Path, manifest: Mapping[str, Any]) -> Listed:
    settings, summary = manifest["settings"], manifest.get("summary") or {}
    state = _state(folder, manifest, summary)
    benchmark, method, model = (str(settings.get(name, "")) for name in ("benchmark", "method", "model"))
    begun = Listed(folder.name, state, benchmark, method, model, since=_time(_last(manifest)))
    if not summary or state not in {"finished", PARTIAL}:
        return replace(begun, answered=_lines(folder))
    accuracy, questions = float(summary["accuracy"]), int(summary["questions"])
    calls, tokens = summary["calls"], summary["tokens"]
    return replace(
        begun,
        questions=questions,
        answered=questions,
        failed=int(summary["failed"]),
        accuracy=accuracy,
        interval=wilson(accuracy, questions),
        calls=calls["sent"] + calls["cached"],
        tokens=tokens["prompt"] + tokens["completion"],
        money=_money(manifest.get("money") or {}),
        wall_s=float(summary["wall_s"]),
        since=_time(manifest.get("ended") or _last(manifest)),
    )


def _state(folder: Path, manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    state = str(manifest["state"])
    if state == _RUNNING:
        return _RUNNING if is_held(folder) else KILLED
    return PARTIAL if state == "finished" and summary.get("failed") else state


def _last(manifest: Mapping[str, Any]) -> str:
    """When the last session ended, or else began."""
    sessions = manifest.get("sessions") or [{}]
    return str(sessions[-1].get("ended") or sessions[-1].get("started") or manifest.get("started") or "")


def _lines(folder: Path) -> int:
    """How many questions of an unfinished run are answered: the lines of its results, as far as they are whole."""
    try:
        return (folder / "results.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def _money(money: Mapping[str, Any]) -> str:
    whole, currency = money.get("whole"), money.get("currency")
    return f"{float(whole):.2f} {currency}" if whole is not None and currency else ""


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
