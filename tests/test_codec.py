from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom import grammar
from rectom.codec import (
    events_from_json,
    events_to_json,
    global_from_json,
    history_from_json,
    history_to_json,
    is_history,
    observability_from_json,
    observability_to_json,
    perspective_to_json,
    state_from_json,
    states_from_json,
)
from rectom.errors import FormulaError
from rectom.events import Kind, private_tell, public_claim
from rectom.facts import inside, printed
from rectom.history import History
from rectom.perspective import Observability, Perspective
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS
from rectom.story import Story
from tests.conftest import along, characters_of, stories


def through_json(data: Any) -> Any:
    return orjson.loads(orjson.dumps(data))


@given(stories())
def test_events_come_back_as_they_were(story: Story) -> None:
    events = grammar.read_story(story)
    assert events_from_json(through_json(events_to_json(events))) == events


@given(st.lists(st.tuples(st.one_of(st.none(), st.sampled_from(["hall", "den"])), st.booleans())))
def test_observability_comes_back_as_it_was(steps: list[tuple[str | None, bool]]) -> None:
    able = Observability(tuple(room for room, _ in steps), tuple(told for _, told in steps))
    assert observability_from_json(through_json(observability_to_json(able))) == able


@given(stories())
def test_a_global_perspective_comes_back_with_its_events(story: Story) -> None:
    world = RuleReader().world(story)
    written = through_json(perspective_to_json(world))
    assert not is_history(written)
    assert global_from_json(written, grammar.read_story(story)) == world


@given(stories(), st.data())
def test_a_history_comes_back_with_its_events(story: Story, data: st.DataObject) -> None:
    events = grammar.read_story(story)
    whole = History(events)
    history = whole.seen_by("Anne", data.draw(st.sets(st.integers(1, len(events)))))
    for each in (whole, history):
        written = through_json(history_to_json(each))
        assert is_history(written)
        assert history_from_json(written, events) == each


@given(stories(), st.sampled_from(list(PRESETS)), st.data())
def test_the_states_of_any_perspective_come_back_along_its_deltas(
    story: Story, rules: str, data: st.DataObject
) -> None:
    reader = RuleReader(PRESETS[rules])
    world = reader.world(story)
    chain = data.draw(st.lists(st.sampled_from(characters_of(world)), max_size=3))
    perspective: Perspective = along(reader.perspective, world, chain)
    written = through_json(perspective_to_json(perspective))
    assert tuple(states_from_json(written)) == perspective.states
    assert written["chain"] == list(perspective.chain)
    assert written["events"] == [event is not None for event in perspective.events]
    assert tuple(written["vantage"]) == perspective.vantage


@given(stories())
def test_a_state_comes_back_from_its_printed_facts(story: Story) -> None:
    for state in RuleReader().world(story).states:
        assert state_from_json(printed(state)) == state


def test_the_two_kinds_of_communication_keep_who_hears_them() -> None:
    said = inside("ball", "box")
    events = (private_tell("Anne", "Bob", said), public_claim("Anne", said))
    written = events_to_json(events)
    assert written == [
        {"kind": "transient", "occurrence": "private_tell(Anne,Bob,in(ball,box))"},
        {"kind": "transient", "occurrence": "public_claim(Anne,in(ball,box))"},
    ]
    read = events_from_json(written)
    assert [event.listener for event in read] == ["Bob", None]
    assert {event.kind for event in read} == {Kind.TRANSIENT}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([{"kind": "persistent", "added": ["in(ball"], "removed": []}], FormulaError),
        ([{"kind": "transient", "occurrence": "he said so"}], FormulaError),
        ([{"kind": "persistent", "added": []}], KeyError),
        ([{"added": [], "removed": []}], KeyError),
    ],
)
def test_what_is_no_event_is_refused(data: list[dict[str, Any]], error: type[Exception]) -> None:
    with pytest.raises(error):
        events_from_json(data)
