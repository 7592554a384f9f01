"""The hand-made cases: `tests/cases/*.toml`, a file a kind of text, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from rectom.benchmarks.base import Benchmark
from rectom.events import Delta, Event, Kind, settle
from rectom.facts import Fact, State
from rectom.perspective import Perspective
from rectom.reader.dialogue import events_of
from rectom.story import Question, Story

#: The kinds of text, as `rectom.task` names them, each with its file.
KINDS: Final = {"hitom": "narrative", "story": "story", "dialogue": "dialogue"}

#: What matters of a state: facts about things, or the numbers of the lines that were heard.
Matter: TypeAlias = frozenset[str]


@dataclass(frozen=True)
class Option:
    """An option, and what it takes to be right: what is to be known, and what must not be. Nothing means never."""

    text: str
    holds: Matter = frozenset()
    lacks: Matter = frozenset()

    def fits(self, known: Matter) -> bool:
        """Whether it is right for one who knows this much."""
        return bool(self.holds or self.lacks) and self.holds <= known and not self.lacks & known


@dataclass(frozen=True)
class Case:
    """A small text with a question, the right perspectives, and the right answer.

    `chain` is C(q); `reply` is the model's abstraction where it is no list of events. `matter` gives for each prefix of
    the chain what matters of each state, a step each.
    """

    kind: str
    name: str
    topics: tuple[str, ...]
    lines: tuple[str, ...]
    events: tuple[Event, ...]
    question: str
    reduced: str
    options: tuple[Option, ...]
    gold: str
    chain: tuple[str, ...]
    matter: Mapping[tuple[str, ...], tuple[Matter, ...]]
    reply: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The case among all cases."""
        return f"{self.kind}: {self.name}"

    @property
    def story(self) -> Story:
        """The text."""
        return Story(self.id, self.lines)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts of the options."""
        return tuple(option.text for option in self.options)

    def answers(self, known: Matter) -> list[str]:
        """The options that are right for one who knows this much."""
        return [option.text for option in self.options if option.fits(known)]


def matter(state: State) -> Matter:
    """What matters of a state."""
    heard = {str(fact.args[1]) for fact in state if fact.predicate == "said"}
    return frozenset(heard | {str(fact) for fact in state if fact.predicate not in {"said", "in_room"}})


def shown(perspectives: Sequence[Perspective]) -> dict[tuple[str, ...], tuple[Matter, ...]]:
    """Perspectives as cases show them."""
    return {each.chain: tuple(map(matter, each.states)) for each in perspectives}


def benchmark(kind: str) -> Benchmark:
    """All cases of a kind as a benchmark; a text that is asked about twice is one story."""
    cases = of_kind(kind)
    stories = {case.lines: case.story for case in reversed(cases)}
    return Benchmark(
        name="cases",
        subset=kind,
        stories=tuple(stories.values()),
        questions=tuple(
            Question(case.id, stories[case.lines].id, case.question, case.choices, case.gold, len(case.chain))
            for case in cases
        ),
        task=kind,
    )


@cache
def of_kind(kind: str) -> tuple[Case, ...]:
    """The cases of one kind."""
    file = Path(__file__).with_name("cases") / f"{KINDS[kind]}.toml"
    return tuple(_case(kind, data) for data in tomllib.loads(file.read_text("utf-8"))["case"])


def every() -> tuple[Case, ...]:
    """All cases."""
    return tuple(case for kind in KINDS for case in of_kind(kind))


def _case(kind: str, data: Mapping[str, Any]) -> Case:
    lines, chain = tuple(data["lines"].split("\n")[:-1]), tuple(data["chain"])
    options = tuple(map(_option, data["options"]))
    reply = {"start": data["start"], "changes": data["changes"]} if "start" in data else {}
    return Case(
        kind,
        data["name"],
        tuple(data["topics"]),
        lines,
        _spoken(lines, reply) if reply else tuple(map(event, data["events"].split("\n")[:-1])),
        data["question"],
        data.get("reduced", ""),
        options,
        options["ABCDEF".index(data["gold"])].text,
        chain,
        _heard(data["heard"], len(lines)) if reply else _table(data["perspectives"]),
        reply,
    )


def _option(data: str | Mapping[str, Any]) -> Option:
    if isinstance(data, str):
        return Option(data)
    holds, lacks = (frozenset(map(str, data.get(name, ()))) for name in ("holds", "lacks"))
    return Option(data["text"], holds, lacks)


def event(text: str) -> Event:
    """An event in the paper's notation: signed facts, an occurrence, or `-` for nothing."""
    words = [] if text == "-" else text.split()
    added, removed = (frozenset(Fact.parse(word[1:]) for word in words if word[0] == sign) for sign in "+-")
    occurrences = [Fact.parse(word) for word in words if word[0] not in "+-"]
    kind = Kind.TRANSIENT if occurrences else Kind.PERSISTENT
    return Event(kind, Delta(added, removed), *occurrences)


def _spoken(lines: Sequence[str], reply: Mapping[str, Any]) -> tuple[Event, ...]:
    changes = {change["line"]: (change.get("joins", []), change.get("leaves", [])) for change in reply["changes"]}
    return settle(events_of(lines, reply["start"], changes))


def _table(text: str) -> dict[tuple[str, ...], tuple[Matter, ...]]:
    """A table of perspectives: a column each, a row a step."""
    head, *rows = [[cell.strip() for cell in line.split("|")] for line in text.strip("\n").split("\n")]
    numbers = [row[0] for row in rows]
    assert numbers == [str(number) for number in range(1, len(rows) + 1)], f"the steps are {numbers}"
    columns = zip(*([_facts(cell) for cell in row[1:]] for row in rows), strict=True)
    return dict(zip(map(_prefix, head[1:]), columns, strict=True))


def _facts(cell: str) -> Matter:
    facts = [] if cell == "-" else cell.split()
    return frozenset(str(Fact.parse(fact)) for fact in facts)


def _prefix(head: str) -> tuple[str, ...]:
    return () if head == "World" else tuple(head.split(" > "))


def _heard(said: Mapping[str, str], steps: int) -> dict[tuple[str, ...], tuple[Matter, ...]]:
    """`1-3, 5` as what is known after each step."""
    return {
        _prefix(head): tuple(
            frozenset(str(number) for number in _numbers(ranges) if number <= step) for step in range(1, steps + 1)
        )
        for head, ranges in said.items()
    }


def _numbers(ranges: str) -> Iterator[int]:
    for part in ranges.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
