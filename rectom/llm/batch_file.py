"""Chat completions through files, for clusters without a server: requests are written, somebody runs them, and the
next run reads the results.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rectom.errors import Partial
from rectom.llm.batch_disk import make, using, write_whole
from rectom.llm.batch_gathering import Asked, Gathering
from rectom.llm.batch_rows import Place, RowId, Rows, model_of, outcome_at, read_rows, request_line
from rectom.llm.wire import NoResponse, Response

__all__ = ["BatchFileTransport", "BatchPending"]

_LOG = logging.getLogger(__name__)
_REQUESTS = re.compile(r"requests-([0-9]{4,9})\.jsonl")
_QUIET_S = 2.0
_FILES_SHOWN = 3


class BatchPending(Partial):
    """`waiting` requests have no result yet; they lie in `files`, each with the model that it is for."""

    def __init__(self, waiting: int, files: tuple[tuple[Path, str], ...]) -> None:
        super().__init__(waiting, files)
        self.waiting = waiting
        self.files = files

    def __str__(self) -> str:
        names = ", ".join(str(path) for path, _ in self.files[:_FILES_SHOWN])
        more = f" and {len(self.files) - _FILES_SHOWN} more" if len(self.files) > _FILES_SHOWN else ""
        path, model = self.files[0]
        results = path.with_name(path.name.replace("requests", "results"))
        words = shlex.join(["vllm", "run-batch", "-i", str(path), "-o", str(results), "--model", model or "MODEL"])
        each = "" if len(self.files) == 1 else ", and so on for each,"
        noun = "request waits" if self.waiting == 1 else "requests wait"
        return f"{self.waiting:,} {noun} in {names}{more}: run `{words}`{each} then the same command again"


@dataclass
class _File:
    """A file of the folder as it was read: `mark` changes when it does."""

    mark: tuple[int, int]
    rows: Rows


@dataclass
class _Known:
    """What the folder has under one key: results by try, and the files of requests by try."""

    results: dict[int, Place] = field(default_factory=dict)
    requests: dict[int, Path] = field(default_factory=dict)


class BatchFileTransport:
    """Carries chat completions through JSON lines files in `folder`.

    When everybody waits, what has neither a result nor a place in a file of requests that waits for its results is
    written to the next `requests-NNNN.jsonl`, and all who wait get `BatchPending`. Results are read from every other
    `*.jsonl` file there. `quiet_s` is how many seconds without a new request mean that everybody waits. Give the client
    `Limits` that hold nothing back; its time-outs do not apply.
    """

    def __init__(self, folder: Path, *, quiet_s: float = _QUIET_S) -> None:
        self._folder = folder
        self._files: dict[Path, _File] = {}
        self._known: dict[str, _Known] = {}
        self._taken: dict[str, set[int]] = {}
        self._gathering = Gathering(quiet_s, self._send)

    #: The folder has what is under way when it is closed.
    remembers = True

    def __repr__(self) -> str:
        return f"BatchFileTransport({str(self._folder)!r})"

    async def open(self) -> None:
        """Nothing: the folder is read when there is something to ask."""

    async def close(self) -> None:
        """Stop waiting."""
        await self._gathering.close()

    def progress(self) -> str:
        """What waits, such as `1,953 to write`."""
        return f"{self._gathering.pending:,} to write"

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        """The result of one request. Raises `BatchPending` where there is none yet."""
        return await self._gathering.outcome(payload, key)

    async def _send(self, several: list[Asked]) -> None:
        self._read()
        several = [asked for asked in several if asked.waiters]
        left = [asked for asked in several if not self._answered(asked)]
        if len(left) < len(several):
            # Those that were answered may ask for more, which should be written, too.
            self._gathering.hold(left)
            return
        new = [asked for asked in left if self._waits_in(asked.key) is None]
        files = self._write(new)
        raise BatchPending(len(left), self._waiting_files(left, files))

    def _answered(self, asked: Asked) -> bool:
        known, taken = self._known.get(asked.key, _Known()), self._taken.setdefault(asked.key, set())
        results = {attempt: place for attempt, place in known.results.items() if attempt not in taken}
        # A reply is welcome however late; a refusal only while nothing newer is on its way.
        newest = max((*known.requests, *known.results), default=0)
        found = max((n for n, place in results.items() if place.good or (place.status and n == newest)), default=0)
        if not found:
            return False
        taken.add(found)
        with using(self._folder):
            self._gathering.end(asked, outcome_at(results[found], 0.0))
        return True

    def _waits_in(self, key: str) -> Path | None:
        """The file that the newest request under `key` waits in, whose results are still to come."""
        known = self._known.get(key, _Known())
        newest = max((*known.requests, *known.results), default=0)
        path = known.requests.get(newest)
        return path if path is not None and newest not in known.results and not self._has_results(path) else None

    def _has_results(self, path: Path) -> bool:
        rows = self._files[path].rows.requests
        return any(row.attempt in self._known[row.key].results for row in rows)

    def _write(self, several: Iterable[Asked]) -> list[tuple[Path, str]]:
        by_model: dict[str, dict[RowId, bytes]] = {}
        for asked in several:
            known = self._known.get(asked.key, _Known())
            row = RowId(asked.key, max((*known.requests, *known.results), default=0) + 1)
            by_model.setdefault(model_of(asked.payload), {})[row] = request_line(row, asked.payload)
        written = []
        for model, lines in by_model.items():
            path = self._next_file()
            write_whole(path, b"".join(lines.values()))
            self._take_in(path)
            written.append((path, model))
        return written

    def _next_file(self) -> Path:
        make(self._folder)
        with using(self._folder):
            found = [_REQUESTS.fullmatch(path.name) for path in self._folder.iterdir()]
        number = max((int(match[1]) for match in found if match), default=0) + 1
        return self._folder / f"requests-{number:04}.jsonl"

    def _waiting_files(
        self, several: Iterable[Asked], written: Iterable[tuple[Path, str]]
    ) -> tuple[tuple[Path, str], ...]:
        files: dict[Path, str] = {}
        for asked in several:
            path = self._waits_in(asked.key)
            if path is not None:
                files.setdefault(path, model_of(asked.payload))
        return tuple(sorted({**files, **dict(written)}.items()))

    def _read(self) -> None:
        """Take in the files that are new or have changed."""
        if not self._folder.is_dir():
            return
        with using(self._folder):
            for path in sorted(self._folder.iterdir()):
                if path.suffix == ".jsonl" and not path.name.startswith(".") and path.is_file():
                    self._take_in(path)

    def _take_in(self, path: Path) -> None:
        with using(self._folder):
            found = path.stat()
            mark = (found.st_size, found.st_mtime_ns)
            if path in self._files and self._files[path].mark == mark:
                return
            rows = read_rows(path)
        self._files[path] = _File(mark, rows)
        for row, place in rows.results.items():
            self._known.setdefault(row.key, _Known()).results[row.attempt] = place
        for row in rows.requests:
            self._known.setdefault(row.key, _Known()).requests[row.attempt] = path
        if rows.malformed:
            _LOG.warning("%s: %d lines are no results and are left out", path, rows.malformed)
