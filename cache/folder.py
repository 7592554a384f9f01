"""The folder of the store: made, checked and opened."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import diskcache
import orjson
from diskcache.core import DBNAME

from cache.disk import JsonDisk
from cache.errors import CacheFormat, corrupt, translate
from cache.files import replacing

FORMAT = "rectom-cache"
VERSION = 1
LOCK_SECONDS = 60.0
"""How long one process waits for another that writes."""

_MARK = "format.json"

_SETTINGS: dict[str, object] = {
    # By default diskcache drops entries above 1 GB.
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    "statistics": 0,
    "tag_index": 0,
    # No value ever becomes a file, so that no interrupted transaction can leave one behind.
    "disk_min_file_size": 2**62,
    # What is acknowledged survives a loss of power.
    "sqlite_synchronous": 2,
    # A mapped file that is cut off kills its readers with a bus error instead of raising one.
    "sqlite_mmap_size": 0,
}


def absolute(folder: Path) -> Path:
    """``folder`` as diskcache will see it, with ``~`` and variables put in; ``~nobody`` is a name like any other."""
    path = Path(os.path.expandvars(folder))
    with suppress(RuntimeError):
        path = path.expanduser()
    return path.absolute()


def open_database(folder: Path) -> Any:
    """The open ``diskcache.Cache`` of an `absolute` folder, which is made (for its owner only) when missing.

    Raises:
        CacheReadOnly, CacheFull: it cannot be made or written.
        CacheFormat: it was made by something else.
        CacheCorrupt: the database is not readable.

    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_format(folder)
    except OSError as error:
        raise translate(error, folder) from error
    return _connect(folder)


def _check_format(folder: Path) -> None:
    # In this order: the mark is made before the database, so a database without one is foreign even while
    # another process is making both.
    used = (folder / DBNAME).exists()
    mark = folder / _MARK
    if mark.exists():
        _check_mark(folder, mark)
    elif used:
        raise CacheFormat(
            f"the folder {folder} holds the database of another program: choose another one with --cache DIR"
        )
    else:
        with replacing(mark) as file:
            file.write(orjson.dumps({"format": FORMAT, "version": VERSION}) + b"\n")


def _check_mark(folder: Path, mark: Path) -> None:
    found = _read_mark(mark)
    if found.get("format") != FORMAT:
        raise CacheFormat(f"{folder} is not a rectom cache (see {mark.name}): choose another folder with --cache DIR")
    if found.get("version") != VERSION:
        raise CacheFormat(
            f"the cache folder {folder} has format {found.get('version')!r}, this program reads {VERSION}: "
            "use the rectom that made it, or choose another folder with --cache DIR"
        )


def _read_mark(mark: Path) -> dict[str, Any]:
    with mark.open("rb") as file:
        text = file.read(4096)
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _connect(folder: Path) -> Any:
    # In two steps, because an __init__ that raises would leave its connection open.
    database = diskcache.Cache.__new__(diskcache.Cache)
    try:
        database.__init__(str(folder), timeout=LOCK_SECONDS, disk=JsonDisk, **_SETTINGS)
    except (sqlite3.Error, OSError) as error:
        database.close()
        raise translate(error, folder) from error
    except (TypeError, ValueError, AttributeError) as error:
        # The settings that diskcache keeps in the database are not the ones that it writes.
        database.close()
        raise corrupt(folder, f"its settings are damaged: {error}") from error
    return database
