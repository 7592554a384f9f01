"""The calls of methods that ask a model several times a question, each of which may fail by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rectom import answers
from rectom.answers import shown
from rectom.methods import replies
from rectom.methods.base import Setup
from rectom.methods.cot import digest_of, option_in
from rectom.schemas import ReplyModel
from rectom.story import Question

T = TypeVar("T")


class Steps:
    """Asks with the prompts of a method, all of which carry the benchmark's note."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._note = f"{setup.note}\n\n" if setup.note else ""

    def fields(self, method: str, version: int, steps: Sequence[str]) -> dict[str, object]:
        """What a method's answers depend on: model, sampling, the prompts of its steps, note, kind of text, options."""
        setup = self._setup
        own = {
            "version": version,
            "replies": replies.VERSION,
            "read": answers.VERSION,
            "task": setup.task,
            "options": dict(setup.options),
        }
        return {"method": method, **setup.asker.fields(*steps), "note": digest_of(setup.note), **own}

    async def select(self, step: str, reply: ReplyModel, read: Callable[[Any], T], **fields: str) -> T:
        """What is read out of a JSON reply. Raises StepFailure if no try is usable."""
        return await self._setup.asker.ask(step, reply, read, note=self._note, **fields)

    async def choose(self, step: str, question: Question, **fields: str) -> str:
        """The option that a reply in words names. Raises StepFailure if it names none, or several."""
        options = shown(question.choices)
        said = await self._setup.asker.say(step, note=self._note, question=question.text, options=options, **fields)
        return option_in(said, question, step)


def as_text(lines: Iterable[str]) -> str:
    """Lines as a prompt shows them, also if there are none."""
    return "\n".join(lines) or "(nothing)"
