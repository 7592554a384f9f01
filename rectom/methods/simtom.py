"""SimToM (Wilf et al. 2023, Think Twice): first what a character knows about, then the question from his place.

Two calls a question: `perspective…` finds the events that the character knows about, `simulate` answers as that
character from these alone. The character is the outermost of the chain, however deep the belief is nested. A question
about nobody's belief (in ToMi those about reality and memory) skips the first call and is answered from the whole text
by `answer`. The paper samples at temperature 0; here the run's own sampling holds.

The authors let the model write the filtered story; here it gives the numbers of the lines, which is our choice: the
filtered story cannot hold anything that the story does not. All questions about one character of a story share the
first call.
"""

from __future__ import annotations

from typing import Final

from rectom.methods import replies
from rectom.methods.base import Kind, Setup
from rectom.methods.believers import chain_of
from rectom.methods.steps import Steps, as_text
from rectom.story import Question, Story

#: Bump when a step in code changes its meaning: cached answers are found by it.
VERSION: Final = 2

#: The first call's prompts: three rules for ToMi, the last sentence for natural stories, else the general form.
_PERSPECTIVE: Final = {"tomi": "perspective_tomi", "story": "perspective_story"}


class SimToM:
    """Takes one character's perspective."""

    def __init__(self, setup: Setup) -> None:
        self._steps = Steps(setup)
        self._task = setup.task
        self._perspective = _PERSPECTIVE.get(setup.task, "perspective")

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompts, note and kind of text."""
        return self._steps.fields("simtom", VERSION, [self._perspective, "simulate", "answer"])

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the character chooses. Raises StepFailure with the name of the step that fails."""
        chain = chain_of(story, question.text, self._task)
        if not chain:
            return await self._steps.choose("answer", question, story=as_text(story.lines))
        known = await self._known(story, chain[0])
        return await self._steps.choose("simulate", question, character=chain[0], events=as_text(known))

    async def _known(self, story: Story, character: str) -> list[str]:
        """The lines that a character knows about, in the story's order."""
        numbers = await self._steps.select(
            self._perspective,
            replies.lines(len(story.lines)),
            lambda reply: set(reply.lines),
            story=story.numbered(),
            character=character,
        )
        return [line for number, line in enumerate(story.lines, 1) if number in numbers]


KIND: Final = Kind(
    "simtom", "SimToM: what a character knows about, then the answer as that character", SimToM, "simtom"
)
