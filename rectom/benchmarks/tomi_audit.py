"""An audit of ToMi's labels: those that the rules do not give, and how they come about.

The published generator keeps tables of what each character believes and thinks that another believes. It makes the
lines about a third character last, wherever in the story it then puts them, and goes by the list of those present that
earlier lines left behind: one who comes into the object's room then lets the two on the list learn that they know the
object's last place. And since it never clears the rooms that it first draws for containers, somebody may see them in
another room. That whoever has moved the object counts as present when the other comes back is inferred from the labels.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError, StoryError
from rectom.facts import in_room, value_of
from rectom.grammars.tomi import Asked, answer_to, read_question
from rectom.perspective import Perspective
from rectom.reader.tomi import TomiReader
from rectom.story import Question

BYSTANDER: Final = "somebody else comes into the object's room at some time"
RETURN: Final = "one of the two comes back into the object's room when the other has left it"
ELSEWHERE: Final = "who is asked about has gone to another room"
UNEXPLAINED: Final = "no reason is known"

_READER: Final = TomiReader()


@dataclass(frozen=True)
class Case:
    """A question, read: what it asks, its world, and the container that the rules give (None for none)."""

    question: Question
    asked: Asked
    world: Perspective
    expected: str | None

    @property
    def doubted(self) -> bool:
        """Whether the label is another than what the rules give."""
        return self.question.gold != self.expected

    @cached_property
    def fault(self) -> str:
        """Where the rules do not give the object's last place: what could make that the label. Otherwise empty."""
        chain, last = self.asked.chain, value_of(self.world.final, "in", self.asked.thing)
        room = self.world.setting.places.get(last or "", "")
        if self.expected == last or not chain:
            return ""
        if len(chain) == 1:
            return ELSEWHERE if value_of(self.world.final, "in_room", chain[0]) else ""
        reasons = {BYSTANDER: self._has_bystander(room), RETURN: self._has_return(room)}
        return ", and ".join(reason for reason, holds in reasons.items() if holds)

    def _has_bystander(self, room: str) -> bool:
        present = {str(fact.args[0]) for state in self.world.presence() for fact in state if fact.args[1] == room}
        return bool(present - set(self.asked.chain))

    def _has_return(self, room: str) -> bool:
        """Whether one of the chain comes into the room after the object's last move.

        If the other were there, both would see the object, and the rules would give its last place.
        """
        changes = [event.delta.added for event in self.world.events if event]
        moves = [step for step, added in enumerate(changes) if any(fact.predicate == "in" for fact in added)]
        here = {in_room(name, room) for name in self.asked.chain}
        return any(here & added for added in changes[moves[-1] :])


def cases(benchmark: Benchmark) -> list[Case]:
    """The questions of a benchmark, read. Raises DataError for a text that is not of ToMi's grammar."""
    try:
        worlds = {story.id: _READER.world(story) for story in benchmark.stories}
        return [_case(question, worlds[question.story_id]) for question in benchmark.questions]
    except StoryError as error:
        raise DataError(f"cannot audit {benchmark.name}/{benchmark.subset}: {error}") from None


def _case(question: Question, world: Perspective) -> Case:
    asked, last = read_question(question.text), world
    for name in asked.chain:
        last = _READER.perspective(last, name)
    return Case(question, asked, world, answer_to(asked, last.final))


def report(benchmark: Benchmark) -> list[str]:
    """What there is to say about the labels: how many are doubted, and then a line a reason.

    It tells in how many questions the reason could lead to a wrong label and in how many of them it has, and gives
    the first of these, with what the rules say instead.
    """
    read = cases(benchmark)
    by_reason: dict[str, list[Case]] = defaultdict(list)
    for case in read:
        if case.fault or case.doubted:
            by_reason[case.fault or UNEXPLAINED].append(case)
    doubted = sum(case.doubted for case in read)
    head = f"{benchmark.name}/{benchmark.subset}: {doubted} of {len(read):,} labels are not what the rules give"
    return [head, *(_line(reason, found) for reason, found in sorted(by_reason.items()))]


def _line(reason: str, found: list[Case]) -> str:
    doubted = [case for case in found if case.doubted]
    counted = f"  {len(doubted)} of the {len(found)} where {reason}"
    if not doubted:
        return counted
    first = doubted[0]
    return f"{counted}; the first is {first.question.id}: {first.question.gold}, by the rules {first.expected}"
