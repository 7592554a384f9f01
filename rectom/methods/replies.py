"""The JSON replies of the methods' steps: which lines, which time stamps, and who perceives what.

A step that selects from a story names lines and never writes them, so that no reply can bring new events into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, create_model

from rectom.schemas import ReplyModel, Strict, one_of

#: Bump when a reply changes its meaning: cached answers are found by it.
VERSION: Final = 1


def lines(count: int) -> ReplyModel:
    """`{"lines": [...]}`: some of the lines 1 to `count`."""
    return create_model("Lines", __base__=Strict, lines=_some(_line(count), count))


def stamps(allowed: Sequence[str]) -> ReplyModel:
    """`{"stamps": [...]}`: some of the time stamps that are allowed."""
    return create_model("Stamps", __base__=Strict, stamps=_some(one_of(allowed), len(allowed)))


def perceivers(count: int, characters: Sequence[str]) -> ReplyModel:
    """`{"lines": [{"line", "perceivers"}]}`: for each of `count` lines the characters who perceive it."""
    who = _some(one_of(characters), len(characters))
    perceived = create_model("Perceived", __base__=Strict, line=(_line(count), ...), perceivers=who)
    every: Any = Annotated[list[perceived], Field(min_length=count, max_length=count)]  # type: ignore[valid-type]
    return create_model("Perceivers", __base__=Strict, lines=(every, ...))


def in_order(chosen: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """What was chosen, each once, in the order of what is allowed. Raises ValueError for anything else.

    A long enumeration does not reach the schema, so that a reply may hold other words.
    """
    found = set(chosen)
    if unknown := found.difference(allowed):
        raise ValueError(f"{min(unknown)!r} is none of those that are given, such as {allowed[0]!r}")
    return tuple(one for one in allowed if one in found)


def by_line(reply: Any) -> tuple[frozenset[str], ...]:
    """The perceivers of each line. Raises ValueError unless every line has one entry."""
    entries = sorted(reply.lines, key=lambda entry: entry.line)
    if [entry.line for entry in entries] != list(range(1, len(entries) + 1)):
        raise ValueError(f"give one entry for each of the lines 1 to {len(entries)}, each line once")
    return tuple(frozenset(entry.perceivers) for entry in entries)


def _line(count: int) -> Any:
    return Annotated[int, Field(ge=1, le=count)]


def _some(entry: Any, most: int) -> Any:
    return Annotated[list[entry], Field(max_length=most)], ...
