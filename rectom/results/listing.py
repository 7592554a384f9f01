"""Runs and sweeps as a list tells of them: from their manifests alone, so that hundreds are listed in a moment.

Of a run that has not ended the results are counted; its traces are never opened, nor anything but the manifest of one
that has.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from rectom.errors import DataError
from rectom.printable import printable
from rectom.results.folder import RunFolder
from rectom.results.readers import not_by_model
from rectom.results.regular import Irregular, lines, opened
from rectom.results.statistics import Interval, wilson
from rectom.results.summary import different_of
from rectom.results.sweep import FILE as SWEEP
from rectom.results.sweep import WAITING, Sweep

#: The states of a manifest.
RUNNING, FINISHED, INTERRUPTED, STOPPED, FAILED = "running", "finished", "interrupted", "stopped", "failed"

#: States that a list knows besides: a finished run some of whose questions failed; one that says it is running although
#: nobody works on it; one that ended before it asked anything; one whose manifest cannot be read.
PARTIAL, KILLED, UNBEGUN, DAMAGED = "partial", "killed", "unbegun", "damaged"

STATES: Final = (RUNNING, FINISHED, PARTIAL, INTERRUPTED, STOPPED, FAILED, KILLED, UNBEGUN, DAMAGED)

_MANIFEST: Final = "manifest.json"

#: All that a run or a sweep has in its folder before it has a manifest, with what is being written when it is killed.
_BEGINNING: Final = re.compile(
    r"lock|results\.jsonl|traces\.jsonl|command\.(json[a-z0-9_]*|seal)|"
    r"\.?(command|manifest|sweep)\.(json|seal)\.[0-9a-f]+\.part"
)

#: Settings that are told where they are not these.
_USUAL: Final = {
    "limit": None,
    "update": "rules",
    "state": "on",
    "verify": False,
    "window": None,
    "repairs": 2,
    "temperature": 0.0,
    "top_p": None,
    "top_k": None,
    "max_tokens": None,
    "samples": 1,
    "draw": 0,
}

#: More than a run may cost in any currency; what says so was written by something else.
_MOST: Final = Decimal(10) ** 15


@dataclass(frozen=True, slots=True)
class Listed:
    """A run, or a sweep, of the list.

    `setting` says in words what sets a run apart from one with the usual settings: `rules literal, window 5`.
    `answered` of `questions` are done, `failed` of them for good; `accuracy` (0 to 1) and `interval` are those of a run
    that is finished. `calls` are its different ones, `tokens` those of their replies, and `money` the price of
    these in `currency`; of a run that has not ended, `calls` and `tokens` are what its sessions sent and used. `wall_s`
    is what the last session took, in seconds. `since` is when the run ended, or began if it has not; `cells` counts
    a sweep's cells by their states, and `runs` are the names of their runs. None is what the folder does not tell.
    """

    name: str
    state: str
    benchmark: str = ""
    method: str = ""
    model: str = ""
    setting: str = ""
    questions: int | None = None
    answered: int | None = None
    failed: int = 0
    accuracy: float | None = None
    interval: Interval | None = None
    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    currency: str = ""
    wall_s: float | None = None
    since: datetime | None = None
    cells: Mapping[str, int] | None = None
    runs: tuple[str, ...] = ()

    @property
    def is_sweep(self) -> bool:
        """Whether it is a sweep."""
        return self.cells is not None

    def to_json(self) -> dict[str, Any]:
        """As JSON; the amount as text, so that no digit is lost."""
        return {**asdict(self), "money": None if self.money is None else str(self.money)}


def listed(place: Path) -> Iterator[Listed]:
    """The runs and sweeps in a folder, by name. Raises DataError if the folder cannot be read."""
    for folder in folders(place):
        if found := look(folder):
            yield found


def folders(place: Path) -> list[Path]:
    """The folders in a folder, by name; none if it is not there. Raises DataError if it cannot be read."""
    try:
        return sorted(path for path in place.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"cannot read {place}: {error.strerror}; give --runs FOLDER") from None


def is_called(name: str, pattern: str) -> bool:
    """Whether a run is meant by a name, or by a pattern with `*`."""
    return name == pattern or fnmatchcase(name, pattern)


def printed(text: str) -> str:
    """A name for the terminal, which might be told something by characters that are not printed."""
    return printable(text, "?")


def look(folder: Path) -> Listed | None:
    """The run or the sweep in a folder; None if it holds neither."""
    name = os.fsencode(folder.name).decode(errors="replace")
    try:
        return _told(name, folder) if folder.is_dir() else None
    except (DataError, OSError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return Listed(name, DAMAGED) if os.path.lexists(folder) else None  # removed at this moment


def _told(name: str, folder: Path) -> Listed | None:
    there = {path.name for path in folder.iterdir()}
    if SWEEP in there:
        return _sweep(name, folder)
    if _MANIFEST in there:
        return _run(name, folder, RunFolder(folder).manifest())
    if there and all(map(_BEGINNING.fullmatch, there)):
        return Listed(name, RUNNING if is_held(folder) else UNBEGUN)
    return None


def is_held(folder: Path) -> bool:
    """Whether a process works on a run or a sweep."""
    try:
        with opened(folder / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, IsADirectoryError, Irregular):  # nothing that anybody could hold
        return False
    except OSError:  # held, or not to be known: then nobody should meddle with it
        return True
    return False


def _sweep(name: str, folder: Path) -> Listed:
    sweep = Sweep.read(folder)
    state = _alive(folder, sweep.state)
    told = (_known(cell.state, (*STATES, WAITING)) for cell in sweep.cells)
    cells = Counter(KILLED if cell == RUNNING and state == KILLED else cell for cell in told)
    runs = tuple(cell.run for cell in sweep.cells if cell.names_a_run)
    return Listed(name, state, since=_time(sweep.ended or sweep.started), cells=dict(cells), runs=runs)


def _run(name: str, folder: Path, manifest: Mapping[str, Any]) -> Listed:
    state = _alive(folder, manifest["state"])
    benchmark, method, model = (str(manifest["settings"].get(what) or "") for what in ("benchmark", "method", "model"))
    since = _time(manifest.get("ended") or _last(manifest))
    begun = Listed(name, state, benchmark, method, model, setting_of(manifest["settings"]), since=since)
    return _finished(begun, manifest) if state == FINISHED else _unfinished(begun, manifest, folder)


def setting_of(settings: Mapping[str, Any]) -> str:
    """What sets a run apart from one with the usual settings, in words: `rules literal, window 5`."""
    rules = settings.get("rules")
    told = [f"rules {rules}"] if rules and rules != str(settings["benchmark"]).partition("/")[0] else []
    told += [f"{name} {settings[name]}" for name, usual in _USUAL.items() if settings.get(name, usual) != usual]
    return ", ".join([*told, *not_by_model(settings)])


def _finished(run: Listed, manifest: Mapping[str, Any]) -> Listed:
    summary, money, samples = manifest["summary"], manifest.get("money") or {}, manifest["settings"].get("samples", 1)
    accuracy, questions, failed = _number(summary["accuracy"]), int(summary["questions"]), int(summary["failed"])
    calls, tokens = summary["calls"], summary["tokens"]
    return replace(
        run,
        state=PARTIAL if failed else FINISHED,
        questions=questions,
        answered=questions,
        failed=failed,
        accuracy=accuracy,
        interval=wilson(accuracy, different_of(summary, samples)),
        calls=_total(calls, "sent", "cached"),
        tokens=_total(tokens, "prompt", "completion"),
        money=_amount(money.get("whole")),
        currency=str(money.get("currency") or ""),
        wall_s=_number(summary["wall_s"]),
    )


def _unfinished(run: Listed, manifest: Mapping[str, Any], folder: Path) -> Listed:
    sessions = [session for session in manifest.get("sessions") or [] if "sent" in session]
    failed = _answered(folder)
    return replace(
        run,
        questions=int(manifest["questions"]) if "questions" in manifest else None,
        answered=len(failed),
        failed=sum(failed.values()),
        calls=sum(_total(session, "sent") for session in sessions) if sessions else None,
        tokens=sum(_total(session, "prompt", "completion") for session in sessions) if sessions else None,
    )


def _total(counts: Mapping[str, Any], *names: str) -> int:
    return sum(int(counts[name]) for name in names)


def _amount(text: str | None) -> Decimal | None:
    amount = None if text is None else Decimal(text)
    if amount is not None and not abs(amount) < _MOST:
        raise ValueError(text)
    return amount


def _number(told: Any) -> float:
    number = float(told)
    if not math.isfinite(number):
        raise ValueError(told)
    return number


def _known(state: object, known: Container[object]) -> str:
    if state not in known:
        raise ValueError(state)
    return str(state)


def _alive(folder: Path, state: object) -> str:
    """The state that a folder tells, unless it is that of a process which is gone."""
    return KILLED if state == RUNNING and not is_held(folder) else _known(state, STATES)


def _last(manifest: Mapping[str, Any]) -> str:
    """When the last session ended, or else began."""
    session = (manifest.get("sessions") or [{}])[-1]
    return str(session.get("ended") or session.get("started") or "")


def _answered(folder: Path) -> dict[bytes, bool]:
    """The questions with a whole line of results, and whether each failed.

    A run that was taken up again has written some of them twice: the last line counts.
    """
    with opened(folder / "results.jsonl") as file:
        told = lines(file, "results.jsonl")
        whole = (line for line in told if line.startswith(b'{"id":"') and line.endswith(b"}\n"))
        return {line[: line.find(b'",')]: b'"failed_step":null' not in line for line in whole}


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
