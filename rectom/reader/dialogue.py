"""Readers of conversations (FanToM and its like): who is present hears what is said, and nothing else.

An utterance is a transient event `says(speaker,said(speaker,number,"…"))` that informs those present. Joining, leaving,
and that it was said are the persistent part. A belief is what somebody has heard, in the very words, so that nothing
gets lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rectom import schemas
from rectom.chains import belief_chain, mentions
from rectom.errors import StepFailure, StoryError
from rectom.events import Delta, Event, persistent, says, settle
from rectom.facts import Fact, State, in_room, said
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader.asking import Asker
from rectom.reader.model import all_of, numbered_lines
from rectom.reader.rules import present
from rectom.reader.silences import Changes, acts, comings, directed
from rectom.reader.story import StoryReader, fields_of
from rectom.reader.utterances import direction, people, speakers, utterance
from rectom.rules import Rules, Scope
from rectom.story import Story, Vocabulary
from rectom.words import words_of

#: Where a conversation takes place: the room of everyone who takes part.
CONVERSATION: Final = "conversation"

#: Who takes part sees who else does, and hears what is said, and that is all.
DIALOGUE_RULES: Final = Rules(scope=Scope.PRESENCE)

#: Bump when a step by rule changes its meaning: cached stage results are found by it.
VERSION: Final = 3

NARRATOR: Final = "narrator"

#: A longer conversation is read in windows of so many lines.
_LONGEST: Final = 60


def in_dialogue(lines: Sequence[str]) -> Vocabulary:
    """The names in a conversation: its speakers first, then everyone who may be meant by a capitalised word."""
    names = (*speakers(lines), *words_of(lines).characters)
    return Vocabulary(tuple(dict.fromkeys(names)), open=True)


def events_of(lines: Sequence[str], start: Sequence[str], changes: Changes) -> list[Event]:
    """The events of a conversation: from those present as it starts, and who joins and leaves at which line.

    Whoever speaks is present: a speaker who was not said to have joined joins with what he says.
    """
    here: set[str] = set()
    events = []
    for number, line in enumerate(lines, 1):
        joins, leaves = changes.get(number, ((), ()))
        spoken = utterance(line)
        arrived = {*joins, *(start if number == 1 else ()), *(people(spoken[0]) if spoken else ())} - here
        gone = set(leaves) & (here | arrived)
        joined, left = ([in_room(name, CONVERSATION) for name in names] for names in (arrived - gone, gone & here))
        events.append(_event(number, line, spoken, joined, left))
        here = (here | arrived) - gone
    return events


def _event(
    number: int, line: str, spoken: tuple[str, str] | None, joined: Sequence[Fact], left: Sequence[Fact]
) -> Event:
    if direction(line):
        return persistent(joined, left)
    speaker, words = spoken or (NARRATOR, line)
    fact = said(speaker, number, words)
    return says(speaker, fact, [*joined, fact], left)


class DialogueRules:
    """The steps of a conversation that rules can take.

    Who takes part when is read only off stage directions, `[Ann joins]` and `[Ann leaves]`.
    """

    def __init__(self, rules: Rules = DIALOGUE_RULES) -> None:
        self.rules = rules

    def fields(self, step: str) -> dict[str, object]:
        """The version of the steps, and the rules that the step follows."""
        return fields_of("dialogue", VERSION, step, self.rules)

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: by stage directions. Raises StoryError where there are none."""
        done = directed(story.lines)
        if not done:
            raise StoryError("no stage directions say who joins and leaves: give --model, or --reader abstract=model")
        return _read(story.lines, done)

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3: those whose belief the question asks for."""
        return belief_chain(question, words.characters)

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: by presence alone."""
        return hearing_of(source, character, self.rules)

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: what is heard is known to have been said."""
        return hearing.believed()

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12: what remains is asked of the utterances that the belief holds, so the question may stay."""
        return question

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13: there is no grammar."""
        raise StepFailure("answer", "no rule tells what utterances mean: give --reader answer=model")


def _read(lines: Sequence[str], done: Mapping[int, str]) -> tuple[Event, ...]:
    return settle(events_of(lines, *comings(lines, done)))


def hearing_of(source: Perspective, character: str, rules: Rules) -> Observability:
    """Where a character takes part, and what he says or does himself: goodbyes reach those who say them."""
    return Observability(
        tuple(present(state, character, rules) for state in source.states),
        tuple(event is not None and _is_own(event, character) for event in source.events),
    )


def _is_own(event: Event, character: str) -> bool:
    return character in people(event.speaker or "") or any(fact.args[0] == character for fact in event.moves)


class DialogueReader(StoryReader):
    """Asks a model to read a conversation. What a presence means for who hears what is no question."""

    def __init__(self, asker: Asker, rules: Rules = DIALOGUE_RULES, **options: Any) -> None:
        super().__init__(asker, rules, **options)

    def fields(self, step: str) -> dict[str, object]:
        """Model, sampling and prompts; a revision asks none."""
        if step == "revise":
            return fields_of("dialogue", VERSION, step, self.rules)
        asked = self._asker.fields("observe_states" if step == "observe" else step)
        own: dict[str, dict[str, object]] = {
            "abstract": {"window": self._window or _LONGEST},
            "reduce": {"beliefs": "may stay"},
            "observe": {"rules": {"waiting": str(self.rules.waiting)}},
        }
        return {**asked, "dialogue": VERSION, **own.get(step, {})}

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3. Of each name in the question a model says whether it tells of a mind: asked for a list, a small model
        takes everyone who is named. Nobody stands in it twice: none thinks about himself through others here.
        """
        named = mentions(question, words.characters)
        if not named:
            return ()
        return await self._asker.ask(
            "chain",
            schemas.minds(named),
            lambda reply: _minds(reply.model_dump(), named),
            question=question,
            named="; ".join(named),
        )

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: one call a window, on the lines in it that may show that somebody comes or goes."""
        lines, open_to = story.lines, acts(story.lines)
        starts = range(0, len(lines), self._window or _LONGEST)
        done = directed(lines)
        for part in await all_of(*(self._acts(lines, start, open_to) for start in starts)):
            done.update(part)
        return _read(lines, done)

    async def _acts(self, lines: Sequence[str], start: int, open_to: Mapping[int, Sequence[str]]) -> Mapping[int, str]:
        """What the lines of a window do. They are numbered within it, so that equal windows are one call."""
        shown = lines[start : start + (self._window or _LONGEST)]
        asked = {n: open_to[start + n] for n in range(1, len(shown) + 1) if start + n in open_to}
        if not asked:
            return {}
        names = {n: schemas.opening(n, shown[n - 1]) for n in asked}
        return await self._asker.ask(
            "abstract",
            schemas.acts({names[n]: allowed for n, allowed in asked.items()}),
            lambda reply: {start + n: reply.model_dump()[name] for n, name in names.items()},
            lines=numbered_lines(shown),
            asked=", ".join(map(str, asked)),
        )

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: one call, on who takes part when."""
        rooms = await self._states(source.presence(), character)
        return Observability(rooms, hearing_of(source, character, self.rules).events)

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: what is heard is known to have been said."""
        return hearing.believed()

    def _left_over(self, question: str, chain: Sequence[str]) -> str | None:
        # The question goes to what the last of the chain has heard, so that his belief about it is the matter itself:
        # a reduction that leaves it in is no fault, and small models leave it in often.
        return None

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13, from the utterances that the state holds, in their words."""
        heard = [fact for fact in state if fact.predicate == "said"]
        return await self._choose(schemas.choice(choices), question, _in_words(heard) or "none", choices)


def _minds(told: Mapping[str, str], named: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for mention, name in named.items() if told[mention] == schemas.MIND))


def _in_words(heard: Iterable[Fact]) -> str:
    """Utterances in the order in which they were made, a line each."""
    told = sorted((int(str(fact.args[1])), str(fact.args[0]), str(fact.args[2])) for fact in heard)
    return "\n".join(f"{speaker}: {words}" for _, speaker, words in told)
