"""What a reader is: the semantic questions of Algorithm 1, and which of them a reader is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from rectom.events import Delta, Event
from rectom.facts import State
from rectom.perspective import Hearing, Observability, Perspective
from rectom.rules import Rules
from rectom.story import Story, Vocabulary

if TYPE_CHECKING:
    from rectom.reader.histories import Historian
    from rectom.reader.updating import ModelUpdater

#: The steps, in the order of Algorithm 1. `--reader STEP=KIND` gives any of them to another reader.
STEPS: Final = ("abstract", "chain", "observe", "revise", "reduce", "answer")


class Reader(Protocol):
    """Answers the paper's semantic questions.

    Raises StoryError where it cannot take a text, and StepFailure where a step went wrong for good.
    """

    @property
    def rules(self) -> Rules:
        """The task's rules of observation and belief."""
        ...

    def fields(self, step: str) -> dict[str, object]:
        """What a step's result depends on besides its input, as JSON: part of the key of the cached result."""
        ...

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: the settled events of a story, one a line."""
        ...

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3: the character chain C(q), outermost first; empty for a question about the actual world."""
        ...

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: where a character is at each step, and which events reach him wherever he is."""
        ...

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: how what was heard changes a belief."""
        ...

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12: the reduced question q⁽⁰⁾."""
        ...

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13: the option that a state answers a question with."""
        ...


class SharedReader:
    """Gives each step to one of several readers: the paper's pipeline and the hybrids are settings of it.

    `updater` applies Eq. 1 in the place of code (the ablation w/o-det). `historian` observes and answers from
    histories of events, without any states (the ablation w/o-state).
    """

    def __init__(
        self, by_step: Mapping[str, Reader], updater: ModelUpdater | None = None, historian: Historian | None = None
    ) -> None:
        self._by_step = dict(by_step)
        self.rules = by_step["observe"].rules
        self.updater = updater
        self.historian = historian

    def fields(self, step: str) -> dict[str, object]:
        """The fields of the reader that has the step."""
        return self._by_step[step].fields(step)

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1."""
        return await self._by_step["abstract"].abstract(story)

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3."""
        return await self._by_step["chain"].chain(question, words)

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9."""
        return await self._by_step["observe"].observability(source, character)

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10."""
        return await self._by_step["revise"].revise(hearing)

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12."""
        return await self._by_step["reduce"].reduce(question, chain)

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13."""
        return await self._by_step["answer"].answer(question, state, choices)
