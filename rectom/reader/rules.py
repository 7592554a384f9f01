"""The rule reader: every semantic step by the Hi-ToM grammar and a set of `Rules`, without a model."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from rectom import grammar
from rectom.errors import StepFailure
from rectom.events import Delta, Event
from rectom.facts import State, value_of
from rectom.perspective import Hearing, Observability, Perspective, build_global, construct
from rectom.rules import PRESETS, WAITING_ROOM, Depth, Rules, Trust, Waiting
from rectom.story import Story, Vocabulary

T = TypeVar("T")

#: Bump when a step by rule changes its meaning: cached stage results are found by it.
VERSION: Final = 1

#: The choices of the rules that a step follows.
_USED: Final[dict[str, tuple[str, ...]]] = {
    "observe": ("waiting",),
    "revise": ("trust", "depth", "speaker_convinces", "speaker_sincere"),
}


class RuleReader:
    """Reads Hi-ToM's grammar; observes and believes by a set of rules."""

    def __init__(self, rules: Rules = PRESETS["hitom"]) -> None:
        self.rules = rules

    def world(self, story: Story) -> Perspective:
        """The global perspective of a story."""
        return build_global(grammar.read_story(story))

    def perspective(self, source: Perspective, character: str) -> Perspective:
        """F_a(P), for use outside an event loop and as the `construct` of `logic.holds`."""
        return _finish(construct(source, character, self))

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        """Line 1: the settled events of the story, one a line."""
        return grammar.read_story(story)

    def fields(self, step: str) -> dict[str, object]:
        """The rules that the step follows."""
        return {
            "by": "rules",
            "version": VERSION,
            "rules": {name: self.rules.fields()[name] for name in _USED.get(step, ())},
        }

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        """Line 3: C(q)."""
        return grammar.read_question(question)[0]

    async def observability(self, source: Perspective, character: str) -> Observability:
        """Line 9: where the character is, and which events reach him wherever he is."""
        return Observability(
            tuple(present(state, character, self.rules) for state in source.states),
            tuple(event is not None and reaches(event, character) for event in source.events),
        )

    async def revise(self, hearing: Hearing) -> Delta:
        """Line 10: the belief follows the proposition if it convinces; otherwise nothing changes."""
        return hearing.believed() if convinces(hearing, self.rules) else Delta()

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        """Line 12: q⁽⁰⁾."""
        return grammar.reduced_question(grammar.read_question(question)[1])

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        """Lines 5 and 13: the option that the final state names, under the closed-world assumption."""
        _, thing = grammar.read_question(question)
        container = value_of(state, "in", thing)
        if container is None:
            raise StepFailure("answer", f"the final state does not say where the {thing} is")
        if choices and container not in choices:
            raise StepFailure("answer", f"the {thing} is in the {container}, which is not an option")
        return container


def present(state: State, character: str, rules: Rules) -> str | None:
    """The room from which a character observes a state, or None."""
    room = value_of(state, "in_room", character)
    return None if room == WAITING_ROOM and rules.waiting is Waiting.ABSENT else room


def reaches(event: Event, character: str) -> bool:
    """Whether a character learns of an event wherever he is.

    Everyone learns of entries, exits and public claims; a private communication reaches its two participants. What is
    said to those present, or perceived, reaches by itself only whoever says or perceives it.
    """
    if event.occurrence and event.occurrence.predicate not in {"public_claim", "private_tell"}:
        return character == event.speaker
    if event.occurrence:
        return event.listener is None or character in {event.speaker, event.listener}
    return bool(event.moves)


def convinces(hearing: Hearing, rules: Rules) -> bool:
    """Whether the innermost belief of the chain follows what was heard."""
    hearer = truster(hearing, rules)
    return hearer if isinstance(hearer, bool) else _trusts(hearer, hearing)


def truster(hearing: Hearing, rules: Rules) -> str | bool:
    """Who must trust the speaker for the belief to follow what was said; or whether it does, whoever trusts whom."""
    hearer, speaker = _hearer(hearing, rules), hearing.event.speaker
    if isinstance(hearer, bool):
        return hearer
    if rules.trust is Trust.EVERYONE:
        return True
    # A speaker is not convinced by his own claim.
    return hearer != speaker and hearer


def _hearer(hearing: Hearing, rules: Rules) -> str | bool:
    chain, speaker = hearing.chain, hearing.event.speaker
    if rules.depth is Depth.EVERY or len(chain) == 1:
        return chain[-1]
    if len(chain) > 2:
        return False
    outer, inner = chain
    if outer == speaker:
        return rules.speaker_convinces
    return rules.speaker_sincere and inner == speaker and outer


def _trusts(hearer: str, hearing: Hearing) -> bool:
    speaker, exits = hearing.event.speaker, hearing.exits
    left = exits.index(hearer) if hearer in exits else -1
    return speaker in exits and left < exits.index(speaker)


def _finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits: rules wait for nobody, so no event loop is needed."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a rule reader must not wait")
