"""What can go wrong with the store, as one tree.

    CacheError             the root; by itself: closed, locked too long, a failing disk, too many open files
    ├── CacheReadOnly      the folder cannot be made, opened or written
    ├── CacheFull          no space, quota or file size left; what was stored before is intact
    ├── CacheCorrupt       the database itself is not readable, or nothing in it is
    ├── CacheTooLarge      one value that is not stored; others are
    ├── CacheFormat        the folder was made by another program or another format version
    └── ArchiveError       an archive is truncated, foreign, tampered with, over its bounds, or cannot be written

Every message is one line: what happened, where, and what to do next.
"""

import errno
import os
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import diskcache


class CacheError(Exception):
    """The store could not do what was asked."""


class CacheReadOnly(CacheError):
    """The folder cannot be made, opened or written."""


class CacheFull(CacheError):
    """There is no space left to write; earlier entries are intact and can be read."""


class CacheCorrupt(CacheError):
    """The database itself cannot be read."""


class CacheTooLarge(CacheError):
    """One value is larger than any that is stored; others are stored as before."""


class CacheFormat(CacheError):
    """The folder was made by another program or another version of the format."""


class ArchiveError(CacheError):
    """An archive cannot be trusted or read; nothing of it was stored."""


_READ_ONLY = (
    CacheReadOnly,
    "the cache folder {folder} cannot be written ({why}): make it writable or choose another one with --cache DIR",
)
_FULL = (
    CacheFull,
    "no room to write in the cache folder {folder} ({why}): free space, raise the quota or the file size "
    "limit, and run again; what was stored is intact",
)
_NO_FILES = (
    CacheError,
    "no file of the cache folder {folder} can be opened, too many open files ({why}): raise the limit with `ulimit -n` "
    "or lower --concurrency, and run again; what was stored is intact",
)
_CORRUPT = (
    CacheCorrupt,
    "the cache database in {folder} is not readable ({why}): save what can be read with "
    "`rectom cache export FILE`, move the folder aside and import FILE, or choose another one with --cache DIR",
)
_LOCKED = (
    CacheError,
    "another process kept the cache folder {folder} locked for too long ({why}): stop it or choose another "
    "folder with --cache DIR",
)
_OTHER = (
    CacheError,
    "the cache folder {folder} failed ({why}): check the disk, then run `rectom cache verify`",
)

# The database, its log, the log's index, and the folder for as long as that is told of them.
_FILES = 4

# By the beginning of SQLite's or the system's name of the error. SQLite says FULL for ENOSPC alone: a quota
# and a file size limit come as IOERR_WRITE.
_MEANINGS = {
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR_WRITE": _FULL,
    "SQLITE_IOERR_SHMSIZE": _FULL,
    "ENOSPC": _FULL,
    "EDQUOT": _FULL,
    "EMFILE": _NO_FILES,
    "ENFILE": _NO_FILES,
    "EFBIG": _FULL,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CANTOPEN": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
    "EACCES": _READ_ONLY,
    "EPERM": _READ_ONLY,
    "EROFS": _READ_ONLY,
    "EEXIST": _READ_ONLY,
    "ENOTDIR": _READ_ONLY,
    "SQLITE_CORRUPT": _CORRUPT,
    "SQLITE_NOTADB": _CORRUPT,
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
}


def translate(error: BaseException, folder: Path) -> CacheError:
    """A new error of the tree that says what ``error``, met just now while using ``folder``, means."""
    root = _root(error)
    if _name(root).startswith("SQLITE_CANTOPEN"):
        root = _no_descriptor() or root  # SQLite does not say why
    name = _name(root)
    kind, text = next((meaning for start, meaning in _MEANINGS.items() if name.startswith(start)), _OTHER)
    why = " ".join(f"{name} {root}".split()) or type(root).__name__
    return kind(text.format(folder=folder, why=why))


def corrupt(folder: Path, why: str) -> CacheCorrupt:
    """The database in ``folder`` is not one that can be used."""
    kind, text = _CORRUPT
    return kind(text.format(folder=folder, why=why))


def unreadable(folder: Path, why: str) -> CacheCorrupt:
    """The database in ``folder`` holds nothing that could be saved."""
    return CacheCorrupt(
        f"nothing can be saved from the cache database in {folder} ({why}): move the folder aside and begin with an "
        "empty one; `rectom cache import FILE` takes in what `rectom cache export FILE` wrote before"
    )


def closed(folder: Path) -> CacheError:
    """The store in ``folder`` was closed before it was used."""
    return CacheError(f"the cache {folder} is closed: open a new Store")


def _root(error: BaseException) -> BaseException:
    # diskcache raises Timeout for whatever stops a BEGIN, and its ROLLBACK fails when SQLite has already
    # rolled back by itself; the reason is the error before. Other contexts are the caller's and say nothing.
    while _hides(error) and error.__context__ is not None:
        error = error.__context__
    return error


def _hides(error: BaseException) -> bool:
    return isinstance(error, diskcache.Timeout) or "no transaction is active" in str(error)


def _no_descriptor() -> OSError | None:
    """Why the files of a database cannot be opened, whichever they are; None where they can."""
    try:
        with ExitStack() as opened:
            for _ in range(_FILES):
                opened.enter_context(Path(os.devnull).open("rb"))
    except OSError as error:
        return error
    return None


def _name(error: BaseException) -> str:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", "") or ""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "")
    return ""
