"""Reading histories of events instead of states: the paper's ablation w/o-state.

A model must infer from a history where a character was, and from what he observed what he believes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Final

from rectom import prompts, schemas
from rectom.answers import shown
from rectom.history import History
from rectom.reader.asking import Asker
from rectom.reader.model import holder_of
from rectom.rules import Rules, Scope
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE

OBSERVE: Final = "observe_history"
ANSWER: Final = "answer_history"

#: The choices of the rules that a prompt says in words, where it says any.
_SAID: Final[Mapping[str, tuple[str, ...]]] = {
    OBSERVE: ("scope", "waiting"),
    ANSWER: ("trust", "depth", "speaker_convinces", "speaker_sincere"),
}


class Historian:
    """Asks a model what of a history somebody observed, and what follows from it."""

    def __init__(self, asker: Asker, rules: Rules, note: str = "") -> None:
        self._asker = asker
        self._rules = rules
        self._note = note

    def fields(self, step: str) -> dict[str, object]:
        """Model, sampling and prompt, and what else goes into the prompt."""
        wanted = self._asker.placeholders(step)
        said = self._said(step) if "rules" in wanted else ()
        words = {choice: prompts.in_words(self._rules, (choice,)) for choice in said}
        note = {"note": sha256(self._note.encode()).hexdigest()} if "note" in wanted else {}
        return {**self._asker.fields(step), **({"rules": words} if said else {}), **note}

    def _constant(self, step: str) -> dict[str, str]:
        """What of the prompt is the same for all stories."""
        wanted = self._asker.placeholders(step)
        rules = {"rules": prompts.in_words(self._rules, self._said(step))} if "rules" in wanted else {}
        return {**rules, **({"note": self._note} if "note" in wanted else {})}

    def _said(self, step: str) -> tuple[str, ...]:
        # Where only those in the room observe a change, who waits elsewhere needs no word.
        whole = self._rules.scope is Scope.STATE
        return tuple(choice for choice in _SAID[step] if whole or choice != "waiting")

    async def witness(self, history: History, character: str) -> Collection[int]:
        """Line 9: the steps of a history whose events a character observes."""
        entries = history.entries()
        if not entries:
            return frozenset()
        return await self._asker.ask(
            OBSERVE,
            schemas.numbered(dict.fromkeys(entries, (OBSERVABLE, NOT_OBSERVABLE))),
            lambda reply: {int(n) for n, value in reply.model_dump().items() if value == OBSERVABLE},
            **self._constant(OBSERVE),
            history="\n".join(listed(entries)),
            character=character,
        )

    async def answer(self, question: str, history: Sequence[str], chain: Sequence[str], choices: Sequence[str]) -> str:
        """Lines 5 and 13: the option that the last history answers a question with; without options, any words.

        `history` are the lines of `listed`, `chain` is whose history it is.
        """
        return await self._asker.ask(
            ANSWER,
            schemas.choice(choices),
            lambda reply: reply.answer,
            **self._constant(ANSWER),
            history="\n".join(history) or "none",
            holder=holder_of(chain) if chain else "nobody",
            question=question,
            options=shown(choices) if choices else "any answer in a few words",
        )


def listed(entries: Mapping[int, str]) -> list[str]:
    """A history as prompts show it, an event a line: `3 -in_room(Ada,attic)`."""
    return [f"{step} {event}" for step, event in entries.items()]
