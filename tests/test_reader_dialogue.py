from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import StepFailure, StoryError
from rectom.events import Delta, Event, Kind
from rectom.facts import EMPTY, Fact, State, in_room, said
from rectom.llm import ChatRequest, ModelId
from rectom.perspective import Hearing, Perspective, build_global, recurse
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS
from rectom.reader.dialogue import (
    CONVERSATION,
    NARRATOR,
    DialogueReader,
    DialogueRules,
    events_of,
)
from rectom.reader.silences import Changes
from rectom.rules import PRESETS
from rectom.schemas import opening
from rectom.story import Story, Vocabulary
from tests.laboratory import Scripted, by_rule, in_turn

LINES = (
    "Ann: What a day!",
    "Ben: I must run, bye.",
    "Ann: Now we are two, Cy.",
    "Cy: So we are.",
    "Ben: Back again!",
    "Ann: Hello Dee!",
    "Dee: Hello all.",
)
STORY = Story("s", LINES)
START = ["Ann", "Ben", "Cy"]
CHANGES: Changes = {2: ([], ["Ben"]), 5: (["Ben"], []), 6: (["Dee"], [])}
ALL = {1, 2, 3, 4, 5, 6, 7}


def reader_of(client: Scripted, **options: Any) -> DialogueReader:
    return DialogueReader(Asker(client, ModelId("m"), benchmark="dialogue", repairs=1), **options)


def user(client: Scripted, number: int = 0) -> str:
    return client.requests[number].messages[1].content


#: What the lines do that may show that somebody comes or goes.
DONE = {2: "leaves", 3: "tells", 4: "agrees", 5: "returns", 6: "welcomes Dee", 7: "answers"}
REPLY = {opening(n, LINES[n - 1]): act for n, act in DONE.items()}


def lines_heard(state: State) -> set[int]:
    return {int(str(fact.args[1])) for fact in state if fact.predicate == "said"}


def present(events: Sequence[Event]) -> list[str]:
    """Who is there after each line."""
    presence = build_global(events).presence()
    return [" ".join(sorted(str(fact.args[0]) for fact in state)) for state in presence]


async def heard(
    *chain: str, lines: Sequence[str] = LINES, start: Sequence[str] = START, changes: Changes = CHANGES
) -> set[int]:
    """The lines of which the last of a chain knows, in the eyes of the others."""
    world = build_global(events_of(lines, start, changes))
    return lines_heard((await recurse(world, chain, DialogueRules()))[-1].final)


# Events.


@pytest.mark.parametrize("line", ["A dog barks.", "Later that day: nothing.", "[Ann joins]", ""])
def test_a_line_without_a_speaker_is_the_narrators(line: str) -> None:
    [event] = events_of(["Ann: Hi.", line], [], {})[1:]
    assert event.speaker == (None if line.startswith("[") else NARRATOR)


@given(st.text(max_size=80))
def test_any_line_is_an_event(line: str) -> None:
    assert len(events_of([line], [], {})) == 1


def test_an_utterance_says_something_and_brings_and_takes_people() -> None:
    first, second, *_ = events_of(LINES, START, CHANGES)
    hello, bye = said("Ann", 1, "What a day!"), said("Ben", 2, "I must run, bye.")
    assert first.kind is Kind.TRANSIENT
    assert first.occurrence == Fact("says", ("Ann", hello))
    assert first.delta == Delta(frozenset({hello, *(in_room(name, CONVERSATION) for name in START)}))
    assert second.delta == Delta(frozenset({bye}), frozenset({in_room("Ben", CONVERSATION)}))


def test_who_is_there_follows_from_start_and_changes() -> None:
    there = ["Ann Ben Cy", *["Ann Cy"] * 3, "Ann Ben Cy", *["Ann Ben Cy Dee"] * 2]
    assert present(events_of(LINES, START, CHANGES)) == there


def test_a_speaker_is_there_even_if_nobody_said_so() -> None:
    events = events_of(LINES, [], {})
    assert present(events) == ["Ann", "Ann Ben", "Ann Ben", *["Ann Ben Cy"] * 3, "Ann Ben Cy Dee"]
    back = events_of(LINES, START, {2: ([], ["Ben"])})
    assert present(back)[3:5] == ["Ann Cy", "Ann Ben Cy"]


def test_all_who_speak_together_are_there() -> None:
    assert present(events_of(("Cy: Hi.", "Ann & Ben: Hi."), [], {})) == ["Cy", "Ann Ben Cy"]


def test_who_joins_twice_or_leaves_without_being_there_changes_nothing() -> None:
    events = events_of(LINES, START, {3: (["Ann", "Cy"], ["Dee"])})
    assert present(events)[2] == "Ann Ben Cy"
    assert not events[2].moves


def test_who_joins_and_leaves_in_one_line_was_never_there_for_the_others() -> None:
    lines = ("Ann: Hi.", "Ben: Just passing, bye!", "Ann: Bye.")
    events = events_of(lines, ["Ann"], {2: (["Ben"], ["Ben"])})
    assert present(events) == ["Ann"] * 3


async def test_who_only_passes_hears_himself() -> None:
    lines = ("Ann: Hi.", "Ben: Just passing, bye!", "Ann: Bye.")
    changes: Changes = {2: (["Ben"], ["Ben"])}
    assert await heard("Ben", lines=lines, start=["Ann"], changes=changes) == {2}


def test_stage_directions_move_people_and_say_nothing() -> None:
    _, event = events_of(("Ann: Hi.", "[Ben joins]"), ["Ann"], {2: (["Ben"], [])})
    assert event.kind is Kind.PERSISTENT
    assert event.occurrence is None


# Hearing.


@pytest.mark.parametrize(
    ("chain", "lines"),
    [
        ([], ALL),
        (["Ann"], ALL),
        (["Ben"], {1, 2, 5, 6, 7}),
        (["Dee"], {6, 7}),
        (["Zoe"], set()),
        (["Ann", "Ben"], {1, 2, 5, 6, 7}),
        (["Ben", "Ann"], {1, 2, 5, 6, 7}),
        (["Dee", "Ben"], {6, 7}),
        (["Ben", "Dee"], {6, 7}),
        (["Cy", "Ben", "Dee"], {6, 7}),
        (["Cy", "Ben", "Ann"], {1, 2, 5, 6, 7}),
    ],
)
async def test_a_belief_is_what_all_of_the_chain_heard(chain: list[str], lines: set[int]) -> None:
    assert await heard(*chain) == lines


async def test_a_goodbye_is_heard_by_all_and_its_speaker() -> None:
    assert 2 in await heard("Ben")
    assert 2 in await heard("Cy", "Ben")


async def test_who_leaves_while_another_speaks_hears_that() -> None:
    changes: Changes = {3: ([], ["Cy"])}
    lines = (*LINES[:3], "Ben: Gone he is.")
    assert await heard("Cy", lines=lines, changes=changes) == {1, 2, 3}
    assert await heard("Ann", "Cy", lines=lines, changes=changes) == {1, 2, 3}


async def test_a_greeting_is_heard_by_who_is_greeted() -> None:
    assert min(await heard("Dee")) == 6


async def test_who_is_away_still_thinks_that_those_are_there_who_were() -> None:
    world = build_global(events_of(LINES, START, {2: ([], ["Ben"]), 4: ([], ["Cy"])}))
    _, ben, cy = await recurse(world, ["Ben", "Cy"], DialogueRules())
    assert in_room("Cy", CONVERSATION) in ben.states[3]
    # On coming back Ben sees that Cy is gone.
    assert in_room("Cy", CONVERSATION) not in ben.states[4]
    assert lines_heard(cy.final) == {1, 2}


async def test_people_who_leave_together_hear_their_goodbye() -> None:
    lines = ("Cy: Hi.", "Ann & Ben: Bye!", "Cy: They are gone.")
    for name in ("Ann", "Ben"):
        assert await heard(name, lines=lines, start=START, changes={2: ([], ["Ann", "Ben"])}) == {1, 2}


# Abstraction by rule and by model.


async def test_rules_read_stage_directions() -> None:
    lines = ("[Ann joins]", "Ann: Hi.", "[Ben and Cy join]", "Ben: Hi.", "[Ann leaves]", "[Dee leaves]", "Cy: So.")
    events = await DialogueRules().abstract(Story("s", lines))
    assert present(events) == ["Ann Dee", "Ann Dee", *["Ann Ben Cy Dee"] * 2, "Ben Cy Dee", "Ben Cy", "Ben Cy"]


async def test_without_stage_directions_rules_read_nothing() -> None:
    with pytest.raises(StoryError, match="no stage directions say who joins and leaves: give --model"):
        await DialogueRules().abstract(STORY)


async def test_a_model_says_what_the_lines_do_and_from_that_follows_who_is_there() -> None:
    client = Scripted(in_turn(REPLY))
    assert await reader_of(client).abstract(STORY) == tuple(events_of(LINES, START, CHANGES))
    assert user(client).startswith("Lines:\n1 Ann: What a day!\n2 Ben: I must run, bye.\n")
    assert user(client).endswith("Asked about: 2, 3, 4, 5, 6, 7")


async def test_a_line_may_be_named_by_its_number_alone() -> None:
    client = Scripted(in_turn({str(n): act for n, act in DONE.items()}))
    assert await reader_of(client).abstract(STORY) == tuple(events_of(LINES, START, CHANGES))


async def test_where_nobody_is_silent_nothing_is_asked() -> None:
    client = Scripted(in_turn())
    events = await reader_of(client).abstract(Story("s", ("Ann: Hi.", "Ben: Hi.", "Ann: So.")))
    assert present(events) == ["Ann Ben"] * 3
    assert not client.requests


async def test_what_stage_directions_say_a_model_is_not_asked() -> None:
    lines = ("Ann: Hi.", "[Ben joins]", "Ann: Hi Ben.", "[Ann leaves]", "Cy: At last.", "Ben: Yes.", "[Ann joins]")
    client = Scripted(in_turn({"5": "tells"}))
    events = await reader_of(client).abstract(Story("s", lines))
    assert present(events) == ["Ann Cy", *["Ann Ben Cy"] * 2, *["Ben Cy"] * 3, "Ann Ben Cy"]
    assert user(client).endswith("Asked about: 5")


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (REPLY | {opening(2, LINES[1]): "returns"}, "2 Ben: I must run, bye.: Input should be 'agrees'"),
        (REPLY | {opening(6, LINES[5]): "welcomes Ben"}, "6 Ann: Hello Dee!: Input should be 'agrees'"),
        (REPLY | {"1 Ann: What a day!": "leaves"}, "1 Ann: What a day!: Extra inputs are not permitted"),
        ({name: act for name, act in REPLY.items() if act != "leaves"}, "2 Ben: I must run, bye.: Field required"),
    ],
)
async def test_what_breaks_a_rule_is_named_and_repaired(bad: Any, fault: str) -> None:
    client = Scripted(in_turn(bad, REPLY))
    assert await reader_of(client).abstract(STORY) == tuple(events_of(LINES, START, CHANGES))
    assert fault in client.requests[1].messages[3].content


def in_part(request: ChatRequest) -> Mapping[str, str]:
    """The right reply to a window: its part of what is done, numbered within it."""
    shown, _, asked = request.messages[1].content.partition("Lines:\n")[2].partition("\n\nAsked about: ")
    texts = [line.partition(" ")[2] for line in shown.splitlines()]
    before = LINES.index(texts[0])
    return {opening(n, texts[n - 1]): DONE[before + n] for n in map(int, asked.split(", "))}


@pytest.mark.parametrize("window", [1, 2, 3, 6, 7, 50])
async def test_the_events_are_the_same_whatever_the_window(window: int) -> None:
    client = Scripted(lambda _step, request: json.dumps(in_part(request)))
    events = await reader_of(client, window=window).abstract(STORY)
    assert events == tuple(events_of(LINES, START, CHANGES))
    assert len(client.requests) == len({(number - 1) // window for number in DONE})


async def test_a_long_conversation_is_read_in_parts_of_sixty_lines() -> None:
    lines = [f"{'Ann' if n % 4 else 'Ben'}: {n}" for n in range(121)]
    client = Scripted(lambda _step, request: json.dumps(dict.fromkeys(asked_about(request), "tells")))
    events = await reader_of(client).abstract(Story("s", tuple(lines)))
    assert [len(re.findall(r"^\d+ ", user(client, n), re.MULTILINE)) for n in range(3)] == [60, 60, 1]
    assert len(lines_heard(build_global(events).final)) == 121


def asked_about(request: ChatRequest) -> list[str]:
    return request.messages[1].content.rpartition("Asked about: ")[2].split(", ")


# Observability, revision, questions.


async def test_observability_is_one_call_and_agrees_with_the_rules() -> None:
    world = build_global(events_of(LINES, START, CHANGES))
    for name in ("Ann", "Ben", "Dee", "Zoe"):
        client = Scripted(by_rule)
        assert await reader_of(client).observability(world, name) == await DialogueRules().observability(world, name)
        assert [request.schema_name for request in client.requests] == ["observe_states"] * (name != "Zoe")


async def test_names_with_blanks_are_names() -> None:
    lines = ("Mary Ann: Hi.", "Dr. O'Neil: Bye, I am off.", "Mary Ann: He is gone.")
    start, client = ["Mary Ann", "Dr. O'Neil"], Scripted(by_rule)
    world = build_global(events_of(lines, start, {2: ([], ["Dr. O'Neil"])}))
    able = await reader_of(client).observability(world, "Dr. O'Neil")
    assert able.rooms == (CONVERSATION, None, None)
    assert 'in_room("Dr. O\'Neil",conversation)' in user(client)
    assert await heard("Dr. O'Neil", lines=lines, start=start, changes={2: ([], ["Dr. O'Neil"])}) == {1, 2}


async def test_a_chain_names_whole_names_and_nobody_twice() -> None:
    words = Vocabulary(("Ann", "Mary Ann", "Ben"))
    client = Scripted(in_turn({"Mary Ann believe": "mind", "Ben's view": "mind", "Mary Ann's hat": "world"}))
    question = "What does Mary Ann believe about Ben's view of Mary Ann's hat?"
    assert await reader_of(client).chain(question, words) == ("Mary Ann", "Ben")
    assert "Named: Mary Ann believe; Ben's view; Mary Ann's hat" in user(client)
    assert await DialogueRules().chain(question, words) == ("Mary Ann", "Ben")


async def test_a_chain_has_whom_a_model_finds_a_mind_of_and_each_once() -> None:
    words = Vocabulary(("Ann", "Ben", "Cid"))
    client = Scripted(in_turn({"Ann think": "mind", "Ben and": "world", "Cid discussed": "world", "Ann knows": "mind"}))
    question = "What does Ann think of what Ben and Cid discussed, and Ann knows?"
    assert await reader_of(client).chain(question, words) == ("Ann",)


async def test_a_question_that_names_nobody_has_the_empty_chain_without_a_call() -> None:
    client = Scripted(in_turn())
    assert await reader_of(client).chain("What was said about the trip?", Vocabulary(("Ann", "Ben"))) == ()
    assert not client.requests


async def test_whatever_is_heard_is_known_to_have_been_said() -> None:
    client = Scripted(in_turn())
    event = events_of(LINES, START, CHANGES)[0]
    hearing = Hearing(("Ann",), event, EMPTY, ())
    known = Delta(frozenset({said("Ann", 1, "What a day!")}))
    assert await DialogueRules().revise(hearing) == await reader_of(client).revise(hearing) == known
    assert not client.requests


async def test_by_rule_a_question_stays_as_it_is_and_has_no_answer() -> None:
    assert await DialogueRules().reduce("What does Ann believe?", ["Ann"]) == "What does Ann believe?"
    with pytest.raises(StepFailure, match="give --reader answer=model"):
        await DialogueRules().answer("What does Ann believe?", EMPTY, ())


@pytest.mark.parametrize("reduced", ["What does Ben think about the trip?", "What is known about Ann's view of Ben?"])
async def test_a_belief_may_stay_in_a_question_about_what_was_heard(reduced: str) -> None:
    client = Scripted(in_turn({"question": f" {reduced}"}))
    assert await reader_of(client).reduce("What does Ann believe that Ben thinks?", ["Ann", "Ben"]) == reduced


async def test_a_reduced_question_is_a_question() -> None:
    client = Scripted(in_turn({"question": "The trip."}, {"question": "Where was the trip?"}))
    assert await reader_of(client).reduce("What does Ann believe?", ["Ann"]) == "Where was the trip?"


async def test_an_answer_is_given_from_the_utterances_in_their_order() -> None:
    lines = tuple(f"{name}: word {n}" for n, name in enumerate(["Ben", "Ann"] * 6, 1))
    world: Perspective = build_global(events_of(lines, [], {}))
    client = Scripted(in_turn({"reason": "r", "answer": "B"}))
    assert await reader_of(client).answer("What is known?", world.final, ("it", "nothing")) == "nothing"
    assert user(client).startswith("Utterances:\n" + "\n".join(lines) + "\n\nQuestion: What is known?\n")


async def test_who_heard_nothing_knows_none() -> None:
    client = Scripted(in_turn({"reason": "r", "answer": "A"}))
    state = frozenset({in_room("Ann", CONVERSATION)})
    assert await reader_of(client).answer("What is known?", state, ("it", "nothing")) == "it"
    assert "Utterances:\nnone\n" in user(client)


# What results depend on.


def test_results_depend_on_the_prompts_of_their_step_and_nothing_else() -> None:
    plain = reader_of(Scripted(in_turn()))
    for step in STEPS:
        other = reader_of(Scripted(in_turn()), rules=PRESETS["literal"], window=2)
        assert (plain.fields(step) != other.fields(step)) == (step == "abstract")
        absent = reader_of(Scripted(in_turn()), rules=PRESETS["waiting-absent"])
        assert (plain.fields(step) != absent.fields(step)) == (step == "observe")
    assert plain.fields("abstract")["window"] == reader_of(Scripted(in_turn()), window=60).fields("abstract")["window"]
    assert plain.fields("revise")["by"] == "rules"
    assert plain.fields("observe")["by"] == "model"


def test_results_depend_on_the_version_of_what_is_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {step: reader_of(Scripted(in_turn())).fields(step) for step in STEPS}
    monkeypatch.setattr("rectom.reader.dialogue.VERSION", 99)
    assert not [step for step in STEPS if reader_of(Scripted(in_turn())).fields(step) == before[step]]


def test_steps_by_rule_depend_on_the_rules_that_they_follow() -> None:
    usual, other = DialogueRules(), DialogueRules(PRESETS["hitom"])
    assert [step for step in STEPS if usual.fields(step) != other.fields(step)] == ["observe"]
