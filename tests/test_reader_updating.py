from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rectom import grammar
from rectom.errors import StepFailure
from rectom.events import Event, persistent, says
from rectom.facts import EMPTY, Fact, State, in_room, inside, said
from rectom.grammars import tomi
from rectom.llm import ChatRequest, ModelId
from rectom.perspective import build_global, equation_1, recurse, update_along
from rectom.reader.asking import Asker
from rectom.reader.rules import RuleReader
from rectom.reader.updating import ModelUpdater, outcome
from rectom.rules import PRESETS
from rectom.schemas import json_schema
from rectom.story import Story
from rectom.task import TASKS
from tests.conftest import characters_of, stories
from tests.fake_openai import ABLATED, sections
from tests.laboratory import Scripted, in_turn

BEFORE: State = frozenset({inside("ball", "box"), in_room("Anne", "hall")})
MOVE = persistent([inside("ball", "bag")], [inside("ball", "box")])
AFTER: State = frozenset({inside("ball", "bag"), in_room("Anne", "hall")})


def rightly(step: str, request: ChatRequest) -> str:
    system, user = (message.content for message in request.messages[:2])
    return json.dumps(ABLATED[step](system, sections(user)))


def updater(answer: Callable[[str, ChatRequest], str] = rightly, kind: str = "hitom", repairs: int = 0) -> ModelUpdater:
    return ModelUpdater(Asker(Scripted(answer), ModelId("m"), benchmark=kind, repairs=repairs))


def requests_of(model: ModelUpdater) -> list[ChatRequest]:
    client = model._asker._client
    assert isinstance(client, Scripted)
    return client.requests


@given(stories(), st.sampled_from(list(PRESETS)), st.data())
@settings(max_examples=20)
def test_a_model_that_never_errs_gives_what_equation_1_gives(story: Story, rules: str, data: st.DataObject) -> None:
    async def both() -> None:
        reader, model = RuleReader(PRESETS[rules]), updater()
        events = grammar.read_story(story)
        world = build_global(events)
        assert await update_along(events, model.update) == world
        chain = data.draw(st.lists(st.sampled_from(characters_of(world)), max_size=3))
        assert await recurse(world, chain, reader, model.update) == await recurse(world, chain, reader)

    asyncio.run(both())


async def test_only_what_changes_something_is_asked() -> None:
    model = updater()
    lines = ("Anne entered the hall.", "Anne likes the box.", "Anne publicly claimed that ball is in the box.")
    world = await update_along([*grammar.read_story(Story("s", lines)), MOVE], model.update)
    assert len(requests_of(model)) == 2
    assert len(world.states) == 4


async def test_the_same_state_and_event_are_the_same_request_wherever_they_come_from() -> None:
    model = updater()
    for state in (BEFORE, frozenset(sorted(BEFORE, key=str, reverse=True))):
        assert await model.update(state, MOVE) == AFTER
    first, second = requests_of(model)
    assert first.key == second.key
    assert sections(first.messages[1].content) == {
        "State": "in(ball,box) in_room(Anne,hall)",
        "Added": "in(ball,bag)",
        "Removed": "in(ball,box)",
    }


async def test_the_reply_can_hold_only_facts_of_the_state_and_added_ones() -> None:
    model = updater()
    await model.update(BEFORE, persistent([inside("ball", "bag")]))
    schema = requests_of(model)[0].schema
    assert schema == json_schema(outcome(["in(ball,bag)", "in(ball,box)", "in_room(Anne,hall)"]))
    state = schema["properties"]["state"]
    assert state["items"]["enum"] == ["in(ball,bag)", "in(ball,box)", "in_room(Anne,hall)"]
    assert state["maxItems"] == 3  # or a small model lists them for ever


async def test_a_model_may_be_wrong() -> None:
    forgets = updater(in_turn({"state": ["in(ball,bag)"]}))
    assert await forgets.update(BEFORE, MOVE) == {inside("ball", "bag")}
    keeps = updater(in_turn({"state": ["in(ball,box)", "in_room(Anne,hall)"]}))
    assert await keeps.update(BEFORE, MOVE) == BEFORE


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"state": ["in(ball,bag)", "in(ball,box)"]}, r"in\(ball,box\) cannot be true beside in\(ball,bag\)"),
        ({"state": ["in(ball,tin)"]}, "Input should be"),
        ({"states": []}, "state: Field required"),
        ({"state": "in(ball,bag)"}, "state: Input should be a valid list"),
    ],
)
async def test_what_is_no_state_is_named_and_asked_for_again(reply: object, words: str) -> None:
    right = {"state": sorted(map(str, AFTER))}
    model = updater(in_turn(reply, right), repairs=1)
    assert await model.update(BEFORE, MOVE) == AFTER
    with pytest.raises(StepFailure, match=f"update: no usable reply in 1 tries: .*{words}"):
        await updater(in_turn(reply)).update(BEFORE, MOVE)


async def test_facts_too_many_to_list_are_checked_all_the_same() -> None:
    many: State = frozenset(inside(f"thing{n}", "box") for n in range(300))
    with pytest.raises(StepFailure, match=r"in\(ball,tin\) is neither in the state before nor added"):
        await updater(in_turn({"state": ["in(ball,tin)"]})).update(many, MOVE)
    assert await updater().update(many, MOVE) == many | {inside("ball", "bag")}


async def test_facts_that_come_together_may_contradict_each_other() -> None:
    both = persistent([Fact("contains", ("jug", "water")), Fact("contains", ("jug", "ice"))])
    kept = await updater(in_turn({"state": ["contains(jug,water)", "contains(jug,ice)"]}), "story").update(EMPTY, both)
    assert kept == both.delta.added


async def test_what_was_said_is_known_by_its_number_and_keeps_its_words() -> None:
    model = updater(kind="dialogue")
    first, second = said("Ann", 1, "A long story."), said("Dr. O'Neil", 2, "Well?")
    state: State = frozenset({in_room("Ann", "conversation"), first})
    event = says(
        "Dr. O'Neil", second, [in_room("Dr. O'Neil", "conversation"), second], [in_room("Ann", "conversation")]
    )
    assert await model.update(state, event) == {first, second, in_room("Dr. O'Neil", "conversation")}
    (request,) = requests_of(model)
    assert "story" not in request.messages[1].content
    assert "said(Ann,1)" in request.messages[1].content


async def test_a_belief_that_holds_another_place_than_the_event_removes_gives_it_up() -> None:
    belief: State = frozenset({inside("ball", "tin"), in_room("Anne", "hall")})
    assert await updater().update(belief, MOVE) == await equation_1(belief, MOVE) == AFTER


@pytest.mark.parametrize("kind", TASKS)
async def test_every_kind_of_text_has_its_prompt(kind: str) -> None:
    model = updater(kind=kind)
    assert await model.update(BEFORE, MOVE) == AFTER
    assert set(model.fields()["prompts"]) == {"update"}  # type: ignore[call-overload]


async def test_the_beginnings_of_tomi_stay() -> None:
    lines = (
        "Zoe entered the shed.",
        "The hat is in the urn.",
        "The urn is in the shed.",
        "Zoe moved the hat to the jar.",
    )
    events: tuple[Event, ...] = tomi.read_story(Story("s", lines))
    assert await update_along(events, updater(kind="tomi").update) == build_global(events)
