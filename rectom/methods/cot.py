"""Chain of thought (Wei et al. 2022; Kojima et al. 2022): one call, which thinks step by step and ends in an option."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from rectom.answers import extract, shown
from rectom.errors import StepFailure
from rectom.methods.base import Kind, Setup
from rectom.reader.asking import Asker
from rectom.story import Question, Story


class ChainOfThought:
    """Asks once a question."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompt and note."""
        setup = self._setup
        return {"method": "cot", **setup.asker.fields("answer"), "note": digest_of(setup.note)}

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the reply ends in; a reply that names none, or two, is a failed step."""
        return await asked(self._setup.asker, self._setup.note, story, question)


async def asked(asker: Asker, note: str, story: Story, question: Question) -> str:
    """One question as it stands, with its story: the option that the reply ends in. Raises StepFailure."""
    reply = await asker.say(
        "answer",
        note=f"{note}\n\n" if note else "",
        story="\n".join(story.lines),
        question=question.text,
        options=shown(question.choices),
    )
    return option_in(reply, question)


def option_in(reply: str, question: Question) -> str:
    """The one option that a reply names. Raises StepFailure if it names none, or several."""
    answer = extract(reply, question.choices)
    if answer is None:
        raise StepFailure("answer", f"the reply names no single option: …{reply.strip()[-80:]!r}")
    return answer


def digest_of(note: str) -> str:
    """The sha256 of a note, which tells versions of it apart."""
    return sha256(note.encode()).hexdigest()


KIND: Final = Kind("cot", "Chain of thought: think step by step, then answer", ChainOfThought, prompts="cot")
