"""The readers of ToMi: by its grammar, and by a model; what is observed and believed follows the same rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from rectom.errors import StepFailure, StoryError
from rectom.events import Event, settle
from rectom.facts import Fact, State
from rectom.grammars import tomi
from rectom.perspective import Perspective, build_global
from rectom.reader.model import OF_PLACES, ModelReader
from rectom.reader.rules import RuleReader
from rectom.story import Story, Vocabulary

#: The grammar, and how it is read: bump the number when that changes, since cached stage results are found by it.
GRAMMAR: Final = "tomi-1"


class TomiReader(RuleReader):
    """Reads ToMi's grammar; observes by a set of rules. Nobody claims anything, so nothing is revised.

    The labels follow the scope `room` with `joint` observation: who is in a room sees what is in its containers, also
    when he comes back; a nested character learns at a step what both observe together.
    """

    def world(self, story: Story) -> Perspective:
        """The global perspective of a story."""
        return build_global(tomi.read_story(story))

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: the settled events of the story, one a line."""
        return tomi.read_story(story)

    def fields(self, step: str) -> dict[str, object]:
        """The grammar, and the rules that the step follows."""
        return {**super().fields(step), "grammar": GRAMMAR}

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3: C(q)."""
        return tomi.read_question(question).chain

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12: q⁽⁰⁾. A question about the beginning is its own reduction."""
        return tomi.reduced_question(tomi.read_question(question))

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13: the option that the final state names, under the closed-world assumption."""
        asked = tomi.read_question(question)
        container = tomi.answer_to(asked, state)
        if container is None:
            raise StepFailure("answer", f"the final state does not say where the {asked.thing} is")
        if choices and container not in choices:
            raise StepFailure("answer", f"the {asked.thing} is in the {container}, which is not an option")
        return container


class TomiModelReader(ModelReader):
    """Asks a model to read ToMi. Where a thing was put first is noted by rule, for questions about the beginning."""

    followed: ClassVar[Mapping[str, tuple[str, ...]]] = OF_PLACES

    def fields(self, step: str) -> dict[str, object]:
        """What a step by model depends on, and the grammar, which says how things began."""
        return {**super().fields(step), "grammar": GRAMMAR}

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1."""
        return settle(list(_with_beginnings(await super().abstract(story))))

    def _words(self, lines: Sequence[str]) -> Vocabulary:
        try:
            return tomi.vocabulary(lines)
        except StoryError:
            return super()._words(lines)

    def _more_facts(self, words: Vocabulary) -> list[str]:
        return [str(Fact("at", (container, room))) for container in words.containers for room in words.rooms]


def _with_beginnings(events: Sequence[Event]) -> Iterator[Event]:
    begun: set[str] = set()
    for event in events:
        put = [fact for fact in event.delta.added if fact.predicate == "in" and str(fact.args[0]) not in begun]
        begun.update(str(fact.args[0]) for fact in put)
        first = frozenset(tomi.began_in(str(fact.args[0]), str(fact.args[1])) for fact in put)
        yield replace(event, delta=replace(event.delta, added=event.delta.added | first))
