"""Events: what a line of the story does to the world (Section 3.1 of the paper).

A persistent event π changes ontic facts; a transient event τ (a claim, something told) changes none, but may
revise what those believe who hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rectom.facts import EMPTY, Fact, State, printed, superseded


class Kind(StrEnum):
    """The two event types of the paper."""

    PERSISTENT = "persistent"
    TRANSIENT = "transient"


@dataclass(frozen=True, slots=True)
class Delta:
    """What changes at a step: Δ⁺, the added facts, and Δ⁻, the removed ones."""

    added: State = EMPTY
    removed: State = EMPTY

    def apply(self, state: State) -> State:
        """Eq. 1: s_t = (s_{t-1} minus Δ⁻) united with Δ⁺."""
        return (state - self.removed) | self.added

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Event:
    """An abstracted line e_t.

    `occurrence` is empty for a persistent event, and otherwise what happens as a fact: a communication,
    `public_claim(speaker,fact)`, `private_tell(speaker,listener,fact)` or `says(speaker,fact)` for those present;
    or what the text says of somebody's perception, `perceives(character,fact)` or `misses(character,fact)`.
    The `delta` of a transient event is empty, except that an utterance may come with entries and exits, and in
    a conversation adds what was said, which is all that a question there asks for.
    A line that matters to nobody's beliefs is a persistent event with an empty delta.
    """

    kind: Kind
    delta: Delta = Delta()
    occurrence: Fact | None = None

    def __str__(self) -> str:
        """The event facts in the paper's notation: `+in(ball,box)`, `-in_room(Anne,hall)`, a communication, or `-`."""
        signs = [f"+{f}" for f in printed(self.delta.added)] + [f"-{f}" for f in printed(self.delta.removed)]
        return " ".join([*map(str, filter(None, [self.occurrence])), *signs]) or "-"

    @property
    def speaker(self) -> str | None:
        """Who speaks, or perceives, in a transient event."""
        return str(self.occurrence.args[0]) if self.occurrence else None

    @property
    def listener(self) -> str | None:
        """Who alone is told, in a private communication; None where everyone hears it."""
        if self.occurrence and self.occurrence.predicate == "private_tell":
            return str(self.occurrence.args[1])
        return None

    @property
    def proposition(self) -> Fact | None:
        """The fact that a transient event makes known to whom it reaches."""
        if self.occurrence is None or self.occurrence.predicate == "misses":
            return None
        last = self.occurrence.args[-1]
        return last if isinstance(last, Fact) else None

    @property
    def is_said_aloud(self) -> bool:
        """Whether it is an utterance that reaches those who are present."""
        return self.occurrence is not None and self.occurrence.predicate == "says"

    @property
    def moves(self) -> State:
        """The presence facts that it adds or removes: entries and exits, which everyone learns of."""
        return frozenset(f for f in self.delta.added | self.delta.removed if f.predicate == "in_room")


NOTHING = Event(Kind.PERSISTENT)


def persistent(added: Iterable[Fact] = (), removed: Iterable[Fact] = ()) -> Event:
    """A persistent event π with its deltas."""
    return Event(Kind.PERSISTENT, Delta(frozenset(added), frozenset(removed)))


def public_claim(speaker: str, proposition: Fact) -> Event:
    """The transient event `public_claim(speaker,proposition)`."""
    return Event(Kind.TRANSIENT, occurrence=Fact("public_claim", (speaker, proposition)))


def private_tell(speaker: str, listener: str, proposition: Fact) -> Event:
    """The transient event `private_tell(speaker,listener,proposition)`."""
    return Event(Kind.TRANSIENT, occurrence=Fact("private_tell", (speaker, listener, proposition)))


def says(speaker: str, proposition: Fact, joined: Iterable[Fact] = (), left: Iterable[Fact] = ()) -> Event:
    """The transient event `says(speaker,proposition)`; with it some may have come, or go when it is said."""
    occurrence = Fact("says", (speaker, proposition))
    return Event(Kind.TRANSIENT, Delta(frozenset(joined), frozenset(left)), occurrence)


def perceives(character: str, proposition: Fact) -> Event:
    """The transient event `perceives(character,proposition)`."""
    return Event(Kind.TRANSIENT, occurrence=Fact("perceives", (character, proposition)))


def misses(character: str, proposition: Fact) -> Event:
    """The transient event `misses(character,proposition)`: the text says that it goes unnoticed."""
    return Event(Kind.TRANSIENT, occurrence=Fact("misses", (character, proposition)))


def settle(events: Sequence[Event]) -> tuple[Event, ...]:
    """Complete every Δ⁻ with the facts that the Δ⁺ of the same step makes false, and drop from it what did not hold.

    A reader sees one line at a time and need not know where a thing was before; since an object is in one
    container and a character in one room, the sequence itself tells. Eq. 1 stays as the paper prints it.
    """
    state, settled = EMPTY, []
    for event in events:
        added = event.delta.added
        removed = (event.delta.removed & state) | superseded(state, added)
        delta = Delta(added, removed - added)
        state = delta.apply(state)
        settled.append(replace(event, delta=delta))
    return tuple(settled)
