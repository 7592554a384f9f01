"""Histories: perspectives without states, the paper's ablation w/o-state.

A perspective is P̃ = {Ē_t}, the growing history of the events that its holder observed. Presence, persistence and
revision stand nowhere in it: who reads it must infer them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rectom.events import NOTHING, Delta, Event
from rectom.facts import Fact
from rectom.perspective import extend


@dataclass(frozen=True, slots=True)
class History:
    """P̃ of the character at the end of `chain`; the whole event sequence, if the chain is empty.

    `events` has an entry a step, None where the holder did not observe it (the paper's ∅). Ē_t are the first t.
    """

    events: tuple[Event | None, ...]
    chain: tuple[str, ...] = ()

    def entries(self) -> dict[int, str]:
        """The events as prompts show them, by their step from 1; lines that tell nothing are left out."""
        return {step: told(event) for step, event in enumerate(self.events, 1) if event and event != NOTHING}

    def seen_by(self, character: str, steps: Collection[int]) -> History:
        """The history of a character who observes these steps of it."""
        kept = tuple(event if step in steps else None for step, event in enumerate(self.events, 1))
        return History(kept, extend(self.chain, character))


#: Judges at which steps of a history its events are observed by a character.
Witness: TypeAlias = Callable[[History, str], Awaitable[Collection[int]]]


async def recurse(source: History, chain: Sequence[str], witness: Witness) -> list[History]:
    """The histories along C(q), the source first: each is observed from the one before (lines 7-11)."""
    histories = [source]
    for character in chain:
        last = histories[-1]
        # F_a(F_a(P)) = F_a(P): what somebody observed himself is no question.
        own = last.chain[-1:] == (character,)
        histories.append(last if own else last.seen_by(character, await witness(last, character)))
    return histories


def told(event: Event) -> str:
    """An event in the paper's notation; the words of an utterance once: `says(Ann,"I have a dog.")`."""
    said = event.proposition
    if not event.is_said_aloud or said is None or said.predicate != "said":
        return str(event)
    changes = Delta(event.delta.added - {said}, event.delta.removed)
    return str(replace(event, delta=changes, occurrence=Fact("says", (said.args[0], said.args[2]))))
