"""Algorithm 1 over shards of stories: which stage follows which, whoever runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from tasks.abstraction import ABSTRACTION, abstraction
from tasks.answering import ANSWERING, answering
from tasks.completion import COMPLETION, completion
from tasks.global_state import GLOBAL_STATE, global_state
from tasks.observability import OBSERVABILITY, observability
from tasks.questions import QUESTIONS, questions
from tasks.run import Run
from tasks.stage import Stage, together

StageFunction: TypeAlias = Callable[[Sequence[str]], Awaitable[dict[str, str]]]

#: Runs one stage over one shard: (stage name, shard, the shard's label such as "2/4").
RunStage: TypeAlias = Callable[[str, Sequence[str], str], Awaitable[object]]

#: Every stage with its function, in the order of Algorithm 1.
STAGES: Final[dict[str, tuple[Stage, StageFunction]]] = {
    "abstraction": (ABSTRACTION, abstraction),
    "global_state": (GLOBAL_STATE, global_state),
    "questions": (QUESTIONS, questions),
    "observability": (OBSERVABILITY, observability),
    "completion": (COMPLETION, completion),
    "answering": (ANSWERING, answering),
}

#: At most so many stories a shard; fewer where there are few, so that several shards are in flight.
_LARGEST_SHARD: Final = 25
_FEWEST_SHARDS: Final = 4

#: At most so many shards at once: enough to fill any limit on requests, and the first ones end long before the last.
_MOST_AT_ONCE: Final = 8


def shards(run: Run, size: int | None = None) -> list[list[str]]:
    """The stories of a run in shards of a size, or of one that suits their number."""
    stories = [story.id for story in run.benchmark.stories]
    size = size or max(1, min(_LARGEST_SHARD, -(-len(stories) // _FEWEST_SHARDS)))
    return [stories[start : start + size] for start in range(0, len(stories), size)]


async def pipeline(
    parts: Sequence[Sequence[str]], run_stage: RunStage, at_once: int | None = None, *, answers_only: bool = False
) -> None:
    """Bring every shard through its stages, each by itself: none waits for another's slowest call.

    `at_once` shards are under way together; all of them, where requests travel in batches. `answers_only` is for
    methods other than RecToM, which have one stage.
    """
    labels = [f"{number}/{len(parts)}" for number in range(1, len(parts) + 1)]
    places = asyncio.Semaphore(at_once or _MOST_AT_ONCE)

    async def in_turn(part: Sequence[str], label: str) -> None:
        async with places:
            if answers_only:
                await run_stage("answering", part, label)
            else:
                await _shard(part, label, run_stage)

    await together(in_turn(part, label) for part, label in zip(parts, labels, strict=True))


async def _shard(part: Sequence[str], label: str, run_stage: RunStage) -> None:
    async def world() -> None:
        await run_stage("abstraction", part, label)
        await run_stage("global_state", part, label)

    await together([world(), run_stage("questions", part, label)])
    for stage in ("observability", "completion", "answering"):
        await run_stage(stage, part, label)


async def run_plainly(stage: str, part: Sequence[str], _label: str) -> object:
    """Run a stage's function as it is, without Prefect."""
    return await STAGES[stage][1](part)
