"""What the fake model replies about natural stories and conversations.

Abstractions and reduced questions are those of the hand-made cases; all else is read off the prompt by rules simple
enough to be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from rectom import prompts, schemas
from rectom.chains import belief_chain
from rectom.facts import Fact, read_fact
from rectom.reader.utterances import appearing, people, utterance
from rectom.schemas import EVERYBODY, MIND, NOT_OBSERVABLE, OBSERVABLE, WORLD
from tests import cases
from tests.cases import Case

Fields = dict[str, str]


def kind_of(step: str, system: str) -> str | None:
    """The kind of text whose prompt this is the system message of; None if it is neither story nor conversation."""
    kinds = (kind for kind in ("story", "dialogue") if step in _steps(kind))
    return next((kind for kind in kinds if prompts.load(kind, step).system == system), None)


@cache
def _steps(kind: str) -> frozenset[str]:
    return frozenset(prompts.digests(kind))


def abstract_story(given: Fields) -> Any:
    case, start = _case("story", _lines(given))
    part = case.events[start : start + len(_lines(given))]
    return {line: _entry(str(event)) for line, event in zip(given["Lines"].splitlines(), part, strict=True)}


def _entry(event: str) -> Any:
    words = [] if event == "-" else event.split()
    if not words or words[0][0] in "+-":
        return words
    said = Fact.parse(event)
    verb = {"private_tell": "tells", "public_claim": f"tells {EVERYBODY}"}.get(said.predicate, said.predicate)
    who, *others = map(str, said.args)
    return [" ".join([who, verb, *others])]


def abstract_dialogue(given: Fields) -> Any:
    """What the lines do that are asked about, from who joins and leaves in the case."""
    lines = _lines(given)
    case, before = _case("dialogue", lines)
    asked = map(int, given["Asked about"].split(", "))
    return {schemas.opening(n, lines[n - 1]): _done(case, before + n) for n in asked}


def _done(case: Case, number: int) -> str:
    """A line's act by the case's own list of comings and goings: a second telling of the reader's."""
    changes = {change["line"]: change for change in case.reply["changes"]}
    joins, leaves = (changes.get(number, {}).get(kind, []) for kind in ("joins", "leaves"))
    speaker = people((utterance(case.lines[number - 1]) or ("", ""))[0])
    missed = [name for name in changes.get(number - 1, {}).get("leaves", []) if name in case.lines[number - 1]]
    if missed and missed[0] not in people((utterance(case.lines[number - 2]) or ("", ""))[0]):
        return f"misses {missed[0]}"
    if {*joins} - {*speaker}:
        return f"welcomes {joins[0]}"
    if joins:
        spoken = {name for line in case.lines[: number - 1] for name in appearing(line)}
        return "returns" if spoken & {*speaker} else "arrives"
    return "leaves" if {*leaves} & {*speaker} else "tells"


def chain(given: Fields) -> Any:
    names = given.get("Characters", given.get("People", "")).split(", ")
    return {"chain": list(belief_chain(given["Question"], names))}


def minds(given: Fields) -> Any:
    """Of each name that a question holds, with the word after it, whether that tells of a belief that is asked for."""
    shown = given["Named"].split("; ")
    names = {mention: re.sub(r"(['’]s?)?( [\w'’-]+)?$", "", mention) for mention in shown}
    chain = belief_chain(given["Question"], names.values())
    of = {mention for mention, name in names.items() if name in chain and belief_chain(mention, [name])}
    return {mention: MIND if mention in of else WORLD for mention in shown}


def observe_states(given: Fields) -> Any:
    character = given.get("Character", given.get("Person", ""))
    return {
        number: next((str(fact) for fact in facts_in(state) if fact.args[0] == character), NOT_OBSERVABLE)
        for number, state in _entries(given["States"])
    }


@dataclass(frozen=True)
class Row:
    """A numbered event of a prompt: its text, its signed facts, and who is where."""

    number: str
    text: str
    signed: tuple[tuple[str, Fact], ...]
    where: Fields

    @classmethod
    def of(cls, number: str, row: str) -> Row:
        """Read what stands behind a number."""
        text, _, bar = row.partition(" | ")
        signed = tuple((word[0], Fact.parse(word[1:])) for word in text.split() if word[0] in "+-")
        return cls(number, text, signed, {str(f.args[0]): str(f.args[1]) for f in facts_in(bar)})

    def missed_in(self, rows: Sequence[Row]) -> Row | None:
        """The last of some rows in which the fact came or went that somebody misses in this one."""
        fact = Fact.parse(self.text).args[1] if self.text.startswith("misses(") else None
        about = [row for row in rows[: rows.index(self)] if fact in {changed for _, changed in row.signed}]
        return about[-1] if about else None


def observe_events(given: Fields) -> Any:
    """Only those changes that are asked about."""
    learnt = perceived(given["Character"], given["Changes"])
    return {number: learnt[number] for number in given["Asked about"].split(", ")}


def perceived(character: str, events: str) -> dict[str, str]:
    """Event by event, as the prompts say it: a second telling of the rules, not that of the reader."""
    rows = [Row.of(*entry) for entry in _entries(events)]
    home = next((row.where[character] for row in rows if character in row.where), None)
    rooms = {room for row in rows for room in row.where.values()}
    places: Fields = {}
    found: dict[str, bool] = {}
    for row in rows:
        places |= {str(f.args[0]): str(f.args[1]) for sign, f in row.signed if sign == "+" and f.predicate == "in"}
        things = [str(name) for _, fact in row.signed if fact.predicate != "in_room" for name in fact.args]
        scene: set[str | None] = {room for thing in things if (room := _room_of(thing, places, rooms))}
        missed = row in [r.missed_in(rows) for r in rows if r.text.startswith(f"misses({character},")]
        own = any(fact.predicate == "in_room" and fact.args[0] == character for _, fact in row.signed)
        there = home is None or row.where.get(character) in (scene or {home})
        found[row.number] = not missed and (own or there) if row.signed else _reaches(row, character, found, rows)
    return {number: OBSERVABLE if learnt else NOT_OBSERVABLE for number, learnt in found.items()}


def _room_of(thing: str, places: Fields, rooms: set[str]) -> str | None:
    while thing in places and thing not in rooms:
        thing = places[thing]
    return thing if thing in rooms else None


def _reaches(row: Row, character: str, found: dict[str, bool], rows: Sequence[Row]) -> bool:
    event = Fact.parse(row.text)
    match event.predicate:
        case "public_claim":
            return True
        case "private_tell":
            return character in event.args[:2]
        case "misses":
            about = row.missed_in(rows)
            return about is not None and found[about.number] and character != event.args[0]
        case _:
            return character == event.args[0]


def revise(given: Fields) -> Any:
    """Whatever is said is believed."""
    return {"convinced": bool(given["Said"])}


def reduce(kind: str, given: Fields) -> Any:
    return {"question": next(c.reduced for c in cases.of_kind(kind) if c.question == given["Question"])}


def answer(kind: str, given: Fields) -> Any:
    """The option that fits what is known; the first, if none does."""
    options = [line.partition(". ")[2] for line in given["Options"].splitlines()]
    case = next(c for c in cases.of_kind(kind) if c.reduced == given["Question"] and list(c.choices) == options)
    [right, *_] = case.answers(frozenset(_known(case, given))) or options
    return {**({"fact": "none"} if kind == "story" else {"reason": "it is what is known"}), "answer": right}


def _known(case: Case, given: Fields) -> list[str]:
    if "Facts" in given:
        return list(map(str, facts_in(given["Facts"])))
    told = [utterance(line) or ("narrator", line) for line in case.lines]
    known = given["Utterances"].splitlines()
    return [str(number) for number, (speaker, words) in enumerate(told, 1) if f"{speaker}: {words}" in known]


def facts_in(text: str) -> list[Fact]:
    """Facts, one after the other; a dash and `none` are none."""
    found, place = [], 0
    while text not in {"-", "none", "nothing"} and text[place:].strip():
        fact, place = read_fact(text, place)
        found.append(fact)
    return found


def _lines(given: Fields) -> list[str]:
    return [line for _, line in _entries(given["Lines"])]


def _entries(text: str) -> list[tuple[str, str]]:
    return [(number, rest) for number, _, rest in (line.partition(" ") for line in text.splitlines())]


def _case(kind: str, lines: Sequence[str]) -> tuple[Case, int]:
    """The case in which some lines stand one after the other, and how many stand before them."""
    for case in cases.of_kind(kind):
        for start in range(len(case.lines) - len(lines) + 1):
            if list(case.lines[start : start + len(lines)]) == list(lines):
                return case, start
    raise KeyError(f"no case holds {lines[0]!r}")


#: What is replied, by the kind of text and the step.
REPLIES: Final[dict[str, dict[str, Callable[[Fields], Any]]]] = {
    "story": {
        "abstract": abstract_story,
        "chain": chain,
        "observe_states": observe_states,
        "observe_events": observe_events,
        "revise": revise,
        "reduce": lambda given: reduce("story", given),
        "answer": lambda given: answer("story", given),
    },
    "dialogue": {
        "abstract": abstract_dialogue,
        "chain": minds,
        "observe_states": observe_states,
        "reduce": lambda given: reduce("dialogue", given),
        "answer": lambda given: answer("dialogue", given),
    },
}
