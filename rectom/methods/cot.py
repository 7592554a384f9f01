"""Chain of thought (Wei et al. 2022; Kojima et al. 2022): one call, which thinks step by step and ends in an option.

`cot:conclude=on` asks once more where it does not, or was cut off at the length limit, as small models are that go
round in circles: for the option alone, after the thoughts as far as they came. That is the second prompt of Kojima et
al.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from rectom.answers import VERSION, extract, shown
from rectom.errors import StepFailure
from rectom.methods.base import Kind, Setup, switch
from rectom.reader.asking import Asker
from rectom.story import Question, Story


class ChainOfThought:
    """Asks once a question, and once more where it shall and must."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._concludes = switch("cot", setup, "conclude")

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompts and note."""
        setup = self._setup
        steps = ("answer", "conclude") if self._concludes else ("answer",)
        return {"method": "cot", **setup.asker.fields(*steps), "note": digest_of(setup.note), "read": VERSION}

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the reply ends in; a reply that names none, or two, is a failed step."""
        asker, note = self._setup.asker, self._setup.note
        if not self._concludes:
            return await asked(asker, note, story, question)

        def names_one(reply: str) -> bool:
            return extract(reply, question.choices) is not None

        fields = _filled(note, story, question)
        return option_in(await asker.say_until(names_one, "answer", "conclude", **fields), question)


async def asked(asker: Asker, note: str, story: Story, question: Question) -> str:
    """One question as it stands, with its story: the option that the reply ends in. Raises StepFailure."""
    return option_in(await asker.say("answer", **_filled(note, story, question)), question)


def _filled(note: str, story: Story, question: Question) -> dict[str, str]:
    return {
        "note": f"{note}\n\n" if note else "",
        "story": "\n".join(story.lines),
        "question": question.text,
        "options": shown(question.choices),
    }


def option_in(reply: str, question: Question, step: str = "answer") -> str:
    """The one option that a reply names. Raises StepFailure if it names none, or several."""
    answer = extract(reply, question.choices)
    if answer is None:
        raise StepFailure(step, f"the reply names no single option: …{reply.strip()[-80:]!r}")
    return answer


def digest_of(note: str) -> str:
    """The sha256 of a note, which tells versions of it apart."""
    return sha256(note.encode()).hexdigest()


KIND: Final = Kind(
    "cot",
    "Chain of thought: think step by step, then answer",
    ChainOfThought,
    prompts="cot",
    options={"conclude": "off"},
)
