from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rectom.codec import events_to_json, perspective_to_json
from rectom.events import Delta, Event, Kind
from rectom.facts import Fact
from rectom.perspective import Perspective, build_global
from rectom.reader.rules import RuleReader
from rectom.results.attribution import UNTOLD, Fault, attribute, fault_rows
from rectom.results.outcome import Outcome
from rectom.story import Story

STORY = Story.parse("""Anne, Bob and Cid entered the hall.
The ball is in the box.
Bob moved the ball to the bag.
Anne exited the hall.
Bob moved the ball to the box.
Bob exited the hall.
Cid privately told Anne that the ball is in the bag.""")
READER = RuleReader()


def trace(events: tuple[Event, ...] | None = None, **changes: Any) -> dict[str, Any]:
    """The trace of a question about what Bob thinks that Anne thinks, all by rule unless changed."""
    found = READER.world(STORY).events if events is None else events
    world = build_global([event for event in found if event])
    bob = READER.perspective(world, "Bob")
    anne = READER.perspective(bob, "Anne")
    made = {
        "id": "1",
        "events": events_to_json(event for event in world.events if event),
        "world": perspective_to_json(world),
        "chain": ["Bob", "Anne"],
        "reduced": "Where is the ball really?",
        "perspectives": [perspective_to_json(bob), perspective_to_json(anne)],
        "predicted": "bag",
        "gold": "bag",
        "failure": None,
        "calls": [],
    }
    return {**made, **changes}


def told(**changes: Any) -> Fault:
    """What is told of a trace that was changed."""
    found = attribute(trace(**changes), trace())
    assert found
    return found


def events_with(line: int, event: Event) -> tuple[Event, ...]:
    """The events of the story, with another one at a line."""
    right = [event for event in READER.world(STORY).events if event]
    return (*right[: line - 1], event, *right[line:])


def perspectives(which: int, **changes: Any) -> list[dict[str, Any]]:
    """Bob's perspective and Anne's within it, one of them changed."""
    made = trace()["perspectives"]
    return [{**one, **changes} if place == which else one for place, one in enumerate(made)]


def test_an_event_that_leads_to_another_state_is_named_with_its_line() -> None:
    moved = Event(Kind.PERSISTENT, Delta(frozenset({Fact("in", ("ball", "jar"))})))
    assert told(events=events_with(3, moved)) == Fault(
        "abstraction", "+in(ball,jar)", "+in(ball,bag) -in(ball,box)", line=3
    )


def test_a_claim_that_was_not_read_is_one_too() -> None:
    nothing = Event(Kind.PERSISTENT)
    found = told(events=events_with(7, nothing))
    assert (found.step, found.line, found.found) == ("abstraction", 7, "-")
    assert found.expected == "private_tell(Cid,Anne,in(ball,bag))"


def test_what_is_stated_again_is_no_fault_unless_the_answer_differs() -> None:
    again = Event(Kind.PERSISTENT, Delta(frozenset({Fact("in", ("ball", "bag"))})))
    events = events_with(
        4,
        replace(
            READER.world(STORY).events[3] or again,
            delta=Delta(frozenset({Fact("in", ("ball", "bag"))}), frozenset({Fact("in_room", ("Anne", "hall"))})),
        ),
    )
    same = attribute({**trace(), "events": events_to_json(events)}, trace())
    assert same is not None
    assert same.step == "label"
    other = attribute({**trace(predicted="box"), "events": events_to_json(events)}, trace())
    assert other is not None
    assert (other.step, other.line) == ("abstraction", 4)


def test_a_world_that_is_not_that_of_equation_1_is_the_update() -> None:
    world = trace()["world"]
    deltas = [*world["deltas"]]
    deltas[2] = [[], []]
    found = told(world={**world, "deltas": deltas})
    assert (found.step, found.line, found.who) == ("update", 3, None)
    assert (found.found, found.expected) == ("in(ball,box)", "in(ball,bag)")


def test_another_chain_ends_the_comparison() -> None:
    found = told(chain=["Anne"], perspectives=perspectives(0)[:1])
    assert found == Fault("chain", "World → Anne", "World → Bob → Anne")


def test_a_state_that_was_not_observed_is_named_with_line_and_character() -> None:
    vantage = trace()["perspectives"][0]["vantage"]
    found = told(perspectives=perspectives(0, vantage=[*vantage[:2], None, *vantage[3:]]))
    assert found == Fault("state observability", "not observed", "observed from hall", line=3, who="Bob")


def test_an_event_that_was_learnt_of_is_named() -> None:
    events = trace()["perspectives"][1]["events"]
    found = told(perspectives=perspectives(1, events=[*events[:4], not events[4], *events[5:]]))
    assert (found.step, found.line, found.who) == ("event observability", 5, "Anne")


def test_a_belief_after_a_claim_is_the_revision_and_another_one_the_update() -> None:
    deltas = trace()["perspectives"][1]["deltas"]
    revised = told(perspectives=perspectives(1, deltas=[*deltas[:6], [["in(ball,jar)"], ["in(ball,bag)"]]]))
    assert (revised.step, revised.line, revised.who) == ("revision", 7, "Anne")
    updated = told(perspectives=perspectives(1, deltas=[*deltas[:1], [["in(ball,jar)"], []], *deltas[2:]]))
    assert (updated.step, updated.line, updated.who) == ("update", 2, "Anne")


def test_what_a_nested_perspective_took_over_is_put_down_to_the_outer_one() -> None:
    both = [{**one, "vantage": [*one["vantage"][:1], None, *one["vantage"][2:]]} for one in trace()["perspectives"]]
    assert told(perspectives=both).who == "Bob"


@pytest.mark.parametrize("text", ["Where is the ball really?", "where is the ball really", "Where was the ball?"])
def test_a_question_in_other_words_is_the_same_if_it_asks_for_the_same(text: str) -> None:
    found = attribute(trace(reduced=text), trace())
    assert found is not None
    assert found.step == ("reduction" if text.startswith("Where was") else "label")


def test_another_object_is_another_question() -> None:
    assert told(reduced="Where is the coin really?").step == "reduction"


def test_an_answer_that_all_steps_speak_against_is_at_fault() -> None:
    assert told(predicted="box") == Fault("answer", "box", "bag")


def test_a_label_that_no_step_leads_to_is_in_doubt() -> None:
    assert told(gold="jar") == Fault("label", "bag", "jar")


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("abstract", "abstraction"),
        ("observe_states", "state observability"),
        ("observe_events", "event observability"),
        ("observe_history", "event observability"),
        ("revise", "revision"),
        ("reduce", "reduction"),
        ("answer_history", "answer"),
        ("update", "update"),
    ],
)
def test_a_failure_is_put_down_to_its_step(step: str, name: str) -> None:
    found = attribute(trace(failure={"step": step, "why": "no reply"}), None)
    assert found == Fault(name, "no reply", "a usable reply", by="failure")


def test_a_failure_of_another_methods_step_is_not_told() -> None:
    assert attribute(trace(failure={"step": "perceivers_story", "why": "no reply"}), None) is None


def test_without_an_oracle_a_violated_check_is_told() -> None:
    calls = [{"step": "chain"}, {"step": "observe_states", "fault": "state 3 does not place Anne"}]
    assert attribute(trace(calls=calls), None) == Fault(
        "state observability", "state 3 does not place Anne", "a reply without that", by="verify"
    )
    assert attribute(trace(calls=calls[:1]), None) is None


def test_histories_are_compared_by_what_is_in_them() -> None:
    histories = [{"chain": one["chain"], "events": one["events"]} for one in trace()["perspectives"]]
    assert attribute(trace(world={"chain": [], "events": [True] * 7}, perspectives=histories), trace()) == Fault(
        "label", "bag", "bag"
    )
    histories[1] = {**histories[1], "events": [not histories[1]["events"][0], *histories[1]["events"][1:]]}
    found = attribute(trace(world={"chain": [], "events": [True] * 7}, perspectives=histories), trace())
    assert found is not None
    assert (found.step, found.line, found.who) == ("event observability", 1, "Anne")


def outcome(order: int | None, fault: str, *, correct: bool = False) -> Outcome:
    return Outcome("q", "s", order, "box", "bag", correct, None, 1, 1, fault=fault)


def test_the_table_has_a_row_a_step_in_the_order_of_the_algorithm() -> None:
    outcomes = [
        *(outcome(1, "answer"), outcome(2, "abstraction"), outcome(2, "answer"), outcome(2, "")),
        outcome(3, "", correct=True),
    ]
    header, rows = fault_rows(outcomes)
    assert header == ("went wrong at", "order 1", "order 2", "all")
    assert rows == [("abstraction", 0, 1, 1), ("answer", 1, 1, 2), (UNTOLD, 0, 1, 1)]
    assert fault_rows([outcome(3, "", correct=True)])[1] == []
    assert fault_rows([outcome(None, "chain")]) == (("went wrong at", "-", "all"), [("chain", 1, 1)])


def test_a_perspective_is_what_it_is_built_as() -> None:
    assert isinstance(READER.perspective(READER.world(STORY), "Bob"), Perspective)
