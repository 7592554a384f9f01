"""Checks of a model's steps by rules that hold for every text: what contradicts the text, the state, or itself.

Each raises ValueError with the violation in words that the model is told when it is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rectom.events import Event, settle
from rectom.facts import EMPTY, Fact, State
from rectom.reader.rules import reaches

#: Bump when a check changes: cached stage results are found by it.
VERSION: Final = 1


def check_abstraction(
    lines: Sequence[str], events: Sequence[Event], *, from_start: bool = True, so_far: bool = False
) -> None:
    """Facts unknown to the text, somebody in two rooms at once, and removed facts that did not hold.

    The last cannot be told where the lines are not the story's first ones (`from_start`). A fact is known if its line
    has its names; in natural text, if the text up to there has them (`so_far`).
    """
    state = EMPTY
    for number, (line, event, settled) in enumerate(zip(lines, events, settle(events), strict=True), 1):
        for fact in _stated(event):
            if strange := _unknown(fact, " ".join(lines[:number]) if so_far else line):
                where = "text up to there" if so_far else "line"
                raise ValueError(f"line {number}: {fact} names {strange!r}, which the {where} does not")
        _one_place_each(number, event)
        wrong = [str(fact) for fact in event.delta.removed - event.delta.added if fact not in state]
        if wrong and from_start:
            raise ValueError(f"line {number}: {min(wrong)} cannot be removed, since it did not hold")
        state = settled.delta.apply(state)


def check_learnt(events: Sequence[Event | None], character: str, learnt: Sequence[bool]) -> None:
    """An observation by somebody whom the event cannot reach: what was told to others alone, or perceived by others."""
    for number, (event, observed) in enumerate(zip(events, learnt, strict=True), 1):
        if event and event.occurrence and observed and not event.is_said_aloud and not reaches(event, character):
            raise ValueError(f"event {number} does not reach {character}, who is not part of {event.occurrence}")


def check_answer(fact: str, answer: str, choices: Sequence[str]) -> None:
    """An answer that the fact it rests on does not name, where that fact names another option."""
    named = [choice for choice in choices if choice in re.split(r"[(),]", fact)]
    if named and answer not in named:
        raise ValueError(f"the fact {fact} names {named[0]}, not {answer}")


def _stated(event: Event) -> State:
    return event.delta.added | frozenset(filter(None, [event.proposition]))


def _unknown(fact: Fact, text: str) -> str | None:
    """A name in a fact none of whose parts the text has."""
    words = {word.lower() for word in re.findall(r"\w+", text.replace("_", " "))}
    for argument in fact.args:
        parts = re.findall(r"\w+", str(argument).replace("_", " ").lower())
        if not isinstance(argument, Fact) and parts and words.isdisjoint(parts):
            return str(argument)
    return None


def _one_place_each(number: int, event: Event) -> None:
    places: dict[object, Fact] = {}
    for fact in sorted(event.delta.added, key=str):
        other = places.setdefault(fact.slot or fact, fact)
        if other != fact:
            raise ValueError(f"line {number}: {other} and {fact} cannot both become true")
