"""What a character perceives of a natural story, by what its facts say of places and of what is missed."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rectom.events import NOTHING, Event
from rectom.facts import Fact, State, value_of
from rectom.perspective import Observability, Perspective
from rectom.reader.rules import present, reaches
from rectom.rules import Rules


def perception(source: Perspective, character: str, rules: Rules) -> Observability:
    """What the facts of a perspective say of a character's perception.

    He learns of every change but those that he misses and those that happen while he is elsewhere. A change happens
    where its things are, as far as the facts tell; otherwise where the story first places the character. Before it
    does he is elsewhere; whom it never places is there all the time. That somebody misses a change is known to the
    others who learn of the change.
    """
    rooms = tuple(present(state, character, rules) for state in source.states)
    missed = _missed(source.events)
    escaping = {change for step, change in missed.items() if _misses(source.events[step], character)}
    home = next(filter(None, rooms), None)
    learnt: list[bool] = []
    for step, (event, room) in enumerate(zip(source.events, rooms, strict=True)):
        there = home is None or room in (_places(source, step) or {home})
        if event is None or event == NOTHING or step in escaping:
            learnt.append(False)
        elif _misses(event):
            learnt.append(step in missed and learnt[missed[step]])
        else:
            learnt.append(_learns(event, character, there=there))
    return Observability(rooms, tuple(learnt))


def _missed(events: Sequence[Event | None]) -> dict[int, int]:
    """The steps at which the text says that somebody misses a change, each with the step of that change.

    That is the last one of the fact that is missed; where nothing changed by that name, the change just before.
    """
    found: dict[int, int] = {}
    last: dict[str | Fact, int] = {}
    for step, event in enumerate(events):
        changed = event.delta.added | event.delta.removed if event else frozenset()
        last.update(dict.fromkeys(changed, step))
        if event and event.occurrence and _misses(event):
            before = events[step - 1] if step else None
            latest = step - 1 if before and before.delta else None
            change = last.get(event.occurrence.args[1], latest)
            found.update({} if change is None else {step: change})
    return found


def _misses(event: Event | None, character: str | None = None) -> bool:
    """Whether an event says that somebody, or that very character, misses something."""
    misses = event is not None and event.occurrence is not None and event.occurrence.predicate == "misses"
    return misses and (character is None or (event is not None and event.speaker == character))


def _places(source: Perspective, step: int) -> set[str]:
    """Where what changes at a step is, as far as the facts tell: places at which somebody is at some time."""
    event, state = source.events[step], source.states[step]
    changed = (event.delta.added | event.delta.removed) - event.moves if event else ()
    rooms = {str(fact.args[1]) for presence in source.presence() for fact in presence}
    places = (_room_of(str(thing), state, rooms) for fact in changed for thing in fact.args)
    return set(filter(None, places))


def _room_of(thing: str, state: State, rooms: Container[str]) -> str | None:
    """The room that a thing is, or is in, or that what it is in is in."""
    outer: str | None = thing
    passed: set[str] = set()
    while outer and outer not in rooms and outer not in passed:
        passed.add(outer)
        outer = value_of(state, "in", outer)
    return outer if outer in rooms else None


def _learns(event: Event, character: str, *, there: bool) -> bool:
    if event.occurrence:
        return reaches(event, character)
    return there or any(fact.args[0] == character for fact in event.moves)
