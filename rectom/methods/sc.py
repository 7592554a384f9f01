"""Self-consistency (Wang et al. 2023): the majority of several chains of thought, drawn by sampling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from rectom.answers import VERSION
from rectom.errors import SettingsError, StepFailure
from rectom.methods.base import Kind, Setup
from rectom.methods.cot import asked, digest_of
from rectom.story import Question, Story

#: Sample numbers of one run's replies do not meet those of its other answers (`--samples`).
_APART: Final = 1000


class SelfConsistency:
    """Draws `n` chains of thought and takes the answer that most give; of equally many, one by lot from `seed`.

    A chain that names no option has no vote. The first chain of the first answer is the one that `cot` asks for.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._n = _number(setup, "n", least=1, most=_APART)
        self._seed = _number(setup, "seed", least=0)

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompt, note, the number of chains and the seed."""
        setup = self._setup
        own = {"n": self._n, "seed": self._seed, "note": digest_of(setup.note), "read": VERSION}
        return {"method": "sc", **setup.asker.fields("answer"), **own}

    async def answer(self, story: Story, question: Question) -> str:
        """The majority's option. Raises StepFailure if no chain names one."""
        first = self._setup.asker.sample * _APART
        votes = await asyncio.gather(*(self._vote(first + n, story, question) for n in range(self._n)))
        given = [vote for vote in votes if isinstance(vote, str)]
        if not given:
            raise next(vote for vote in votes if isinstance(vote, StepFailure))
        return majority(given, Random(f"{self._seed} {question.text}"))  # noqa: S311  no secret

    async def _vote(self, sample: int, story: Story, question: Question) -> str | StepFailure:
        try:
            return await asked(self._setup.asker.drawing(sample), self._setup.note, story, question)
        except StepFailure as failure:
            return failure


def majority(votes: Sequence[str], lots: Random) -> str:
    """The most frequent vote; of equally frequent ones one drawn by lot."""
    counts = Counter(votes)
    most = max(counts.values())
    return lots.choice(sorted(vote for vote, count in counts.items() if count == most))


def _number(setup: Setup, name: str, least: int, most: int | None = None) -> int:
    text = setup.options[name]
    if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
        bound = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise SettingsError(f"--method sc:{name}={text}: give a whole number {bound}")
    return int(text)


KIND: Final = Kind(
    "sc",
    "Self-consistency: the majority of n sampled chains of thought",
    SelfConsistency,
    prompts="cot",
    options={"n": "5", "seed": "0"},
)
