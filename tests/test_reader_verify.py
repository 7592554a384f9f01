from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.benchmarks.generate import Recipe
from rectom.events import Event, misses, perceives, persistent, private_tell, public_claim, says
from rectom.facts import Fact, in_room, inside, said
from rectom.llm import ModelId
from rectom.perspective import build_global
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader
from rectom.reader.verify import check_abstraction, check_answer, check_learnt
from rectom.story import Story
from tests.conftest import generated
from tests.laboratory import Scripted

HALL = "Anne and Bob entered the hall."
MOVE = "Anne moved the sea_shell to the red box."


@given(seed=st.integers(0, 30))
def test_what_the_rules_read_violates_nothing(seed: int) -> None:
    rows = generated(Recipe(stories=1, chapters=2, tell=True, max_order=2, seed=seed))
    story, reader = Story.parse(rows[0].story), RuleReader()
    events = asyncio.run(reader.abstract(story))
    check_abstraction(story.lines, events)
    world = build_global(events)
    for character in {str(fact.args[0]) for state in world.presence() for fact in state}:
        able = asyncio.run(reader.observability(world, character))
        check_learnt(world.events, character, able.events)


@pytest.mark.parametrize(
    ("lines", "events", "words"),
    [
        (
            [HALL],
            [persistent([in_room("Cid", "hall")])],
            "line 1: in_room(Cid,hall) names 'Cid', which the line does not",
        ),
        ([HALL], [persistent([in_room("Anne", "attic")])], "names 'attic'"),
        (
            [HALL, MOVE],
            [persistent(), public_claim("Anne", inside("coin", "box"))],
            "line 2: in(coin,box) names 'coin'",
        ),
        (
            ["Anne went from the hall to the attic."],
            [persistent([in_room("Anne", "attic"), in_room("Anne", "hall")])],
            "line 1: in_room(Anne,attic) and in_room(Anne,hall) cannot both become true",
        ),
        (
            [HALL, "Anne exited the hall."],
            [persistent([in_room("Bob", "hall")]), persistent(removed=[in_room("Anne", "hall")])],
            "line 2: in_room(Anne,hall) cannot be removed, since it did not hold",
        ),
    ],
)
def test_a_violation_is_named(lines: list[str], events: list[Event], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        check_abstraction(lines, events)


@pytest.mark.parametrize(
    "event",
    [
        persistent([inside("sea_shell", "red_box")]),
        persistent([inside("shell", "box")]),
        persistent([Fact("is", ("sea_shell", "moved"))]),
    ],
)
def test_names_may_join_or_leave_out_words_of_the_line(event: Event) -> None:
    check_abstraction([MOVE], [event])


def test_a_window_may_remove_what_came_before_it() -> None:
    gone = persistent(removed=[in_room("Anne", "hall")])
    check_abstraction(["Anne exited the hall."], [gone], from_start=False)


COIN = inside("coin", "jar")


@pytest.mark.parametrize(
    ("event", "character", "is_violation"),
    [
        (private_tell("Anne", "Bob", COIN), "Cid", True),
        (private_tell("Anne", "Bob", COIN), "Bob", False),
        (public_claim("Anne", COIN), "Cid", False),
        (perceives("Anne", COIN), "Bob", True),
        (perceives("Anne", COIN), "Anne", False),
        (misses("Anne", COIN), "Bob", True),
        (says("Anne", said("Anne", 1, "Hi.")), "Bob", False),
        (persistent([COIN]), "Bob", False),
        (None, "Bob", False),
    ],
)
def test_nobody_learns_of_what_cannot_reach_him(event: Event | None, character: str, is_violation: bool) -> None:
    check_learnt([event], character, [False])
    if is_violation:
        with pytest.raises(ValueError, match=f"event 1 does not reach {character}"):
            check_learnt([event], character, [True])
    else:
        check_learnt([event], character, [True])


def test_the_answer_is_the_option_that_the_fact_names() -> None:
    check_answer("in(coin,jar)", "jar", ["jar", "tin"])
    check_answer("none", "tin", ["jar", "tin"])
    check_answer("in(coin,jar)", "Anne thinks it is in the jar.", ["Anne thinks it is in the jar.", "in the tin"])
    with pytest.raises(ValueError, match=re.escape("the fact in(coin,jar) names jar, not tin")):
        check_answer("in(coin,jar)", "tin", ["jar", "tin"])


STORY = Story("s", ("Anne entered the hall.", "Bob entered the attic."))
FIRST = {"1 Anne entered the hall.": ["+in_room(Anne,hall)"]}
RIGHT = {**FIRST, "2 Bob entered the attic.": ["+in_room(Bob,attic)"]}
WRONG = {**FIRST, "2 Bob entered the attic.": ["-in_room(Bob,attic)"]}


def reading(*replies: object, verify: bool) -> tuple[ModelReader, Scripted]:
    left = iter(replies)
    client = Scripted(lambda _step, _request: json.dumps(next(left)))
    return ModelReader(Asker(client, ModelId("m"), repairs=1), verify=verify), client


def test_a_violated_step_is_asked_again_with_the_violation_named() -> None:
    reader, client = reading(WRONG, RIGHT, verify=True)
    events = asyncio.run(reader.abstract(STORY))
    assert [str(event) for event in events] == ["+in_room(Anne,hall)", "+in_room(Bob,attic)"]
    (_, again) = client.requests
    assert "line 2: in_room(Bob,attic) cannot be removed, since it did not hold" in again.messages[-1].content


def test_without_it_the_same_reply_passes() -> None:
    reader, client = reading(WRONG, verify=False)
    events = asyncio.run(reader.abstract(STORY))
    assert str(events[1]) == "-"
    assert len(client.requests) == 1


def test_an_answer_that_contradicts_its_fact_is_asked_again() -> None:
    wrong, right = {"fact": "in(coin,jar)", "answer": "tin"}, {"fact": "in(coin,jar)", "answer": "jar"}
    reader, client = reading(wrong, right, verify=True)
    assert asyncio.run(reader.answer("Where is the coin?", frozenset({COIN}), ("jar", "tin"))) == "jar"
    assert "names jar, not tin" in client.requests[1].messages[-1].content


def test_an_observation_of_what_was_told_to_others_is_asked_again() -> None:
    world = build_global([private_tell("Anne", "Bob", COIN)])
    reader, client = reading({"1": "observable"}, {"1": "not_observable"}, verify=True)
    able = asyncio.run(reader.observability(world, "Cid"))
    assert able.events == (False,)
    assert "event 1 does not reach Cid" in client.requests[-1].messages[-1].content


@pytest.mark.parametrize("step", STEPS)
def test_the_steps_that_are_checked_have_keys_of_their_own(step: str) -> None:
    plain, verified = (reading(verify=verify)[0].fields(step) for verify in (False, True))
    assert (plain != verified) == (step in {"abstract", "observe", "answer"})
