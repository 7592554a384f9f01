"""Readers for a rehearsal: the model's steps as far as the store has them, and then what the rules make of the text.

What a model would be asked hangs on what it said before: whose perspective is built depends on the chain that it read.
Where there is no reply yet, the rules stand in for it, and where they cannot read the text, a guess does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

from rectom.errors import StepFailure, StoryError
from rectom.events import NOTHING, Delta, Event, persistent
from rectom.facts import Fact, State
from rectom.history import History
from rectom.perspective import Hearing, Observability, Perspective, build_global, equation_1
from rectom.reader.asking import noted, recording
from rectom.reader.base import STEPS, Reader, SharedReader
from rectom.reader.dialogue import events_of, in_dialogue
from rectom.reader.either import EitherReader
from rectom.reader.histories import Historian
from rectom.reader.updating import ModelUpdater
from rectom.reader.utterances import utterance
from rectom.rules import Rules
from rectom.story import Story, Vocabulary

T = TypeVar("T")


def rehearsed(reader: SharedReader, by_rule: Reader) -> SharedReader:
    """The reader of a run that asks a rehearsal's client; `by_rule` is the rule reader of the same kind of text."""
    by_guess = EitherReader(by_rule, _Guess(by_rule.rules))
    stand_in = _StandIn(reader, by_guess)
    updater = reader.updater and _Updater(reader.updater)
    historian = reader.historian and _Historian(reader.historian, by_guess)
    return SharedReader(dict.fromkeys(STEPS, stand_in), updater, historian)


class _StandIn:
    """Asks `reader`, and `other` where an imagined reply was all that there was."""

    def __init__(self, reader: Reader, other: Reader) -> None:
        self.rules = reader.rules
        self._reader = reader
        self._other = other

    def fields(self, step: str) -> dict[str, object]:
        return self._reader.fields(step)

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        return await _real_or(self._reader.abstract(story), lambda: self._other.abstract(story))

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        return await _real_or(self._reader.chain(question, words), lambda: self._other.chain(question, words))

    async def observability(self, source: Perspective, character: str) -> Observability:
        asked = self._reader.observability(source, character)
        return await _real_or(asked, lambda: self._other.observability(source, character))

    async def revise(self, hearing: Hearing) -> Delta:
        return await _real_or(self._reader.revise(hearing), lambda: self._other.revise(hearing))

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        return await _real_or(self._reader.reduce(question, chain), lambda: self._other.reduce(question, chain))

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        asked = self._reader.answer(question, state, choices)
        return await _real_or(asked, lambda: self._other.answer(question, state, choices))


class _Guess:
    """What is said of a text that no rule reads: every line changes something, and everyone observes it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def fields(self, step: str) -> dict[str, object]:
        return {"by": "guess"}

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        if any(map(utterance, story.lines)):
            return tuple(events_of(story.lines, in_dialogue(story.lines).characters, {}))
        return tuple(persistent([Fact("is", (story.id, str(number)))]) for number in range(len(story.lines)))

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        return tuple(sorted((name for name in words.characters if name in question), key=question.index))

    async def observability(self, source: Perspective, character: str) -> Observability:
        return Observability((None,) * len(source.states), (True,) * len(source.states))

    async def revise(self, hearing: Hearing) -> Delta:
        return Delta()

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        return question

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        return choices[0] if choices else ""


class _Updater(ModelUpdater):
    """The ablation w/o-det, with Eq. 1 as the stand-in."""

    def __init__(self, updater: ModelUpdater) -> None:
        super().__init__(updater._asker)
        self._asked = updater

    async def update(self, state: State, event: Event) -> State:
        return await _real_or(self._asked.update(state, event), lambda: equation_1(state, event))


class _Historian(Historian):
    """The ablation w/o-state, in which a character observes what `other` says of the states that the events lead to."""

    def __init__(self, historian: Historian, other: Reader) -> None:
        super().__init__(historian._asker, historian._rules, historian._note)
        self._asked = historian
        self._other = other

    async def witness(self, history: History, character: str) -> Collection[int]:
        return await _real_or(self._asked.witness(history, character), lambda: self._present(history, character))

    async def _present(self, history: History, character: str) -> Collection[int]:
        source = build_global([event or NOTHING for event in history.events])
        able = await self._other.observability(source, character)
        seen = enumerate(zip(able.rooms, able.events, strict=True), 1)
        return history.entries().keys() & {step for step, (room, learnt) in seen if room or learnt}

    async def answer(self, question: str, history: Sequence[str], chain: Sequence[str], choices: Sequence[str]) -> str:
        asked = self._asked.answer(question, history, chain, choices)
        return await _real_or(asked, lambda: _given(choices[0] if choices else ""))


async def _given(value: T) -> T:
    return value


async def _real_or(asked: Awaitable[T], other: Callable[[], Awaitable[T]]) -> T:
    """What was asked, if every reply that it rests on is a real one; otherwise what the other says."""
    with recording() as calls:
        try:
            found, failure = await asked, None
        except (StepFailure, StoryError) as error:
            failure = error
    noted(calls)
    if any(call.source == "sent" for call in calls):
        return await other()
    if failure:
        raise failure
    return found
