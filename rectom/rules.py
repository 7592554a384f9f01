"""What a character observes and believes, as a small value object of named choices.

The paper leaves observability and belief revision to rules "specified by the task description". `Rules` is such
a description for stories of rooms, containers and claims. The presets form a ladder from the paper's text read
literally to the rules that the labels of Hi-ToM follow; each adds one thing to the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

WAITING_ROOM: Final = "waiting_room"


class Scope(StrEnum):
    """How much of a state someone who is present observes."""

    STATE = "state"  #: the whole state, as the paper's example prints it
    ROOM = "room"  #: who is in the room, and every object whose container stands in it
    PRESENCE = "presence"  #: who is there, and nothing else: what changes is learnt from events alone


class Waiting(StrEnum):
    """What being in the waiting room means."""

    PRESENT = "present"  #: a place like any other: those who wait observe
    ABSENT = "absent"  #: no place at all: those who wait observe nothing


class Trust(StrEnum):
    """Whom a claim convinces."""

    EVERYONE = "everyone"  #: all who hear it, the speaker included
    LATER_LEAVER = "later-leaver"  #: those who last left a room before the speaker did; never the speaker


class Depth(StrEnum):
    """In how deeply nested a belief the trust of the innermost character counts."""

    EVERY = "every"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class Rules:
    """The observability and revision rules of a task.

    `speaker_convinces`: a speaker thinks that everyone who hears him believes him (second order).
    `speaker_sincere`: who trusts a speaker thinks that the speaker believes his own claim (second order).
    `joint`: a nested character observes at a step only what the source perspective itself observed then.
    """

    scope: Scope = Scope.STATE
    waiting: Waiting = Waiting.PRESENT
    trust: Trust = Trust.EVERYONE
    depth: Depth = Depth.EVERY
    speaker_convinces: bool = False
    speaker_sincere: bool = False
    joint: bool = False

    def fields(self) -> dict[str, str | bool]:
        """The choices by name, for keys, manifests and explanations."""
        return {
            name: value if isinstance(value, bool) else str(value)
            for name in self.__slots__
            for value in [getattr(self, name)]
        }


_LITERAL = Rules()
_ABSENT = replace(_LITERAL, waiting=Waiting.ABSENT)
_ROOM = replace(_ABSENT, scope=Scope.ROOM)
_TRUST = replace(_ROOM, trust=Trust.LATER_LEAVER)
_FIRST = replace(_TRUST, depth=Depth.FIRST)
_SECOND = replace(_FIRST, speaker_convinces=True, speaker_sincere=True)
_HITOM = replace(_SECOND, joint=True)

#: The ladder of presets, weakest first. `hitom` reproduces the labels of Hi-ToM and is the default.
PRESETS: Final[dict[str, Rules]] = {
    "literal": _LITERAL,
    "waiting-absent": _ABSENT,
    "room-scope": _ROOM,
    "trust-later-leaver": _TRUST,
    "first-order-claims": _FIRST,
    "second-order-claims": _SECOND,
    "hitom": _HITOM,
}
