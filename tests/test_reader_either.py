from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rectom.benchmarks.generate import Recipe
from rectom.errors import StepFailure
from rectom.events import public_claim
from rectom.facts import EMPTY, inside
from rectom.llm import ModelId
from rectom.perspective import Hearing, build_global, recurse
from rectom.reader.asking import Asker, recording
from rectom.reader.base import STEPS
from rectom.reader.either import EitherReader
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader
from rectom.story import Story
from rectom.words import words_of
from tests.conftest import generated
from tests.laboratory import Scripted, by_rule

STORY = Story("s", ("Anne and Bob entered the hall.", "The ball is in the box."))
FREE = Story("f", ("Anne walks into the hall.", "There is a ball in the box."))
WORDS = words_of(STORY.lines)
BALL = frozenset({inside("ball", "box")})


def reader(client: Any = None) -> EitherReader:
    return EitherReader(RuleReader(), ModelReader(Asker(client or Scripted(by_rule), ModelId("m"), repairs=0)))


def test_what_a_grammar_reads_the_model_is_not_asked() -> None:
    client = Scripted(by_rule)
    rows = generated(Recipe(stories=1, chapters=2, tell=True, max_order=3, seed=1))
    story = Story.parse(rows[0].story)

    async def run() -> list[str]:
        by = reader(client)
        world = build_global(await by.abstract(story))
        answers = []
        for row in rows:
            chain = await by.chain(row.question, words_of(story.lines))
            final = (await recurse(world, chain, by))[-1].final
            answers.append(await by.answer(await by.reduce(row.question, chain), final, row.choices))
        return answers

    assert asyncio.run(run()) == [row.answer for row in rows]
    assert client.requests == []


@pytest.mark.parametrize(
    ("reply", "ask", "result"),
    [
        ({"chain": ["Anne"]}, lambda by: by.chain("What is Anne's guess?", WORDS), ("Anne",)),
        ({"question": "Where is it?"}, lambda by: by.reduce("Where would Anne look?", ("Anne",)), "Where is it?"),
        ({"fact": "in(ball,box)", "answer": "box"}, lambda by: by.answer("Which box?", BALL, ("box", "bag")), "box"),
        (
            {"fact": "none", "answer": "bag"},
            lambda by: by.answer("Where is the hat really?", BALL, ("box", "bag")),
            "bag",
        ),
    ],
)
def test_what_no_rule_reads_goes_to_the_model_and_its_calls_say_so(reply: Any, ask: Any, result: Any) -> None:
    client = Scripted(lambda _step, _request: json.dumps(reply))
    with recording() as calls:
        assert asyncio.run(ask(reader(client))) == result
    assert len(client.requests) == len(calls) == 1


def test_a_story_of_no_grammar_is_abstracted_by_the_model() -> None:
    told = [["+in_room(Anne,hall)"], ["+in(ball,box)"]]
    reply = {f"{number} {line}": told[number - 1] for number, line in enumerate(FREE.lines, 1)}
    client = Scripted(lambda _step, _request: json.dumps(reply))
    events = asyncio.run(reader(client).abstract(FREE))
    assert [str(event) for event in events] == ["+in_room(Anne,hall)", "+in(ball,box)"]


def test_what_neither_reads_fails_as_the_model_fails() -> None:
    client = Scripted(lambda _step, _request: "no JSON")
    with pytest.raises(StepFailure, match="chain"):
        asyncio.run(reader(client).chain("What is Anne's guess?", WORDS))


def test_revision_and_observability_are_the_rules() -> None:
    by, rules = reader(), RuleReader()
    world = rules.world(STORY)
    hearing = Hearing(("Anne",), public_claim("Bob", inside("ball", "bag")), EMPTY, ("Anne", "Bob"))
    assert asyncio.run(by.observability(world, "Anne")) == asyncio.run(rules.observability(world, "Anne"))
    assert asyncio.run(by.revise(hearing)) == asyncio.run(rules.revise(hearing))


def test_the_fields_name_both_for_every_step() -> None:
    by = reader()
    for step in STEPS:
        fields = by.fields(step)
        assert fields["by"] == "either"
        assert {"rules", "model"} <= fields.keys()
