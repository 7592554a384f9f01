"""An entry of the store: its kind, its key, its value, and the name it is stored under."""

import re
from typing import Any, NamedTuple

from cache.keys import digest

Value = dict[str, Any]

KINDS = ("reply", "stage", "latest")
"""A model's reply, the result of a stage, and what was last computed for a stage and its item."""

REQUEST = "request"
"""The field of a reply that holds what was asked."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """What is stored: ``kind`` is one of `KINDS`, ``key`` a `digest`, ``value`` a JSON object."""

    kind: str
    key: str
    value: Value


def check_kind(kind: str) -> str:
    """``kind`` itself; raises ValueError when it is none of `KINDS`."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of entry: use one of {', '.join(KINDS)}")
    return kind


def is_key(key: object) -> bool:
    """Whether ``key`` has the form of a `digest`."""
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


def name(kind: str, key: str) -> str:
    """``kind:key``, the name in the database; raises ValueError when one of them is not what it should be."""
    if not is_key(key):
        raise ValueError(f"{key!r} is no key: use cache.digest to make one")
    return f"{check_kind(kind)}:{key}"


def fits(entry: Entry) -> bool:
    """Whether a reply is stored under the digest of its own request.

    True for the other kinds, and for a reply that does not carry its request.
    """
    request = entry.value.get(REQUEST)
    if entry.kind != "reply" or not isinstance(request, dict):
        return True
    try:
        return digest(request) == entry.key
    except TypeError:
        return False
