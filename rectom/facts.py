"""Symbolic facts, parsed and printed, and the states that they make up.

A fact is a predicate over names, words or other facts: `in(ball,box)`, `in_room(Anne,kitchen)`,
`private_tell(Anne,Bob,in(ball,box))`, `said(Anne,3,"I have a dog.")`. A state is a set of facts, read under the
closed-world assumption: what it does not hold is false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from rectom.errors import FormulaError

#: Predicates that hold for one value at a time: an object is in one container, a character in one room, a container
#: holds one thing, a thing is in one condition.
FUNCTIONAL: Final = frozenset({"in", "in_room", "at", "contains", "is"})

_NAME = re.compile(r"\w[\w'.-]*")


@dataclass(frozen=True, slots=True)
class Fact:
    """A predicate over names and facts, such as `in(ball,box)`. Prints in the notation that `parse` reads.

    An argument that is no name, such as the words of an utterance, stands in double quotes, as in JSON.
    """

    predicate: str
    args: tuple[str | Fact, ...]

    def __str__(self) -> str:
        return f"{self.predicate}({','.join(map(_printed, self.args))})"

    @property
    def slot(self) -> tuple[str, str] | None:
        """What this fact gives a value to, where only one value can hold: `("in", "ball")`; otherwise None."""
        if self.predicate in FUNCTIONAL and len(self.args) == 2:
            return self.predicate, str(self.args[0])
        return None

    @classmethod
    def parse(cls, text: str) -> Fact:
        """Read one fact. Raises FormulaError, with the place, if the text is anything else."""
        return _parsed(text)


# A run reads the few facts of a story thousands of times.
@lru_cache(maxsize=10_000)
def _parsed(text: str) -> Fact:
    fact, rest = read_fact(text, 0)
    if text[rest:].strip():
        raise FormulaError(f"unexpected {text[rest:].strip()!r} after the fact {fact} in {text!r}")
    return fact


#: A state s_t: the facts that hold after step t.
State: TypeAlias = frozenset[Fact]

EMPTY: Final[State] = frozenset()


def _printed(argument: str | Fact) -> str:
    if isinstance(argument, Fact) or _NAME.fullmatch(argument):
        return str(argument)
    return json.dumps(argument, ensure_ascii=False)


def said(speaker: str, number: int, words: str) -> Fact:
    """`said(speaker,number,"words")`: what somebody who heard it knows of the utterance in a line."""
    return Fact("said", (speaker, str(number), words))


def inside(thing: str, container: str) -> Fact:
    """`in(thing,container)`."""
    return Fact("in", (thing, container))


def in_room(character: str, room: str) -> Fact:
    """`in_room(character,room)`: the presence fact of the paper."""
    return Fact("in_room", (character, room))


def value_of(state: State, predicate: str, subject: str) -> str | None:
    """The value that a functional predicate gives to a subject in a state, or None: `value_of(s, "in", "ball")`."""
    # Where a state gives several, it is the same one in each process, whatever the order of a set is there.
    every = (str(fact.args[1]) for fact in state if fact.predicate == predicate and fact.slot == (predicate, subject))
    return min(every, default=None)


def superseded(state: State, news: Iterable[Fact]) -> State:
    """The facts of a state whose slot gets another value from the news."""
    new = {fact.slot: fact for fact in news if fact.slot}
    if not new:
        return EMPTY
    return frozenset(fact for fact in state if fact.slot in new and new[fact.slot] != fact)


def printed(facts: Iterable[Fact]) -> list[str]:
    """Facts as sorted text: the order in which prompts, files and pages show a state."""
    return sorted(map(str, facts))


#: Deeper nesting than this is refused, so that no text can exhaust the interpreter's stack.
_DEEPEST: Final = 50


def read_fact(text: str, start: int, depth: int = 0) -> tuple[Fact, int]:
    """Read a fact that begins at `start`; returns it and the place behind it. Raises FormulaError."""
    if depth > _DEEPEST:
        raise FormulaError(f"a fact nested more than {_DEEPEST} deep at {start}")
    predicate, place = read_name(text, start)
    place = _skip(text, place)
    if text[place : place + 1] != "(":
        raise FormulaError(f"expected '(' after {predicate!r} at {place} in {text!r}")
    args: list[str | Fact] = []
    while not args or text[place] == ",":
        argument, place = _read_argument(text, place + 1, depth)
        args.append(argument)
        if text[place : place + 1] not in {",", ")"} or place >= len(text):
            raise FormulaError(f"expected ',' or ')' at {place} in {text!r}")
    return Fact(predicate, tuple(args)), place + 1


def read_name(text: str, start: int) -> tuple[str, int]:
    """Read a name that begins at `start`, blanks skipped. Raises FormulaError."""
    start = _skip(text, start)
    found = _NAME.match(text, start)
    if not found:
        raise FormulaError(f"expected a name at {start} in {text!r}")
    return found[0], found.end()


def _read_argument(text: str, start: int, depth: int) -> tuple[str | Fact, int]:
    start = _skip(text, start)
    if text[start : start + 1] == '"':
        return _read_words(text, start)
    name, place = read_name(text, start)
    after = _skip(text, place)
    if text[after : after + 1] == "(":
        fact, place = read_fact(text, start, depth + 1)
        return fact, _skip(text, place)
    return name, after


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _read_words(text: str, start: int) -> tuple[str, int]:
    try:
        words, place = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise FormulaError(f"a quotation that does not end well at {start} in {text!r} ({error.msg})") from None
    if any("\ud800" <= sign <= "\udfff" for sign in str(words)):
        raise FormulaError(f"half a character in the quotation at {start} in {text!r}")
    return str(words), _skip(text, place)
