"""The journal of batches: which rows went out in which job, on disk before they go and until their replies are kept.

A job is up to four files: `NAME.json` (its rows, the digest of its input, and the server's ids as they become known),
`NAME.output.jsonl` and `NAME.errors.jsonl` (as the server sent them) and `NAME.done` (the rows that nothing more is
to come of). A job whose rows are all done has no files left. None holds a key of the API.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import time
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from rectom.llm.batch_disk import make, using, write_whole
from rectom.llm.batch_rows import Place, RowId, outcome_at, read_rows
from rectom.llm.wire import NoResponse, Response

_LOG = logging.getLogger(__name__)
_VERSION = 1
_NAME = re.compile(r"[0-9a-f]{32}")
_LOCK_LOOKS_S = 0.05


@dataclass(eq=False)
class Job:
    """One batch.

    `rows` are those that something is still to come of, by key; `size` counts all that were sent. `server` tells
    the server it was sent to from others. `ended` is when (like `created`, in epoch seconds) the server's files came,
    0 before: `results` then tells where each row's reply lies. `taken` holds the keys whose replies were given out
    by this process.
    """

    name: str
    digest: str
    server: str
    created: float
    size: int
    rows: dict[str, RowId]
    file_id: str = ""
    batch_id: str = ""
    ended: float = 0.0
    results: dict[str, Place] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    @property
    def failed(self) -> list[str]:
        """The keys of an ended job's rows that have no reply."""
        return [key for key in self.rows if not (key in self.results and self.results[key].good)]

    @property
    def latency_s(self) -> float:
        """The seconds that it took, or has taken so far."""
        return max(0.0, (self.ended or time.time()) - self.created)

    def metadata(self) -> dict[str, str]:
        """What the server keeps with it, by which a lost id is found again."""
        return {"rectom_job": self.name, "rectom_digest": self.digest}


class Journal:
    """The jobs in a folder. Several processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}
        self._holding: dict[str, list[Job]] = {}
        self._attempts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Journal({str(self._folder)!r})"

    @property
    def jobs(self) -> list[Job]:
        """All jobs, the oldest first."""
        return sorted(self._jobs.values(), key=lambda job: job.created)

    def output(self, job: Job) -> Path:
        """Where the server's output of a job is put."""
        return self._folder / f"{job.name}.output.jsonl"

    def errors(self, job: Job) -> Path:
        """Where the server's error file of a job is put."""
        return self._folder / f"{job.name}.errors.jsonl"

    def note_of(self, job: Job) -> Path:
        """The file that a job is noted in."""
        return self._folder / f"{job.name}.json"

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Keep other processes from sending meanwhile: two that want the same row send it once."""
        make(self._folder)
        with using(self._folder):
            number = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _locked(number, self._folder):  # noqa: ASYNC110  no event tells of another process
                await asyncio.sleep(_LOCK_LOOKS_S)
            yield
        finally:
            os.close(number)

    def load(self) -> None:
        """Take in what other processes, or this one in an earlier life, have noted. Only under the lock."""
        if not self._folder.is_dir():
            return
        with using(self._folder):
            notes = sorted(path for path in self._folder.iterdir() if path.suffix == ".json")
        for path in notes:
            if _NAME.fullmatch(path.stem) and path.stem not in self._jobs:
                self._take_in(path)

    def holding(self, key: str) -> Job | None:
        """The newest job that a reply to `key` lies in or is still to come from."""
        jobs = [job for job in self._holding.get(key, ()) if key in job.rows and key not in job.taken]
        return max(jobs, key=lambda job: job.rows[key].attempt, default=None)

    def next_row(self, key: str) -> RowId:
        """What the next row under `key` is called."""
        return RowId(key, self._attempts.get(key, 0) + 1)

    def begin(self, rows: Collection[RowId], digest: str, server: str) -> Job:
        """Note that rows are about to be sent, before anything is."""
        by_key = {row.key: row for row in rows}
        job = Job(uuid.uuid4().hex, digest, server, time.time(), len(by_key), by_key)
        make(self._folder)
        self.note(job)
        self._enter(job)
        return job

    def note(self, job: Job) -> None:
        """Put what is known of a job on the disk."""
        fields = {
            "version": _VERSION,
            "digest": job.digest,
            "server": job.server,
            "created": job.created,
            "size": job.size,
            "rows": list(map(str, job.rows.values())),
            "file_id": job.file_id,
            "batch_id": job.batch_id,
            "ended": job.ended,
        }
        write_whole(self.note_of(job), orjson.dumps(fields))

    def read_results(self, job: Job) -> list[Place]:
        """Find the replies in the server's files of a job; returns all results there, whosever they are.

        Raises `SettingsError` where a file cannot be read.
        """
        malformed = 0
        places: list[Place] = []
        for path in (self.output(job), self.errors(job)):
            with using(self._folder):
                found = read_rows(path) if path.exists() else None
            if found is not None:
                malformed += found.malformed
                places += found.results.values()
                for row, place in found.results.items():
                    known = job.results.get(row.key)
                    if job.rows.get(row.key) == row and not (known and known.good):
                        job.results[row.key] = place
        if malformed:
            _LOG.warning("batch %s: %d lines of its results cannot be read", job.batch_id, malformed)
        return places

    def forget_results(self, job: Job) -> None:
        """Delete the server's files of a job: they are to come anew."""
        job.ended = 0.0
        job.results.clear()
        with using(self._folder):
            for path in (self.output(job), self.errors(job)):
                path.unlink(missing_ok=True)

    def end(self, job: Job, wanted: Collection[str]) -> None:
        """Note that the server's files are here; `wanted` are the keys that somebody waits for."""
        if not self.note_of(job).exists():
            # Another process was given every reply meanwhile: no more is left of the job than is wanted here.
            job.rows = {key: row for key, row in job.rows.items() if key in wanted}
        job.ended = time.time()
        self.note(job)

    def outcome(self, job: Job, key: str) -> Response | NoResponse:
        """Read one of the results of a job. Raises `SettingsError` where it cannot be read."""
        with using(self._folder):
            return outcome_at(job.results[key], job.latency_s)

    def settle(self, job: Job, keys: Collection[str]) -> None:
        """Note that nothing more is to come of some rows of a job; the last one ends the job's files."""
        for key in keys:
            job.rows.pop(key, None)
        if not job.rows:
            self.drop(job)
        elif keys and self.note_of(job).exists():
            self._append(self._done(job), "".join(f"{key}\n" for key in keys))

    def drop(self, job: Job) -> None:
        """Forget a job."""
        self._jobs.pop(job.name, None)
        job.rows.clear()
        with using(self._folder):
            # The note goes last: what is left without one would never be found.
            for path in (self.output(job), self.errors(job), self._done(job), self.note_of(job)):
                path.unlink(missing_ok=True)

    def _done(self, job: Job) -> Path:
        return self._folder / f"{job.name}.done"

    def _append(self, path: Path, text: str) -> None:
        with using(self._folder):
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(number, text.encode())
            finally:
                os.close(number)

    def _enter(self, job: Job) -> None:
        self._jobs[job.name] = job
        for key, row in job.rows.items():
            self._holding.setdefault(key, []).append(job)
            self._attempts[key] = max(self._attempts.get(key, 0), row.attempt)

    def _take_in(self, path: Path) -> None:
        try:
            job = _job(path.stem, orjson.loads(path.read_bytes()))
        except FileNotFoundError:
            return  # another process has just ended it
        except (OSError, ValueError, KeyError, TypeError) as fault:
            _LOG.warning("%s is no note of a batch (%r); it is left alone", path, fault)
            return
        done = self._done(job)
        with using(self._folder):
            keys = done.read_text("ascii", "replace").splitlines() if done.exists() else []
        for key in keys:
            job.rows.pop(key, None)
        if job.ended:
            found = self.read_results(job)
            if any(place.good for place in found) or job.rows.keys() <= job.results.keys():
                self.settle(job, job.failed)
            else:  # the output was lost, as in a loss of power: its rows are paid for, and still with the server
                self.forget_results(job)
        if job.rows:
            self._enter(job)
        else:
            self.drop(job)


def _locked(number: int, folder: Path) -> bool:
    with using(folder):
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _job(name: str, fields: dict[str, Any]) -> Job:
    if fields["version"] != _VERSION:
        raise ValueError(f"version {fields['version']!r}")
    rows = [RowId.parse(row) for row in fields["rows"]]
    return Job(
        name=name,
        digest=str(fields["digest"]),
        server=str(fields["server"]),
        created=float(fields["created"]),
        size=int(fields["size"]),
        rows={row.key: row for row in rows if row is not None},
        file_id=str(fields["file_id"]),
        batch_id=str(fields["batch_id"]),
        ended=float(fields["ended"]),
    )
