"""The lines of a conversation: who speaks, and what; who comes and goes by a stage direction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_WORD: Final = r"(?![a-z])[^\W\d_][\w.'’-]*"
_ONE: Final = rf"{_WORD}(?: (?:{_WORD}|\d+))*"
_AND: Final = r"(?:, and |, | and | & )"
_NAMES: Final = rf"(?P<names>{_ONE}(?:{_AND}{_ONE})*)"
_UTTERANCE = re.compile(rf"{_NAMES}:(?:\s+(?P<words>.*))?", re.DOTALL)
_MOVE = re.compile(rf"\[{_NAMES} (?P<verb>join|leave)s?\]")


def utterance(line: str) -> tuple[str, str] | None:
    """Who speaks in a line, as it says, and the words; None if it is no utterance."""
    found = _UTTERANCE.fullmatch(line.strip())
    return (found["names"], found["words"] or "") if found else None


def direction(line: str) -> str | None:
    """`join` or `leave` if a line is a stage direction that says so, `[Ann joins]`."""
    found = _MOVE.fullmatch(line.strip())
    return found["verb"] if found else None


def people(names: str) -> list[str]:
    """Those who speak together: `Ann`, `Ann & Ben`, `Ann, Ben and Cy`."""
    return re.split(_AND, names)


def appearing(line: str) -> list[str]:
    """Those who speak in a line, or come or go by it."""
    found = _MOVE.fullmatch(line.strip()) or _UTTERANCE.fullmatch(line.strip())
    return people(found["names"]) if found else []


def speakers(lines: Sequence[str]) -> tuple[str, ...]:
    """Everyone who speaks, or comes and goes by a stage direction, in the order of appearance."""
    return tuple(dict.fromkeys(name for line in lines for name in appearing(line)))
