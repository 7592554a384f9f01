"""TimeToM (Hou et al. 2024): a time line, a belief-state chain for each character, and a solver for nested beliefs.

    temporal space   every line gets a time stamp, t1 to tN                                in code
    belief chain     the stamps of what a character is aware of                            `chain…`, once a character
    compression      order 1 in narratives: the chain without who comes and goes           `compress`
    answer           order 0 from the time line, order 1 from the (compressed) chain       `answer`, `believe`
    solver           order K of 2 and more: the question reduced to the innermost character's belief, answered from
                     that character's own chain, then from the events that all K characters are aware of; then the
                     model chooses between the two                                         `own`, `common`, `choose`

The paper counts the temporal space as a call: K + 4 calls, K + 2 without the solver, 4 at order 1 (3 in dialogue), 2 at
order 0. Stamping is numbering and done in code here, so that each count is one less: K + 3, K + 1, 3 (2) and 1. The
chains and their compression are the same requests for all questions of a story. Without the solver `nested` answers
the question as it stands from the whole chains of all characters, their beliefs about the social world.

The paper samples at temperature 0; here the run's own sampling holds. Only the controlled grammars tell the reduced
question in words; in other texts the question stays, and the prompts say whose belief is to be answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rectom import grammar
from rectom.errors import StoryError
from rectom.grammars import tomi
from rectom.methods import replies
from rectom.methods.base import Kind, Setup, switch
from rectom.methods.believers import chain_of
from rectom.methods.steps import Steps, as_text
from rectom.reader.model import all_of, listed
from rectom.story import Question, Story

#: Bump when a step in code changes its meaning: cached answers are found by it.
VERSION: Final = 2

#: The prompts of a belief chain by kind of text.
_CHAIN: Final = {
    "hitom": "chain_narrative",
    "tomi": "chain_narrative",
    "story": "chain_story",
    "dialogue": "chain_dialogue",
}

_SOLVER: Final = ("own", "common", "choose")


class TimeToM:
    """Answers from the chains of those whose beliefs are asked for."""

    def __init__(self, setup: Setup) -> None:
        self._steps = Steps(setup)
        self._task = setup.task
        self._chain = _CHAIN.get(setup.task, "chain")
        self._solves = switch("timetom", setup, "solver")

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompts, note, kind of text, and whether there is a solver."""
        compress = [] if self._task == "dialogue" else ["compress"]
        nested = _SOLVER if self._solves else ("nested",)
        return self._steps.fields("timetom", VERSION, [self._chain, *compress, "answer", "believe", *nested])

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the model chooses last. Raises StepFailure with the name of the step that fails."""
        timeline = {f"t{number}": line for number, line in enumerate(story.lines, 1)}
        chain = chain_of(story, question.text, self._task)
        asked = tuple(dict.fromkeys(reversed(chain)))[::-1]  # of one who stands in it twice, the innermost place counts
        if not asked:
            return await self._steps.choose("answer", question, events=stamped(timeline, timeline))
        found = await all_of(*(self._aware(timeline, character) for character in asked))
        chains = dict(zip(asked, found, strict=True))
        if len(asked) == 1:
            return await self._believe(timeline, question, asked[0], chains[asked[0]])
        return await (self._solve if self._solves else self._nested)(timeline, question, chains)

    async def _aware(self, timeline: Mapping[str, str], character: str) -> tuple[str, ...]:
        """The stamps of a character's belief-state chain."""
        allowed = tuple(timeline)
        return await self._steps.select(
            self._chain,
            replies.stamps(allowed),
            lambda reply: replies.in_order(reply.stamps, allowed),
            timeline=stamped(timeline, timeline),
            character=character,
        )

    async def _believe(self, timeline: Mapping[str, str], question: Question, who: str, chain: Sequence[str]) -> str:
        """Order 1: the answer from the self-world beliefs."""
        if chain and self._task != "dialogue":
            chain = await self._steps.select(
                "compress",
                replies.stamps(chain),
                lambda reply: replies.in_order(reply.stamps, chain),
                events=stamped(timeline, chain),
                character=who,
            )
        return await self._steps.choose("believe", question, events=stamped(timeline, chain), character=who)

    async def _nested(
        self, timeline: Mapping[str, str], question: Question, chains: Mapping[str, Sequence[str]]
    ) -> str:
        parts = [f"{name}:\n{stamped(timeline, chain)}" for name, chain in chains.items()]
        return await self._steps.choose("nested", question, chains="\n\n".join(parts))

    async def _solve(self, timeline: Mapping[str, str], question: Question, chains: Mapping[str, Sequence[str]]) -> str:
        """The belief solver: the two answers to the reduced question, and the choice between them."""
        shared = set.intersection(*map(set, chains.values()))
        innermost, everyone = list(chains)[-1], listed(list(chains))
        events = {"own": stamped(timeline, chains[innermost]), "common": stamped(timeline, shared)}
        reduced = replace(question, text=self._reduced(question.text, innermost))
        own, common = await all_of(
            self._steps.choose("own", reduced, events=events["own"], character=innermost),
            self._steps.choose("common", reduced, events=events["common"], character=innermost, everyone=everyone),
        )
        answers = {"own_answer": own, "common_answer": common}
        return await self._steps.choose("choose", question, **events, **answers, character=innermost, everyone=everyone)

    def _reduced(self, question: str, innermost: str) -> str:
        """The question about the innermost character's belief alone, where a grammar tells it."""
        try:
            if self._task == "hitom":
                return grammar.belief_question([innermost], grammar.read_question(question)[1])
            if self._task == "tomi":
                return f"Where will {innermost} look for the {tomi.read_question(question).thing}?"
        except StoryError:
            pass
        return question


def stamped(timeline: Mapping[str, str], chosen: Collection[str]) -> str:
    """The lines with these stamps as prompts show them, in the order of time: `t1: …`."""
    return as_text(f"{stamp}: {line}" for stamp, line in timeline.items() if stamp in chosen)


KIND: Final = Kind(
    "timetom",
    "TimeToM: a time line, a belief chain for each character, and a belief solver",
    TimeToM,
    prompts="timetom",
    options={"solver": "on"},
)
