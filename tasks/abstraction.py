"""Line 1 of Algorithm 1: every story becomes a sequence of symbolic events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import events_to_json
from tasks.run import Run
from tasks.stage import Stage


def _fields(run: Run, story: str) -> dict[str, Any]:
    told = run.story(story)
    asked = {"asked": list(told.asked)} if told.asked else {}
    return {"lines": digest(list(told.lines)), **asked, "reader": run.reader.fields("abstract")}


async def _compute(run: Run, story: str) -> Any:
    return events_to_json(await run.reader.abstract(run.story(story)))


ABSTRACTION = Stage("abstraction", 1, "abstract", lambda _, shard: shard, _fields, _compute)


async def abstraction(shard: Sequence[str]) -> dict[str, str]:
    """Abstract the stories of a shard; an item is a story id."""
    return await ABSTRACTION.over(shard)
