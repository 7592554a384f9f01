"""A reader that spares the model: by rule where a rule can, by the model where none can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from rectom.errors import StepFailure, StoryError
from rectom.events import Delta, Event
from rectom.facts import State
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader.base import Reader
from rectom.story import Story, Vocabulary

T = TypeVar("T")


class EitherReader:
    """Asks `rule` first, and `model` what the rule cannot read.

    Where the model had to be asked its calls say so: a step by rule has none.
    """

    def __init__(self, rule: Reader, model: Reader) -> None:
        self.rules = rule.rules
        self._rule = rule
        self._model = model

    def fields(self, step: str) -> dict[str, object]:
        """The fields of both."""
        return {"by": "either", "rules": self._rule.fields(step), "model": self._model.fields(step)}

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1."""
        return await _first(self._rule.abstract(story), lambda: self._model.abstract(story))

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3."""
        return await _first(self._rule.chain(question, words), lambda: self._model.chain(question, words))

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9."""
        return await _first(
            self._rule.observability(source, character), lambda: self._model.observability(source, character)
        )

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10."""
        return await _first(self._rule.revise(hearing), lambda: self._model.revise(hearing))

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12."""
        return await _first(self._rule.reduce(question, chain), lambda: self._model.reduce(question, chain))

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13."""
        by_rule = self._rule.answer(question, state, choices)
        return await _first(by_rule, lambda: self._model.answer(question, state, choices))


async def _first(by_rule: Awaitable[T], by_model: Callable[[], Awaitable[T]]) -> T:
    try:
        return await by_rule
    except (StoryError, StepFailure):
        return await by_model()
