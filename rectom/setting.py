"""What every character of a story knows about its setting: where containers stand, and who left when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rectom.events import Event
from rectom.facts import Fact
from rectom.rules import WAITING_ROOM


@dataclass(frozen=True, slots=True)
class Setting:
    """Common knowledge, the same in every perspective.

    `places` gives the room of each container. `exits` has an entry a step: the characters in the order in which
    they last left a room up to then, the earliest first. Who has not left any room is not in it.
    """

    places: dict[str, str] = field(default_factory=dict, hash=False)
    exits: tuple[tuple[str, ...], ...] = ()


def setting_of(events: Sequence[Event]) -> Setting:
    """Read the setting off the settled event sequence."""
    return Setting(_places(events), _exits(events))


def _places(events: Sequence[Event]) -> dict[str, str]:
    """A container stands in the room entered last when a persistent event puts something into it.

    One that is only spoken of stands where the object's true container stands. A place that the text itself tells,
    `at(container,room)`, counts before that.
    """
    places: dict[str, str] = {}
    objects: dict[str, str] = {}
    told: dict[str, str] = {}
    room = ""
    for event in events:
        added = sorted(event.delta.added, key=str)  # or it would hang on the order of a set, another in each process
        room = next((r for r in map(_entered, added) if r), room)
        for thing, container in _put(added):
            objects[thing], places[container] = container, room
        said = event.proposition
        if said and said.predicate == "in" and str(said.args[1]) not in places:
            places[str(said.args[1])] = places.get(objects.get(str(said.args[0]), ""), room)
        told |= {str(fact.args[0]): str(fact.args[1]) for fact in added if fact.predicate == "at"}
    return places | told


def _entered(fact: Fact) -> str:
    entered = fact.predicate == "in_room" and fact.args[1] != WAITING_ROOM
    return str(fact.args[1]) if entered else ""


def _put(added: Iterable[Fact]) -> list[tuple[str, str]]:
    return [(str(f.args[0]), str(f.args[1])) for f in added if f.predicate == "in"]


def _exits(events: Sequence[Event]) -> tuple[tuple[str, ...], ...]:
    order: list[str] = []
    steps = []
    for event in events:
        left = {str(f.args[0]) for f in event.delta.removed if _entered(f)}
        order = [name for name in order if name not in left] + sorted(left)
        steps.append(tuple(order))
    return tuple(steps)


NOWHERE = Setting()
