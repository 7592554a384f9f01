"""The grammar of ToMi (Le et al. 2019): its lines and questions, as the authors' files and SimToM's have them.

What a line means may hang on the lines before it. `The C is in the D.` puts an object into a container, or tells the
room of a container, if C holds something already. Besides `in` and `in_room`, events add two facts:

- `at(container,room)`: where a container stands, as its own line tells it. The authors' files have no such lines; but
  who moves an object is in the room of both its containers.
- `began_in(object,container)`: where an object is put first. It is never removed, so that the final state answers
  what a question asks about the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rectom.errors import StoryError
from rectom.events import NOTHING, Event, persistent, settle
from rectom.facts import EMPTY, Fact, State, in_room, inside, superseded, value_of
from rectom.story import Story, Vocabulary

_A, _THE, _UPPER = r"(\w+)", r"the ([\w-]+)", r"The ([\w-]+)"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks: the character chain C(q), outermost first, and the object.

    `beginning` tells a question about where the object was at the beginning; its chain is empty.
    """

    chain: tuple[str, ...]
    thing: str
    beginning: bool = False


def began_in(thing: str, container: str) -> Fact:
    """`began_in(thing,container)`."""
    return Fact("began_in", (thing, container))


def answer_to(asked: Asked, state: State) -> str | None:
    """The container that a final state answers a question with, whosever state it is; None if it does not say."""
    if not asked.beginning:
        return value_of(state, "in", asked.thing)
    return next((str(f.args[1]) for f in state if f.predicate == "began_in" and f.args[0] == asked.thing), None)


def _at(container: str, room: str) -> Fact:
    return Fact("at", (container, room))


def _holds_something(state: State, name: str) -> bool:
    return any(fact.predicate in {"in", "began_in"} and fact.args[1] == name for fact in state)


def _stand(state: State, thing: str, place: str) -> Event:
    if _holds_something(state, thing):
        return persistent([_at(thing, place)])
    return persistent(_put(state, thing, place))


def _put(state: State, thing: str, container: str) -> list[Fact]:
    begun = answer_to(Asked((), thing, beginning=True), state)
    return [inside(thing, container), *([] if begun else [began_in(thing, container)])]


def _move(state: State, mover: str, thing: str, container: str) -> Event:
    """The object's new place; and, where no line has told them yet, the places of both containers."""
    room, before = value_of(state, "in_room", mover), value_of(state, "in", thing)
    stands = [_at(c, room) for c in (before, container) if c and room and value_of(state, "at", c) is None]
    return persistent([*_put(state, thing, container), *stands])


#: A pattern a template, and what it means after a state. Lines that match none are not of this grammar.
_TEMPLATES: Final[tuple[tuple[re.Pattern[str], Callable[..., Event]], ...]] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (rf"{_A} entered {_THE}\.", lambda _, a, room: persistent([in_room(a, room)])),
        (rf"{_A} is in {_THE}\.", lambda _, a, room: persistent([in_room(a, room)])),
        (rf"{_A} exited {_THE}\.", lambda _, a, room: persistent(removed=[in_room(a, room)])),
        (rf"{_UPPER} is in {_THE}\.", _stand),
        (rf"{_A} moved {_THE} to {_THE}\.", _move),
        (rf"{_A} (?:likes|dislikes|loves|hates) {_THE}\.?", lambda *_: NOTHING),
    )
)

_QUESTIONS: Final = (
    re.compile(r"Where is the (?P<thing>[\w-]+) really\?"),
    re.compile(r"Where was the (?P<thing>[\w-]+) at the (?P<beginning>beginning)\?"),
    re.compile(r"Where will (?P<a>\w+) look for the (?P<thing>[\w-]+)\?"),
    re.compile(r"Where does (?P<a>\w+) think that (?P<b>\w+) searches for the (?P<thing>[\w-]+)\?"),
)


def read_line(line: str, state: State) -> Event:
    """The event of a line that follows a state, its deltas as far as the text tells. Raises StoryError for others."""
    for pattern, meaning in _TEMPLATES:
        if found := pattern.fullmatch(line.strip()):
            return meaning(state, *found.groups())
    raise StoryError(f"no ToMi template fits the line {line.strip()!r}; read such stories with a model")


def read_story(story: Story) -> tuple[Event, ...]:
    """The settled events of a story. Raises StoryError with the number of the first line that does not fit."""
    try:
        return settle(list(_read(story.lines)))
    except StoryError as error:
        raise StoryError(f"story {story.id}, {error}") from None


def _read(lines: Iterable[str]) -> Iterator[Event]:
    state = EMPTY
    for number, line in enumerate(lines, 1):
        try:
            event = read_line(line, state)
        except StoryError as error:
            raise StoryError(f"line {number}: {error}") from None
        state = event.delta.apply(state - superseded(state, event.delta.added))
        yield event


def read_question(text: str) -> Asked:
    """What a question asks. Raises StoryError if it is no question of this grammar."""
    for pattern in _QUESTIONS:
        if found := pattern.fullmatch(text.strip()):
            parts = found.groupdict()
            chain = tuple(filter(None, [parts.get("a"), parts.get("b")]))
            return Asked(chain, parts["thing"], "beginning" in parts)
    form = "'Where will A look for the O?'"
    raise StoryError(f"not a ToMi question, such as {form}: {text.strip()!r}; read others with a model")


def reduced_question(asked: Asked) -> str:
    """The actual-world question q⁽⁰⁾: where the object is, or was at the beginning."""
    return (
        f"Where was the {asked.thing} at the beginning?" if asked.beginning else f"Where is the {asked.thing} really?"
    )


def vocabulary(lines: Iterable[str]) -> Vocabulary:
    """The names in lines of this grammar, by what they name, each in order of appearance.

    Raises StoryError if a line is not of the grammar.
    """
    characters: dict[str, None] = {}
    rooms: dict[str, None] = {}
    objects: dict[str, None] = {}
    containers: dict[str, None] = {}
    kinds = {"in_room": (characters, rooms), "in": (objects, containers), "at": (containers, rooms)}
    for event in _read(lines):
        changed = event.delta.added | event.delta.removed
        for predicate, (first, second) in kinds.items():
            for fact in sorted((f for f in changed if f.predicate == predicate), key=str):
                first[str(fact.args[0])] = second[str(fact.args[1])] = None
    return Vocabulary(tuple(characters), tuple(rooms), tuple(objects), tuple(containers))
