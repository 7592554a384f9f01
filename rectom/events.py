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

    `delta` is empty for a transient event; `occurrence` is empty for a persistent one, and otherwise the
    communication as a fact: `public_claim(speaker,fact)` or `private_tell(speaker,listener,fact)`.
    A line that matters to nobody's beliefs is a persistent event with an empty delta.
    """

    kind: Kind
    delta: Delta = Delta()
    occurrence: Fact | None = None

    def __str__(self) -> str:
        """The event facts in the paper's notation: `+in(ball,box)`, `-in_room(Anne,hall)`, a communication, or `-`."""
        if self.occurrence:
            return str(self.occurrence)
        signs = [f"+{f}" for f in printed(self.delta.added)] + [f"-{f}" for f in printed(self.delta.removed)]
        return " ".join(signs) or "-"

    @property
    def speaker(self) -> str | None:
        """Who speaks, in a transient event."""
        return str(self.occurrence.args[0]) if self.occurrence else None

    @property
    def listener(self) -> str | None:
        """Who alone is told, in a private communication; None where everyone hears it."""
        if self.occurrence and self.occurrence.predicate == "private_tell":
            return str(self.occurrence.args[1])
        return None

    @property
    def proposition(self) -> Fact | None:
        """The fact that a transient event states."""
        last = self.occurrence.args[-1] if self.occurrence else None
        return last if isinstance(last, Fact) else None

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
