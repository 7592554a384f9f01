"""Lines 7-11 of Algorithm 1: perspectives along the chain of each question, completed by Eq. 2.

In the ablation w/o-state they are histories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cache import digest
from rectom.codec import observability_to_json, perspective_to_json
from rectom.events import Delta
from rectom.facts import printed
from rectom.perspective import Hearing, Observability, Perspective, equation_1, recurse
from rectom.reader.rules import present
from rectom.rules import Rules
from tasks.global_state import global_perspective
from tasks.histories import histories, history_fields
from tasks.observability import observed
from tasks.run import Run
from tasks.stage import Stage


class _Observer:
    """Gives the recursion what the observability stage found, and asks the reader how beliefs are revised."""

    def __init__(self, run: Run, story: str) -> None:
        self._run = run
        self._story = story
        self._presence = global_perspective(run, story).presence()

    @property
    def rules(self) -> Rules:
        return self._run.reader.rules

    async def observability(self, source: Perspective, character: str) -> Observability:
        able = observed(self._run, self._story, character)
        if source.presence() == self._presence:
            return able
        # A reader denied somebody an entry or exit, so that this source has other presence facts than the world:
        # then they alone say where the character is.
        return replace(able, rooms=tuple(present(state, character, self.rules) for state in source.states))

    async def revise(self, hearing: Hearing) -> Delta:
        return await self._run.reader.revise(hearing)


def _chain(run: Run, question: str) -> list[str]:
    chain: list[str] = run.output("questions", question)["chain"]
    return chain


def _fields(run: Run, question: str) -> dict[str, Any]:
    story, chain = run.question(question).story_id, _chain(run, question)
    if run.historian:
        return history_fields(run, run.historian, story, chain)
    fields = {
        "events": digest(run.output("abstraction", story)),
        "chain": chain,
        "observability": digest([observability_to_json(observed(run, story, name)) for name in chain]),
        "rules": run.reader.rules.fields(),
        "revise": run.reader.fields("revise"),
    }
    if run.updater:
        fields |= {"world": digest(run.output("global_state", story)), "update": run.updater.fields()}
    return fields


async def _compute(run: Run, question: str) -> Any:
    story, chain = run.question(question).story_id, _chain(run, question)
    if run.historian:
        return await histories(run, run.historian, story, chain)
    update = run.updater.update if run.updater else equation_1
    perspectives = await recurse(global_perspective(run, story), chain, _Observer(run, story), update)
    return {
        "perspectives": [perspective_to_json(perspective) for perspective in perspectives[1:]],
        "final": printed(perspectives[-1].final),
    }


COMPLETION = Stage("completion", 2, "revise", Run.questions, _fields, _compute)


async def completion(shard: Sequence[str]) -> dict[str, str]:
    """Build the perspectives for the questions of a shard; an item is a question id."""
    return await COMPLETION.over(shard)
