"""The replies of the model's steps, as pydantic models built for the very story that is asked about.

From each comes the JSON schema that the server is sent and the validation of what it sends back. Names, rooms,
objects, containers and options are enumerations, so that a constrained server cannot misspell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
_FACT: dict[str, Any] = {"pattern": r'^[+-]?[a-z_]{1,30}\([^(),"\\]{1,60},[^(),"\\]{1,60}\)$'}
_ANY_FACT: Any = Annotated[str, Field(json_schema_extra=_FACT)]
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


def abstraction(words: Vocabulary, count: int, more: Sequence[str] = ()) -> ReplyModel:
    """`{"steps": [...]}`: an entry for each of `count` lines; `more` are further facts that a line may state.

    `{"line", "facts"}` for what comes true (+) and stops being true (-), `{"line", "claims", "fact"}` for what somebody
    says to everybody, `{"line", "tells", "to", "fact"}` for what somebody says to one listener.
    """
    presence, location = world_facts(words)
    values = [*presence, *location, *more]
    signed = [f"{sign}{value}" for sign in "+-" for value in values]
    # Where the lines name too little to form a fact there is none: a model that may say anything makes one up.
    anything = words.open or len(signed) > _MOST_VALUES
    most = max(_MOST_FACTS, 2 * len(words.characters))
    facts = _bounded(_ANY_FACT if anything else one_of(signed), most) if values or anything else _list_of(str, most=0)
    kinds = [_entry("Change", count, facts=facts)]
    if words.open or (words.characters and location):
        kinds += _communications(words, count, one_of(location))
    return create_model("Abstraction", __base__=Strict, steps=_list_of(reduce(or_, kinds), count, count))


def happenings(words: Vocabulary, count: int) -> ReplyModel:
    """`abstraction` for natural stories: any facts, and besides what the text says of somebody's perception.

    `{"line", "perceives", "fact"}` and `{"line", "misses", "fact"}` name whose attention a fact gets or escapes.
    """
    kinds = [_entry("Change", count, facts=_bounded(_ANY_FACT, _MOST_FACTS))]
    if words.characters:
        who, fact = (one_of(words.characters), ...), (_ANY_FACT, ...)
        kinds += [_entry("Perceives", count, perceives=who, fact=fact), _entry("Misses", count, misses=who, fact=fact)]
        kinds += _communications(words, count, _ANY_FACT)
    return create_model("Abstraction", __base__=Strict, steps=_list_of(reduce(or_, kinds), count, count))


def _communications(words: Vocabulary, count: int, said: Any) -> list[ReplyModel]:
    who, fact = (one_of(words.characters), ...), (said, ...)
    return [_entry("Claim", count, claims=who, fact=fact), _entry("Tell", count, tells=who, to=who, fact=fact)]


def _entry(name: str, count: int, **fields: Any) -> ReplyModel:
    """What is said of one of `count` lines."""
    line = Annotated[int, Field(ge=1, le=count)]
    return create_model(name, __base__=Strict, line=(line, ...), **fields)


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


def _bounded(entry: Any, most: int) -> Any:
    """A list that a server which keeps to the schema ends in time."""
    return Annotated[list[entry], Field(json_schema_extra={"maxItems": most})], ...


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
