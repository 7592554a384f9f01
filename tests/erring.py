"""A reader by rule that errs where it is told to, and what its wrong answers are put down to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cache import Store
from flows.accounts import trace_of
from flows.pipeline import pipeline, run_plainly
from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure
from rectom.events import Delta, Event, settle
from rectom.facts import Fact
from rectom.grammar import belief_question
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader.rules import RuleReader
from rectom.results.attribution import attribute
from rectom.results.fault import Fault
from rectom.story import Question, Story, Vocabulary
from tasks.run import Run, running

LINES: tuple[str, ...] = (
    "Anne, Bob and Cid entered the hall.",
    "The ball is in the box.",
    "Anne made no movements and stayed in the hall for 1 minute.",
    "Anne exited the hall.",
    "Bob moved the ball to the bag.",
    "Bob exited the hall.",
    "Cid moved the ball to the jar.",
    "Cid exited the hall.",
    "Anne, Bob and Cid entered the waiting_room.",
    "Cid publicly claimed that ball is in the tin.",
)
CHOICES = ("box", "bag", "jar", "tin")

Trace = dict[str, Any]


@dataclass
class Err(RuleReader):
    """Reads by rule, and errs where it is told to."""

    events: Callable[[tuple[Event, ...]], Sequence[Event]] = tuple
    chain_of: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple
    able: Callable[[Observability, str], Observability] = lambda able, _: able
    believed: Callable[[Delta, Hearing], Delta] = lambda delta, _: delta
    reduced: Callable[[str], str] = str
    says: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        return settle(list(self.events(await super().abstract(story))))

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        return self.chain_of(await super().chain(question, words))

    async def observability(self, source: Perspective, character: str) -> Observability:
        return self.able(await super().observability(source, character), character)

    async def revise(self, hearing: Hearing) -> Delta:
        return self.believed(await super().revise(hearing), hearing)

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        return self.reduced(await super().reduce(question, chain))

    async def answer(self, question: str, state: frozenset[Fact], choices: Sequence[str]) -> str:
        if self.says == "nothing":
            raise StepFailure("answer", "the final state does not say where it is")
        return self.says or await super().answer(question, state, choices)


def read(store: Store, benchmark: Benchmark, reader: RuleReader) -> Trace:
    """The trace of the only question of a benchmark."""
    run = Run(benchmark, reader, store, dry=True)
    with running(run):
        asyncio.run(pipeline([[story.id for story in benchmark.stories]], run_plainly))
    return trace_of(run, benchmark.questions[0].id).to_json()


def asking(*chain: str, gold: str | None = None, lines: tuple[str, ...] = LINES) -> Benchmark:
    question = Question("q", "s", belief_question(chain, "ball"), CHOICES, gold, len(chain))
    return Benchmark("hitom", "cotp", (Story("s", lines),), (question,))


def blamed(store: Store, reader: RuleReader, *chain: str, **options: Any) -> Fault | None:
    """What a reader's wrong answer is put down to."""
    oracle = read(store, asking(*chain), RuleReader())
    trace = {**read(store, asking(*chain), reader), "gold": oracle["predicted"]}
    assert trace["predicted"] != oracle["predicted"] or trace["failure"], "the answer is right"
    return attribute(trace, oracle, **options)


def stating(line: int, event: Event) -> Callable[[tuple[Event, ...]], Sequence[Event]]:
    return lambda events: [*events[: line - 1], event, *events[line:]]


def also(line: int, *facts: Fact) -> Callable[[tuple[Event, ...]], Sequence[Event]]:
    """The same event, which states some facts besides."""

    def events(right: tuple[Event, ...]) -> Sequence[Event]:
        event = right[line - 1]
        more = replace(event, delta=Delta(event.delta.added | set(facts), event.delta.removed))
        return stating(line, more)(right)

    return events


def unseen(line: int, who: str) -> Callable[[Observability, str], Observability]:
    def able(right: Observability, character: str) -> Observability:
        rooms = tuple(None if place == line else room for place, room in enumerate(right.rooms, 1))
        return replace(right, rooms=rooms) if character == who else right

    return able


def learning(line: int, who: str) -> Callable[[Observability, str], Observability]:
    """Whether an event is learnt of, turned round."""

    def able(right: Observability, character: str) -> Observability:
        events = tuple(told != (place == line) for place, told in enumerate(right.events, 1))
        return replace(right, events=events) if character == who else right

    return able
