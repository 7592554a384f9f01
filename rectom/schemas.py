"""The replies of the model's steps, as pydantic models built for the very story that is asked about.

From each comes the JSON schema that the server is sent and the validation of what it sends back. Names, rooms,
objects, containers and options are enumerations, so that a constrained server cannot misspell them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, create_model

from rectom.facts import in_room, inside
from rectom.story import Vocabulary

#: Bump when a reply changes its meaning: cached stage results are found by it.
VERSION = 3

OBSERVABLE = "observable"
NOT_OBSERVABLE = "not_observable"

#: Servers refuse or choke on very long enumerations; beyond this a fact is any text, checked after the reply.
_MOST_VALUES = 250

#: How a fact in words of the model's own is bounded where the server keeps to the schema: a small model may go on for
#: ever. Without such a server, what is read is judged by the reader alone, who mends some of it.
_BOUND: dict[str, Any] = {"pattern": r'^[+-]?[a-z_]{1,30}\([^(),"\\]{1,60},[^(),"\\]{1,60}\)$'}
_ANY_FACT: Any = Annotated[str, Field(json_schema_extra=_BOUND)]
#: What can stand before the names in a fact that lines of a known vocabulary state.
_PREDICATES = ("in_room", "in", "at")

#: The most facts that a line states, likewise.
_MOST_FACTS = 12

ReplyModel: TypeAlias = type[BaseModel]


class Strict(BaseModel):
    """A reply: no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(values: Iterable[str]) -> Any:
    """The type of one of some strings; any string if there are none or far too many."""
    distinct = tuple(dict.fromkeys(values))
    return Literal[distinct] if 0 < len(distinct) <= _MOST_VALUES else str


def world_facts(words: Vocabulary) -> tuple[list[str], list[str]]:
    """All presence facts and all location facts that a vocabulary can form."""
    presence = [str(in_room(who, room)) for who in words.characters for room in words.rooms]
    location = [str(inside(thing, place)) for thing in words.objects for place in words.containers]
    return presence, location


def abstraction(words: Vocabulary, lines: Sequence[str], more: Sequence[str] = ()) -> ReplyModel:
    """`{"1 …": …, "2 …": …}`: under each line the facts that come true (+) and stop being true (-) with it, or what
    somebody says: `{"claims", "fact"}` to everybody, `{"tells", "to", "fact"}` to one listener.

    A line states only facts of names that stand in it, so that a model that is small cannot take one line for another.
    `more` are such facts besides who and what is where. Of an open vocabulary any facts can be stated.
    """
    presence, location = world_facts(words)
    facts = {fact: frozenset(re.split(r"[(),]", fact)) - {"", *_PREDICATES} for fact in (*presence, *location, *more)}

    def entry(line: str) -> Any:
        here = frozenset(re.findall(r"[\w'’-]+", line))
        stated = [fact for fact, names in facts.items() if names <= here]
        who = [name for name in words.characters if name in here]
        said = [fact for fact in stated if fact in location]
        return reduce(or_, [_changes(stated), *(_communications(who, said) if who and said else ())])

    if words.open:
        anything = reduce(or_, [_changes(None), *_communications(words.characters, None)])
        return _by_line(lines, [anything] * len(lines))
    return _by_line(lines, list(map(entry, lines)))


def happenings(words: Vocabulary, lines: Sequence[str]) -> ReplyModel:
    """`abstraction` for natural stories: any facts, and besides what the text says of somebody's perception:
    `{"perceives", "fact"}` and `{"misses", "fact"}` name whose attention a fact gets or escapes.
    """
    kinds = [_changes(None)]
    if words.characters:
        kinds += [_of_somebody("perceives", words.characters, None), _of_somebody("misses", words.characters, None)]
        kinds += _communications(words.characters, None)
    return _by_line(lines, [reduce(or_, kinds)] * len(lines))


def _changes(facts: Sequence[str] | None) -> Any:
    """A list of signed facts; of any, if None is given."""
    if facts is not None and not facts:
        # Where the line names too little to form a fact there is none: a model that may say anything makes one up.
        return Annotated[list[str], Field(max_length=0)]
    signed: Any = _fact(facts and [f"{sign}{fact}" for sign in "+-" for fact in facts])
    most = _MOST_FACTS if facts is None else len(facts)
    return Annotated[list[signed], Field(json_schema_extra={"maxItems": most})]


def _communications(people: Sequence[str], said: Sequence[str] | None) -> Iterator[ReplyModel]:
    if people:
        yield _of_somebody("claims", people, said)
    if len(people) > 1:
        yield _of_somebody("tells", people, said, to=(one_of(people), ...))


def _of_somebody(what: str, people: Sequence[str], facts: Sequence[str] | None, **more: Any) -> ReplyModel:
    fields: dict[str, Any] = {what: (one_of(people), ...), **more, "fact": (_fact(facts), ...)}
    return create_model(what.title(), __base__=Strict, **fields)


def _fact(facts: Sequence[str] | None) -> Any:
    """One of some facts; any fact, if None is given or there are too many to list."""
    return _ANY_FACT if facts is None or len(facts) > _MOST_VALUES else one_of(facts)


def numbered_line(number: int, line: str) -> str:
    """A line as prompts show it, and as replies name it."""
    return f"{number} {line}"


def _by_line(lines: Sequence[str], entries: Sequence[Any]) -> ReplyModel:
    # Each entry stands under its line, number and text: small models that see a number alone slip from line to line.
    names = [numbered_line(number, line) for number, line in enumerate(lines, 1)]
    fields: dict[str, Any] = {name: (entry, ...) for name, entry in zip(names, entries, strict=True)}
    return create_model("Abstraction", __base__=Strict, **fields)


def comings(people: Sequence[str], count: int) -> ReplyModel:
    """`{"start", "changes": [{"line", "joins", "leaves"}]}`: who takes part in a conversation of `count` lines."""
    who = _list_of(one_of(people))
    line = Annotated[int, Field(ge=1, le=count)]
    change = create_model("Change", __base__=Strict, line=(line, ...), joins=who, leaves=who)
    return create_model("Abstraction", __base__=Strict, start=who, changes=_list_of(change, most=count))


def chain(mentions: Sequence[str]) -> ReplyModel:
    """`{"chain": [...]}`: C(q), of the characters that the question mentions, at most as many."""
    return create_model("Chain", __base__=Strict, chain=_list_of(one_of(mentions), most=len(mentions)))


def numbered(allowed: Mapping[int, Sequence[str]]) -> ReplyModel:
    """`{"1": …, "2": …}`: for each state or event, by its number, one of the values that it allows.

    Numbers keep a model in step, and each entry allows only what can be said of its own state or event.
    """
    entries: dict[str, Any] = {str(number): (one_of(values), ...) for number, values in allowed.items()}
    return create_model("Observation", __base__=Strict, **entries)


def leaving(hearer: str, speaker: str) -> ReplyModel:
    """`{"left_first"}`: who of the two left first."""
    return create_model("Leaving", __base__=Strict, left_first=(one_of([hearer, speaker]), ...))


def revision() -> ReplyModel:
    """`{"convinced"}`: whether what was said is believed."""
    return create_model("Revision", __base__=Strict, convinced=(bool, ...))


def reduction() -> ReplyModel:
    """`{"question"}`: q⁽⁰⁾."""
    return create_model("Reduction", __base__=Strict, question=(str, ...))


def answer(facts: Iterable[str], choices: Sequence[str]) -> ReplyModel:
    """`{"fact", "answer"}`: the fact that decides, and the option that it names."""
    return create_model("Answer", __base__=Strict, fact=(one_of([*facts, "none"]), ...), answer=(one_of(choices), ...))


def choice(letters: Sequence[str]) -> ReplyModel:
    """`{"reason", "answer"}`: why, in a sentence, and the letter of the option."""
    return create_model("Answer", __base__=Strict, reason=(str, ...), answer=(one_of(letters), ...))


def _list_of(entry: Any, least: int | None = None, most: int | None = None) -> Any:
    """The definition of a field that holds a list. Built at run time: a type checker cannot follow, pydantic can."""
    return Annotated[list[entry], Field(min_length=least, max_length=most)], ...


def json_schema(model: ReplyModel) -> dict[str, Any]:
    """The JSON schema of a reply, without the titles that pydantic adds: they cost tokens and say nothing."""
    bare = _without_titles(model.model_json_schema())
    assert isinstance(bare, dict)
    return bare


def _without_titles(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_titles(value) for key, value in part.items() if key != "title" or isinstance(value, dict)}
    return [_without_titles(value) for value in part] if isinstance(part, list) else part
