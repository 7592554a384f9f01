"""The grammar of Hi-ToM: its lines and questions, read and written.

Both wordings are read: `The ball is in the box.` and the newer `The ball is in the box now.`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from rectom.errors import StoryError
from rectom.events import NOTHING, Event, persistent, private_tell, public_claim, settle
from rectom.facts import in_room, inside
from rectom.story import Story, Vocabulary

_A, _O, _C = r"(\w+)", r"(?:[Tt]he )?(\w+)", r"the (\w+)"
_NOW = r"(?: now)?\."


def _enter(names: str, room: str) -> Event:
    return persistent(in_room(name, room) for name in people(names))


#: A pattern a template, and what it means. Lines that match none are not of this grammar.
_TEMPLATES: Final[tuple[tuple[re.Pattern[str], Callable[..., Event]], ...]] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (rf"(.+) entered {_C}\.", _enter),
        (rf"{_A} exited {_C}\.", lambda a, room: persistent(removed=[in_room(a, room)])),
        (rf"{_O} is in {_C}{_NOW}", lambda o, c: persistent([inside(o, c)])),
        (rf"{_A} moved {_O} to {_C}\.", lambda _, o, c: persistent([inside(o, c)])),
        (rf"{_A} publicly claimed that {_O} is in {_C}{_NOW}", lambda a, o, c: public_claim(a, inside(o, c))),
        (
            rf"{_A} privately told {_A} that {_O} is in {_C}{_NOW}",
            lambda a, b, o, c: private_tell(a, b, inside(o, c)),
        ),
        (rf"{_A} made no movements and stayed in {_C} for 1 minute\.", lambda *_: NOTHING),
        (rf"{_A} (?:likes|dislikes|saw|lost) (?:the|a|an|his|her|their) (\w+)\.", lambda *_: NOTHING),
    )
)

_QUESTIONS: Final = (
    re.compile(r"Where is the (?P<object>\w+)(?: really)?\?"),
    re.compile(
        r"Where does (?P<chain>\w+(?: (?:really )?thinks?(?: \w+ thinks)*)) the (?P<object>\w+) is\?",
    ),
)


def people(names: str) -> list[str]:
    """`Anne, Bob and Cy` as a list. Raises StoryError for anything else."""
    found = re.split(r",? and |, ", names)
    if not all(re.fullmatch(r"\w+", name) for name in found):
        raise StoryError(f"not a list of names: {names!r}")
    return found


def read_line(line: str) -> Event:
    """The event of one line, its deltas as far as the line itself tells. Raises StoryError if no template fits."""
    for pattern, meaning in _TEMPLATES:
        if found := pattern.fullmatch(line.strip()):
            return meaning(*found.groups())
    raise StoryError(f"no Hi-ToM template fits the line {line.strip()!r}; read such stories with a model")


def read_story(story: Story) -> tuple[Event, ...]:
    """The settled events of a story. Raises StoryError with the number of the first line that does not fit."""
    events = []
    for number, line in enumerate(story.lines, 1):
        try:
            events.append(read_line(line))
        except StoryError as error:
            raise StoryError(f"story {story.id}, line {number}: {error}") from None
    return settle(events)


def read_question(text: str) -> tuple[tuple[str, ...], str]:
    """The character chain C(q) and the object asked for. Raises StoryError if it is no question of this grammar."""
    for pattern in _QUESTIONS:
        if found := pattern.fullmatch(text.strip()):
            chain = found.groupdict().get("chain") or ""
            names = [word for word in chain.split() if word not in {"really", "think", "thinks"}]
            return tuple(names), found["object"]
    form = "'Where does A think B thinks the O is?'"
    raise StoryError(f"not a Hi-ToM question, such as {form}: {text.strip()!r}; read others with a model")


def reduced_question(thing: str) -> str:
    """The actual-world question q⁽⁰⁾ about an object."""
    return f"Where is the {thing} really?"


def belief_question(chain: Iterable[str], thing: str) -> str:
    """The question of a chain, in Hi-ToM's wording: `Where does A think B thinks the ball is?`"""
    names = list(chain)
    if not names:
        return reduced_question(thing)
    first = f"{names[0]} really think" if len(names) == 1 else f"{names[0]} think"
    rest = "".join(f" {name} thinks" for name in names[1:])
    return f"Where does {first}{rest} the {thing} is?"


def vocabulary(lines: Iterable[str]) -> Vocabulary:
    """The names in lines of this grammar, by what they name, each in order of appearance.

    Raises StoryError if a line is not of the grammar.
    """
    characters: dict[str, None] = {}
    rooms: dict[str, None] = {}
    objects: dict[str, None] = {}
    containers: dict[str, None] = {}
    for line in lines:
        event = read_line(line)
        facts = [*event.delta.added, *event.delta.removed, *filter(None, [event.proposition])]
        characters.update(dict.fromkeys(filter(None, [event.speaker, event.listener])))
        for fact in sorted(facts, key=lambda fact: line.index(str(fact.args[0]))):
            first, second = (characters, rooms) if fact.predicate == "in_room" else (objects, containers)
            first[str(fact.args[0])] = second[str(fact.args[1])] = None
    return Vocabulary(tuple(characters), tuple(rooms), tuple(objects), tuple(containers))
