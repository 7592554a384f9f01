"""Chain of thought (Wei et al. 2022; Kojima et al. 2022): one call, which thinks step by step and ends in an option."""

from __future__ import annotations

from hashlib import sha256

from rectom.answers import extract, shown
from rectom.errors import StepFailure
from rectom.reader.asking import Asker
from rectom.story import Question, Story


class ChainOfThought:
    """Asks once a question; `note` are the benchmark's assumptions."""

    def __init__(self, asker: Asker, note: str = "") -> None:
        self._asker = asker
        self._note = note

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompt and note."""
        return {"method": "cot", **self._asker.fields("answer"), "note": sha256(self._note.encode()).hexdigest()}

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the reply ends in; a reply that names none, or two, is a failed step."""
        reply = await self._asker.say(
            "answer",
            note=f"{self._note}\n\n" if self._note else "",
            story="\n".join(story.lines),
            question=question.text,
            options=shown(question.choices),
        )
        answer = extract(reply, question.choices)
        if answer is None:
            raise StepFailure("answer", f"the reply names no single option: …{reply.strip()[-80:]!r}")
        return answer
