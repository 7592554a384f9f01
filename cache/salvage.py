"""What can still be read of a damaged database: row by row, past the pages that cannot."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from diskcache.core import DBNAME

from cache.disk import DamagedValue, read_value
from cache.entry import KINDS, Entry, is_key
from cache.errors import CacheCorrupt, translate, unreadable
from cache.folder import LOCK_SECONDS, absolute
from cache.writer import BATCH

EXACT = 10_000
"""So many rows may lie below one inner page of the table: that many numbers in a row are tried one by one."""

_LAST = 2**63 - 1
_OPEN = (
    # Where a file is shorter than it says, SQLite reads what is there only under this name; nothing is written.
    "PRAGMA writable_schema = ON",
    # All is read in one transaction: a lock that is wanting later would be taken for damage.
    "BEGIN",
    "SELECT COUNT(*) FROM sqlite_master",
    "SELECT rowid FROM Cache LIMIT 0",
)
_TABLE = "SELECT rowid FROM Cache NOT INDEXED WHERE rowid >= ? ORDER BY rowid LIMIT ?"
# No entry expires, so that this index has all rows in order, on few pages: it names those that the table no longer
# leads to.
_INDEX = (
    "SELECT rowid FROM Cache INDEXED BY Cache_expire_time WHERE expire_time IS NULL AND rowid >= ? "
    "ORDER BY rowid LIMIT ?"
)
_ROW = "SELECT key, mode, filename, value FROM Cache NOT INDEXED WHERE raw = 1 AND rowid = ?"
_COUNT = "SELECT value FROM Settings NOT INDEXED WHERE key = 'count' AND typeof(value) = 'integer'"


class Salvage:
    """The entries of a damaged database in ``folder`` that can be read; a context manager. Nothing is written.

    ``rows`` is how many rows the database has, as far as that can be told, and ``read`` how many of them could be
    read; both hold once `entries` has come to its end.

    Raises:
        CacheCorrupt: the database cannot be opened.
        CacheError: another process keeps it locked.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = absolute(folder)
        self.rows = 0
        self.read = 0
        try:
            self._database = _opened(self.folder)
        except sqlite3.Error as error:
            found = translate(error, self.folder)
            raise unreadable(self.folder, str(error)) if isinstance(found, CacheCorrupt) else found from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @property
    def lost(self) -> int:
        """How many rows could not be read."""
        return self.rows - self.read

    def entries(self) -> Iterator[Entry]:
        """Every entry that can be read, of all kinds, in the order in which they came into the store."""
        rowids = {*self._rowids(_TABLE), *self._rowids(_INDEX)}
        self.rows = max(len(rowids), self._counted())
        for rowid in sorted(rowids):
            entry = self._entry(rowid)
            if entry:
                self.read += 1
                yield entry

    def _rowids(self, question: str) -> Iterator[int]:
        start, failed = 1, 0
        while start <= _LAST:
            try:
                # Singly after a failure, since that of a later row takes those before it along.
                found = [rowid for (rowid,) in self._database.execute(question, (start, 1 if failed else BATCH))]
            except sqlite3.DatabaseError:
                start += _stride(failed)
                failed += 1
                continue
            if not found:
                return
            yield from found
            # Of a damaged page the order may be wrong, and the walk must come to an end.
            start, failed = max(start, found[-1]) + 1, 0

    def _counted(self) -> int:
        """How many rows were put in and not deleted, as the database itself kept count; 0 if that is lost."""
        try:
            return sum(count for (count,) in self._database.execute(_COUNT))
        except sqlite3.DatabaseError:
            return 0

    def _entry(self, rowid: int) -> Entry | None:
        try:
            row = self._database.execute(_ROW, (rowid,)).fetchone()
            return _as_entry(*row) if row else None
        except (sqlite3.DatabaseError, DamagedValue):
            return None


def _opened(folder: Path) -> sqlite3.Connection:
    # Not through diskcache, which writes its settings when it opens a database, and needs those that are there.
    address = f"{(folder / DBNAME).as_uri()}?mode=ro"
    database = sqlite3.connect(address, LOCK_SECONDS, isolation_level=None, uri=True)
    database.text_factory = lambda text: text.decode(errors="replace")
    try:
        for question in _OPEN:
            database.execute(question).fetchall()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _stride(failed: int) -> int:
    """How far to go on after a failure: after that of a batch nowhere, since its rows are yet to be tried singly."""
    return 2 ** max(0, failed - EXACT) if failed else 0


def _as_entry(name: object, mode: int, filename: object, value: Any) -> Entry:
    kind, _, key = str(name).partition(":")
    if kind not in KINDS or not is_key(key):
        raise DamagedValue("its key was not written by this program")
    return Entry(kind, key, read_value(kind, mode, filename, value))
