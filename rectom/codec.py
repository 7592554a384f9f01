"""Events, perspectives and histories as JSON and back, for stage results and run folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rectom.events import Delta, Event, Kind
from rectom.facts import EMPTY, Fact, State, printed
from rectom.history import History
from rectom.perspective import Observability, Perspective, paired


def events_to_json(events: Iterable[Event]) -> list[dict[str, Any]]:
    """`[{"kind", "added", "removed"} | {"kind", "occurrence"} | {"kind", "occurrence", "added", "removed"}]`."""
    return [_event_to_json(event) for event in events]


def events_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Event, ...]:
    """The inverse of `events_to_json`. Raises FormulaError or KeyError for anything else."""
    return tuple(_event_from_json(event) for event in data)


def _event_to_json(event: Event) -> dict[str, Any]:
    changes: dict[str, Any] = {"added": printed(event.delta.added), "removed": printed(event.delta.removed)}
    if event.occurrence:
        changes = {"occurrence": str(event.occurrence), **(changes if event.delta else {})}
    return {"kind": str(event.kind), **changes}


def _event_from_json(data: Mapping[str, Any]) -> Event:
    said = data.get("occurrence")
    bare = said and "added" not in data
    delta = Delta() if bare else Delta(state_from_json(data["added"]), state_from_json(data["removed"]))
    return Event(Kind(data["kind"]), delta, Fact.parse(said) if said else None)


def state_from_json(facts: Iterable[str]) -> State:
    """A state from printed facts."""
    return frozenset(map(Fact.parse, facts))


def observability_to_json(able: Observability) -> dict[str, Any]:
    """`{"rooms": [room or null, …], "events": [bool, …]}`."""
    return {"rooms": list(able.rooms), "events": list(able.events)}


def observability_from_json(data: Mapping[str, Any]) -> Observability:
    """The inverse of `observability_to_json`."""
    return Observability(tuple(data["rooms"]), tuple(data["events"]))


def perspective_to_json(perspective: Perspective) -> dict[str, Any]:
    """`{"chain", "deltas", "events", "vantage"}`, an entry a step.

    `deltas` are `[added, removed]` facts from one state to the next, from s_0 = ∅; of each event is kept only
    whether the holder observed it.
    """
    states = (EMPTY, *perspective.states)
    return {
        "chain": list(perspective.chain),
        "deltas": [[printed(now - before), printed(before - now)] for before, now in pairwise(states)],
        "events": [event is not None for event in perspective.events],
        "vantage": list(perspective.vantage),
    }


def states_from_json(data: Mapping[str, Any]) -> list[State]:
    """The states of a perspective from `perspective_to_json`, by Eq. 1 along its deltas."""
    states = [EMPTY]
    for added, removed in data["deltas"]:
        states.append(Delta(state_from_json(added), state_from_json(removed)).apply(states[-1]))
    return states[1:]


def global_from_json(data: Mapping[str, Any], events: Sequence[Event]) -> Perspective:
    """The global perspective from `perspective_to_json` and its events."""
    return paired(states_from_json(data), events)


def history_to_json(history: History) -> dict[str, Any]:
    """`{"chain", "events"}`: of each event, whether the holder observed it. There are no states, hence no deltas."""
    return {"chain": list(history.chain), "events": [event is not None for event in history.events]}


def is_history(data: Mapping[str, Any]) -> bool:
    """Whether it is a history's JSON, and no perspective's."""
    return "deltas" not in data


def history_from_json(data: Mapping[str, Any], events: Sequence[Event]) -> History:
    """A history from `history_to_json` and the events of the whole story."""
    kept = (event if observed else None for event, observed in zip(events, data["events"], strict=True))
    return History(tuple(kept), tuple(data["chain"]))
