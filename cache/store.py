"""The content-addressed store on disk."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar

from cache.disk import VALUE_LIMIT, DamagedValue, read_value
from cache.entry import KINDS, Entry, Value, check_kind, is_key, name
from cache.errors import CacheError, CacheTooLarge, closed, translate
from cache.folder import absolute, open_database
from cache.keys import encode
from cache.writer import BATCH, Change, Done, Writer

_log = logging.getLogger(__name__)

D = TypeVar("D", bound=Done)

_ONE = " FROM Cache WHERE raw = 1 AND key = ?"
_VALUE = "SELECT mode, filename, value" + _ONE
_WHERE = " WHERE raw = 1 AND key > ? AND key < ?"


class Store:
    """JSON objects by kind and digest, in one SQLite database in ``folder``; a context manager.

    Several processes may use the same folder, and nothing is ever dropped. Read from the thread that opened
    it (a read takes microseconds); writes go through one thread of their own. Not for network file systems.

    ``folder`` is the absolute path; ``damaged`` holds the names (``kind:key``) of the entries that were found
    to be unreadable, or not of their kind's form, which count as missing until they are written again.

    Raises:
        CacheReadOnly, CacheFull, CacheCorrupt, CacheFormat: the folder cannot be used; also, each with its
            meaning, from every other method.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = absolute(folder)
        self.damaged: set[str] = set()
        self._database = open_database(self.folder)
        try:
            self._writer = Writer(self._database, self.folder)
        except CacheError:
            self._database.close()
            raise
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits to be written, and let go of the folder."""
        self._closed = True
        self._writer.close()
        self._database.close()

    def get(self, kind: str, key: str) -> Value | None:
        """The value, or None where there is none or it is damaged (which is logged once)."""
        # Not through diskcache, whose `get` takes twice as long.
        rows = self.query(_VALUE, (name(kind, key),))
        return self._value(kind, key, rows[0]) if rows else None

    def contains(self, kind: str, key: str) -> bool:
        """Whether there is an entry; `get` alone tells whether it can be read."""
        return bool(self.query("SELECT 1" + _ONE, (name(kind, key),)))

    async def put(self, kind: str, key: str, value: Value) -> None:
        """Store ``value``, and return when it is on the disk.

        A cancelled caller stops waiting; its value is written nevertheless.

        Raises:
            TypeError: ``value`` is not a JSON object.
            CacheFull, CacheReadOnly, CacheTooLarge, CacheError: it is not stored.

        """
        change = _change(kind, key, value)
        done = asyncio.get_running_loop().create_future()
        self._writer.submit([change], done)
        await done
        self._healed([change])

    async def put_many(self, entries: Iterable[Entry]) -> None:
        """Store ``entries``, and return when all are on the disk; raises as `put`, some are stored then."""
        changes = [_change(*entry) for entry in entries]
        await asyncio.gather(*self._submit(changes, asyncio.get_running_loop().create_future))
        self._healed(changes)

    def put_now(self, kind: str, key: str, value: Value) -> None:
        """`put` for scripts: blocks the thread, and with it an event loop."""
        self.put_many_now([Entry(kind, key, value)])

    def put_many_now(self, entries: Iterable[Entry]) -> None:
        """`put_many` for scripts: blocks the thread, and with it an event loop."""
        self._wait([_change(*entry) for entry in entries])

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Delete the entries that there are; blocks until the disk has done so."""
        self._wait([(name(kind, key), None) for key in keys])

    def iterate(self, kind: str) -> Iterator[tuple[str, Value | None]]:
        """Every key of ``kind`` in order with its value, None for a damaged one.

        Entries come from the disk a page at a time; those written or deleted meanwhile may be among them
        or not.
        """
        for key, *row in self._rows(kind, "mode, filename, value"):
            yield key, self._value(kind, key, row)

    def keys(self, kind: str, stored_before: float | None = None) -> Iterator[str]:
        """Every key of ``kind`` in order, or only those stored before a time (seconds since 1970)."""
        for key, stored in self._rows(kind, "store_time"):
            if stored_before is None or stored < stored_before:
                yield key

    def count(self) -> dict[str, int]:
        """The number of entries of each kind."""
        question = f"SELECT COUNT(*) FROM Cache{_WHERE}"  # noqa: S608  our own words
        return {kind: self.query(question, _range(kind))[0][0] for kind in KINDS}

    def query(self, question: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that the database answers to an SQL ``question``: for maintenance that reads."""
        if self._closed:
            # diskcache would open the database again, and nobody would close it.
            raise closed(self.folder)
        try:
            # diskcache has no public way to ask.
            rows: list[tuple[Any, ...]] = self._database._sql(question, values).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.folder) from error
        return rows

    def _rows(self, kind: str, columns: str) -> Iterator[tuple[Any, ...]]:
        # By pages, so that a slow reader holds no read transaction, which would let the log grow without end.
        start, end = _range(kind)
        question = f"SELECT key, {columns} FROM Cache{_WHERE} ORDER BY key LIMIT {BATCH}"  # noqa: S608  our own words
        while page := self.query(question, (start, end)):
            for entry, *rest in page:
                key = entry.partition(":")[2]
                if is_key(key):
                    yield key, *rest
            start = page[-1][0]

    def _value(self, kind: str, key: str, row: Sequence[Any]) -> Value | None:
        try:
            return read_value(kind, *row)
        except DamagedValue as error:
            self._note(name(kind, key), error)
            return None

    def _submit(self, changes: list[Change], future: Callable[[], D]) -> list[D]:
        waiting = []
        for start in range(0, len(changes), BATCH):
            waiting.append(future())
            self._writer.submit(changes[start : start + BATCH], waiting[-1])
        return waiting

    def _wait(self, changes: list[Change]) -> None:
        for job in self._submit(changes, Future[None]):
            job.result()
        self._healed(changes)

    def _healed(self, changes: list[Change]) -> None:
        self.damaged.difference_update(entry for entry, _ in changes)

    def _note(self, entry: str, error: DamagedValue) -> None:
        if entry not in self.damaged:
            _log.warning("cache entry %s counts as missing: %s; see `rectom cache verify`", entry, error)
        self.damaged.add(entry)


def _range(kind: str) -> tuple[str, str]:
    # ";" follows ":".
    return f"{check_kind(kind)}:", f"{kind};"


def _change(kind: str, key: str, value: Value) -> Change:
    # Here and not in the writer: a value that is no JSON is its caller's error alone, and one that is changed
    # later is stored as it was.
    if type(value) is not dict:
        raise TypeError(f"a value is a JSON object, not {type(value).__name__}")
    text = encode(value)
    if len(text) > VALUE_LIMIT:
        raise CacheTooLarge(
            f"the value of {kind} {key} has {len(text)} bytes, over the {VALUE_LIMIT} allowed: store less"
        )
    return name(kind, key), text
