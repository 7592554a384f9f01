"""The one thread that writes: many waiters, few transactions."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from cache.errors import CacheError, closed, translate

BATCH = 64
"""The most changes of one transaction: the disk is waited for once for all of them."""

GATHER_S = 0.002
"""How long the first change of a transaction waits for others: it costs as much as tens of them."""

Change = tuple[str, bytes | None]
"""The name of an entry and the JSON text of its value; None deletes it."""

_log = logging.getLogger(__name__)


Done = Future[None] | asyncio.Future[None]
"""Waits for a commit: in a thread, or in an event loop."""


@dataclass(frozen=True, eq=False)
class Job:
    """Changes that are committed together, and the future that says so."""

    changes: Sequence[Change]
    done: Done

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Where its waiter waits, if not in a thread."""
        return self.done.get_loop() if isinstance(self.done, asyncio.Future) else None


class Writer:
    """Commits jobs in the order in which they came.

    An error reaches every waiter of its transaction, none of which is stored then, and the writer goes on.

    Raises:
        CacheError: the thread cannot open the database.

    """

    def __init__(self, database: Any, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._closed = False
        self._ended = False
        self._lock = Lock()
        opened: Future[None] = Future()
        # A daemon, so that a store nobody closed does not keep the program from ending: what is unwritten
        # then was not acknowledged.
        self._thread = Thread(target=self._run, args=(opened,), name="cache-writer", daemon=True)
        self._thread.start()
        opened.result()

    def submit(self, changes: Sequence[Change], done: Done) -> None:
        """Let ``done`` end when ``changes``, at most `BATCH`, are on the disk, or hold a CacheError.

        Raises:
            CacheError: the writer is closed.

        """
        with self._lock:
            if self._closed:
                raise closed(self._folder)
            self._jobs.put(Job(changes, done))

    def close(self) -> None:
        """Write what waits, then stop; may be called twice."""
        with self._lock:
            if not self._closed:
                self._jobs.put(None)
            self._closed = True
        self._thread.join()

    def _run(self, opened: Future[None]) -> None:
        try:
            self._open()
        except Exception as error:
            self._database.close()
            opened.set_exception(translate(error, self._folder))
            return
        opened.set_result(None)
        while not self._ended:
            self._write(self._next())
        self._database.close()

    def _open(self) -> None:
        # A connection belongs to its thread. Not with the first job, when sockets may hold every file descriptor.
        # The question is for SQLite, which opens its files as they are needed; where entries are damaged it finds none.
        self._database._sql("SELECT 1 FROM Settings LIMIT 1").fetchall()

    def _next(self) -> list[Job]:
        batch: list[Job] = []
        job = self._jobs.get()
        if job is not None and self._jobs.empty():
            time.sleep(GATHER_S)
        size = 0
        while job is not None:
            batch.append(job)
            size += len(job.changes)
            if size >= BATCH:
                return batch
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return batch
        self._ended = True
        return batch

    def _write(self, batch: list[Job]) -> None:
        try:
            self._commit([change for job in batch for change in job.changes])
        except Exception as error:
            fault = translate(error, self._folder)
            _log.info("%s", fault)  # its waiters are told
            # The connection may still be within the transaction that failed. The next is opened at once, or others
            # take its file descriptors.
            self._database.close()
            with suppress(Exception):  # it is tried once more with the next job
                self._open()
            _settle(batch, lambda: type(fault)(*fault.args))
        else:
            _settle(batch, None)

    def _commit(self, changes: list[Change]) -> None:
        with self._database.transact():
            for name, text in changes:
                if text is None:
                    self._database.delete(name)
                else:
                    self._database.set(name, text)


def _settle(batch: list[Job], error: Callable[[], CacheError] | None) -> None:
    # One call a loop: each hands the interpreter over to its thread, and may wait long to get it back.
    for loop in {job.loop for job in batch}:
        jobs = [job for job in batch if job.loop is loop]
        if loop is None:
            _end(jobs, error)
            continue
        with suppress(RuntimeError):  # it was closed: nobody waits
            loop.call_soon_threadsafe(_end, jobs, error)


def _end(jobs: list[Job], error: Callable[[], CacheError] | None) -> None:
    for job in jobs:
        if job.done.done():
            continue  # whoever waited has left; what he wanted to keep is kept
        if error is None:
            job.done.set_result(None)
        else:
            job.done.set_exception(error())
