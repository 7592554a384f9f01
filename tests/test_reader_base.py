from __future__ import annotations

from collections.abc import Sequence

import pytest

from rectom.events import Delta, Event, public_claim
from rectom.facts import EMPTY, State, inside
from rectom.perspective import Hearing, Observability, Perspective
from rectom.reader.base import STEPS, SharedReader
from rectom.rules import PRESETS
from rectom.story import Story, Vocabulary


class Named:
    """A reader that notes which steps it was asked."""

    def __init__(self, name: str, rules: str = "hitom") -> None:
        self.rules = PRESETS[rules]
        self.name = name
        self.asked: list[str] = []

    def fields(self, step: str) -> dict[str, object]:
        return {"by": self.name, "step": step}

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        self.asked.append("abstract")
        return ()

    async def chain(self, question: str, words: Vocabulary) -> tuple[str, ...]:
        self.asked.append("chain")
        return ()

    async def observability(self, source: Perspective, character: str) -> Observability:
        self.asked.append("observe")
        return Observability((), ())

    async def revise(self, hearing: Hearing) -> Delta:
        self.asked.append("revise")
        return Delta()

    async def reduce(self, question: str, chain: Sequence[str]) -> str:
        self.asked.append("reduce")
        return question

    async def answer(self, question: str, state: State, choices: Sequence[str]) -> str:
        self.asked.append("answer")
        return "box"


async def ask_all(reader: SharedReader) -> None:
    source = Perspective((), (), ())
    await reader.abstract(Story("s", ("The ball is in the box.",)))
    await reader.chain("Where is the ball really?", Vocabulary())
    await reader.observability(source, "Anne")
    await reader.revise(Hearing(("Anne",), public_claim("Bob", inside("ball", "box")), EMPTY, ()))
    await reader.reduce("Where is the ball really?", [])
    await reader.answer("Where is the ball really?", EMPTY, [])


@pytest.mark.parametrize("step", STEPS)
async def test_each_step_goes_to_the_reader_that_has_it(step: str) -> None:
    usual, other = Named("usual"), Named("other")
    reader = SharedReader({name: other if name == step else usual for name in STEPS})
    await ask_all(reader)
    assert other.asked == [step]
    assert usual.asked == [name for name in STEPS if name != step]
    assert [reader.fields(name)["by"] for name in STEPS] == ["other" if name == step else "usual" for name in STEPS]


def test_the_rules_of_observation_are_those_of_who_observes() -> None:
    usual, other = Named("usual"), Named("other", "literal")
    assert SharedReader({**dict.fromkeys(STEPS, usual), "observe": other}).rules is PRESETS["literal"]
