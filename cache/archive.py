"""A part of the store as one file: gzip, a JSON line an entry.

The first line names the format, each further one holds an entry (``kind``, ``key``, ``value``), the last
one the number of entries and the sha256 of all the lines before it.
"""

import gzip
import hashlib
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from cache.disk import VALUE_LIMIT
from cache.entry import KINDS, REQUEST, Entry, Value, fits, is_key
from cache.errors import ArchiveError, unreadable
from cache.files import replacing
from cache.keys import encode
from cache.salvage import Salvage
from cache.store import Store
from cache.writer import BATCH

LINE_LIMIT = VALUE_LIMIT + 4096
RATIO = 500
"""How many times its own size a file may unpack to: gzip reaches 1,030, entries with their keys a fifth of that."""

_HEADER = {"format": "rectom-cache", "version": 1}


@dataclass(frozen=True)
class Rescued:
    """How many entries were written, and how many, of whatever kind, could not be read."""

    entries: int
    lost: int


@dataclass(frozen=True)
class Imported:
    """How many entries were new, how many were there already, how many are not of their kind or not of their key."""

    added: int = 0
    present: int = 0
    refused: int = 0


def export(
    store: Store,
    file: Path,
    kinds: Iterable[str] = ("reply",),
    keys: Collection[str] | None = None,
    *,
    requests: bool = True,
) -> int:
    """Write the entries of ``kinds`` to ``file``, readable by its owner only, and return their number.

    Damaged entries are left out (and noted by the store), and those whose keys are not among ``keys``, if any are
    given. Without ``requests`` replies are written alone, not with what was asked. The same entries give the same
    bytes.

    Raises:
        ArchiveError: ``file`` cannot be written; it is then as it was.

    """
    every = (Entry(kind, key, value) for kind in kinds for key, value in store.iterate(kind) if value is not None)
    return _save(file, _chosen(every, keys, requests))


def rescue(
    folder: Path,
    file: Path,
    kinds: Iterable[str] = ("reply",),
    keys: Collection[str] | None = None,
    *,
    requests: bool = True,
) -> Rescued:
    """`export` from the damaged database in ``folder``, which no store can read through: what can be read of it.

    Raises:
        CacheCorrupt: the database cannot be opened, or no such entry can be read; ``file`` is as it was.
        ArchiveError: ``file`` cannot be written, or is there already; it is then as it was.

    """
    if file.exists():
        raise ArchiveError(f"{file} may hold what the damaged cache in {folder} has lost: export to a new file")
    wanted = set(kinds)
    with Salvage(folder) as salvage:
        every = (entry for entry in salvage.entries() if entry.kind in wanted)
        entries = _save(file, _some(_chosen(every, keys, requests), salvage))
    return Rescued(entries, salvage.lost)


def import_(store: Store, file: Path, ratio: int = RATIO) -> Imported:
    """Add to ``store`` the entries of ``file`` that it lacks or cannot read; no other is overwritten.

    The whole file is checked before the first entry is stored. A reply that does not lie under the digest of
    its request is counted as refused, and so are stage results under another key than their fields' or of another
    form than theirs. ``ratio`` bounds how many times its size the file may unpack to.

    Raises:
        ArchiveError: the file is truncated, foreign, tampered with, or over its bounds; nothing was stored.
        CacheFull, CacheReadOnly, CacheError: the store cannot be written; a part may be stored.

    """
    try:
        with file.open("rb") as raw:
            for _ in _read(raw, file, ratio):
                pass
            return _store(store, _read(raw, file, ratio))
    except OSError as error:
        raise ArchiveError(f"the archive {file} cannot be read ({error.strerror or error})") from error


def _bare(value: Value) -> Value:
    """A value without its request: it is found under the same key, which no longer vouches for it."""
    return {name: field for name, field in value.items() if name != REQUEST}


def _chosen(entries: Iterable[Entry], keys: Collection[str] | None, requests: bool) -> Iterator[Entry]:
    for entry in entries:
        if keys is None or entry.key in keys:
            yield entry if requests else entry._replace(value=_bare(entry.value))


def _some(entries: Iterable[Entry], salvage: Salvage) -> Iterator[Entry]:
    """The same; raises CacheCorrupt at the end if there was none, and rows were lost."""
    entry = None
    for entry in entries:
        yield entry
    if entry is None and salvage.lost:
        raise unreadable(salvage.folder, f"{salvage.lost} of its {salvage.rows} rows are damaged")


def _save(file: Path, entries: Iterable[Entry]) -> int:
    try:
        with replacing(file) as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            return _write(packed, entries)
    except OSError as error:
        raise ArchiveError(
            f"the archive {file} cannot be written ({error.strerror}): choose another place for it"
        ) from error


def _write(packed: gzip.GzipFile, entries: Iterable[Entry]) -> int:
    seen = hashlib.sha256()
    lines = 0
    for line in _lines(entries):
        seen.update(line)
        packed.write(line)
        lines += 1
    packed.write(_line(_end(lines - 1, seen.hexdigest())))
    return lines - 1


def _lines(entries: Iterable[Entry]) -> Iterator[bytes]:
    yield _line(_HEADER)
    for entry in entries:
        # A fragment, because a value as deep as JSON may be has no room for one more level.
        yield _line({**entry._asdict(), "value": orjson.Fragment(encode(entry.value))})


def _line(value: object) -> bytes:
    return orjson.dumps(value) + b"\n"


def _end(entries: int, sha256: str) -> dict[str, object]:
    return {"entries": entries, "sha256": sha256}


def _store(store: Store, entries: Iterable[Entry]) -> Imported:
    added = present = refused = 0
    waiting: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        place = entry[:2]
        if not fits(entry):
            refused += 1
        elif place in waiting or store.get(*place) is not None:
            present += 1
        else:
            added += 1
            waiting[place] = entry
        if len(waiting) == BATCH:
            store.put_many_now(waiting.values())
            waiting.clear()
    store.put_many_now(waiting.values())
    return Imported(added, present, refused)


def _read(raw: IO[bytes], file: Path, ratio: int) -> Iterator[Entry]:
    """The entries of an archive; the last step raises ArchiveError when it is not whole."""
    seen = hashlib.sha256()
    lines = (_parse(line, file) for line in _unpack(raw, file, ratio, seen))
    if next(lines, None) != _HEADER:
        raise ArchiveError(f"{file} is not a rectom cache archive of version 1: check which file it is")
    entries = 0
    found: dict[str, Any] = {}
    for found in lines:
        if "sha256" in found:
            break
        yield _entry(found, file)
        entries += 1
    if found != _end(entries, seen.hexdigest()) or next(lines, None) is not None:
        raise _broken(file, "its last line does not agree with the lines before it")


def _unpack(raw: IO[bytes], file: Path, ratio: int, seen: "hashlib._Hash") -> Iterator[bytes]:
    """The lines of a packed file; ``seen`` has taken in those before the one that comes."""
    left = ratio * raw.seek(0, 2) + LINE_LIMIT
    raw.seek(0)
    with gzip.GzipFile(fileobj=raw, mode="rb") as packed:
        while line := _next_line(packed, file):
            left -= len(line)
            if len(line) > LINE_LIMIT or left < 0:
                raise ArchiveError(
                    f"the archive {file} unpacks to more than {LINE_LIMIT} bytes a line or {ratio} times its size: "
                    "check where it comes from; nothing was imported"
                )
            yield line
            seen.update(line)


def _next_line(packed: gzip.GzipFile, file: Path) -> bytes:
    try:
        return packed.readline(LINE_LIMIT + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _broken(file, str(error)) from error


def _parse(line: bytes, file: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _broken(file, "a line is no JSON") from error
    if not isinstance(found, dict):
        raise _broken(file, "a line is no JSON object")
    return found


def _entry(found: dict[str, Any], file: Path) -> Entry:
    if found.keys() != set(Entry._fields):
        raise _broken(file, "a line is no entry")
    entry = Entry(**found)
    if entry.kind not in KINDS or not is_key(entry.key) or not isinstance(entry.value, dict):
        raise _broken(file, "an entry has an unknown kind, no key or no value")
    try:
        encode(entry.value)
    except TypeError as error:
        raise _broken(file, f"an entry cannot be stored: {error}") from error
    return entry


def _broken(file: Path, why: str) -> ArchiveError:
    return ArchiveError(
        f"the archive {file} is truncated or was changed ({why}): get a whole copy; nothing was imported"
    )
