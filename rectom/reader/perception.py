"""What a character perceives of a natural story, by what its facts say of places and of what is missed."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

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
    home = next(filter(None, rooms), None)

    def there(step: int) -> bool:
        return home is None or rooms[step] in (_places(source, step) or {home})

    return Observability(rooms, learning(source, character, there))


def learning(source: Perspective, character: str, there: Callable[[int], bool]) -> tuple[bool, ...]:
    """Of which events he learns, where `there` tells whether he is where something changes at a step."""
    missed = _missed(source.events)
    escaping = _escaping(source.events, character)
    learnt: list[bool] = []
    for step, event in enumerate(source.events):
        if event is None or event == NOTHING or step in escaping:
            learnt.append(False)
        elif _misses(event):
            learnt.append(step in missed and learnt[missed[step]])
        elif event.occurrence:
            learnt.append(reaches(event, character))
        else:
            learnt.append(_is_own_move(event, character) or there(step))
    return tuple(learnt)


def unsettled(source: Perspective, character: str) -> tuple[int, ...]:
    """The steps of the changes of which he learns or not by where he is, for the text itself does not say it.

    It does of what somebody misses, of one's own coming and going, and where it places the character nowhere.
    """
    if not any(value_of(state, "in_room", character) for state in source.states):
        return ()
    escaping = _escaping(source.events, character)
    changes = ((step, event) for step, event in enumerate(source.events) if event and event.delta)
    return tuple(step for step, event in changes if step not in escaping and not _is_own_move(event, character))


def _escaping(events: Sequence[Event | None], character: str) -> set[int]:
    """The steps of the changes that he misses."""
    return {change for step, change in _missed(events).items() if _misses(events[step], character)}


def _missed(events: Sequence[Event | None]) -> dict[int, int]:
    """The steps at which the text says that somebody misses a change, each with the step of that change.

    That is the last one of the fact that is missed; where nothing changed by that name, the change just before. Nobody
    misses his own coming or going.
    """
    found: dict[int, int] = {}
    last: dict[str | Fact, int] = {}
    for step, event in enumerate(events):
        changed = event.delta.added | event.delta.removed if event else frozenset()
        last.update(dict.fromkeys(changed, step))
        if event and event.occurrence and _misses(event):
            before = events[step - 1] if step else None
            latest = step - 1 if before and before.delta and not _is_own_move(before, event.speaker) else None
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


def _is_own_move(event: Event, character: str | None) -> bool:
    return any(fact.args[0] == character for fact in event.moves)
