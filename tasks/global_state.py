"""Line 2 of Algorithm 1: Eq. 1 along the events gives the global perspective.

In the ablation w/o-det a model applies Eq. 1; in the ablation w/o-state there are no states, and the global
perspective is the whole history of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import events_from_json, global_from_json, history_from_json, history_to_json, perspective_to_json
from rectom.events import Event
from rectom.history import History
from rectom.perspective import Perspective, build_global, update_along
from tasks.run import WITHOUT_STATES, Run
from tasks.stage import Stage


def events_of(run: Run, story: str) -> tuple[Event, ...]:
    """The event sequence of a story. Raises Blocked if its abstraction failed."""
    events: tuple[Event, ...] = run.decoded("abstraction", story, events_from_json)
    return events


def global_perspective(run: Run, story: str) -> Perspective:
    """P^(*|G) of a story. Raises Blocked if it is not there."""
    built: Perspective = run.decoded("global_state", story, lambda data: global_from_json(data, events_of(run, story)))
    return built


def global_history(run: Run, story: str) -> History:
    """The whole history of a story, without states. Raises Blocked if it is not there."""
    whole: History = run.decoded("global_state", story, lambda data: history_from_json(data, events_of(run, story)))
    return whole


def _fields(run: Run, story: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"events": digest(run.output("abstraction", story))}
    if run.historian:
        fields |= WITHOUT_STATES
    if run.updater:
        fields["update"] = run.updater.fields()
    return fields


async def _compute(run: Run, story: str) -> Any:
    events = events_of(run, story)
    if run.historian:
        return history_to_json(History(events))
    if run.updater:
        return perspective_to_json(await update_along(events, run.updater.update))
    return perspective_to_json(build_global(events))


GLOBAL_STATE = Stage("global_state", 1, "abstract", lambda _, shard: shard, _fields, _compute)


async def global_state(shard: Sequence[str]) -> dict[str, str]:
    """Build the global perspectives of a shard; an item is a story id."""
    return await GLOBAL_STATE.over(shard)
