"""What a method is: a question about a story in, an option out."""

from __future__ import annotations

from typing import Protocol

from rectom.story import Question, Story


class Method(Protocol):
    """Answers questions by calls to a model, with whatever steps between."""

    def fields(self) -> dict[str, object]:
        """What an answer depends on besides story and question, as JSON: part of the key of the cached result."""
        ...

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the method chooses. Raises StepFailure where it comes to none."""
        ...
