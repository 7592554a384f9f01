"""Line 2 of Algorithm 1: Eq. 1 along the events gives the global perspective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import events_from_json, perspective_to_json
from rectom.perspective import Perspective, build_global
from tasks.run import Run
from tasks.stage import Stage


def global_perspective(run: Run, story: str) -> Perspective:
    """P^(*|G) of a story. Raises Blocked if its abstraction failed."""
    built: Perspective = run.decoded("abstraction", story, lambda events: build_global(events_from_json(events)))
    return built


def _fields(run: Run, story: str) -> dict[str, Any]:
    return {"events": digest(run.output("abstraction", story))}


async def _compute(run: Run, story: str) -> Any:
    return perspective_to_json(global_perspective(run, story))


GLOBAL_STATE = Stage("global_state", 1, "abstract", lambda _, shard: shard, _fields, _compute)


async def global_state(shard: Sequence[str]) -> dict[str, str]:
    """Build the global perspectives of a shard; an item is a story id."""
    return await GLOBAL_STATE.over(shard)
