"""Digests of JSON values: the keys of the store."""

import hashlib
import math
from typing import Any

import orjson

# What orjson would otherwise turn into strings by itself; such a value would not come back as it was.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_PLAIN = (str, int, bool, type(None))


def digest(value: object) -> str:
    """The sha256, in hex, of the canonical JSON of ``value``.

    The order of a mapping's fields never matters; that of a list does. ``1``, ``1.0`` and ``True`` differ.

    Raises:
        TypeError: ``value`` holds something that JSON cannot (a set, bytes, NaN, a key that is no string, an
            integer of more than 64 bits), or is nested more than 254 deep.

    """
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: object) -> bytes:
    """The JSON text of ``value`` with sorted keys; raises TypeError as `digest` does."""
    return _dump(value, orjson.OPT_SORT_KEYS)


def encode(value: object) -> bytes:
    """The JSON text of ``value`` with its keys in their own order; raises TypeError as `digest` does."""
    return _dump(value, 0)


def _dump(value: object, option: int) -> bytes:
    # First orjson, whose limit on nesting also ends circular values, then the look at the leaves.
    text = orjson.dumps(value, option=_STRICT | option)
    _check(value)
    return text


def _check(value: object) -> None:
    # orjson writes NaN and infinity as null, and enums and UUIDs as strings.
    left: list[Any] = [value]
    while left:
        item = left.pop()
        kind = type(item)
        if kind is dict:
            left.extend(item.values())
        elif kind in (list, tuple):
            left.extend(item)
        elif kind is float:
            _check_float(item)
        elif kind not in _PLAIN:
            raise TypeError(f"JSON cannot hold a {kind.__name__}")


def _check_float(number: float) -> None:
    if not math.isfinite(number):
        raise TypeError(f"JSON cannot hold {number}")
