"""Perspectives: the global one, partial observation, completion, and the recursion along a chain.

Where to find what in the paper: Eq. 1 is `events.Delta.apply`, applied along the story by `build_global`;
partial observation is `observe`; Eq. 2 is `complete`; lines 8-11 of Algorithm 1 are `recurse`. In the paper's
ablation w/o-det an `Updater` stands in for Eq. 1 in both places.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Protocol, TypeAlias

from rectom.events import Delta, Event
from rectom.facts import EMPTY, Fact, State, superseded
from rectom.rules import Rules, Scope
from rectom.setting import NOWHERE, Setting, setting_of

EVERYWHERE: Final = "*"

#: Gives the state after an event that changes something, from the state before: `equation_1`, or a model.
Updater: TypeAlias = Callable[[State, Event], Awaitable[State]]


@dataclass(frozen=True, slots=True)
class Perspective:
    """P = {(s_t, e_t)}, t = 1…T, of the character at the end of `chain`; the global one, if the chain is empty.

    `states`, `events` and `vantage` are parallel. An event that the holder did not observe is None (the paper's
    ∅). `vantage` says from where he observed step t: a room, EVERYWHERE, or None for not at all. In `chain`,
    C(q) so far, a character who follows himself counts once.
    """

    states: tuple[State, ...]
    events: tuple[Event | None, ...]
    vantage: tuple[str | None, ...]
    chain: tuple[str, ...] = ()
    setting: Setting = NOWHERE

    @property
    def final(self) -> State:
        """FinalState(P), from which the reduced question is answered."""
        return self.states[-1] if self.states else EMPTY

    def presence(self) -> tuple[State, ...]:
        """The presence facts of each state: all that state observability is judged from."""
        return tuple(frozenset(f for f in state if f.predicate == "in_room") for state in self.states)


@dataclass(frozen=True, slots=True)
class Observability:
    """What a character is in a position to observe, an entry a step.

    `rooms`: the room that he is present in, or None. `events`: whether he learns of the event wherever he is: a
    communication that reaches him, an entry or an exit.
    """

    rooms: tuple[str | None, ...]
    events: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """The observed part of a state: the facts seen, and which facts such a look can tell of.

    `room` is EVERYWHERE for a state observed as a whole. Otherwise the sight covers who is in that room and what
    is in the containers that stand there, so that it shows as well who and what is *not* there.
    """

    facts: State
    room: str
    containers: frozenset[str] = frozenset()

    def covers(self, fact: Fact) -> bool:
        """Whether the sight tells if the fact holds."""
        if fact.predicate == "in_room":
            return self.room in {EVERYWHERE, fact.args[1]}
        return self.room == EVERYWHERE or (fact.predicate == "in" and fact.args[1] in self.containers)

    def shows(self, delta: Delta) -> bool:
        """Whether a change is seen in its outcome: then no belief about it needs to be inherited."""
        return delta.added <= self.facts and all(map(self.covers, delta.added | delta.removed))

    def correct(self, belief: State) -> State:
        """A belief after this look: what is covered is as seen, the rest is inherited."""
        kept = frozenset(fact for fact in belief if not self.covers(fact))
        return (kept - superseded(kept, self.facts)) | self.facts


@dataclass(frozen=True, slots=True)
class Observation:
    """The partial observation sequence O = {(s̄_t, ē_t)} of a character over a source perspective.

    None in `sights` or `events` is the paper's ∅: not observable. `vantage` is the room of each sight.
    """

    character: str
    sights: tuple[Sight | None, ...]
    events: tuple[Event | None, ...]
    vantage: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Hearing:
    """A transient event that reaches a belief, and all that the revision depends on.

    `chain` is whose belief it is, outermost first. `belief` is the state before the revision. `exits` are the
    characters in the order in which they last left a room.
    """

    chain: tuple[str, ...]
    event: Event
    belief: State
    exits: tuple[str, ...]

    def believed(self) -> Delta:
        """The revision by what was heard, where that is believed: it comes, and what it supersedes goes."""
        news = self.event.proposition
        return Delta(frozenset({news}), superseded(self.belief, [news])) if news else Delta()


class Observer(Protocol):
    """The semantic judgements of lines 9 and 10. The readers make them; so may anything else."""

    @property
    def rules(self) -> Rules:
        """The task's rules of observation."""
        ...

    def observability(self, source: Perspective, character: str) -> Awaitable[Observability]:
        """What the character is in a position to observe of the source perspective."""
        ...

    def revise(self, hearing: Hearing) -> Awaitable[Delta]:
        """How a transient event that was heard changes a belief; an empty delta if it convinces nobody."""
        ...


async def equation_1(state: State, event: Event) -> State:
    """Eq. 1, for a state or a belief; that may hold another value than the one in Δ⁻, which goes as well."""
    return event.delta.apply(state - superseded(state, event.delta.added))


def build_global(events: Sequence[Event]) -> Perspective:
    """P^(*|G): Eq. 1 along the event sequence from s_0 = ∅ (line 2)."""
    states = accumulate(events, lambda state, event: event.delta.apply(state), initial=EMPTY)
    return paired(tuple(states)[1:], events)


async def update_along(events: Sequence[Event], update: Updater) -> Perspective:
    """P^(*|G) by an updater, which is asked for a step after the other, where something changes."""
    states, state = [], EMPTY
    for event in events:
        state = await update(state, event) if event.delta else state
        states.append(state)
    return paired(states, events)


def paired(states: Sequence[State], events: Sequence[Event]) -> Perspective:
    """G = {(s_t, e_t)}: the global perspective that these states make with their events."""
    return Perspective(tuple(states), tuple(events), (EVERYWHERE,) * len(states), setting=setting_of(events))


async def recurse(
    source: Perspective, chain: Sequence[str], observer: Observer, update: Updater = equation_1
) -> list[Perspective]:
    """The perspectives along C(q), the source first: each is built from the one before (lines 7-11)."""
    perspectives = [source]
    for character in chain:
        perspectives.append(await construct(perspectives[-1], character, observer, update))
    return perspectives


async def construct(
    source: Perspective, character: str, observer: Observer, update: Updater = equation_1
) -> Perspective:
    """F_a(P) = P^(a|P): observe, then complete (lines 9 and 10)."""
    able = await observer.observability(source, character)
    observation = observe(source, character, able, observer.rules)
    return await complete(observation, source, observer, update)


def observe(source: Perspective, character: str, able: Observability, rules: Rules) -> Observation:
    """O^(a|P): what of the source perspective the character observes (line 9)."""
    seen: dict[str | None, Sight] = {room: _from(source, room, rules) for room in able.rooms if room is not None}
    sights = tuple(_sight(source, step, seen.get(room), rules) for step, room in enumerate(able.rooms))
    events = tuple(
        event if event and (told or _witnessed(event, sight)) else None
        for event, told, sight in zip(source.events, able.events, sights, strict=True)
    )
    vantage = tuple(room if sight else None for room, sight in zip(able.rooms, sights, strict=True))
    return Observation(character, sights, events, vantage)


def _from(source: Perspective, room: str, rules: Rules) -> Sight:
    """What can be seen from a room, whatever is there."""
    places = source.setting.places if rules.scope is Scope.ROOM else {}
    return Sight(EMPTY, room, frozenset(container for container, place in places.items() if place == room))


def _sight(source: Perspective, step: int, seen: Sight | None, rules: Rules) -> Sight | None:
    if seen is None or (rules.joint and source.vantage[step] not in {EVERYWHERE, seen.room}):
        return None
    if rules.scope is Scope.STATE:
        return Sight(source.states[step], EVERYWHERE)
    return replace(seen, facts=frozenset(filter(seen.covers, source.states[step])))


def _witnessed(event: Event, sight: Sight | None) -> bool:
    """A persistent event is observable if its paired state is: as far as that state shows what changed. An utterance
    is heard by those who observe the state.
    """
    if event.is_said_aloud:
        return sight is not None
    return sight is not None and any(sight.covers(fact) for fact in event.delta.added | event.delta.removed)


async def complete(
    observation: Observation, source: Perspective, observer: Observer, update: Updater = equation_1
) -> Perspective:
    """P^(a|P): Eq. 2, which completes a partial observation (line 10).

    A sight of one room leaves the rest of the state unobserved; f_com applies to that rest.
    """
    chain = extend(source.chain, observation.character)
    states, belief = [], EMPTY
    for step, (sight, event) in enumerate(zip(observation.sights, observation.events, strict=True)):
        if sight and sight.room == EVERYWHERE:
            belief = sight.facts
        else:
            # The persistent half of f_com, unless the change is itself in sight.
            if event and event.delta and not (sight and sight.shows(event.delta)):
                belief = await update(belief, event)
            belief = sight.correct(belief) if sight else belief
            if event and event.proposition and event.proposition not in belief:
                hearing = Hearing(chain, event, belief, source.setting.exits[step])
                belief = (await observer.revise(hearing)).apply(belief)
        states.append(belief)
    return Perspective(tuple(states), observation.events, observation.vantage, chain, source.setting)


def extend(chain: tuple[str, ...], character: str) -> tuple[str, ...]:
    """A chain with one more character. Who thinks about himself adds no depth: F_a(F_a(P)) = F_a(P)."""
    return chain if chain[-1:] == (character,) else (*chain, character)
