"""An entry of the store: its kind, its key, its value, and the name it is stored under."""

import re
from typing import Any, NamedTuple

from cache.keys import digest

Value = dict[str, Any]

KINDS = ("reply", "stage", "latest")
"""A model's reply, the result of a stage, and what was last computed for a stage and its item."""

REQUEST = "request"
"""The field of a reply that holds what was asked."""

_SOURCES = {"reply": REQUEST, "stage": "fields"}
"""The field whose digest is the key. What was last computed has none: its key stands for a place."""

_FORMS: dict[str, tuple[dict[str, type], ...]] = {
    # Whoever asks for a reply reads the rest of it with more care than could be taken here.
    "reply": ({},),
    "stage": ({"fields": dict, "output": object, "calls": list},),
    "latest": ({"fields": dict, "outcome": str}, {"structured": str}),
}
"""The fields that the readers of a kind rely on, with their types; of several forms a value has one."""

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


def has_form(kind: str, value: Value) -> bool:
    """Whether ``value`` has the fields that an entry of its kind is read for.

    Of a reply only the request is looked at: an object, if it is there.
    """
    if kind == "reply" and not isinstance(value.get(REQUEST, {}), dict):
        return False
    return any(
        all(field in value and isinstance(value[field], type_) for field, type_ in form.items())
        for form in _FORMS[kind]
    )


def fits(entry: Entry) -> bool:
    """Whether an entry has the form of its kind and lies under the digest of a reply's request or a stage's fields.

    A reply that does not carry its request, and what was last computed, may lie under any key.
    """
    if not has_form(entry.kind, entry.value):
        return False
    source = entry.value.get(_SOURCES[entry.kind]) if entry.kind in _SOURCES else None
    try:
        return not isinstance(source, dict) or digest(source) == entry.key
    except TypeError:
        return False
