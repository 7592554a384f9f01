from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rectom import grammar, prompts
from rectom.benchmarks import hitom
from rectom.errors import StepFailure
from rectom.events import Event
from rectom.history import History
from rectom.llm import ChatRequest, ModelId
from rectom.reader.asking import Asker
from rectom.reader.histories import ANSWER, OBSERVE, Historian, listed
from rectom.rules import PRESETS
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE
from rectom.story import Story
from rectom.task import TASKS
from tests.fake_openai import ABLATED, sections
from tests.laboratory import Scripted, in_turn

LINES = """1 Anne, Bob and Cy entered the hall.
2 The ball is in the box.
3 Anne exited the hall.
4 Bob moved the ball to the bag.
5 Cy likes the bag.
6 Bob exited the hall.
7 Anne and Bob entered the waiting_room.
8 Bob publicly claimed that the ball is in the tin.
9 Bob privately told Cy that the ball is in the jar."""
EVENTS: tuple[Event, ...] = grammar.read_story(Story.parse(LINES))
WHOLE = History(EVENTS)
OPTIONS = ["bag", "box", "jar", "tin"]


def rightly(step: str, request: ChatRequest) -> str:
    system, user = (message.content for message in request.messages[:2])
    return json.dumps(ABLATED[step](system, sections(user)))


def made(
    answer: Callable[[str, ChatRequest], str] = rightly, rules: str = "hitom", kind: str = "hitom"
) -> tuple[Historian, list[ChatRequest]]:
    client = Scripted(answer)
    asker = Asker(client, ModelId("m"), benchmark=kind, repairs=0)
    return Historian(asker, PRESETS[rules] if kind == "hitom" else TASKS[kind].rules, hitom.note()), client.requests


async def observed(rules: str, *chain: str) -> list[int]:
    historian, _ = made(rules=rules)
    history = WHOLE
    for name in chain:
        history = history.seen_by(name, await historian.witness(history, name))
    return list(history.entries())


@pytest.mark.parametrize(
    ("rules", "chain", "steps"),
    [
        ("hitom", ["Anne"], [1, 2, 3, 6, 7, 8]),
        ("hitom", ["Bob"], [1, 2, 3, 4, 6, 7, 8, 9]),
        ("hitom", ["Cy"], [1, 2, 3, 4, 6, 7, 8, 9]),
        ("hitom", ["Anne", "Bob"], [1, 2, 3, 6, 7, 8]),
        ("hitom", ["Cy", "Bob", "Anne"], [1, 2, 3, 6, 7, 8]),
        ("literal", ["Bob"], [1, 2, 3, 4, 6, 7, 8, 9]),
    ],
)
async def test_the_prompt_tells_all_that_it_takes_to_know_what_is_observed(
    rules: str, chain: list[str], steps: list[int]
) -> None:
    assert await observed(rules, *chain) == steps


async def answered(rules: str, history: History) -> str:
    historian, _ = made(rules=rules)
    lines = listed(history.entries())
    return await historian.answer("Where is the ball really?", lines, list(history.chain), OPTIONS)


@pytest.mark.parametrize(
    ("rules", "chain", "steps", "place"),
    [
        ("hitom", [], range(1, 10), "bag"),
        ("hitom", ["Anne"], [1, 2, 3, 6, 7, 8], "tin"),  # Bob left after her
        ("hitom", ["Cy"], range(1, 10), "jar"),  # he has not left
        ("hitom", ["Bob"], range(1, 10), "bag"),
        ("literal", ["Bob"], range(1, 10), "jar"),
        ("first-order-claims", ["Anne", "Bob"], [1, 2, 3, 6, 7, 8], "box"),
        ("second-order-claims", ["Anne", "Bob"], [1, 2, 3, 6, 7, 8], "tin"),
        ("hitom", ["Anne"], [3, 6], "bag"),  # nothing is known: the first option
    ],
)
async def test_the_prompt_tells_all_that_it_takes_to_answer(
    rules: str, chain: list[str], steps: range | list[int], place: str
) -> None:
    history = WHOLE
    for name in chain:
        history = history.seen_by(name, steps)
    assert await answered(rules, history) == place


async def test_events_alone_are_asked_for_and_no_state_is_shown() -> None:
    historian, requests = made()
    anne = WHOLE.seen_by("Anne", {1, 2, 3})
    assert await historian.witness(anne, "Bob") == {1, 2, 3}
    (request,) = requests
    given = sections(request.messages[1].content)
    assert given == {
        "History": "1 +in_room(Anne,hall) +in_room(Bob,hall) +in_room(Cy,hall)\n2 +in(ball,box)\n3 -in_room(Anne,hall)",
        "Character": "Bob",
    }
    assert request.schema
    assert list(request.schema["properties"]) == ["1", "2", "3"]


async def test_an_empty_history_is_no_question_but_has_an_answer() -> None:
    historian, requests = made(in_turn({"reason": "nothing is known", "answer": "B"}))
    nothing = WHOLE.seen_by("Anne", ())
    assert await historian.witness(nothing, "Bob") == frozenset()
    assert not requests
    assert await historian.answer("Where is it?", listed(nothing.entries()), ["Anne"], OPTIONS) == "box"
    given = sections(requests[0].messages[1].content)
    assert (given["History"], given["Belief of"]) == ("none", "Anne")


@pytest.mark.parametrize(
    ("chain", "holder"), [([], "nobody"), (["Anne"], "Anne"), (["Anne", "Bob"], "what Anne thinks that Bob thinks")]
)
async def test_the_holder_of_the_belief_is_named(chain: list[str], holder: str) -> None:
    historian, requests = made()
    await historian.answer("Where is the ball really?", ["2 +in(ball,box)"], chain, OPTIONS)
    assert sections(requests[0].messages[1].content)["Belief of"] == holder


async def test_without_options_the_answer_is_in_words() -> None:
    historian, requests = made(in_turn({"reason": "event 2", "answer": " in the box "}), kind="story")
    assert await historian.answer("Where is the ball?", ["2 +in(ball,box)"], [], []) == "in the box"
    assert "any answer in a few words" in requests[0].messages[1].content


@pytest.mark.parametrize("rules", PRESETS)
async def test_the_rules_are_said_in_words_as_far_as_they_matter(rules: str) -> None:
    historian, requests = made(rules=rules)
    await historian.witness(WHOLE, "Anne")
    await answered(rules, WHOLE)
    await historian.answer("Where is the ball really?", ["2 +in(ball,box)"], [], OPTIONS)
    observe, answer = (request.messages[0].content for request in requests)
    preset = PRESETS[rules]
    assert prompts.in_words(preset, ("scope",)) in observe
    assert (prompts.in_words(preset, ("waiting",)) in observe) is (preset.scope == "state")
    assert prompts.in_words(preset, ("trust", "depth", "speaker_convinces", "speaker_sincere")) in answer
    assert hitom.note() in answer
    assert hitom.note() not in observe


def rules_of(fields: dict[str, Any]) -> set[str]:
    return set(fields.get("rules", ()))


def test_the_fields_name_what_the_prompts_say_and_nothing_else() -> None:
    narrative, literal = made()[0], made(rules="literal")[0]
    assert rules_of(narrative.fields(OBSERVE)) == {"scope"}
    assert rules_of(literal.fields(OBSERVE)) == {"scope", "waiting"}
    assert rules_of(narrative.fields(ANSWER)) == {"trust", "depth", "speaker_convinces", "speaker_sincere"}
    assert "note" in narrative.fields(ANSWER)
    for kind in ("tomi", "story", "dialogue"):
        for step in (OBSERVE, ANSWER):
            fields = made(kind=kind)[0].fields(step)
            assert not {"rules", "note"} & set(fields)
            assert fields["prompts"] == {step: prompts.load(kind, step).digest}


@pytest.mark.parametrize("kind", TASKS)
async def test_every_kind_of_text_has_its_prompts_and_they_are_filled(kind: str) -> None:
    verdicts = {str(step): OBSERVABLE if step < 4 else NOT_OBSERVABLE for step in WHOLE.entries()}
    historian, requests = made(in_turn(verdicts, {"reason": "event 2", "answer": "D"}), kind=kind)
    assert await historian.witness(WHOLE, "Anne") == {1, 2, 3}
    assert await historian.answer("Where is the ball?", ["2 +in(ball,box)"], ["Anne"], OPTIONS) == "tin"
    assert not any("$" in message.content for request in requests for message in request.messages)


async def test_nonsense_fails_the_step() -> None:
    historian, _ = made(lambda _step, _request: '{"nonsense": true}')
    with pytest.raises(StepFailure, match="observe_history: no usable reply in 1 tries"):
        await historian.witness(WHOLE, "Anne")
    with pytest.raises(StepFailure, match="answer_history: no usable reply in 1 tries"):
        await historian.answer("Where is the ball really?", ["2 +in(ball,box)"], [], OPTIONS)


async def test_an_event_that_is_left_out_is_no_verdict() -> None:
    reply = {str(step): OBSERVABLE for step in WHOLE.entries()} | {"2": NOT_OBSERVABLE}
    assert await made(in_turn(reply))[0].witness(WHOLE, "Anne") == {1, 3, 4, 6, 7, 8, 9}
    del reply["4"]
    with pytest.raises(StepFailure, match=r"observe_history: .*4: Field required"):
        await made(in_turn(reply))[0].witness(WHOLE, "Anne")
