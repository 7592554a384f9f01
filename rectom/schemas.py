"""The replies of the model's steps, as pydantic models built for the very story that is asked about.

From each comes the JSON schema that the server is sent and the validation of what it sends back. Names, rooms,
objects, containers and options are enumerations, so that a constrained server cannot misspell them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from typing_extensions import TypeAliasType

from rectom.answers import extract
from rectom.facts import in_room, inside
from rectom.story import Vocabulary

#: Bump when a reply changes its meaning: cached stage results are found by it.
VERSION = 8

OBSERVABLE = "observable"
NOT_OBSERVABLE = "not_observable"
MIND = "mind"
WORLD = "world"

#: Whom a public claim is told to. It is not a verb of its own: a small model that begins with `Ada claims` has lost the
#: listener who stands in the line, and after `Ada tells` it must choose.
EVERYBODY = "everybody"

#: Servers refuse or choke on very long enumerations; beyond this a fact is any text, checked after the reply.
_MOST_VALUES = 250

#: What can stand before the names in a fact that lines of a known vocabulary state.
_PREDICATES = ("in_room", "in", "at")

#: The most that a line states in words of the model's own, and the most words of a name in it.
_MOST_STATEMENTS = 12
_MOST_WORDS = 6

#: How many words of an utterance a reply repeats: as few as keep a small model in step.
_OPENING = 6

_ARTICLES = ("a", "an", "the")

#: Words that stand for somebody.
_PEOPLE = (
    *("he", "she", "they", "him", "hers?", "them", "his", "theirs?"),
    *("everyone", "everybody", "nobody", "no one", "all", "both"),
)

ReplyModel: TypeAlias = type[BaseModel]


class Strict(BaseModel):
    """A reply: no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(values: Iterable[str]) -> Any:
    """The type of one of some strings; any string if there are none or far too many."""
    distinct = tuple(dict.fromkeys(values))
    return Literal[distinct] if 0 < len(distinct) <= _MOST_VALUES else str


class _ByLine(Strict):
    """A reply whose fields are numbered lines. A line may be named by its number alone, or be told in other words."""

    @model_validator(mode="before")
    @classmethod
    def _by_number(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        lines = {name.partition(" ")[0]: name for name in cls.model_fields}
        return {lines.get(str(name).strip().partition(" ")[0], name): entry for name, entry in data.items()}


def world_facts(words: Vocabulary) -> tuple[list[str], list[str]]:
    """All presence facts and all location facts that a vocabulary can form."""
    presence = [str(in_room(who, room)) for who in words.characters for room in words.rooms]
    location = [str(inside(thing, place)) for thing in words.objects for place in words.containers]
    return presence, location


def abstraction(words: Vocabulary, lines: Sequence[str], more: Sequence[str] = ()) -> ReplyModel:
    """`{"1 …": [...], "2 …": [...]}`: under each line what it states. `+fact` comes true and `-fact` stops being true;
    `Anne tells everybody fact` is a public claim, and `Anne tells Bob fact` is for one listener.

    A line states only facts of names that stand in it, so that a model that is small cannot take one line for another.
    `more` are such facts besides who and what is where. Of an open vocabulary any facts can be stated.
    """
    if words.open:
        return _by_line(lines, [_anything(words)] * len(lines))
    presence, location = world_facts(words)
    located = frozenset(location)
    names = {fact: frozenset(re.split(r"[(),]", fact)) - {"", *_PREDICATES} for fact in (*presence, *location, *more)}

    def entry(line: str) -> Any:
        here = frozenset(re.findall(r"[\w'’-]+", line))
        facts = [fact for fact in names if names[fact] <= here]
        who = [name for name in words.characters if name in here]
        told = [fact for fact in facts if fact in located]
        said = [f"{how} {fact}" for how in _ways_of_saying(who) for fact in told]
        changes = [f"{sign}{fact}" for sign in "+-" for fact in facts]
        if len(changes) + len(said) > _MOST_VALUES:
            return _anything(words, len(changes))
        return some_of([*changes, *said])

    return _by_line(lines, list(map(entry, lines)))


def happenings(words: Vocabulary, lines: Sequence[str], asked: Sequence[str] = ()) -> ReplyModel:
    """`abstraction` for natural stories: any facts, and besides what the text says of somebody's perception:
    `Anne perceives fact` and `Anne misses fact` name whose attention a fact gets or escapes.

    That is for lines in which there is somebody. Names are of the story's words, or of those of the questions.
    """
    name = _named_in([*lines, *asked], words.characters)
    fact = rf"(contains|in|is)\({name},{name}\)"
    change = _like(rf"^[+-]{fact}$", _MOST_STATEMENTS, name="Change")
    if not words.characters:
        return _by_line(lines, [change] * len(lines))
    who = "|".join(re.sub(r"([^\w\s'’-])", r"\\\1", name) for name in words.characters)
    ways, place = rf"perceives|misses|tells ({EVERYBODY}|{who})", rf"[+-]in_room\(({who}),{name}\)"
    statement = rf"(([+-]|({who}) ({ways}) ){fact}|{place})"
    any_ = _like(rf"^{statement}$", _MOST_STATEMENTS, name="Statement")
    names = re.findall(r"[\w'’-]+", " ".join(words.characters))
    people = re.compile(rf"(?i)(?<!\w)({'|'.join([*map(re.escape, names), *_PEOPLE])})(?!\w)")
    return _by_line(lines, [any_ if people.search(line) else change for line in lines])


def _named_in(lines: Sequence[str], people: Iterable[str]) -> str:
    """The names that facts of a natural story may hold, as a pattern: the story's own words, but for its people's.

    A small model that is free takes words from the prompt's example, and writes the story into facts about its people.
    """
    left_out = {*_ARTICLES, *(word for name in people for word in name.lower().split())}
    found = dict.fromkeys(re.findall(r"[a-z0-9]+(?:['’-][a-z]+)*", " ".join(lines).lower()))
    words = [word for word in found if word not in left_out]
    if not 0 < len(words) <= _MOST_VALUES:
        return r'[^(),"\\A-Z +-][^(),"\\]{0,59}'
    one = "|".join(words)
    return rf"({one})(_({one})){{0,{_MOST_WORDS - 1}}}"


def _ways_of_saying(people: Sequence[str]) -> Iterator[str]:
    return (f"{who} tells {other}" for who in people for other in (EVERYBODY, *people) if who != other)


def _nothing(said: Any) -> Any:
    return [] if isinstance(said, list) else said


def some_of(statements: Sequence[str]) -> Any:
    """The type of a list of some statements, at most as many as there are: a small model may go on for ever."""
    if not statements:
        # Where the line names too little to form a fact there is none. A model that may say anything makes one up:
        # nothing of that is kept.
        return Annotated[list[str], BeforeValidator(_nothing), Field(max_length=0)]
    statement: Any = one_of(statements)
    return Annotated[list[statement], Field(json_schema_extra={"maxItems": len(statements)})]


def _anything(words: Vocabulary, most: int = _MOST_STATEMENTS) -> Any:
    """A list of statements in words of the model's own."""
    name = r'[^(),"\\]{1,60}'
    said = rf"|[^(),\"\\+-][^(),\"\\]{{1,60}} tells {name} " if words.characters else ""
    return _like(rf"^([+-]{said})[a-z_]{{1,30}}\({name},{name}\)$", most)


def _like(pattern: str, most: int, name: str = "") -> Any:
    """A list of statements in words of the model's own, of some form. A name says the form once for many lists.

    They are bounded where the server keeps to the schema: a small model may go on for ever. Otherwise what comes is
    judged by the reader alone, who mends some of it.
    """
    bound: dict[str, Any] = {"pattern": pattern}
    statement: Any = Annotated[str, Field(json_schema_extra=bound)]
    if name:
        alias: Any = TypeAliasType  # made at run time: a type checker wants a literal name
        statement = alias(name, statement)
    return Annotated[list[statement], Field(json_schema_extra={"maxItems": most})]


def numbered_line(number: int, line: str) -> str:
    """A line as prompts show it, and as replies name it."""
    return f"{number} {line}"


def _by_line(lines: Sequence[str], entries: Sequence[Any]) -> ReplyModel:
    # Each entry stands under its line, number and text: small models that see a number alone slip from line to line.
    names = [numbered_line(number, line) for number, line in enumerate(lines, 1)]
    fields: dict[str, Any] = {name: (entry, ...) for name, entry in zip(names, entries, strict=True)}
    return create_model("Abstraction", __base__=_ByLine, **fields)


def acts(allowed: Mapping[str, Sequence[str]]) -> ReplyModel:
    """`{"2 Ben: I must run,": "leaves", …}`: what utterances do, each by its number and first words (`opening`)."""
    fields: dict[str, Any] = {name: (one_of(values), ...) for name, values in allowed.items()}
    return create_model("Abstraction", __base__=_ByLine, **fields)


def opening(number: int, line: str) -> str:
    """A long line as replies name it: by its number and first words."""
    return numbered_line(number, " ".join(line.split()[:_OPENING]))


def chain(mentions: Sequence[str]) -> ReplyModel:
    """`{"chain": [...]}`: C(q), of the characters that the question mentions, at most as many."""
    mention: Any = one_of(mentions)  # made at run time: a type checker cannot follow, pydantic can
    return create_model(
        "Chain", __base__=Strict, chain=(Annotated[list[mention], Field(max_length=len(mentions))], ...)
    )


def minds(mentions: Iterable[str]) -> ReplyModel:
    """`{"Ada believe": "mind", "Ben said": "world", …}`: what each of `rectom.chains.mentions` tells of."""
    fields: dict[str, Any] = {mention: (one_of([MIND, WORLD]), ...) for mention in mentions}
    return create_model("Chain", __base__=Strict, **fields)


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
    return create_model("Answer", __base__=Strict, fact=(one_of([*facts, "none"]), ...), answer=(_option(choices), ...))


def choice(choices: Sequence[str]) -> ReplyModel:
    """`{"reason", "answer"}`: why, in a sentence, and the option."""
    return create_model("Answer", __base__=Strict, reason=(str, ...), answer=(_option(choices), ...))


def _option(choices: Sequence[str]) -> Any:
    """One of some options, in its words: of its letter a small model loses hold. Where the server does not keep to the
    schema, an option may be named as in free text. Without options any words.
    """

    def named(said: Any) -> Any:
        return said if said in choices else extract(str(said), choices) or said

    return Annotated[one_of(choices), BeforeValidator(named)] if choices else Annotated[str, AfterValidator(str.strip)]


def json_schema(model: ReplyModel) -> dict[str, Any]:
    """The JSON schema of a reply, without the titles that pydantic adds: they cost tokens and say nothing."""
    bare = _without_titles(model.model_json_schema())
    assert isinstance(bare, dict)
    return bare


def _without_titles(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_titles(value) for key, value in part.items() if key != "title" or isinstance(value, dict)}
    return [_without_titles(value) for value in part] if isinstance(part, list) else part
