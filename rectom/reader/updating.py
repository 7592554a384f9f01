"""Eq. 1 applied by a model: the paper's ablation w/o-det."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import create_model

from rectom.events import Event
from rectom.facts import Fact, State
from rectom.reader.asking import Asker
from rectom.schemas import ReplyModel, Strict, some_of

STEP: Final = "update"

#: Bump when the reply or its reading changes its meaning: cached results are found by it.
VERSION: Final = 2


class ModelUpdater:
    """Asks a model for the state after an event, one call a step; the same step is the same request everywhere."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def fields(self) -> dict[str, object]:
        """What a state depends on besides the state before and the event: part of the key of the cached result."""
        return {**self._asker.fields(STEP), "version": VERSION}

    async def update(self, state: State, event: Event) -> State:
        """Lines 2 and 10: s_t, of facts of s_{t-1} and of Δ⁺. Raises StepFailure if no reply is usable."""
        facts = {brief(fact): fact for fact in sorted(state | event.delta.added, key=str)}
        return await self._asker.ask(
            STEP,
            outcome(facts),
            lambda reply: _state(reply.state, facts, event),
            state=_listed(state),
            added=_listed(event.delta.added),
            removed=_listed(event.delta.removed),
        )


def outcome(facts: Iterable[str]) -> ReplyModel:
    """`{"state": [...]}`: the facts that hold after an event."""
    return create_model("Outcome", __base__=Strict, state=(some_of(tuple(facts)), ...))


def brief(fact: Fact) -> str:
    """A fact as the prompt shows it; what was said by its number, since its words change nothing."""
    return str(Fact("said", fact.args[:2]) if fact.predicate == "said" else fact)


def _state(listed: Iterable[str], facts: Mapping[str, Fact], event: Event) -> State:
    """The state that a reply lists. Raises ValueError if it is none."""
    if unknown := [text for text in listed if text not in facts]:
        raise ValueError(f"{unknown[0]} is neither in the state before nor added")
    state = frozenset(facts[text] for text in listed)
    new = {fact.slot: fact for fact in sorted(state & event.delta.added, key=str) if fact.slot}
    for fact in sorted(state - event.delta.added, key=str):
        if fact.slot in new:
            raise ValueError(f"{fact} cannot be true beside {new[fact.slot]}")
    return state


def _listed(facts: State) -> str:
    return " ".join(sorted(map(brief, facts))) or "none"
