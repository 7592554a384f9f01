from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rectom.errors import StepFailure, StoryError
from rectom.events import Delta, perceives, private_tell, public_claim
from rectom.facts import EMPTY, Fact, in_room, inside
from rectom.llm import ModelId
from rectom.perspective import Hearing, Perspective, build_global, recurse
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS
from rectom.reader.rules import RuleReader
from rectom.reader.story import StoryReader, StoryRules
from rectom.rules import PRESETS
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE
from rectom.story import Story, Vocabulary
from rectom.words import words_of
from tests.cases import event
from tests.laboratory import Scripted, by_rule, in_turn

STORY = Story("s", ("Ada fills the can with rain water.", "Ben pours lemonade into it.", "Ada does not see that."))
RAIN, LEMONADE = Fact("contains", ("can", "rain_water")), Fact("contains", ("can", "lemonade"))
CHOICES = ("Ada believes it is rain water.", "Ada believes it is lemonade.")


def reader_of(client: Scripted, **options: Any) -> StoryReader:
    return StoryReader(Asker(client, ModelId("m"), benchmark="story", repairs=1), **options)


def user(client: Scripted, number: int = 0) -> str:
    return client.requests[number].messages[1].content


def entry(*added: str) -> list[str]:
    return [f"+{fact}" for fact in added]


def lines(*entries: Any, of: Story = STORY) -> dict[str, Any]:
    """A reply with entries for the lines of a story, and for such as it has not."""
    names = [f"{number} {line}" for number, line in enumerate([*of.lines, "And so on."], 1)]
    return dict(zip(names, entries, strict=False))


FILLS, POURS = entry("contains(can,rain_water)"), entry("contains(can,lemonade)")
MISSES = ["Ada misses contains(can,lemonade)"]


async def abstracted(*steps: Any, story: Story = STORY) -> list[str]:
    events = await reader_of(Scripted(in_turn(lines(*steps, of=story)))).abstract(story)
    return list(map(str, events))


# Abstraction.


async def test_a_story_is_read_with_the_questions_about_it_in_view() -> None:
    client = Scripted(lambda _step, _request: json.dumps(lines(FILLS, POURS, MISSES)))
    for asked in ((), ("Is the can full of juice?", "Who will drink it?")):
        await reader_of(client).abstract(replace(STORY, asked=asked))
    assert "will be asked about the story:\nanything\n" in user(client, 0)
    assert "will be asked about the story:\nIs the can full of juice?\nWho will drink it?\n" in user(client, 1)
    assert "juice" not in json.dumps(client.requests[0].schema)
    assert "juice" in json.dumps(client.requests[1].schema)


async def test_a_line_changes_something_or_says_who_perceives_it() -> None:
    assert await abstracted(FILLS, POURS, MISSES) == [
        "+contains(can,rain_water)",
        "+contains(can,lemonade) -contains(can,rain_water)",
        "misses(Ada,contains(can,lemonade))",
    ]
    perceived = ["Ben perceives contains(can,lemonade)"]
    assert (await abstracted(FILLS, POURS, perceived))[2] == "perceives(Ben,contains(can,lemonade))"


async def test_claims_keep_who_said_what_to_whom() -> None:
    told = ["Ben tells Ada is(can,empty)"]
    claimed = ["Ben tells everybody is(can,full)"]
    found = await abstracted(entry(), told, claimed)
    assert found == ["-", "private_tell(Ben,Ada,is(can,empty))", "public_claim(Ben,is(can,full))"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("contains(can,rain water)", "contains(can,rain_water)"),
        ("contains(watering can, cold rain water)", "contains(watering_can,cold_rain_water)"),
        ("in(Ada's can,shed no. 2)", "in(Ada's_can,shed_no._2)"),
        ("in(Ada’s can,shed)", "in(Ada's_can,shed)"),
        ('contains(can,"rain water")', "contains(can,rain_water)"),
        ("is(semi-skimmed milk,sour)", "is(semi-skimmed_milk,sour)"),
        (" is( can , empty ) ", "is(can,empty)"),
        ("in_room(Ada,tea room)", "in_room(Ada,tea_room)"),
    ],
)
async def test_blanks_in_names_are_mended(written: str, meant: str) -> None:
    assert (await abstracted(entry(written), entry(), entry()))[0] == f"+{meant}"


#: Replies that break a rule of the abstraction, and words of the fault.
FAULTS = {
    "a line too few": ([FILLS, POURS], ": Field required"),
    "a line beyond": ([FILLS, POURS, MISSES, []], "4 And so on.: Extra inputs are not permitted"),
    "a wish": (
        [entry("wants(Ada,water)"), POURS, MISSES],
        "wants(Ada,water) is none of contains(container,content)",
    ),
    "a fact of one": ([entry("is(can)"), POURS, MISSES], "is(can) is none of"),
    "no fact": ([entry("the can is full"), POURS, MISSES], "expected '('"),
    "a sign in a name": ([entry("contains(can,50% milk)"), POURS, MISSES], "expected ',' or ')'"),
    "a thing in a room": (
        [entry("in_room(can,shed)"), POURS, MISSES],
        "in_room is for people; can is not one of Ada",
    ),
    "a person that nobody named": ([entry("in_room(Zoe,shed)"), POURS, MISSES], "Zoe is not one of Ada, Ben"),
    "a stranger who perceives": (
        [FILLS, POURS, ["Zoe misses contains(can,lemonade)"]],
        "Zoe in Zoe misses contains(can,lemonade) is not one of Ada, Ben",
    ),
    "nobody misses it": ([FILLS, POURS, ["Ada ignores is(can,full)"]], "is none of contains(container,content)"),
    "nobody is told": ([FILLS, POURS, ["Ben tells is(can,full)"]], "write `Ada tells Ben fact`"),
    "a miss with a listener": ([FILLS, POURS, ["Ben misses Ada is(can,full)"]], "write `Ada tells Ben fact`"),
    "said and changed": ([FILLS, POURS, [*MISSES, "+is(can,full)"]], "is all that its line can state"),
}


@pytest.mark.parametrize(("bad", "fault"), FAULTS.values(), ids=FAULTS)
async def test_what_breaks_a_rule_is_named_and_repaired(bad: list[Any], fault: str) -> None:
    client = Scripted(in_turn(lines(*bad), lines(FILLS, POURS, MISSES)))
    assert len(await reader_of(client).abstract(STORY)) == 3
    assert fault in client.requests[1].messages[3].content


async def test_a_story_of_nobody_has_no_perceptions_in_its_schema() -> None:
    story = Story("s", ("the door is open.",))
    client = Scripted(in_turn(lines(entry("is(door,open)"), of=story)))
    found = await reader_of(client).abstract(story)
    assert list(map(str, found)) == ["+is(door,open)"]
    assert "perceives" not in json.dumps(client.requests[0].schema)
    assert "Characters: none" in user(client)


async def test_a_window_gets_its_own_lines() -> None:
    client = Scripted(in_turn(lines(FILLS, POURS), {"1 Ada does not see that.": MISSES}))
    assert len(await reader_of(client, window=2).abstract(STORY)) == 3
    assert "1 Ada does not see that." in user(client, 1)


# Observability by rule.


async def learnt(character: str, *events: str, chain: Sequence[str] = ()) -> str:
    """The steps, from 1, whose events a character learns of, in the world or as the others of a chain see it."""
    world = build_global(list(map(event, events)))
    source = (await recurse(world, chain, StoryRules()))[-1]
    able = await StoryRules().observability(source, character)
    return " ".join(str(step) for step, found in enumerate(able.events, 1) if found)


async def test_a_change_is_learnt_unless_it_is_missed() -> None:
    story = ("+contains(can,rain)", "+contains(can,tea) -contains(can,rain)", "misses(Ada,contains(can,tea))")
    assert await learnt("Ada", *story) == "1"
    assert await learnt("Ben", *story) == "1 2 3"


async def test_a_missed_fact_means_its_last_change() -> None:
    story = ("+is(door,open)", "+is(door,shut) -is(door,open)", "+is(door,open) -is(door,shut)")
    assert await learnt("Ada", *story, "misses(Ada,is(door,open))") == "1 2"
    assert await learnt("Ada", *story[:2], "misses(Ada,is(door,shut))", story[2]) == "1 4"


async def test_what_is_only_gone_may_be_missed_too() -> None:
    assert await learnt("Ada", "+in(hat,box)", "-in(hat,box)", "misses(Ada,in(hat,box))") == "1"


async def test_a_fact_of_another_name_means_the_change_just_before() -> None:
    swap = ("+contains(can,rain)", "+contains(can,tea) -contains(can,rain)")
    assert await learnt("Ada", *swap, "misses(Ada,contains(watering_can,tea))") == "1"
    assert await learnt("Ada", *swap, "-", "misses(Ada,is(mug,broken))") == "1 2"
    assert await learnt("Ada", "misses(Ada,is(mug,broken))", *swap) == "2 3"


async def test_nobody_misses_his_own_coming_or_going() -> None:
    story = ("+in_room(Ada,attic)", "+in(hat,box)", "-in_room(Ada,attic)", "misses(Ada,is(hat,wet))")
    assert await learnt("Ada", *story) == "1 2 3"


async def test_who_sees_a_change_sees_who_misses_it_and_nobody_else_does() -> None:
    story = (
        "+in_room(Ben,attic) +in_room(Cid,attic)",
        "+in_room(Ben,yard) -in_room(Ben,attic)",
        "+in(hat,box)",
        "misses(Ada,in(hat,box))",
    )
    assert await learnt("Cid", *story) == "1 2 3 4"
    assert await learnt("Ben", *story) == "1 2"
    assert await learnt("Ada", *story, chain=["Cid"]) == "1 2"
    assert await learnt("Ada", *story, chain=["Ben"]) == "1 2"


async def test_perceptions_and_words_reach_those_whom_they_are_of() -> None:
    story = (
        "perceives(Ada,in(hat,box))",
        "public_claim(Ben,in(hat,jar))",
        "private_tell(Ben,Cid,in(hat,tin))",
    )
    assert [await learnt(name, *story) for name in ("Ada", "Ben", "Cid", "Dan")] == ["1 2", "2 3", "2 3", "2"]


async def test_whom_the_story_places_nowhere_is_there() -> None:
    assert await learnt("Ada", "+in_room(Ben,attic)", "+in(hat,box)") == "1 2"


async def test_who_leaves_learns_of_nothing_until_he_is_back() -> None:
    story = ("+in_room(Ada,attic)", "-in_room(Ada,attic)", "+in(hat,box)", "+in_room(Ada,attic)", "+in(cap,box)")
    assert await learnt("Ada", *story) == "1 2 4 5"


async def test_who_comes_later_was_not_there_before() -> None:
    assert await learnt("Ada", "+in(hat,box)", "+in_room(Ada,attic)", "+in(cap,box)") == "2 3"


async def test_a_change_is_where_its_thing_is() -> None:
    story = (
        "+in_room(Ada,attic) +in_room(Ben,cellar)",
        "+in(box,cellar)",
        "+in(hat,box)",
        "+is(cellar,dark)",
        "+in(tin,attic)",
        "+in(coin,tin)",
        "+in(tin,box) -in(tin,attic)",
        "+is(coin,wet)",
    )
    # The tin goes from one place to the other before the eyes of both.
    assert await learnt("Ada", *story) == "1 5 6 7"
    assert await learnt("Ben", *story) == "1 2 3 4 7 8"


async def test_a_change_in_two_places_is_learnt_in_both() -> None:
    story = ("+in_room(Ada,attic) +in_room(Ben,cellar)", "+in(box,cellar) +in(tin,attic)")
    assert await learnt("Ada", *story) == await learnt("Ben", *story) == "1 2"


async def test_things_that_are_in_each_other_are_nowhere() -> None:
    assert await learnt("Ada", "+in_room(Ada,attic)", "+in(box,sack) +in(sack,box)") == "1 2"


async def test_nothing_is_learnt_of_a_line_in_which_nothing_happens() -> None:
    assert await learnt("Ada", "-", "+in(hat,box)") == "2"


async def test_comings_and_goings_are_seen_where_they_happen() -> None:
    story = ("+in_room(Ada,attic) +in_room(Ben,attic)", "-in_room(Ada,attic)", "-in_room(Ben,attic)")
    final = (await recurse(build_global(list(map(event, story))), ["Ada"], StoryRules()))[-1].final
    assert final == {in_room("Ben", "attic")}


async def test_the_waiting_room_is_a_place_unless_the_rules_say_otherwise() -> None:
    world = build_global([event("+in_room(Ada,waiting_room)")])
    assert (await StoryRules().observability(world, "Ada")).rooms == ("waiting_room",)
    assert (await StoryRules(PRESETS["hitom"]).observability(world, "Ada")).rooms == (None,)


# Observability by model.


async def test_a_model_is_asked_of_places_and_of_what_changes_where_if_there_are_any() -> None:
    world = build_global(list(map(event, ["+in_room(Ada,attic)", "-", "+in(hat,box)"])))
    client = Scripted(by_rule)
    able = await reader_of(client).observability(world, "Ada")
    assert able == await StoryRules().observability(world, "Ada")
    assert {request.schema_name for request in client.requests} == {"observe_states", "observe_events"}
    [events] = [r.messages[1].content for r in client.requests if r.schema_name == "observe_events"]
    assert "1 +in_room(Ada,attic) | in_room(Ada,attic)\n3 +in(hat,box) | in_room(Ada,attic)\n" in events
    assert events.endswith("Asked about: 3")


async def test_what_the_text_itself_says_of_perception_is_no_question() -> None:
    told = ["+in_room(Ada,attic)", "+in(hat,box)", "misses(Ada,in(hat,box))", "+in(cap,box)", "-in_room(Ada,attic)"]
    world = build_global([*map(event, told), perceives("Ben", LEMONADE), private_tell("Ben", "Ada", LEMONADE)])
    client = Scripted(by_rule)
    able = await reader_of(client).observability(world, "Ada")
    assert able == await StoryRules().observability(world, "Ada")
    [events] = [r.messages[1].content for r in client.requests if r.schema_name == "observe_events"]
    assert events.endswith("Asked about: 4")


@pytest.mark.parametrize("said", [OBSERVABLE, NOT_OBSERVABLE])
async def test_of_the_rest_the_model_decides(said: str) -> None:
    world = build_global(list(map(event, ["+in_room(Ada,attic)", "+in(hat,box)", "misses(Ben,in(hat,box))"])))
    client = Scripted(in_turn({"1": "in_room(Ada,attic)"}, {"2": said}))
    able = await reader_of(client).observability(world, "Ada")
    assert able.events == (True, said == OBSERVABLE, said == OBSERVABLE)


async def test_where_the_story_places_nobody_nothing_is_asked() -> None:
    client = Scripted(in_turn())
    reader = reader_of(client)
    able = await reader.observability(build_global([event("+in(hat,box)")]), "Ada")
    assert (able.rooms, able.events) == ((None,), (True,))
    silent = Perspective((EMPTY, EMPTY), (None, event("-")), (None, None))
    assert (await reader.observability(silent, "Ada")).events == (False, False)
    assert not client.requests


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ({"1": "in_room(Ben,attic)"}, "1: Input should be 'in_room(Ada,attic)' or 'not_observable'"),
        ({"1": "in_room(Ada,attic)", "2": "not_observable"}, "2: Extra inputs are not permitted"),
        ({}, "1: Field required"),
    ],
)
async def test_a_place_is_one_that_the_state_names(bad: Any, fault: str) -> None:
    state = frozenset({in_room("Ada", "attic"), in_room("Ben", "attic")})
    client = Scripted(in_turn(bad, {"1": "in_room(Ada,attic)"}))
    assert await reader_of(client)._states([state], "Ada") == ("attic",)
    assert fault in client.requests[1].messages[3].content


# Revision.

CLAIM = public_claim("Ben", LEMONADE)
CONVINCED = {"convinced": True}
DENIED = {"convinced": False}
BELIEF = frozenset({RAIN, in_room("Ada", "attic")})
REVISED = Delta(frozenset({LEMONADE}), frozenset({RAIN}))


def hearing(*chain: str, of: Any = CLAIM) -> Hearing:
    return Hearing(chain, of, BELIEF, ())


async def test_by_rule_whoever_hears_a_claim_believes_it_and_takes_the_speaker_to_do_so() -> None:
    rules = StoryRules()
    for chain in (("Ada",), ("Ada", "Ben"), ("Ben", "Ada"), ("Ben", "Ada", "Ben")):
        assert await rules.revise(hearing(*chain)) == REVISED


@pytest.mark.parametrize("claim", [CLAIM, private_tell("Ben", "Ada", LEMONADE)])
async def test_no_liar_believes_his_lie(claim: Any) -> None:
    client = Scripted(in_turn())
    assert await StoryRules().revise(hearing("Ben", of=claim)) == Delta()
    assert await reader_of(client).revise(hearing("Ben", of=claim)) == Delta()
    assert not client.requests


async def test_a_perception_needs_no_call() -> None:
    client = Scripted(in_turn())
    assert await reader_of(client).revise(hearing("Ada", of=perceives("Ada", LEMONADE))) == REVISED
    assert await StoryRules().revise(hearing("Ada", of=perceives("Ada", LEMONADE))) == REVISED
    assert not client.requests


@pytest.mark.parametrize(("reply", "delta"), [(CONVINCED, REVISED), (DENIED, Delta())])
async def test_a_model_judges_a_claim(reply: Any, delta: Delta) -> None:
    client = Scripted(in_turn(reply))
    assert await reader_of(client).revise(hearing("Ada", "Ben")) == delta
    assert "Said: public_claim(Ben,contains(can,lemonade))" in user(client)
    assert "Belief before: contains(can,rain_water)\n" in user(client)
    assert user(client).endswith("Belief of: what Ada thinks that Ben thinks")


# Questions.


async def test_a_chain_is_asked_only_of_those_who_are_mentioned() -> None:
    client = Scripted(in_turn({"chain": ["Ada", "Ben"]}))
    words = words_of(STORY.lines)
    assert await reader_of(client).chain("Is the can full?", words) == ()
    assert await reader_of(client).chain("Where is it?", Vocabulary()) == ()
    assert not client.requests
    assert await reader_of(client).chain("Does Ada think Ben knows it?", words) == ("Ada", "Ben")
    assert "Characters: Ada, Ben\n" in user(client)


async def test_a_chain_may_come_back_to_somebody_and_no_farther_than_he_is_mentioned() -> None:
    back = {"chain": ["Ada", "Ben", "Ada"]}
    client = Scripted(in_turn({"chain": ["Ada", "Ben", "Ada", "Ben"]}, back))
    question = "What does Ada think Ben thinks Ada thinks?"
    assert await reader_of(client).chain(question, words_of(STORY.lines)) == ("Ada", "Ben", "Ada")


async def test_a_question_about_the_world_is_its_own_reduction() -> None:
    client = Scripted(in_turn())
    assert await reader_of(client).reduce("Is the can full?", ()) == "Is the can full?"
    assert await StoryRules().reduce("Is the can full?", ()) == "Is the can full?"
    assert not client.requests


@pytest.mark.parametrize(
    ("reduced", "chain"),
    [
        ("Does the can contain rain water or lemonade?", ["Ada"]),
        ("What will Ada do?", ["Ada"]),
        ("Where is Ada's can?", ["Ada"]),
        ("What will Ben do?", ["Ada", "Ben"]),
    ],
)
async def test_a_reduced_question_may_name_somebody_for_what_he_does_or_has(reduced: str, chain: list[str]) -> None:
    assert await reader_of(Scripted(in_turn({"question": f" {reduced} "}))).reduce("…?", chain) == reduced


@pytest.mark.parametrize(
    ("reduced", "fault"),
    [
        ("The can", "must end with a question mark"),
        ("Does Ada think the can contains tea?", "must not ask what Ada believes"),
        ("What is Ben's belief about the can?", "must not ask what Ben believes"),
    ],
)
async def test_a_reduced_question_asks_for_no_belief(reduced: str, fault: str) -> None:
    client = Scripted(in_turn({"question": reduced}, {"question": "What is in the can?"}))
    assert await reader_of(client).reduce("…?", ["Ada", "Ben"]) == "What is in the can?"
    assert fault in client.requests[1].messages[3].content


# Answers.


@pytest.mark.parametrize(
    "reply", [CHOICES[1], "B", " B ", "B. Ada believes it is lemonade", "ada believes it is lemonade"]
)
async def test_an_answer_is_an_option_however_it_is_named(reply: str) -> None:
    client = Scripted(in_turn({"fact": "none", "answer": reply}))
    assert await reader_of(client).answer("What is in it?", BELIEF, CHOICES) == CHOICES[1]
    assert "Facts: contains(can,rain_water) in_room(Ada,attic)\n" in user(client)
    assert "Options:\nA. Ada believes it is rain water.\nB. Ada believes it is lemonade." in user(client)


async def test_an_option_that_is_not_offered_is_refused() -> None:
    client = Scripted(in_turn({"fact": "none", "answer": "C"}, {"fact": "none", "answer": CHOICES[0]}))
    assert await reader_of(client).answer("What is in it?", BELIEF, CHOICES) == CHOICES[0]
    assert f"answer: Input should be '{CHOICES[0]}' or '{CHOICES[1]}'" in client.requests[1].messages[3].content


async def test_the_fact_that_decides_is_one_of_the_belief() -> None:
    client = Scripted(in_turn(*({"fact": fact, "answer": CHOICES[0]} for fact in ("is(can,full)", str(RAIN)))))
    assert await reader_of(client).answer("What is in it?", BELIEF, CHOICES) == CHOICES[0]
    assert "fact: Input should be 'contains(can,rain_water)', " in client.requests[1].messages[3].content


async def test_without_options_the_words_are_the_answer() -> None:
    client = Scripted(in_turn({"fact": "none", "answer": " rain water "}))
    assert await reader_of(client).answer("What is in it?", EMPTY, ()) == "rain water"
    assert "Facts: none\n" in user(client)
    assert user(client).endswith("Options:\nany answer in a few words")


# What rules cannot do, and what results depend on.


async def test_rules_say_what_they_cannot_read() -> None:
    rules = StoryRules()
    with pytest.raises(StoryError, match="natural stories follow no grammar: give --model"):
        await rules.abstract(STORY)
    with pytest.raises(StepFailure, match="give --reader reduce=model"):
        await rules.reduce("Does Ada know it?", ["Ada"])
    with pytest.raises(StepFailure, match="give --reader answer=model"):
        await rules.answer("What is in it?", EMPTY, CHOICES)


def test_results_depend_on_the_prompts_of_their_step_and_nothing_else() -> None:
    client = Scripted(in_turn())
    plain = reader_of(client)
    for step in STEPS:
        fields = plain.fields(step)
        assert fields == reader_of(client, rules=PRESETS["literal"]).fields(step)
        assert (fields != reader_of(client, rules=PRESETS["waiting-absent"]).fields(step)) == (step == "observe")
        assert fields.get("rules", {}) == ({"waiting": "present"} if step == "observe" else {})
        assert "note" not in fields
        assert (fields != reader_of(client, window=2).fields(step)) == (step == "abstract")


def test_results_depend_on_the_version_of_what_is_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {step: reader_of(Scripted(in_turn())).fields(step) for step in STEPS}
    monkeypatch.setattr("rectom.reader.story.VERSION", 99)
    assert not [step for step in STEPS if reader_of(Scripted(in_turn())).fields(step) == before[step]]


def test_steps_by_rule_depend_on_the_rules_that_they_follow() -> None:
    usual, other = StoryRules(), StoryRules(PRESETS["hitom"])
    assert [step for step in STEPS if usual.fields(step) != other.fields(step)] == ["observe"]
    assert all(usual.fields(step) != RuleReader().fields(step) for step in STEPS)


async def test_who_comes_back_sees_who_is_there_but_not_what_is_in_the_box() -> None:
    story = (
        "+in_room(Ada,attic)",
        "+in(hat,box)",
        "-in_room(Ada,attic)",
        "+in(hat,tin) -in(hat,box)",
        "+in_room(Ben,attic)",
        "+in_room(Ada,attic)",
    )
    final = (await recurse(build_global(list(map(event, story))), ["Ada"], StoryRules()))[-1].final
    assert final == {in_room("Ada", "attic"), in_room("Ben", "attic"), inside("hat", "box")}
