"""What the events of a trace do, by Eq. 1, and where the rules' events do something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rectom.results.fault import Fault

#: Facts as they are printed: equal facts are equal texts.
Facts: TypeAlias = frozenset[str]

#: How facts begin that say where a container stands: no question asks for that.
_STANDS: Final = "at("

#: So many facts of a change are told.
_TOLD: Final = 6


@dataclass(frozen=True, slots=True)
class Effect:
    """What an event does: what happens, and what of the world comes and goes."""

    occurrence: str | None
    came: Facts
    went: Facts

    @property
    def is_judged(self) -> bool:
        """Whether it is asked who learns of it: of a communication, an entry, an exit."""
        return bool(self.occurrence) or any(fact.startswith("in_room(") for fact in self.came | self.went)

    @property
    def people(self) -> list[str]:
        """Who comes or goes, or who speaks to whom."""
        told = [fact for fact in self.came | self.went if fact.startswith("in_room(")]
        words = " ".join([*told, self.occurrence or ""])
        return re.findall(r"[^(),]+(?=,)", words)

    def __bool__(self) -> bool:
        return bool(self.occurrence or self.came or self.went)

    def __str__(self) -> str:
        changes = [signed(self.came, self.went)] if self.came or self.went or not self.occurrence else []
        return " ".join([*filter(None, [self.occurrence]), *changes])


def effects(events: Iterable[Mapping[str, Any]]) -> tuple[Effect, ...]:
    """What each of settled events does, one after the other."""
    state, found = Facts(), []
    for event in events:
        now = (state - compared(event.get("removed", ()))) | compared(event.get("added", ()))
        found.append(Effect(event.get("occurrence"), now - state, state - now))
        state = now
    return tuple(found)


def stated_otherwise(
    events: Iterable[Mapping[str, Any]], right: Iterable[Mapping[str, Any]], *, with_places: bool
) -> Iterator[Fault]:
    """The lines at which the rules state other facts, if only facts that held already."""
    facts = Facts if with_places else compared
    for line, both in enumerate(zip(events, right, strict=False), 1):
        found, expected = (
            Effect(one.get("occurrence"), facts(one.get("added", ())), facts(one.get("removed", ()))) for one in both
        )
        if found != expected:
            yield Fault("abstraction", str(found), str(expected), line)


def otherwise(found: Sequence[Effect], right: Sequence[Effect]) -> Iterator[Fault]:
    """The lines at which the rules' events do something else."""
    for line, (effect, expected) in enumerate(zip(found, right, strict=False), 1):
        if effect != expected:
            yield Fault("abstraction", str(effect), str(expected), line)


def compared(printed: Iterable[str]) -> Facts:
    """The facts that are compared."""
    return Facts(fact for fact in printed if not fact.startswith(_STANDS))


def signed(came: Facts, went: Facts) -> str:
    """A change in words: `+in(ball,jar) -in(ball,bag)`."""
    signs = [*(f"+{fact}" for fact in sorted(came)), *(f"-{fact}" for fact in sorted(went))]
    return " ".join([*signs[:_TOLD], *["…"][: len(signs) > _TOLD]]) or "nothing"
