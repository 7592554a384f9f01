"""PercepToM (Jung et al. 2024, Perceptions to Beliefs): who perceives what, the filter in code, then the question.

Two calls a question. `perceivers…` gives for every line those who perceive it, once a story for all its questions.
In code the lines are kept that everyone in the chain perceives: one character at first order, both at second; for
deeper beliefs, which the paper does not treat, all of them. `believe` asks the question of the kept lines, presented as
what A thinks that B knows about. A question about nobody's belief is answered from the whole text by `answer`, with one
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rectom.methods import replies
from rectom.methods.base import Kind, Setup
from rectom.methods.believers import chain_of, characters_of
from rectom.methods.steps import Steps, as_text
from rectom.reader.model import listed
from rectom.story import Question, Story

#: Bump when a step in code changes its meaning: cached answers are found by it.
VERSION: Final = 2

#: The first call's prompts by kind of text.
_PERCEIVERS: Final = {
    "hitom": "perceivers_narrative",
    "tomi": "perceivers_narrative",
    "story": "perceivers_story",
    "dialogue": "perceivers_dialogue",
}


class PercepToM:
    """Keeps what everyone in the chain perceives."""

    def __init__(self, setup: Setup) -> None:
        self._steps = Steps(setup)
        self._task = setup.task
        self._perceivers = _PERCEIVERS.get(setup.task, "perceivers")

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompts, note and kind of text."""
        return self._steps.fields("perceptom", VERSION, [self._perceivers, "believe", "answer"])

    async def answer(self, story: Story, question: Question) -> str:
        """The option that follows from the kept lines. Raises StepFailure with the name of the step that fails."""
        chain = chain_of(story, question.text, self._task)
        if not chain:
            return await self._steps.choose("answer", question, story=as_text(story.lines))
        perceived = await self._perceived(story, chain)
        kept = [line for line, who in zip(story.lines, perceived, strict=True) if who.issuperset(chain)]
        return await self._steps.choose("believe", question, perspective=in_words(chain), events=as_text(kept))

    async def _perceived(self, story: Story, chain: Sequence[str]) -> tuple[frozenset[str], ...]:
        """Who perceives each line, of the characters of the story and those asked for."""
        characters = tuple(dict.fromkeys([*characters_of(story, self._task), *chain]))
        return await self._steps.select(
            self._perceivers,
            replies.perceivers(len(story.lines), characters),
            replies.by_line,
            story=story.numbered(),
            characters=listed(characters),
        )


def in_words(chain: Sequence[str]) -> str:
    """`what Anne thinks Bob knows about`."""
    *outer, inner = chain
    return " ".join(["what", *(f"{name} thinks" for name in outer), inner, "knows about"])


KIND: Final = Kind(
    "perceptom", "PercepToM: who perceives what, then the question over what is left", PercepToM, "perceptom"
)
