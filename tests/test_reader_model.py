from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings

from rectom import grammar
from rectom.benchmarks.generate import Recipe
from rectom.errors import EndpointDown, StepFailure
from rectom.events import NOTHING, Delta, persistent, private_tell, public_claim
from rectom.facts import EMPTY, State, in_room, inside
from rectom.llm import ChatRequest, ModelId, Reply
from rectom.perspective import Hearing, Perspective, build_global, recurse
from rectom.reader.asking import Asker, recording
from rectom.reader.base import STEPS
from rectom.reader.model import PROMPTS, ModelReader
from rectom.reader.rules import RuleReader, present
from rectom.rules import PRESETS, WAITING_ROOM
from rectom.story import Story
from rectom.words import words_of
from tests.conftest import generated, recipes
from tests.laboratory import Scripted, by_rule, in_turn

STORY = Story.parse("Anne and Bob entered the hall.\nThe ball is in the box.\nAnne exited the hall.")
#: So many facts can be formed of its names that the schema does not list them.
CROWD = Story(
    "crowd",
    (f"{', '.join(f'Guest{chr(65 + n // 26)}{chr(97 + n % 26)}' for n in range(300))} and Anne entered the hall.",),
)
NOISE = Story("noise", ("Anne likes the box.",))
WORLD = build_global(
    [
        persistent([in_room("Anne", "hall"), in_room("Bob", "hall")]),
        persistent([inside("ball", "box")]),
        persistent(removed=[in_room("Anne", "hall")]),
        private_tell("Anne", "Bob", inside("ball", "bag")),
    ]
)
CLAIM = public_claim("Bob", inside("ball", "bag"))
HEARING = Hearing(("Anne",), CLAIM, frozenset({inside("ball", "box"), in_room("Bob", "hall")}), ("Anne", "Bob"))
ABSENT = HEARING.__class__(("Anne", "Cy"), CLAIM, EMPTY, ())
QUESTION = "Where does Anne really think the ball is?"
FACTS: State = frozenset({inside("ball", "box"), in_room("Anne", "hall")})
NONE = "not_observable"


def reader_of(client: Scripted, **options: Any) -> ModelReader:
    return ModelReader(Asker(client, ModelId("m"), repairs=1), **options)


def entry(*added: str) -> list[str]:
    return [f"+{fact}" for fact in added]


def lines(*entries: Any, of: Story = STORY) -> dict[str, Any]:
    """A reply with entries for the lines of a story, and for such as it has not."""
    names = [f"{number} {line}" for number, line in enumerate([*of.lines, "And so on."], 1)]
    return dict(zip(names, entries, strict=False))


def crowded(*entries: Any) -> dict[str, Any]:
    return lines(*entries, of=CROWD)


ENTER, PUT, LEAVE = entry("in_room(Anne,hall)"), entry("in(ball,box)"), entry()
#: Who left first: the hearer, who is convinced then, or the speaker.
CONVINCED = {"left_first": "Anne"}
DENIED = {"left_first": "Bob"}

Step = Callable[[ModelReader], Awaitable[object]]


def abstract(story: Story) -> Step:
    return lambda reader: reader.abstract(story)


def states(reader: ModelReader) -> Awaitable[object]:
    return reader._states(WORLD.presence(), "Anne")


def events(reader: ModelReader) -> Awaitable[object]:
    return reader._events(WORLD.events, "Cy")


def revise(hearing: Hearing) -> Step:
    return lambda reader: reader.revise(hearing)


def reduce(reader: ModelReader) -> Awaitable[object]:
    return reader.reduce(QUESTION, ["Anne"])


def chain(reader: ModelReader) -> Awaitable[object]:
    return reader.chain(QUESTION, words_of(STORY.lines))


def answer(*choices: str) -> Step:
    return lambda reader: reader.answer("Where is the ball really?", FACTS, choices)


HALL = "in_room(Anne,hall)"
#: The first two states say the same of Anne, and the last two.
NOTED = {"1": HALL, "3": NONE}
HEARD = {"4": "not_observable"}

#: What breaks a rule of a step: the step, a reply, words of the fault, and a reply that does not.
FAULTS: dict[str, tuple[Step, Any, str, Any]] = {
    "a line too few": (
        abstract(STORY),
        lines(ENTER, PUT),
        "3 Anne exited the hall.: Field required",
        lines(ENTER, PUT, LEAVE),
    ),
    "a line beyond": (
        abstract(STORY),
        lines(ENTER, PUT, LEAVE, []),
        "4 And so on.: Extra inputs are not permitted",
        lines(ENTER, PUT, LEAVE),
    ),
    "a fact of another line": (
        abstract(STORY),
        lines(ENTER, ENTER, LEAVE),
        "2 The ball is in the box..0: Input should be '+in(ball,box)' or '-in(ball,box)'",
        lines(ENTER, PUT, LEAVE),
    ),
    "a fact cut off": (abstract(CROWD), crowded(entry("in(ball")), "expected ',' or ')'", crowded(entry())),
    "no fact": (abstract(CROWD), crowded(entry("the ball")), "expected '('", crowded(entry())),
    "another predicate": (
        abstract(CROWD),
        crowded(entry("likes(Anne,box)")),
        "neither in_room(character,room) nor in(object,container)",
        crowded(entry()),
    ),
    "a fact of three": (
        abstract(CROWD),
        crowded(entry("in(ball,box,hall)")),
        "neither in_room",
        crowded(entry()),
    ),
    "an unknown character": (
        abstract(CROWD),
        crowded(entry("in_room(Zoe,hall)")),
        "Zoe in in_room(Zoe,hall) is not one of GuestAa, ",
        crowded(entry()),
    ),
    "a misspelled name": (
        abstract(STORY),
        lines(entry("in_room(Ann,hall)"), PUT, LEAVE),
        "Input should be '+in_room(Anne,hall)'",
        lines(ENTER, PUT, LEAVE),
    ),
    "a name that is not asked for": (
        chain,
        {"chain": ["Bob"]},
        "chain.0: Input should be 'Anne'",
        {"chain": ["Anne"]},
    ),
    "a name that nobody bears": (chain, {"chain": ["Zoe"]}, "chain.0: Input should be 'Anne'", {"chain": ["Anne"]}),
    "a state too few": (states, {"1": HALL}, "3: Field required", NOTED),
    "a state too many": (states, {**NOTED, "2": HALL}, "2: Extra inputs are not permitted", NOTED),
    "a fact of another state": (states, {"1": HALL, "3": HALL}, "3: Input should be 'not_observable'", NOTED),
    "the presence of somebody else": (
        states,
        {**NOTED, "1": "in_room(Bob,hall)"},
        "1: Input should be 'in_room(Anne,hall)' or 'not_observable'",
        NOTED,
    ),
    "an event too few": (events, {}, "4: Field required", HEARD),
    "an event not asked for": (events, {**HEARD, "1": "observable"}, "1: Extra inputs are not permitted", HEARD),
    "a word of its own": (
        events,
        {"4": "seen"},
        "4: Input should be 'observable' or 'not_observable'",
        HEARD,
    ),
    "nobody who left": (revise(HEARING), {}, "left_first: Field required", CONVINCED),
    "somebody else who left": (
        revise(HEARING),
        {"left_first": "Cy"},
        "left_first: Input should be 'Anne' or 'Bob'",
        DENIED,
    ),
    "no question": (
        reduce,
        {"question": "The ball"},
        "must end with a question mark",
        {"question": "Where is the ball?"},
    ),
    "a question that still thinks": (
        reduce,
        {"question": "Where does Anne say the ball is?"},
        "must not name Anne",
        {"question": "Where is the ball?"},
    ),
    "an option that is not offered": (
        answer("box", "bag"),
        {"fact": "none", "answer": "trunk"},
        "answer: Input should be 'box' or 'bag'",
        {"fact": "in(ball,box)", "answer": "box"},
    ),
    "a fact that does not hold": (
        answer("box", "bag"),
        {"fact": "in(ball,bag)", "answer": "bag"},
        "fact: Input should be 'in(ball,box)' or 'none'",
        {"fact": "in(ball,box)", "answer": "box"},
    ),
}


@pytest.mark.parametrize(("step", "bad", "fault", "good"), FAULTS.values(), ids=FAULTS)
async def test_what_breaks_a_rule_of_the_step_is_named_and_repaired(
    step: Step, bad: Any, fault: str, good: Any
) -> None:
    client = Scripted(in_turn(bad, good))
    await step(reader_of(client))
    first, second = client.requests
    assert second.messages[:2] == first.messages
    assert json.loads(second.messages[2].content) == bad
    assert second.messages[3].content.startswith("That reply cannot be used: ")
    assert fault in second.messages[3].content


@pytest.mark.parametrize(("step", "bad", "fault", "good"), FAULTS.values(), ids=FAULTS)
async def test_what_is_never_repaired_fails_the_step(step: Step, bad: Any, fault: str, good: Any) -> None:
    client = Scripted(in_turn(bad, bad))
    with pytest.raises(StepFailure) as failed:
        await step(reader_of(client))
    assert failed.value.step == client.requests[0].schema_name
    assert fault in failed.value.why


async def test_entries_may_come_in_any_order() -> None:
    reader = reader_of(Scripted(in_turn(dict(reversed(lines(ENTER, PUT, LEAVE).items())))))
    found = await reader.abstract(STORY)
    assert [str(event) for event in found] == ["+in_room(Anne,hall)", "+in(ball,box)", "-"]


async def test_what_a_move_makes_false_need_not_be_said() -> None:
    story = Story("s", ("The ball is in the box.", "Anne moved the ball to the bag."))
    reader = reader_of(Scripted(in_turn(lines(entry("in(ball,box)"), entry("in(ball,bag)"), of=story))))
    assert str((await reader.abstract(story))[1]) == "+in(ball,bag) -in(ball,box)"


async def test_claims_and_private_communications_keep_who_said_what_to_whom() -> None:
    story = Story(
        "s", ("Anne publicly claimed that ball is in the box.", "Anne privately told Bob that the ball is in the box.")
    )
    said, told = ["Anne tells everybody in(ball,box)"], ["Anne tells Bob in(ball,box)"]
    reader = reader_of(Scripted(in_turn(lines(said, told, of=story))))
    ball = inside("ball", "box")
    assert await reader.abstract(story) == (public_claim("Anne", ball), private_tell("Anne", "Bob", ball))


@pytest.mark.parametrize(("window", "sizes"), [(None, [7]), (1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (50, [7])])
async def test_a_window_is_so_many_lines_numbered_from_one(window: int | None, sizes: list[int]) -> None:
    lines = tuple(f"Anne moved the ball to the box{n}." for n in range(7))
    client = Scripted(by_rule)
    assert len(await reader_of(client, window=window).abstract(Story("s", lines))) == 7
    shown = [request.messages[1].content.partition("Lines:\n")[2].splitlines() for request in client.requests]
    assert [len(part) for part in shown] == sizes
    assert [line.partition(" ")[2] for part in shown for line in part] == list(lines)
    assert all(line.startswith(f"{number} ") for part in shown for number, line in enumerate(part, 1))


async def test_a_window_offers_only_its_own_names() -> None:
    client = Scripted(by_rule)
    await reader_of(client, window=1).abstract(STORY)
    offered = [str(request.schema) for request in client.requests]
    assert ["in(ball,box)" in schema for schema in offered] == [False, True, False]
    assert ["in_room(Anne,hall)" in schema for schema in offered] == [True, False, True]


async def test_lines_of_which_no_fact_can_be_formed_are_not_asked_about() -> None:
    client = Scripted(by_rule)
    assert await reader_of(client, window=1).abstract(NOISE) == (NOTHING,)
    assert not client.requests


@given(recipes())
@settings(max_examples=15)
def test_a_right_model_reads_every_story_as_the_rules_do(recipe: Recipe) -> None:
    rows = generated(recipe)
    story = Story.parse(rows[0].story)
    rules, model = RuleReader(), reader_of(Scripted(by_rule))

    async def both() -> None:
        world = build_global(await model.abstract(story))
        assert world == rules.world(story)
        question = rows[-1].question
        found = await model.chain(question, words_of(story.lines))
        assert found == grammar.read_question(question)[0]
        built = await recurse(world, found, model)
        assert built == await recurse(world, found, rules)
        reduced = await model.reduce(question, found)
        assert reduced == await rules.reduce(question, found)
        assert await model.answer(reduced, built[-1].final, rows[-1].choices) == rows[-1].answer

    asyncio.run(both())


async def test_a_question_about_the_actual_world_needs_neither_chain_nor_reduction() -> None:
    client = Scripted(by_rule)
    assert await reader_of(client).chain("Where is the ball really?", words_of(STORY.lines)) == ()
    assert await reader_of(client).reduce("Where is the ball really?", ()) == "Where is the ball really?"
    assert not client.requests


async def test_observability_is_asked_of_states_and_events_at_once() -> None:
    client = Scripted(by_rule)
    able = await reader_of(client).observability(WORLD, "Bob")
    assert able == await RuleReader().observability(WORLD, "Bob")
    assert able.rooms == ("hall",) * 4
    assert able.events == (True, False, True, True)
    assert [request.schema_name for request in client.requests] == ["observe_states", "observe_events"]


async def test_events_that_nobody_learns_of_elsewhere_are_not_asked_about() -> None:
    put = persistent([inside("ball", "box")])
    source = Perspective((frozenset({in_room("Bob", "hall")}),) * 3, (None, NOTHING, put), ("*",) * 3)
    client = Scripted(by_rule)
    assert (await reader_of(client).observability(source, "Bob")).events == (False, False, False)
    assert [request.schema_name for request in client.requests] == ["observe_states"]


async def test_states_that_say_the_same_of_a_character_are_asked_about_once() -> None:
    client = Scripted(in_turn(NOTED))
    assert await reader_of(client)._states(WORLD.presence(), "Anne") == ("hall", "hall", None, None)
    assert client.requests[0].messages[1].content == "Character: Anne\nStates:\n1 in_room(Anne,hall)\n3 -"


@pytest.mark.parametrize("preset", ["literal", "hitom"])
async def test_the_waiting_room_is_a_place_to_observe_from_where_the_rules_say_so(preset: str) -> None:
    source = [frozenset({in_room("Anne", room)}) for room in ("hall", WAITING_ROOM)]
    client = Scripted(by_rule)
    found = await reader_of(client, rules=PRESETS[preset])._states(source, "Anne")
    assert found == tuple(present(state, "Anne", PRESETS[preset]) for state in source)
    assert ("in_room(Anne,waiting_room)" in client.requests[0].messages[1].content) is (preset == "literal")


async def test_of_who_is_nowhere_nothing_is_asked() -> None:
    client = Scripted(by_rule)
    assert await reader_of(client)._states(WORLD.presence(), "Cy") == (None,) * 4
    assert not client.requests


async def test_events_keep_their_numbers() -> None:
    client = Scripted(by_rule)
    able = await reader_of(client).observability(WORLD, "Cy")
    assert able.events == (True, False, True, False)
    assert client.requests[0].messages[1].content.startswith("Communications:\n4 private_tell(Anne,Bob,in(ball,bag))\n")


async def test_without_communications_no_event_is_asked_about() -> None:
    silent = build_global([event for event in WORLD.events[:3] if event])
    client = Scripted(by_rule)
    able = await reader_of(client).observability(silent, "Cy")
    assert able == await RuleReader().observability(silent, "Cy")
    assert able.events == (True, False, True)
    assert not client.requests


async def test_who_hears_a_communication_is_what_the_model_says() -> None:
    client = Scripted(in_turn({"4": "observable"}))
    assert (await reader_of(client).observability(WORLD, "Cy")).events == (True, False, True, True)


async def test_a_claim_that_convinces_nobody_changes_nothing() -> None:
    assert await reader_of(Scripted(in_turn(DENIED))).revise(HEARING) == Delta()
    delta = await reader_of(Scripted(in_turn(CONVINCED))).revise(HEARING)
    assert delta == BALL_MOVED


BALL_MOVED = Delta(frozenset({inside("ball", "bag")}), frozenset({inside("ball", "box")}))


@pytest.mark.parametrize(
    ("whose", "hearer"),
    [(("Anne",), "Anne"), (("Cy",), "Cy"), (("Anne", "Bob"), "Anne"), (("Cy", "Bob"), "Cy")],
)
async def test_a_hearer_is_asked_to_trust_a_speaker_who_left_later(whose: tuple[str, ...], hearer: str) -> None:
    client = Scripted(in_turn({"left_first": hearer}, {"left_first": "Bob"}))
    heard = Hearing(whose, CLAIM, HEARING.belief, ("Anne", "Bob"))
    assert await reader_of(client).revise(heard) == BALL_MOVED
    assert await reader_of(client).revise(heard) == Delta()
    user = client.requests[0].messages[1].content
    # Who has not left comes before all who have.
    assert user == f"Hearer: {hearer}\nSpeaker: Bob\nOrder of leaving: {hearer}, then Bob"


@pytest.mark.parametrize(
    ("whose", "delta"),
    [
        (("Bob",), Delta()),
        (("Bob", "Anne"), BALL_MOVED),
        (("Anne", "Cy"), Delta()),
        (("Anne", "Bob", "Anne"), Delta()),
        (("Bob", "Anne", "Cy"), Delta()),
    ],
)
async def test_what_the_rules_settle_whoever_trusts_whom_is_not_asked(whose: tuple[str, ...], delta: Delta) -> None:
    client = Scripted(by_rule)
    heard = Hearing(whose, CLAIM, HEARING.belief, HEARING.exits)
    assert await reader_of(client).revise(heard) == delta
    assert await RuleReader().revise(heard) == delta
    assert not client.requests


async def test_without_options_any_place_is_an_answer() -> None:
    client = Scripted(in_turn({"fact": "in(ball,box)", "answer": " under the rug "}))
    assert await reader_of(client).answer("Where is it?", FACTS, ()) == "under the rug"
    assert "Options: any place" in client.requests[0].messages[1].content


FIELDS = {step: reader_of(Scripted(by_rule)).fields(step) for step in STEPS}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"window": 5}, {"abstract"}),
        ({"rules": PRESETS["second-order-claims"]}, set()),
        ({"rules": PRESETS["first-order-claims"]}, {"revise"}),
        ({"rules": PRESETS["literal"]}, {"observe", "revise"}),
    ],
)
def test_a_step_depends_on_what_its_prompt_says_and_no_more(options: dict[str, Any], changed: set[str]) -> None:
    reader = reader_of(Scripted(by_rule), **options)
    assert {step for step in STEPS if reader.fields(step) != FIELDS[step]} == changed


def test_a_step_depends_on_the_version_of_what_is_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rectom.reader.model.VERSION", 99)
    assert not [step for step in STEPS if reader_of(Scripted(by_rule)).fields(step) == FIELDS[step]]


def test_a_step_depends_on_its_own_prompts_alone() -> None:
    for step, fields in FIELDS.items():
        named = fields["prompts"]
        assert isinstance(named, dict)
        assert tuple(named) == PROMPTS[step]


class Slow(Scripted):
    """Answers the first line with nonsense at once, the others well but later."""

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        if "1 Anne moved the ball to the box0." not in request.messages[1].content:
            await asyncio.sleep(0.02)
        return await super().ask(request, fresh=fresh)


async def test_when_a_window_fails_the_others_are_waited_for_and_noted() -> None:
    def nonsense(step: str, request: ChatRequest) -> str:
        return "{}" if "box0." in request.messages[1].content else by_rule(step, request)

    lines = tuple(f"Anne moved the ball to the box{n}." for n in range(5))
    client = Slow(nonsense)
    with recording() as calls, pytest.raises(StepFailure):
        await reader_of(client, window=1).abstract(Story("s", lines))
    assert len(calls) == len(client.requests) == 2 + 4


async def test_when_one_half_of_observability_fails_the_other_is_waited_for_and_noted() -> None:
    class Late(Scripted):
        async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
            await asyncio.sleep(0.02 if request.schema_name == "observe_events" else 0)
            return await super().ask(request, fresh=fresh)

    client = Late(lambda step, request: "{}" if step == "observe_states" else by_rule(step, request))
    with recording() as calls, pytest.raises(StepFailure) as failed:
        await reader_of(client).observability(WORLD, "Bob")
    assert failed.value.step == "observe_states"
    assert sorted(call.step for call in calls) == ["observe_events", "observe_states", "observe_states"]


async def test_a_server_that_is_gone_is_said_whatever_else_failed() -> None:
    class Gone(Scripted):
        async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
            if request.schema_name == "observe_events":
                raise EndpointDown("nobody there")
            return await super().ask(request, fresh=fresh)

    with pytest.raises(EndpointDown):
        await reader_of(Gone(lambda _step, _request: "{}")).observability(WORLD, "Bob")
