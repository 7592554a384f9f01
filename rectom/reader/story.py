"""Readers of natural stories (BigToM and its like): what the text says of perception decides what is observed.

The facts are about contents, places and conditions. A change is observed by everyone whom the text does not exclude:
by saying that somebody misses it, or by placing somebody elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from rectom import schemas
from rectom.answers import shown
from rectom.chains import belief_chain
from rectom.errors import FormulaError, StepFailure, StoryError
from rectom.events import Delta, Event
from rectom.facts import Fact, State, printed
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader.asking import Asker
from rectom.reader.model import OF_PLACES, ModelReader, all_of, events_of, listed, numbered_lines
from rectom.reader.perception import learning, perception, unsettled
from rectom.rules import Rules, Scope
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE, ReplyModel
from rectom.story import Story, Vocabulary

#: Who is at a place sees who else is; what happens there is learnt from each event. What is heard is believed.
STORY_RULES: Final = Rules(scope=Scope.PRESENCE)

#: Bump when a step by rule changes its meaning: cached stage results are found by it.
VERSION: Final = 3

_PREDICATES: Final = frozenset({"contains", "in", "is", "in_room"})


class StoryRules:
    """The steps of a natural story that rules can take: all but the reading of the text and the answer."""

    def __init__(self, rules: Rules = STORY_RULES) -> None:
        self.rules = rules

    def fields(self, step: str) -> dict[str, object]:
        """The version of the steps, and the rules that the step follows."""
        return fields_of("story", VERSION, step, self.rules)

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: there is no grammar."""
        raise StoryError("natural stories follow no grammar: give --model, or --reader abstract=model")

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3: those whose belief the question asks for."""
        return belief_chain(question, words.characters)

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: everything that the text does not exclude."""
        return perception(source, character, self.rules)

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: what is perceived, or heard of somebody else, is believed."""
        return Delta() if _is_own_claim(hearing) else hearing.believed()

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12: a question about nobody's belief is its own reduction."""
        if chain:
            raise StepFailure("reduce", "no grammar tells the reduced question: give --reader reduce=model")
        return question

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13: there is no grammar."""
        raise StepFailure("answer", "no grammar tells which option the facts name: give --reader answer=model")


def fields_of(text: str, version: int, step: str, rules: Rules) -> dict[str, object]:
    """What a step by rule depends on for a kind of text: of the rules only what being in the waiting room means."""
    used = {"rules": {"waiting": str(rules.waiting)}} if step == "observe" else {}
    return {"by": "rules", "version": version, "text": text, **used}


def _is_own_claim(hearing: Hearing) -> bool:
    """Whether what somebody says is to change what he believes himself: no liar believes his lie for telling it."""
    said = hearing.event.occurrence
    claimed = said is not None and said.predicate in {"public_claim", "private_tell"}
    return claimed and hearing.chain == (hearing.event.speaker,)


class StoryReader(ModelReader):
    """Asks a model to read a natural story."""

    followed: ClassVar[Mapping[str, tuple[str, ...]]] = OF_PLACES
    natural: ClassVar[bool] = True

    def __init__(self, asker: Asker, rules: Rules = STORY_RULES, **options: Any) -> None:
        super().__init__(asker, rules, **options)

    def fields(self, step: str) -> dict[str, object]:
        """What a step by model depends on, and the version of what is by rule in it."""
        return {**super().fields(step), "story": VERSION}

    async def _abstract(self, lines: Sequence[str], asked: Sequence[str]) -> list[Event]:
        words = self._words(lines)
        return await self._asker.ask(
            "abstract",
            schemas.happenings(words, lines, asked),
            lambda reply: self._verified(lines, events_of(reply, words, lambda text: _fact(text, words))),
            characters=listed(words.characters),
            asked="\n".join(asked) or "anything",
            lines=numbered_lines(lines),
        )

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: where the story tells places of people a call on them, and one on what changes where.

        What the text itself says of somebody's perception is no question.
        """
        presence = source.presence()
        if not any(presence):
            return Observability((None,) * len(presence), await self._learnt(source, character))
        rooms, events = await all_of(self._states(presence, character), self._learnt(source, character))
        return Observability(rooms, events)

    async def _learnt(self, source: Perspective, character: str) -> tuple[bool, ...]:
        asked = unsettled(source, character)
        there = await self._there(source, character, asked) if asked else frozenset()
        return learning(source, character, lambda step: step in there or not asked)

    async def _there(self, source: Perspective, character: str, steps: Sequence[int]) -> frozenset[int]:
        """The steps, of some, at which he is where something changes."""
        said = await self._asker.ask(
            "observe_events",
            schemas.numbered({step + 1: (OBSERVABLE, NOT_OBSERVABLE) for step in steps}),
            lambda reply: reply.model_dump(),
            events="\n".join(_changes(source)),
            character=character,
            asked=", ".join(str(step + 1) for step in steps),
        )
        return frozenset(step for step in steps if said[str(step + 1)] == OBSERVABLE)

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: who perceives something believes it; somebody else's claim is a question."""
        if _is_own_claim(hearing):
            return Delta()
        if hearing.event.occurrence and hearing.event.occurrence.predicate == "perceives":
            return hearing.believed()
        return await super().revise(hearing)

    def _left_over(self, question: str, chain: Sequence[str]) -> str | None:
        # What belongs to somebody may be asked for by his name, what he believes may not.
        left = belief_chain(question, chain, acting=False)
        return f"ask what {left[0]} believes" if left else None

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13, from all facts of the state."""
        facts = printed(state)
        return await self._choose(schemas.answer(facts, choices), question, " ".join(facts) or "none", choices)

    async def _choose(self, reply: ReplyModel, question: str, facts: str, choices: Sequence[str]) -> str:
        """The option that a model takes; without options, its words."""
        return await self._asker.ask(
            "answer",
            reply,
            lambda said: said.answer,
            facts=facts,
            question=question,
            options=shown(choices) if choices else "any answer in a few words",
        )


def _changes(source: Perspective) -> Iterator[str]:
    """The changes of a perspective by their numbers, and behind a bar who is where then."""
    for number, (event, presence) in enumerate(zip(source.events, source.presence(), strict=True), 1):
        if event and event.delta:
            yield " | ".join(filter(None, [f"{number} {event}", " ".join(printed(presence))]))


def _fact(text: str, words: Vocabulary) -> Fact:
    try:
        fact = Fact.parse(re.sub(r"(?<=[\w'.-]) +(?=\w)", "_", text.replace("’", "'")))
    except FormulaError as error:
        raise ValueError(str(error)) from None
    if fact.predicate not in _PREDICATES or len(fact.args) != 2:
        forms = "contains(container,content), in(thing,place), is(thing,condition), in_room(person,place)"
        raise ValueError(f"{fact} is none of {forms}")
    if fact.predicate == "in_room" and fact.args[0] not in words.characters:
        raise ValueError(f"in_room is for people; {fact.args[0]} is not one of {listed(words.characters)}")
    return fact
