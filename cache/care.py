"""Looking after the store: how large it is, whether it is sound, and what can go."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cache.entry import KINDS, Entry, fits
from cache.store import Store

_DAMAGED = {
    "reply": "its value is damaged; it counts as missing, and is asked for again",
    "stage": "its value is damaged; it counts as missing, and is computed again",
    "latest": "its value is damaged; it counts as missing, and no result depends on it",
}
_MISPLACED = {
    "reply": "its request is not the one that its key stands for; `rectom cache export FILE` and `rectom cache import "
    "FILE` into a new folder leave it behind",
    "stage": "its fields are not those that its key stands for; `rectom cache prune` deletes stage results, which are "
    "computed again for nothing",
}


@dataclass(frozen=True)
class Size:
    """Entries of one kind, and the bytes of their values as they lie on the disk."""

    entries: int
    size: int


@dataclass(frozen=True)
class Stats:
    """The folder, what it holds of each kind, its size on disk in bytes, and the damaged entries it met."""

    folder: Path
    kinds: dict[str, Size]
    size: int
    damaged: int


@dataclass(frozen=True)
class Problem:
    """What is wrong with an entry; ``entry`` is its ``kind:key``, or empty for the database as a whole."""

    entry: str
    what: str

    def __str__(self) -> str:
        return f"{self.entry or 'database'}: {self.what}"


def stats(store: Store) -> Stats:
    """Count the store; looks at every row, not into the values (`verify` finds damage)."""
    # The log may hold as much as the database itself.
    files = (file for file in store.folder.iterdir() if file.is_file())
    kinds = {kind: Size(count, _bytes(store, kind)) for kind, count in store.count().items()}
    return Stats(store.folder, kinds, sum(file.stat().st_size for file in files), len(store.damaged))


def verify(store: Store) -> list[Problem]:
    """Read everything; the problems that there are, none when the store is sound.

    A damaged entry counts as missing, and is asked for or computed again: only an entry under another key than its
    own, and a problem of the database as a whole, need a hand.

    Raises:
        CacheCorrupt: the database is too damaged to be read through.

    """
    return [*_database(store), *(problem for kind in KINDS for problem in _entries(store, kind))]


def prune(store: Store, kinds: Iterable[str], older_than: timedelta | None = None, dry_run: bool = False) -> int:
    """Delete the entries of ``kinds``, only those stored longer ago than ``older_than`` when it is given.

    Replies are paid for: they go only where ``kinds`` names them. Returns how many entries went, or would go.

    Raises:
        ValueError: ``kinds`` names something that is no kind.

    """
    before = None if older_than is None else time.time() - older_than.total_seconds()
    old = {kind: list(store.keys(kind, before)) for kind in kinds}
    for kind, keys in old.items():
        if not dry_run:
            store.delete(kind, keys)
    return sum(map(len, old.values()))


def _bytes(store: Store, kind: str) -> int:
    question = "SELECT TOTAL(LENGTH(value)) FROM Cache WHERE raw = 1 AND key > ? AND key < ?"
    return int(store.query(question, (f"{kind}:", f"{kind};"))[0][0])


def _database(store: Store) -> Iterator[Problem]:
    for (line,) in store.query("PRAGMA integrity_check"):
        if line != "ok":
            yield Problem("", f"{line}: export what can be read, and import it into a new folder")
    foreign = _foreign(store)
    if foreign:
        yield Problem("", f"{foreign} rows were not written by this program; they are never read")


def _foreign(store: Store) -> int:
    known = ", ".join(f"'{kind}:'" for kind in KINDS)
    named = (
        f"raw = 1 AND typeof(key) = 'text' AND substr(key, 1, instr(key, ':')) IN ({known})"
        " AND length(key) = instr(key, ':') + 64"
        " AND substr(key, instr(key, ':') + 1) NOT GLOB '*[^0-9a-f]*'"
    )
    rows = store.query(f"SELECT COUNT(*) FROM Cache WHERE NOT ({named})")  # noqa: S608  only our own words
    return int(rows[0][0])


def _entries(store: Store, kind: str) -> Iterator[Problem]:
    for key, value in store.iterate(kind):
        if value is None:
            yield Problem(f"{kind}:{key}", _DAMAGED[kind])
        elif not fits(Entry(kind, key, value)):
            yield Problem(f"{kind}:{key}", _MISPLACED[kind])
