"""An audit of Hi-ToM's labels: which of them contradict each other, and which the rules cannot reach.

Three kinds of findings. `prompting-type`: the CoTP and the VP row of one question are labelled differently.
`structure`: two questions are the same but for names and for what does not concern them, and their labels are not.
`unreachable`: the rule set `hitom` gives another answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Final, Literal, TypeAlias

from rectom import grammar
from rectom.benchmarks.hitom import Row, conflicts
from rectom.errors import DataError, StoryError
from rectom.events import Event
from rectom.facts import State, in_room, value_of
from rectom.perspective import Perspective
from rectom.reader.rules import RuleReader, reaches
from rectom.story import Story
from rectom.words import check_question

_Chain: TypeAlias = tuple[str, ...]
_READER: Final = RuleReader()
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """A label that is in doubt.

    `ids` are sample ids: the row whose label is in doubt and then, if there is one, the row that contradicts it.
    `label` is the doubted label, `expected` what that row or the rules say instead, `reason` why, in words.
    """

    kind: Literal["prompting-type", "structure", "unreachable"]
    ids: tuple[int, ...]
    label: str
    expected: str
    reason: str


def audit(rows: Sequence[Row]) -> list[Finding]:
    """All findings about the rows of a file, by kind and in the order of the file.

    VP labels are compared with CoTP labels and used for nothing else. Raises DataError for a CoTP row whose story
    or question is not of Hi-ToM's grammar.
    """
    cases = [_read(row) for row in rows if row.prompting_type == "CoTP"]
    structural = [_structure(one, other) for one, other in _contradicting(cases)]
    twins = {_key(row): row for row in rows if row.prompting_type == "VP"}
    return [
        *(_prompting_type(cotp, vp) for cotp, vp in conflicts(list(rows))),
        *structural,
        *(_unreachable(case, twins, structural) for case in cases if not case.reached),
    ]


@dataclass(frozen=True, slots=True)
class _Watch:
    """A stretch of a story as it concerns a question, and where the object is at its end.

    `who` says, without names, who of the chain sees the object, or who of it claims to the whole chain where it is.
    """

    who: tuple[object, ...]
    place: str


@dataclass(frozen=True)
class _Case:
    """A CoTP row, read: its story, C(q), the object asked for, and what the rules make of it."""

    row: Row
    story: Story
    events: tuple[Event, ...]
    world: Perspective
    chain: _Chain
    thing: str

    @cached_property
    def belief(self) -> list[str | None]:
        """Where the chain believes the object to be, an entry a step."""
        return self.believed(self.chain)

    @property
    def answer(self) -> str:
        return self.belief[-1] or _UNKNOWN

    @property
    def reached(self) -> bool:
        return self.answer == self.row.answer

    def believed(self, chain: _Chain) -> list[str | None]:
        perspective = self.world
        for name in chain:
            perspective = _READER.perspective(perspective, name)
        return [value_of(state, "in", self.thing) for state in perspective.states]

    @cached_property
    def watches(self) -> tuple[_Watch, ...]:
        """The story as it concerns the question: noise, other objects and what the chain misses left out.

        The last one is not watched: it is the end of the story, where the object really is.
        """
        found: list[_Watch] = []
        for step, (event, state) in enumerate(zip(self.events, self.world.states, strict=True)):
            watch = self._claim(event, step) if event.occurrence else self._sight(state)
            if watch and found and found[-1].who == watch.who:
                found.pop()
            if watch:
                found.append(watch)
        return (*found, _Watch(("ends",), self.believed(())[-1] or _UNKNOWN))

    def _sight(self, state: State) -> _Watch | None:
        place = value_of(state, "in", self.thing)
        room = self.world.setting.places.get(place or "", "")
        who = tuple(n for n, name in enumerate(self.chain) if in_room(name, room) in state)
        return _Watch(("sees", who), place) if place and (who or not self.chain) else None

    def _claim(self, event: Event, step: int) -> _Watch | None:
        """A claim concerns the question if the whole chain hears it and, in a nested belief, one of it speaks."""
        said, exits = event.proposition, self.world.setting.exits[step]
        heard = self.chain and all(reaches(event, name) for name in self.chain)
        if not said or said.args[0] != self.thing or not heard:
            return None
        if len(self.chain) > 1 and event.speaker not in self.chain:
            return None
        speaker = str(event.speaker)
        before = exits[: exits.index(speaker)] if speaker in exits else ()
        left_before = tuple(name in before for name in self.chain)
        return _Watch(("hears", *(name == speaker for name in self.chain), left_before), str(said.args[1]))

    @property
    def named(self) -> frozenset[int]:
        """At the end of which watches the object is where the label says."""
        return frozenset(n for n, watch in enumerate(self.watches) if watch.place == self.row.answer)


def _key(row: Row) -> tuple[tuple[str, ...], str]:
    return Story.parse(row.story).lines, row.question.strip()


def _read(row: Row) -> _Case:
    try:
        story = Story.parse(row.story, f"of sample {row.sample_id}")
        events = grammar.read_story(story)
        chain, thing = grammar.read_question(row.question)
        check_question(row.question, grammar.vocabulary(story.lines))
    except StoryError as error:
        raise DataError(f"cannot audit the row with sample_id {row.sample_id}: {error}") from None
    return _Case(row, story, events, _READER.world(story), chain, thing)


def _contradicting(cases: Sequence[_Case]) -> Iterator[tuple[_Case, _Case]]:
    """Pairs of the same structure that name places of different watches; the doubted one first."""
    alike: dict[tuple[object, ...], list[_Case]] = defaultdict(list)
    for case in cases:
        alike[len(case.chain), *(watch.who for watch in case.watches)].append(case)
    for group in alike.values():
        for one, other in combinations(group, 2):
            if one.named and other.named and not one.named & other.named:
                yield (other, one) if one.reached and not other.reached else (one, other)


def _prompting_type(cotp: Row, vp: Row) -> Finding:
    reason = "the CoTP row of the same question is labelled otherwise; the authors corrected only CoTP"
    return Finding("prompting-type", (vp.sample_id, cotp.sample_id), vp.answer, cotp.answer, reason)


def _structure(one: _Case, other: _Case) -> Finding:
    """What contradicts: `expected` is the other's answer in the story of the doubted one."""
    mine, others = min(one.named), min(other.named)
    reason = (
        f"who of the chain sees the object, and in what order, is the same in {one.row.sample_id} and "
        f"{other.row.sample_id}; of these {len(one.watches)} stretches of the story, {one.row.sample_id} names the "
        f"place at the end of number {mine + 1}, {other.row.sample_id} that of number {others + 1}"
    )
    ids = (one.row.sample_id, other.row.sample_id)
    return Finding("structure", ids, one.row.answer, one.watches[others].place, reason)


def _unreachable(case: _Case, twins: dict[tuple[tuple[str, ...], str], Row], structural: Sequence[Finding]) -> Finding:
    label, number = case.row.answer, case.row.sample_id
    reasons = [*_meanings(case)]
    twin = twins.get(_key(case.row))
    if twin and twin.answer == label:
        reasons.append(f"the faulty VP row {twin.sample_id} has the same label")
    elif twin and twin.answer == case.answer:
        reasons.append(f"even the VP row {twin.sample_id} has {twin.answer}")
    if against := [str(finding.ids[1]) for finding in structural if finding.ids[0] == number]:
        reasons.append(f"rows of equal structure contradict it: {', '.join(against)}")
    reasons.append(_why(case))
    return Finding("unreachable", (number,), label, case.answer, "; ".join(reasons))


def _meanings(case: _Case) -> Iterator[str]:
    """What the label would be the right answer to."""
    label, thing = case.row.answer, case.thing
    claims = [
        f"{event.speaker} claims at step {step}"
        for step, event in enumerate(case.events, 1)
        if event.proposition and event.proposition.args == (thing, label)
    ]
    if claims:
        yield f"{label} is where {', and '.join(claims)} that the {thing} is"
    held = [step for step, place in enumerate(case.believed(()), 1) if place == label]
    if held:
        yield f"{label} is where the {thing} is {_spans(held)}"
        if chain := _who_thinks_so(case):
            yield f"it is where {' thinks '.join(chain)} thinks the {thing} is"
    elif not claims:
        yield _never_there(case)


def _never_there(case: _Case) -> str:
    others = dict.fromkeys(
        str(fact.args[0])
        for event in case.events
        for fact in event.delta.added
        if fact.predicate == "in" and fact.args[1] == case.row.answer
    )
    if others:
        return f"{case.row.answer} only ever holds the {' and the '.join(others)}, never the {case.thing}"
    return f"the story never puts anything into the {case.row.answer}"


def _who_thinks_so(case: _Case) -> _Chain | None:
    """Whose belief the label is: part of the chain, or else one or two others."""
    everyone = case.world.setting.exits[-1]
    parts = [c for size in range(len(case.chain) - 1, 0, -1) for c in combinations(case.chain, size)]
    others = [c for size in (1, 2) for c in permutations(everyone, size)]
    return next((c for c in [*parts, *others] if case.believed(c)[-1] == case.row.answer), None)


def _spans(steps: Sequence[int]) -> str:
    """`from step 3 to 5 and at step 9` for [3, 4, 5, 9]."""
    starts = [step for step in steps if step - 1 not in steps]
    ends = [step for step in steps if step + 1 not in steps]
    spans = zip(starts, ends, strict=True)
    return " and ".join(f"at step {start}" if start == end else f"from step {start} to {end}" for start, end in spans)


def _why(case: _Case) -> str:
    """Why the rules give their answer: the last step at which the belief changes."""
    if case.answer == _UNKNOWN:
        return "the rules settle no answer"
    step = max(n for n, place in enumerate(case.belief) if place and (n == 0 or case.belief[n - 1] != place))
    what = "the belief" if case.chain else "the place"
    line = case.story.lines[step].rstrip(".")
    return f"by the rules it is {case.answer}: {what} last changes at step {step + 1} ({line})"
