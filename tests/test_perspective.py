from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom import grammar
from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure
from rectom.events import NOTHING, Delta, Event, persistent, public_claim
from rectom.facts import EMPTY, Fact, State, in_room, inside, value_of
from rectom.perspective import (
    EVERYWHERE,
    Hearing,
    Observability,
    Observation,
    Perspective,
    Sight,
    build_global,
    complete,
    construct,
    equation_1,
    extend,
    observe,
    recurse,
    update_along,
)
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS, Scope
from rectom.story import Story
from tests.conftest import along, characters_of, remembered, stories

STORY = Story.parse(
    """
    1 Anne and Bob entered the hall.
    2 The ball is in the box.
    3 Anne exited the hall.
    4 Bob moved the ball to the bag.
    5 Bob exited the hall.
    6 Anne and Bob entered the waiting_room.
    """
)
READER = RuleReader()
WORLD = READER.world(STORY)


def _where(perspective: Perspective, thing: str = "ball") -> list[str | None]:
    return [value_of(state, "in", thing) for state in perspective.states]


@pytest.mark.parametrize("rules", ["room-scope", "hitom"])
def test_who_is_elsewhere_learns_that_somebody_left_and_what_was_there_stays_unseen(rules: str) -> None:
    reader = RuleReader(PRESETS[rules])
    story = Story.parse(
        "Anne entered the hall.\nThe ball is in the box.\nBob entered the kitchen.\nAnne exited the hall."
    )
    world = reader.world(story)
    bob = reader.perspective(world, "Bob")
    assert in_room("Anne", "hall") in bob.states[2]
    assert bob.final == {in_room("Bob", "kitchen")}
    assert world.final == {in_room("Bob", "kitchen"), inside("ball", "box")}


def test_the_global_perspective_is_equation_1_along_the_story() -> None:
    assert _where(WORLD) == [None, "box", "box", "bag", "bag", "bag"]
    assert WORLD.vantage == (EVERYWHERE,) * 6
    assert WORLD.chain == ()
    assert all(event is not None for event in WORLD.events)
    assert in_room("Anne", "waiting_room") in WORLD.final


def test_the_empty_story_has_an_empty_final_state() -> None:
    assert build_global([]).final == EMPTY


def test_who_left_misses_the_move_and_who_stayed_knows_that() -> None:
    anne = READER.perspective(WORLD, "Anne")
    bob_on_anne = along(READER.perspective, WORLD, ["Bob", "Anne"])
    assert _where(anne) == _where(bob_on_anne) == [None, "box", "box", "box", "box", "box"]
    assert anne.events[3] is None
    assert anne.vantage == ("hall", "hall", None, None, None, None)
    assert bob_on_anne.chain == ("Bob", "Anne")


def test_joint_observation_needs_the_outer_one_to_be_there() -> None:
    story = Story.parse(
        """
        1 Anne and Bob entered the hall.
        2 The ball is in the box.
        3 Bob exited the hall.
        4 Anne moved the ball to the bag.
        5 Anne exited the hall.
        6 Bob entered the hall.
        """
    )
    world = READER.world(story)
    alone = RuleReader(replace(PRESETS["hitom"], joint=False))
    assert _where(along(READER.perspective, world, ["Anne", "Bob"]))[-2:] == ["box", "box"]
    assert _where(along(alone.perspective, world, ["Anne", "Bob"]))[-2:] == ["box", "bag"]
    assert _where(READER.perspective(world, "Bob"))[-1] == "bag"


def test_observation_gives_the_marks_of_equation_2() -> None:
    able = Observability(("hall", "hall", None, None, None, None), (True, False, True, False, True, True))
    seen = observe(WORLD, "Anne", able, PRESETS["hitom"])
    assert [sight is not None for sight in seen.sights] == [True, True, False, False, False, False]
    assert [event is not None for event in seen.events] == [True, True, True, False, True, True]
    assert seen.sights[1] is not None
    assert inside("ball", "box") in seen.sights[1].facts
    assert seen.vantage == ("hall", "hall", None, None, None, None)


def test_an_empty_observed_state_is_not_an_unobserved_one() -> None:
    story = Story.parse("1 Anne saw a cat.\n2 Anne entered the hall.")
    seen = asyncio.run(_observed(story, "Anne", "literal"))
    assert seen == (None, frozenset({in_room("Anne", "hall")}))
    world = READER.world(story)
    able = Observability(("hall", "hall"), (False, True))
    first = observe(world, "Anne", able, PRESETS["literal"]).sights[0]
    assert first == Sight(EMPTY, EVERYWHERE)


async def _observed(story: Story, character: str, preset: str) -> tuple[frozenset[Fact] | None, ...]:
    reader = RuleReader(PRESETS[preset])
    world = reader.world(story)
    seen = observe(world, character, await reader.observability(world, character), reader.rules)
    return tuple(sight.facts if sight else None for sight in seen.sights)


def test_a_whole_state_is_taken_over_and_an_unobserved_one_is_inherited() -> None:
    literal = RuleReader(PRESETS["waiting-absent"])
    anne = literal.perspective(WORLD, "Anne")
    assert anne.states[1] == WORLD.states[1]
    # She learns of her own exit, so the belief that she is in the hall goes; the rest is inherited.
    assert anne.states[2] == WORLD.states[1] - {in_room("Anne", "hall")}
    assert value_of(anne.final, "in_room", "Bob") == "waiting_room"


def test_a_look_into_a_room_shows_what_is_there_and_what_is_not() -> None:
    sight = Sight(frozenset({inside("ball", "bag")}), "hall", frozenset({"bag", "box"}))
    belief = frozenset({inside("ball", "box"), inside("cup", "box"), inside("pin", "jar"), in_room("Cy", "hall")})
    assert sight.correct(belief) == {inside("ball", "bag"), inside("pin", "jar")}


def test_a_look_supersedes_a_belief_about_another_room() -> None:
    sight = Sight(frozenset({inside("ball", "bag"), in_room("Cy", "hall")}), "hall", frozenset({"bag"}))
    belief = frozenset({inside("ball", "jar"), in_room("Cy", "den"), in_room("Dee", "den")})
    assert sight.correct(belief) == {inside("ball", "bag"), in_room("Cy", "hall"), in_room("Dee", "den")}


async def test_an_observed_event_changes_an_inherited_belief_whatever_was_believed_before() -> None:
    events = (persistent([inside("ball", "box")]), persistent([inside("ball", "bag")], [inside("ball", "tin")]), None)
    seen = Observation("Anne", (None,) * 3, events, (None,) * 3)
    completed = await complete(seen, WORLD, READER)
    assert completed.states == tuple(frozenset({inside("ball", place)}) for place in ("box", "bag", "bag"))


async def _lose_everything(_state: State, _event: Event) -> State:
    return EMPTY


async def test_an_updater_stands_in_for_equation_1_where_something_changes() -> None:
    events = [persistent([inside("ball", "box")]), NOTHING, public_claim("Bob", inside("ball", "tin"))]
    asked: list[tuple[State, Event]] = []

    async def update(state: State, event: Event) -> State:
        asked.append((state, event))
        return frozenset({inside("ball", "bag")})

    world = await update_along([*events, events[0]], update)
    assert asked == [(EMPTY, events[0]), (frozenset({inside("ball", "bag")}), events[0])]
    assert _where(world) == ["bag"] * 4
    assert world.events == (*events, events[0])
    assert world.setting == build_global([*events, events[0]]).setting


async def test_an_updater_is_asked_for_what_is_observed_and_not_in_sight() -> None:
    asked: list[str] = []

    async def update(state: State, event: Event) -> State:
        asked.append(str(event))
        return await equation_1(state, event)

    assert await recurse(WORLD, ["Anne", "Bob"], READER, update) == await recurse(WORLD, ["Anne", "Bob"], READER)
    # Her own exit and all that happens afterwards, but for the move that she does not learn of; Bob's part alike.
    anne = ["-in_room(Anne,hall)", "-in_room(Bob,hall)", "+in_room(Anne,waiting_room) +in_room(Bob,waiting_room)"]
    assert asked == [*anne, *anne]


async def test_what_an_updater_loses_is_still_seen() -> None:
    anne = (await recurse(WORLD, ["Anne"], READER, _lose_everything))[-1]
    assert _where(anne) == [None, "box", None, None, None, None]
    # Bob is nowhere as he leaves the hall; then he sees the whole state from the waiting room.
    bob = (await recurse(WORLD, ["Bob"], RuleReader(PRESETS["literal"]), _lose_everything))[-1]
    assert _where(bob) == [None, "box", "box", "bag", None, "bag"]


class _Gullible(RuleReader):
    """Believes everything that it hears, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(PRESETS["hitom"])
        self.heard: list[Hearing] = []

    async def revise(self, hearing: Hearing) -> Delta:
        self.heard.append(hearing)
        said = hearing.event.proposition
        return Delta(
            frozenset(filter(None, [said])), frozenset(f for f in hearing.belief if said and f.slot == said.slot)
        )


def test_only_a_claim_that_says_something_new_is_judged() -> None:
    claims = [public_claim("Bob", inside("ball", "box")), public_claim("Bob", inside("ball", "tin"))]
    world = build_global([*grammar.read_story(STORY), *claims])
    reader = _Gullible()
    anne = reader.perspective(world, "Anne")
    assert _where(anne)[-2:] == ["box", "tin"]
    (hearing,) = reader.heard
    assert (hearing.chain, hearing.exits) == (("Anne",), ("Anne", "Bob"))
    assert inside("ball", "box") in hearing.belief


async def test_the_recursion_gives_every_perspective_of_the_chain() -> None:
    perspectives = await recurse(WORLD, ["Bob", "Anne"], READER)
    assert [p.chain for p in perspectives] == [(), ("Bob",), ("Bob", "Anne")]
    assert perspectives[0] is WORLD
    assert perspectives[2] == await construct(perspectives[1], "Anne", READER)


async def test_a_failed_judgement_is_not_swallowed() -> None:
    class Broken(RuleReader):
        async def observability(self, source: Perspective, character: str) -> Observability:
            raise StepFailure("observe", "no reply")

    with pytest.raises(StepFailure, match="observe: no reply"):
        await recurse(WORLD, ["Anne"], Broken())


async def test_observation_and_completion_keep_the_length() -> None:
    seen = observe(WORLD, "Anne", await READER.observability(WORLD, "Anne"), READER.rules)
    whole = await complete(seen, WORLD, READER)
    assert len(whole.states) == len(whole.events) == len(whole.vantage) == len(STORY.lines)


async def test_observability_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        observe(WORLD, "Anne", Observability((None,), (False,)), READER.rules)


def test_who_thinks_about_himself_adds_no_depth() -> None:
    assert extend(("Anne",), "Anne") == ("Anne",)
    assert extend(("Anne", "Bob"), "Anne") == ("Anne", "Bob", "Anne")


def test_nested_presence_equals_the_global_one_on_every_real_step(
    cotp: Benchmark, worlds: dict[str, Perspective]
) -> None:
    steps = 0
    construct_once = remembered(READER.perspective)
    for question in cotp.questions:
        perspective = worlds[question.story_id]
        presence = perspective.presence()
        for name in grammar.read_question(question.text)[0]:
            perspective = construct_once(perspective, name)
            assert perspective.presence() == presence
            steps += len(presence)
    assert steps == 31_500


@given(stories(), st.data())
def test_nested_presence_equals_the_global_one_on_generated_stories(story: Story, data: st.DataObject) -> None:
    world = READER.world(story)
    names = data.draw(st.lists(st.sampled_from(characters_of(world)), min_size=1, max_size=4))
    assert along(READER.perspective, world, names).presence() == world.presence()


@given(stories(), st.data())
def test_nobody_believes_a_thing_to_be_in_two_places(story: Story, data: st.DataObject) -> None:
    reader = RuleReader(PRESETS[data.draw(st.sampled_from(sorted(PRESETS)))])
    world = reader.world(story)
    names = data.draw(st.lists(st.sampled_from(characters_of(world)), max_size=4))
    for state in along(reader.perspective, world, names).states:
        assert len({fact.slot for fact in state}) == len(state)


@given(stories(), st.data())
def test_what_the_inner_one_sees_the_outer_one_sees(story: Story, data: st.DataObject) -> None:
    world = READER.world(story)
    names = data.draw(st.lists(st.sampled_from(characters_of(world)), min_size=2, max_size=4))
    outer = along(READER.perspective, world, names[:-1])
    inner = READER.perspective(outer, names[-1])
    assert all(above == here for above, here in zip(outer.vantage, inner.vantage, strict=True) if here)


def test_the_scope_is_what_the_rules_say() -> None:
    reader = RuleReader(replace(PRESETS["hitom"], scope=Scope.STATE))
    assert reader.perspective(WORLD, "Anne").states[1] == WORLD.states[1]
