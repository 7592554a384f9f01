"""The run folder: `manifest.json`, `results.jsonl`, `traces.jsonl`, `calls.jsonl.gz`, `report.html` and `tables/`.

Lines are appended as questions end. What a crash tore off in the middle of a line is not read; at the end of a
run the files are written anew, a line a question, in the order of the benchmark.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Any, Self

import orjson

from rectom import whole
from rectom.errors import DataError, Occupied, SettingsError
from rectom.results import regular
from rectom.results.outcome import Outcome, Trace

#: When the replies of a run came, and how long each took, without what they say.
TIMES = "times.csv"

_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


class RunFolder:
    """One run's folder; a context manager while lines are appended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[bytes] | None = None
        self._results: IO[bytes] | None = None
        self._traces: IO[bytes] | None = None

    @property
    def report(self) -> Path:
        """Where the page is."""
        return self.folder / "report.html"

    def open(self, settings: Mapping[str, Any]) -> Self:
        """Make the folder for a run with these settings, or take it up again.

        Raises SettingsError if it holds a run with other settings, Occupied if another process works on it.
        """
        before = self.before()
        if before and before.get("settings") != settings:
            old = before.get("settings") or {}
            changed = sorted(k for k in old.keys() | settings.keys() if old.get(k) != settings.get(k))
            raise SettingsError(
                f"{self.folder} holds a run with other settings ({', '.join(changed)}); choose another --name"
            )
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._results, self._traces, self._lock):
            if file:
                file.close()

    def _open(self) -> None:
        with self._writing():
            self._lock = hold(self.folder)
            # Unbuffered: a line is in the file when it is written, and closing has nothing left that could fail.
            self._results = _taken_up(self.folder / "results.jsonl")
            self._traces = _taken_up(self.folder / "traces.jsonl")

    def append(self, outcome: Outcome, trace: Trace) -> None:
        """Add a question that ended. Raises SettingsError if there is no room."""
        assert self._results
        assert self._traces
        with self._writing():
            for file, line in ((self._results, outcome), (self._traces, trace)):
                file.write(orjson.dumps(line.to_json(), option=orjson.OPT_APPEND_NEWLINE))

    def finish(self, outcomes: Iterable[Outcome], traces: Iterable[Trace]) -> None:
        """Write both files anew, each question once."""
        self._write_lines("results.jsonl", (outcome.to_json() for outcome in outcomes))
        self._write_lines("traces.jsonl", (trace.to_json() for trace in traces))

    def write_calls(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """Write `calls.jsonl.gz`: every different call of the run, with its messages and its reply; and their times.

        The fields are those of `rectom.reader.asking.Call`, and `messages`, `text`, `reasoning`, `model` and `at`, the
        time at which the reply came, in seconds since 1970.
        """
        told = list(calls)
        lines = b"".join(orjson.dumps(call, option=orjson.OPT_APPEND_NEWLINE) for call in told)
        self.write("calls.jsonl.gz", gzip.compress(lines, compresslevel=6, mtime=0))
        times = "".join(f"{call['step']},{call.get('at') or 0},{call['latency_s']}\n" for call in told)
        self.write(TIMES, f"step,at,latency_s\n{times}".encode())

    def calls(self) -> Iterator[dict[str, Any]]:
        """The calls that `write_calls` wrote; none where there is no such file. Raises DataError if it is damaged."""
        path = self.folder / "calls.jsonl.gz"
        try:
            with regular.opened(path) as raw:
                for line in _unpacked(raw, path):
                    call = orjson.loads(line)
                    if not isinstance(call, dict):
                        raise ValueError("a line is no JSON object")
                    yield call
        except FileNotFoundError:
            return
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise DataError(f"{path} cannot be read ({error}); run the same command again to write it anew") from None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest.json`."""
        self.write("manifest.json", orjson.dumps(manifest, option=_PRETTY))

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the folder as a whole: it is the old one or the new one, never half of either."""
        path = self.folder / name
        with self._writing():
            regular.refuse_links(path, self.folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            whole.write(path, data)
        return path

    def remove(self, name: str) -> None:
        """Remove a file of the folder, if it is there."""
        with self._writing():
            regular.refuse_links(self.folder / name, self.folder)
            (self.folder / name).unlink(missing_ok=True)

    def names(self, pattern: str) -> set[str]:
        """The files of the folder whose names fit a pattern."""
        return {path.name for path in self.folder.glob(pattern)}

    def manifest(self) -> dict[str, Any]:
        """The manifest. Raises DataError if the folder holds no run."""
        path = self.folder / "manifest.json"
        try:
            manifest = orjson.loads(regular.read(path))
        except FileNotFoundError:
            raise DataError(f"{self.folder} holds no run") from None
        except (OSError, orjson.JSONDecodeError) as error:
            raise DataError(f"{path} cannot be read ({error}); run the same command again to mend it") from None
        if not isinstance(manifest, dict):
            raise DataError(f"{path} is not a manifest; run the same command again to mend it")
        return manifest

    def before(self) -> dict[str, Any] | None:
        """The manifest of the run that is taken up; None if there is none, or if a crash damaged it."""
        try:
            return self.manifest()
        except DataError:
            return None

    def results(self) -> dict[str, dict[str, Any]]:
        """The line of each question, the last one where there are several."""
        return {line["id"]: line for line in self._lines("results.jsonl")}

    def trace(self, question_id: str) -> dict[str, Any]:
        """The trace of a question. Raises DataError if the run has none."""
        found = [line for line in self._lines("traces.jsonl") if line["id"] == question_id]
        if not found and question_id in self.results():
            raise DataError(f"the trace of question {question_id} was torn off; run the same command again to mend it")
        if not found:
            known = list(self.results())
            raise DataError(f"{self.folder.name} has no question {question_id!r}; it has {_some(known)}")
        return found[-1]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except regular.Irregular as error:
            raise _refused(error) from None
        except OSError as error:
            raise SettingsError(
                f"cannot write to {self.folder}: {error.strerror}; make room or choose another --runs, and run again: "
                "replies that were paid for are in the cache"
            ) from None

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        try:
            with regular.opened(self.folder / name) as file:
                for line in regular.lines(file, name):
                    try:
                        data = orjson.loads(line)
                    except orjson.JSONDecodeError:
                        continue  # torn off by a crash
                    if isinstance(data, dict) and "id" in data:
                        yield data
        except FileNotFoundError:
            why = "not a run, or one that never began; `rectom runs` lists them"
            raise DataError(f"{self.folder} has no {name}: {why}") from None
        except OSError as error:
            raise DataError(f"cannot read {self.folder / name}: {error.strerror}") from None

    def _write_lines(self, name: str, lines: Iterable[dict[str, Any]]) -> None:
        self.write(name, b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))


def in_name(text: str) -> str:
    """What stands for a text, such as a method with its options, in the name of a run that is given none."""
    return re.sub(r"[^\w.=-]+", "-", text)


def hold(folder: Path, instead: str = "choose another --name") -> IO[bytes]:
    """Keep others off a run or a sweep until the file is closed or the process ends, however it ends.

    Makes the folder. Raises Occupied if another holds it, with what may be done `instead` of waiting.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        file = regular.appended(folder / "lock")
    except regular.Irregular as error:
        raise _refused(error) from None
    for pause in (0.01, 0.05, 0.0):  # whoever lists runs looks at the lock for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
        else:
            return file
    file.close()
    raise Occupied(f"another process works on {folder}: wait for it, or {instead}")


def _refused(error: regular.Irregular) -> DataError:
    return DataError(f"cannot write to {error.filename}: {error}; look where the run comes from, and remove that")


def _taken_up(path: Path) -> FileIO:
    """A file of lines, open at its end, which the next line has for itself: what a crash tore off is ended."""
    file = regular.appended(path)
    try:
        if file.tell() and not _ends_with_newline(path):
            file.write(b"\n")
    except BaseException:
        file.close()
        raise
    return file


def _ends_with_newline(path: Path) -> bool:
    with regular.opened(path) as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _unpacked(raw: BufferedReader, path: Path) -> Iterator[bytes]:
    """The lines of a packed file, which may be somebody else's: no line, and no whole, is larger than it may be."""
    left = regular.RATIO * raw.seek(0, os.SEEK_END) + regular.LINE
    raw.seek(0)
    with gzip.GzipFile(fileobj=raw, mode="rb") as packed:
        for line in regular.lines(packed, str(path)):
            left -= len(line)
            if left < 0:
                raise regular.Irregular(
                    errno.EFBIG, f"it unpacks to more than {regular.RATIO} times its size", str(path)
                )
            yield line


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} … ({len(names)} in all)" if len(names) > 8 else shown or "none yet"
