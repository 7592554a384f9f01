"""How keys and values lie in the database: plain text keys, JSON values, and never a pickle.

diskcache's own ``Disk`` and ``JSONDisk`` unpickle what they read (CVE-2025-69872): whoever can write the
folder runs code in the reader.
"""

import sqlite3
import zlib
from typing import Any

import diskcache
import orjson
from diskcache.core import MODE_RAW, UNKNOWN

from cache.entry import Value, has_form

VALUE_LIMIT = 64 * 2**20
"""The most bytes of JSON in one value: a real one has kilobytes, a damaged one must not fill the memory."""


class DamagedValue(Exception):
    """The value of an entry cannot be read, or is not of its kind; the other entries can be used."""


class JsonDisk(diskcache.Disk):  # type: ignore[misc]
    """Keys are text; a value is JSON text, compressed by zlib at level 1, within the database."""

    def put(self, key: object) -> tuple[str, bool]:
        """The database form of ``key``; raises TypeError for anything but a plain string."""
        if type(key) is not str:
            raise TypeError(f"a key is a string, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """The key for its database form; raises DamagedValue for a pickled one or one that is no text."""
        if not raw or type(key) is not str:
            raise DamagedValue("its key was not written by this program")
        return key

    def store(self, value: bytes, read: bool, key: object = UNKNOWN) -> tuple[int, int, None, sqlite3.Binary]:
        """The row fields (size, mode, file name, blob) for ``value``, which is JSON text already."""
        if read or type(value) is not bytes:
            raise TypeError("a value is stored as JSON text")
        return 0, MODE_RAW, None, sqlite3.Binary(zlib.compress(value, 1))

    def fetch(self, mode: int, filename: object, value: object, read: bool) -> dict[str, Any]:
        """The JSON object of a row; raises DamagedValue where there is none, as for every pickle and file."""
        if read:
            raise DamagedValue("its value was not written by this program")
        return _object(mode, filename, value)

    def remove(self, file_path: object) -> None:
        """Do nothing: no value has a file, and a path named by the database is not to be trusted."""


def read_value(kind: str, mode: int, filename: object, value: object) -> Value:
    """The value of an entry for the fields of its row; raises DamagedValue where it is none of an entry of ``kind``."""
    found = _object(mode, filename, value)
    if not has_form(kind, found):
        raise DamagedValue(f"its value is not that of a {kind} entry")
    return found


def _object(mode: int, filename: object, value: object) -> dict[str, Any]:
    if mode != MODE_RAW or filename is not None or type(value) is not bytes:
        raise DamagedValue("its value was not written by this program")
    try:
        found = orjson.loads(_decompress(value))
    except (zlib.error, orjson.JSONDecodeError) as error:
        raise DamagedValue(f"its value is damaged ({error})") from None
    if not isinstance(found, dict):
        raise DamagedValue("its value is no JSON object")
    return found


def _decompress(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    text = stream.decompress(data, VALUE_LIMIT)
    if not stream.eof:
        raise zlib.error("it is cut off or too long")
    return text
