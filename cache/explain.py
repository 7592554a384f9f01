"""Why something is computed again."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cache.keys import canonical, digest

_Path = tuple[str, ...]

_HEX = re.compile(r"[0-9a-f]{32,}")
_WORD = re.compile(r"[A-Za-z][\w.:/@+-]*", re.ASCII)
_ABSENT = "(none)"
_LONG = 40


class Reason(StrEnum):
    """Why a result is computed, or why it is not."""

    HIT = "hit"
    FIRST_RUN = "first run"
    MISSING = "missing"
    CHANGED = "changed"
    FORCED = "forced"
    FAILED_BEFORE = "failed before"
    UPSTREAM = "upstream is recomputed"


@dataclass(frozen=True)
class Verdict:
    """A reason; for a change the ``fields`` that differ, each with its ``details`` (``field old -> new``).

    ``str(verdict)`` is one line: ``changed: prompt 1a2b3c4d -> 5e6f7a8b``.
    """

    reason: Reason
    fields: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.reason.value, ", ".join(self.details))))


def compare(previous: Mapping[str, Any] | None, current: Mapping[str, Any]) -> Verdict:
    """Why ``current`` was not found, given the key fields of the run before (None: there was none).

    Fields are compared as their digest does; a field of a nested mapping is named with dots
    (``model.identity``). The same fields mean that the entry itself is gone.

    Raises:
        TypeError: a field is no JSON value.

    """
    if previous is None:
        return Verdict(Reason.FIRST_RUN)
    old, new = dict(_flat(previous)), dict(_flat(current))
    changed = [path for path in new | old if _text(old, path) != _text(new, path)]
    if not changed:
        return Verdict(Reason.MISSING)
    names = tuple(".".join(path) for path in changed)
    arrows = (_arrow(old, new, path) for path in changed)
    return Verdict(Reason.CHANGED, names, tuple(map(" ".join, zip(names, arrows, strict=True))))


def _flat(fields: Mapping[str, Any], above: _Path = ()) -> Iterator[tuple[_Path, object]]:
    # Paths are tuples, so that the field "a.b" and the field "b" of "a" stay two.
    for key, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


def _text(fields: Mapping[_Path, object], path: _Path) -> bytes | None:
    return canonical(_leaf(fields[path])) if path in fields else None


def _leaf(value: object) -> object:
    return {} if isinstance(value, Mapping) else value


def _arrow(old: Mapping[_Path, object], new: Mapping[_Path, object], path: _Path) -> str:
    before, after = (_short(fields[path]) if path in fields else _ABSENT for fields in (old, new))
    if before == after:
        # Shortened to the same: then in full.
        before, after = ((_text(fields, path) or b"").decode() or _ABSENT for fields in (old, new))
    return f"{before} -> {after}"


def _short(value: object) -> str:
    if isinstance(value, str) and _HEX.fullmatch(value):
        return value[:8]
    if isinstance(value, str) and len(value) <= _LONG and _WORD.fullmatch(value):
        return value
    text = canonical(_leaf(value)).decode()
    return text if len(text) <= _LONG else f"{text[:20]}… ({digest(_leaf(value))[:8]})"
