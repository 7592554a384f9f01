"""The model reader: every semantic step of Algorithm 1 is a question to a language model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from rectom import schemas
from rectom.answers import letters
from rectom.errors import FormulaError, StepFailure
from rectom.events import NOTHING, Delta, Event, misses, perceives, persistent, private_tell, public_claim, settle
from rectom.facts import Fact, State, in_room, printed
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader import verify
from rectom.reader.asking import Asker
from rectom.reader.rules import VERSION, present, truster
from rectom.rules import PRESETS, Rules
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE
from rectom.story import Story, Vocabulary
from rectom.words import words_of

#: The prompts that each step uses.
PROMPTS: Final = {
    "abstract": ("abstract",),
    "chain": ("chain",),
    "observe": ("observe_states", "observe_events"),
    "revise": ("revise",),
    "reduce": ("reduce",),
    "answer": ("answer",),
}

#: The steps that rules can check.
_VERIFIED: Final = frozenset({"abstract", "observe", "answer"})

#: The choices of the rules that a step follows, for Hi-ToM.
_FOLLOWED: Final[dict[str, tuple[str, ...]]] = {
    "observe": ("waiting",),
    "revise": ("trust", "depth", "speaker_convinces", "speaker_sincere"),
}

#: Those for other texts.
OF_PLACES: Final[dict[str, tuple[str, ...]]] = {"observe": ("waiting",)}

#: What a line says besides what changes: `Ada tells everybody fact`, `Ada tells Ben fact`.
_SAID: Final = re.compile(
    r"(?P<who>[^(),+-][^(),]*?) (?P<verb>tells|perceives|misses) "
    r"(?:(?P<listener>[^(),]+?) )?(?P<fact>\w+\(.*\))\s*$"
)


class ModelReader:
    """Asks a model every step.

    `window` is how many lines of a story one abstraction call gets; None for all of them. Windows that are
    equal are one request, in whichever stories they stand. With `verify` each reply is checked by the rules of
    `rectom.reader.verify`, and a violation is named to the model as any other fault is.
    """

    #: The choices of the rules that a step follows; for other texts the prompts hold the rules, but for where one can
    #: observe from at all.
    followed: ClassVar[Mapping[str, tuple[str, ...]]] = _FOLLOWED
    #: Whether a line may speak of what earlier ones name.
    natural: ClassVar[bool] = False

    def __init__(
        self,
        asker: Asker,
        rules: Rules = PRESETS["hitom"],
        *,
        window: int | None = None,
        verify: bool = False,
    ) -> None:
        self.rules = rules
        self._asker = asker
        self._window = window
        self._verify = verify

    def fields(self, step: str) -> dict[str, object]:
        """Model, sampling and prompts, what else goes into the step's prompt, and the version of what is by rule."""
        choices = {choice: self.rules.fields()[choice] for choice in self.followed.get(step, ())}
        fields = {**self._asker.fields(*PROMPTS[step]), "by rule": VERSION, **({"rules": choices} if choices else {})}
        if step == "abstract":
            fields["window"] = self._window or "story"
        if self._verify and step in _VERIFIED:
            fields["verify"] = verify.VERSION
        return fields

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: one call a window, all windows at once."""
        parts = await all_of(*(self._abstract(lines, story.asked) for lines in self._windows(story.lines)))
        return settle([event for part in parts for event in part])

    def _windows(self, lines: Sequence[str]) -> list[Sequence[str]]:
        size = self._window or len(lines)
        return [lines[start : start + size] for start in range(0, len(lines), size)]

    async def _abstract(self, lines: Sequence[str], asked: Sequence[str]) -> list[Event]:
        words = self._words(lines)
        if not (words.open or any([*schemas.world_facts(words), self._more_facts(words)])):
            # Where no fact can be formed there is nothing to ask.
            return self._verified(lines, [NOTHING] * len(lines))
        return await self._asker.ask(
            "abstract",
            schemas.abstraction(words, lines, self._more_facts(words)),
            lambda reply: self._verified(lines, events_of(reply, words, lambda text: _fact(text, words))),
            lines=numbered_lines(lines),
        )

    def _verified(self, lines: Sequence[str], events: list[Event]) -> list[Event]:
        if self._verify:
            verify.check_abstraction(lines, events, from_start=self._window is None, so_far=self.natural)
        return events

    def _words(self, lines: Sequence[str]) -> Vocabulary:
        return words_of(lines)

    def _more_facts(self, words: Vocabulary) -> list[str]:
        """What a line may state besides who is in which room and what is in which container."""
        return []

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3. A question that names nobody has the empty chain, and needs no call."""
        known = "|".join(map(re.escape, sorted(words.characters, key=len, reverse=True)))
        mentions = re.findall(rf"\b(?:{known})(?!\w)", question) if known else []
        if not mentions:
            return ()
        return await self._asker.ask(
            "chain",
            schemas.chain(mentions),
            lambda reply: tuple(reply.chain),
            characters=listed(list(dict.fromkeys(mentions))),
            question=question,
        )

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: two calls, on where the character is in the states and on the events."""
        rooms, events = await all_of(self._states(source.presence(), character), self._events(source.events, character))
        return Observability(rooms, events)

    async def _states(self, presence: Sequence[State], character: str) -> tuple[str | None, ...]:
        """Asks about each different state once, by the number of the first of its kind: small models lose their way
        in long lists of states that are alike.
        """
        rooms = [present(state, character, self.rules) for state in presence]
        places = [{str(in_room(character, room)): room} if room else {} for room in rooms]
        first = [places.index(place) + 1 for place in places]
        asked = {number: sorted(places[number - 1]) for number in dict.fromkeys(first)}
        if not any(asked.values()):
            return (None,) * len(presence)

        def read(reply: Any) -> tuple[str | None, ...]:
            said = reply.model_dump()
            return tuple(place.get(said[str(number)]) for place, number in zip(places, first, strict=True))

        return await self._asker.ask(
            "observe_states",
            schemas.numbered({number: [*facts, NOT_OBSERVABLE] for number, facts in asked.items()}),
            read,
            character=character,
            states="\n".join(f"{number} {' '.join(facts) or '-'}" for number, facts in asked.items()),
        )

    async def _events(self, events: Sequence[Event | None], character: str) -> tuple[bool, ...]:
        """Who hears what is said. Everyone learns of entries and exits, and what else happens is observed where its
        states are: none of that is a question.
        """
        moves = {str(n): OBSERVABLE for n, event in enumerate(events, 1) if event and event.moves}
        said = {n: str(event) for n, event in enumerate(events, 1) if event and event.occurrence}
        if not said:
            return self._reached(events, character, moves)
        return await self._asker.ask(
            "observe_events",
            schemas.numbered(dict.fromkeys(said, (OBSERVABLE, NOT_OBSERVABLE))),
            lambda reply: self._reached(events, character, {**moves, **reply.model_dump()}),
            events="\n".join(f"{number} {event}" for number, event in said.items()),
            character=character,
        )

    def _reached(self, events: Sequence[Event | None], character: str, said: Mapping[str, str]) -> tuple[bool, ...]:
        learnt = tuple(said.get(str(number)) == OBSERVABLE for number in range(1, len(events) + 1))
        if self._verify:
            verify.check_learnt(events, character, learnt)
        return learnt

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10. Where the rules do not settle it, a belief follows a speaker who left later than the hearer: the
        model says who left first, and what follows from that is no question.
        """
        return hearing.believed() if await self._convinced(hearing) else Delta()

    async def _convinced(self, hearing: Hearing) -> bool:
        if "revise" not in self.followed:
            return await self._judged(hearing)
        hearer = truster(hearing, self.rules)
        return hearer if isinstance(hearer, bool) else await self._left_first(hearer, hearing)

    async def _judged(self, hearing: Hearing) -> bool:
        """Whether somebody believes what was said, by his belief before."""
        belief = [fact for fact in hearing.belief if fact.predicate != "in_room"]
        return await self._asker.ask(
            "revise",
            schemas.revision(),
            lambda reply: bool(reply.convinced),
            event=str(hearing.event),
            belief=" ".join(printed(belief)) or "nothing",
            holder=holder_of(hearing.chain),
        )

    async def _left_first(self, hearer: str, hearing: Hearing) -> bool:
        speaker = hearing.event.speaker or ""
        both = (speaker, hearer)
        # Who has not left counts as having left before the others, and is not believed. Where the others stand in the
        # order is left out: small models take one of them for the speaker.
        order = [
            *(name for name in both if name not in hearing.exits),
            *(name for name in hearing.exits if name in both),
        ]
        return await self._asker.ask(
            "revise",
            schemas.leaving(hearer, speaker),
            lambda reply: bool(reply.left_first == hearer),
            hearer=hearer,
            speaker=speaker,
            exits=", then ".join(order),
        )

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12. A question about the actual world is its own reduction."""
        if not chain:
            return question
        return await self._asker.ask(
            "reduce",
            schemas.reduction(),
            lambda reply: self._reduced(reply.question.strip(), chain),
            chain=listed(chain),
            question=question,
        )

    def _reduced(self, question: str, chain: Sequence[str]) -> str:
        if not question.endswith("?"):
            raise ValueError("the reduced question must end with a question mark")
        if fault := self._left_over(question, chain):
            raise ValueError(f"the reduced question must not {fault}")
        return question

    def _left_over(self, question: str, chain: Sequence[str]) -> str | None:
        """What a reduced question still does with somebody of the chain, in words."""
        left = [name for name in chain if name in re.findall(r"\w+", question)]
        return f"name {left[0]}" if left else None

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13, from the facts about objects: who is where decides no question of this kind."""
        facts = printed(fact for fact in state if fact.predicate != "in_room")
        options = ", ".join(f"{letter}. {choice}" for letter, choice in zip(letters(choices), choices, strict=True))
        return await self._asker.ask(
            "answer",
            schemas.answer(facts, choices),
            lambda reply: self._chosen(reply, facts, choices),
            facts=" ".join(facts) or "none",
            question=question,
            options=options or "any place",
        )

    def _chosen(self, reply: Any, facts: Sequence[str], choices: Sequence[str]) -> str:
        answer = _option(reply, facts, choices)
        if self._verify:
            verify.check_answer(reply.fact, answer, choices)
        return answer


async def all_of(*asks: Awaitable[Any]) -> list[Any]:
    """The results of concurrent asks.

    Where one fails the others are waited for all the same: what is paid for is noted, and a rerun finds every
    conversation at its end. Raises what ends a run before what fails a step.
    """
    results = await asyncio.gather(*asks, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, StepFailure)):
        raise error
    return results


def events_of(reply: BaseModel, words: Vocabulary, read: Callable[[str], Fact]) -> list[Event]:
    """The events that a reply states, a line each. `read` reads a fact. Raises ValueError if something is none."""
    return [_event(statements, words, read) for statements in reply.model_dump().values()]


def _event(statements: Sequence[str], words: Vocabulary, read: Callable[[str], Fact]) -> Event:
    said = [found for found in map(_SAID.match, statements) if found]
    if said:
        if len(statements) > 1:
            raise ValueError(f"{said[0][0]} is all that its line can state, for it changes nothing")
        return _transient(said[0], words, read)
    # A fact without a sign is one that comes true.
    removed = [read(text[1:]) for text in statements if text.startswith("-")]
    return persistent([read(text.removeprefix("+")) for text in statements if not text.startswith("-")], removed)


def _transient(said: re.Match[str], words: Vocabulary, read: Callable[[str], Fact]) -> Event:
    who, verb, listener, fact = said["who"], said["verb"], said["listener"], read(said["fact"])
    named = [name for name in (who, listener) if name and name != schemas.EVERYBODY]
    if strangers := [name for name in named if words.characters and name not in words.characters]:
        raise ValueError(f"{strangers[0]} in {said[0]} is not one of {listed(words.characters)}")
    if (listener is None) is (verb == "tells"):
        raise ValueError(f"{said[0]}: write `Ada tells Ben fact`, and the other verbs without a listener")
    if listener is None:
        return perceives(who, fact) if verb == "perceives" else misses(who, fact)
    return public_claim(who, fact) if listener == schemas.EVERYBODY else private_tell(who, listener, fact)


def _fact(text: str, words: Vocabulary) -> Fact:
    try:
        fact = Fact.parse(text)
    except FormulaError as error:
        raise ValueError(str(error)) from None
    first = {"in_room": words.characters, "in": words.objects, "at": words.containers}.get(fact.predicate)
    if first is None or len(fact.args) != 2:
        raise ValueError(f"{fact} is neither in_room(character,room) nor in(object,container)")
    if fact.args[0] not in first and not (words.open and fact.predicate == "in"):
        raise ValueError(f"{fact.args[0]} in {fact} is not one of {listed(first)}")
    return fact


def _option(reply: Any, facts: Sequence[str], choices: Sequence[str]) -> str:
    if reply.fact not in {*facts, "none"}:
        raise ValueError(f"{reply.fact} is not one of the facts")
    answer: str = reply.answer.strip()
    if choices and answer not in choices:
        raise ValueError(f"{answer!r} is not one of the options")
    return answer


def numbered_lines(lines: Sequence[str]) -> str:
    """Lines as a prompt shows them: `1 …`, a line each."""
    return "\n".join(schemas.numbered_line(number, line) for number, line in enumerate(lines, 1))


def listed(names: Sequence[str]) -> str:
    """Names as a prompt lists them."""
    return ", ".join(names) or "none"


def holder_of(chain: Sequence[str]) -> str:
    """`Ada`, or `what Ada thinks that Ben thinks`."""
    if len(chain) == 1:
        return chain[0]
    return "what " + " that ".join(f"{name} thinks" for name in chain)
