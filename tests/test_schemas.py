from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError, create_model

from rectom import grammar, schemas
from rectom.facts import in_room, inside
from rectom.llm import ModelId
from rectom.reader.asking import Asker
from rectom.reader.model import ModelReader
from rectom.schemas import NOT_OBSERVABLE, ReplyModel
from rectom.story import Story, Vocabulary
from rectom.words import words_of
from tests.conftest import stories
from tests.fake_openai import abstract
from tests.laboratory import Scripted, by_rule

WORDS = Vocabulary(("Anne", "Bob"), ("hall", "den"), ("ball",), ("box", "bag"))
PRESENCE = ["in_room(Anne,hall)", "in_room(Anne,den)", "in_room(Bob,hall)", "in_room(Bob,den)"]
LOCATION = ["in(ball,box)", "in(ball,bag)"]

LINES = ("Anne and Bob entered the hall.", "Bob likes the box.", "Anne privately told Bob that the ball is in the box.")

MODELS = {
    "abstraction": schemas.abstraction(WORDS, LINES),
    "abstraction of noise": schemas.abstraction(Vocabulary(containers=("box",)), ["Anne likes the box."]),
    "chain": schemas.chain(WORDS.characters),
    "observation": schemas.numbered({1: [PRESENCE[0], NOT_OBSERVABLE], 3: [NOT_OBSERVABLE]}),
    "revision": schemas.leaving("Anne", "Bob"),
    "reduction": schemas.reduction(),
    "answer": schemas.answer(LOCATION, ["box", "bag"]),
    "answer without options": schemas.answer([], []),
}

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that is in it."""
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from parts(part)


def objects(schema: Any) -> list[dict[str, Any]]:
    return [part for part in parts(schema) if part.get("type") == "object"]


def validates(model: ReplyModel, data: object) -> bool:
    try:
        model.model_validate(data)
    except ValidationError:
        return False
    return True


@every_model
def test_every_object_is_closed_and_every_field_required(model: ReplyModel) -> None:
    found = objects(schemas.json_schema(model))
    assert found
    for part in found:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])


@every_model
def test_nothing_that_strict_servers_refuse_and_no_titles(model: ReplyModel) -> None:
    for part in parts(schemas.json_schema(model)):
        assert not {"oneOf", "discriminator", "default"} & part.keys()
        assert not isinstance(part.get("title"), str)


def test_a_field_named_title_would_stay() -> None:
    model = create_model("Book", __base__=schemas.Strict, title=(str, ...))
    assert schemas.json_schema(model)["properties"] == {"title": {"type": "string"}}


def test_an_abstraction_offers_each_line_the_facts_of_its_own_names() -> None:
    enter, likes, tell = schemas.json_schema(MODELS["abstraction"])["properties"].values()
    there = ["in_room(Anne,hall)", "in_room(Bob,hall)"]
    assert enter["items"]["enum"] == [f"{sign}{fact}" for sign in "+-" for fact in there]
    assert likes["maxItems"] == 0
    ways = ["Anne tells everybody ", "Anne tells Bob ", "Bob tells everybody ", "Bob tells Anne "]
    assert tell["items"]["enum"] == [f"{way}in(ball,box)" for way in ["+", "-", *ways]]


def test_an_abstraction_has_one_entry_a_line() -> None:
    schema = schemas.json_schema(MODELS["abstraction"])
    lines = [f"{number} {line}" for number, line in enumerate(LINES, 1)]
    assert [*schema["properties"]] == schema["required"] == lines


def test_each_state_offers_its_own_facts_under_its_number() -> None:
    entries = schemas.json_schema(MODELS["observation"])["properties"]
    assert entries["1"]["enum"] == [PRESENCE[0], NOT_OBSERVABLE]
    assert entries["3"]["const"] == NOT_OBSERVABLE
    assert list(entries) == ["1", "3"]


def test_the_other_steps_offer_only_what_can_be() -> None:
    chain = schemas.json_schema(MODELS["chain"])["properties"]["chain"]
    assert chain["items"]["enum"] == ["Anne", "Bob"]
    revision = schemas.json_schema(MODELS["revision"])["properties"]
    assert revision["left_first"]["enum"] == ["Anne", "Bob"]
    assert schemas.json_schema(schemas.revision())["properties"]["convinced"]["type"] == "boolean"
    answer = schemas.json_schema(MODELS["answer"])["properties"]
    assert answer["fact"]["enum"] == [*LOCATION, "none"]
    assert answer["answer"]["enum"] == ["box", "bag"]


def test_far_too_many_facts_are_any_text() -> None:
    people = tuple(f"P{n}" for n in range(300))
    many = Vocabulary(people, ("hall",), ("ball",), ("box",))
    schema = schemas.json_schema(schemas.abstraction(many, [f"{', '.join(people)} entered the hall."]))
    (entry,) = schema["properties"].values()
    facts = entry["items"]
    assert facts["type"] == "string"
    assert "enum" not in facts


def test_of_a_line_that_can_state_nothing_nothing_is_kept() -> None:
    model = schemas.abstraction(WORDS, ["Bob likes the box."])
    (line,) = model.model_fields
    assert schemas.json_schema(model)["properties"][line]["maxItems"] == 0
    for said in ([], ["+in(ball,box)"], ["Bob likes the box"]):
        assert model.model_validate({line: said}).model_dump() == {line: []}
    assert not validates(model, {line: "nothing"})
    assert not validates(model, {line: None})


def of_statements(people: Sequence[str], lines: Sequence[str]) -> re.Pattern[str]:
    """The form of what lines of a natural story may state."""
    schema = schemas.json_schema(schemas.happenings(Vocabulary(tuple(people)), lines))
    assert all(entry["items"] == {"$ref": "#/$defs/Statement"} for entry in schema["properties"].values())
    assert all(entry["maxItems"] == 12 for entry in schema["properties"].values())
    return re.compile(schema["$defs"]["Statement"]["pattern"])


def test_the_facts_of_a_natural_story_are_formed_of_its_own_words_where_the_server_keeps_to_the_schema() -> None:
    pattern = of_statements(["Anne", "Bob"], LINES)
    right = ["+is(ball,in_box)", "-in(ball,box)", "+in_room(Anne,hall)", "Anne tells everybody contains(box,ball)"]
    right += ["Anne tells Bob in(ball,box)", "Bob perceives in(ball,box)", "Bob misses in(ball,box)"]
    assert [text for text in right if not pattern.search(text)] == []
    wrong = [
        "in(ball,box)",
        "+full(box)",
        "+in(ball,box),in(box,hall)",
        f"+in(ball,{'box_' * 6}box)",
        "+in(ball,the_box)",
    ]
    wrong += ["+is(Anne,told)", "+is(anne,told)", "+in(coin,box)", "+in(Ball,box)", "+in_room(Cid,hall)"]
    wrong += ["Bob ignores in(ball,box)", "Cid misses in(ball,box)", "Anne tells Cid in(ball,box)"]
    assert [text for text in wrong if pattern.search(text)] == []


@pytest.mark.parametrize("line", ["Bob saw it.", "She saw it.", "Nobody saw it.", "Both of them saw it."])
def test_perception_is_for_lines_of_a_natural_story_in_which_there_is_somebody(line: str) -> None:
    lines = [line, "The storm broke the bobsled of the shelter."]
    schema = schemas.json_schema(schemas.happenings(Vocabulary(("Anne", "Bob")), lines))
    forms = [entry["items"]["$ref"].rpartition("/")[2] for entry in schema["properties"].values()]
    of_somebody, of_nobody = (re.compile(schema["$defs"][form]["pattern"]) for form in forms)
    for statement in ("Bob misses is(storm,broke)", "+in_room(Bob,shelter)"):
        assert of_somebody.search(statement)
        assert not of_nobody.search(statement)
    assert of_somebody.search("+is(storm,broke)")
    assert of_nobody.search("+is(storm,broke)")


def test_the_facts_of_a_natural_story_are_formed_of_the_questions_words_too() -> None:
    asked = schemas.happenings(Vocabulary(("Anne", "Bob")), LINES, ["Does Anne believe the ball is safe?"])
    assert re.search(schemas.json_schema(asked)["$defs"]["Statement"]["pattern"], "+is(ball,safe)")
    assert not of_statements(["Anne", "Bob"], LINES).search("+is(ball,safe)")


def test_other_facts_are_read_leniently_where_it_does_not() -> None:
    model = schemas.happenings(WORDS, LINES)
    first, *others = [*model.model_fields]
    model.model_validate({first: ["the can is full"] * 13, **{line: [] for line in others}})


def test_a_very_long_story_may_be_told_in_any_words() -> None:
    pattern = of_statements(["Anne"], [f"Anne has a thing called {n:x}." for n in range(300)])
    assert pattern.search("+is(can,full)")
    assert not pattern.search("+is(Anne,tired)")
    assert not pattern.search(f"+is(can,{'very_' * 20}full)")


def test_the_people_of_a_natural_story_may_be_called_anything() -> None:
    people = ["Ben Lee", "Dr. O'Hara-Smith", "Zoë (the elder)"]
    pattern = of_statements(people, ["Ben met Dr. O'Hara-Smith and Zoë.", "Lee put the ball into the box."])
    assert all(pattern.search(f"{who} tells {other} in(ball,box)") for who in people for other in people)
    assert not pattern.search("Drs O'Hara-Smith misses in(ball,box)")


def test_a_natural_story_of_nobody_states_changes_alone() -> None:
    defined = schemas.json_schema(schemas.happenings(Vocabulary(), LINES))["$defs"]
    assert [*defined] == ["Change"]
    assert re.search(defined["Change"]["pattern"], "+in(ball,box)")
    assert not re.search(defined["Change"]["pattern"], "+in_room(Anne,hall)")


def test_world_facts_are_all_that_a_vocabulary_can_form() -> None:
    presence, location = schemas.world_facts(WORDS)
    assert sorted(presence) == sorted(str(in_room(who, room)) for who in ("Anne", "Bob") for room in ("hall", "den"))
    assert location == [str(inside("ball", "box")), str(inside("ball", "bag"))]


CLAIM, TELL = "Anne tells everybody in(ball,box)", "Anne tells Bob in(ball,box)"


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "+in(ball,box)",
        ["+in(ball,trunk)"],
        ["+in(box,ball)"],
        ["in(ball,box)"],
        ["+in_room(Anne,hall)"],
        {},
        ["Zoe tells everybody in(ball,box)"],
        ["Anne tells Anne in(ball,box)"],
        ["Anne tells in(ball,box)"],
    ],
)
def test_an_abstraction_of_another_form_is_refused(entry: Any) -> None:
    model = schemas.abstraction(WORDS, LINES[2:])
    (line,) = model.model_fields
    for right in ([], ["+in(ball,box)"], [CLAIM], [TELL]):
        assert validates(model, {line: right})
    assert not validates(model, {line: entry})
    lines: list[dict[str, Any]] = [{}, {line: [], "2 And so on.": []}, {line[2:]: []}, {"": []}]
    assert not any(validates(model, reply) for reply in lines)
    # Without a schema a model may name a line in other words, or by its number alone.
    assert all(validates(model, {name: [TELL]}) for name in ("1", "1 Anne told Bob", " 1 "))


@given(stories(), st.sampled_from([None, 1, 4]))
@settings(max_examples=30)
def test_what_the_rules_read_goes_through_the_abstractions_reply(story: Story, window: int | None) -> None:
    client = Scripted(by_rule)
    reader = ModelReader(Asker(client, ModelId("m"), repairs=0), window=window)
    assert asyncio.run(reader.abstract(story)) == grammar.read_story(story)


@given(stories())
@settings(max_examples=30)
def test_the_reply_of_a_right_model_is_one_that_the_schema_admits(story: Story) -> None:
    reply = abstract("", {"Lines": story.numbered()})
    model = schemas.abstraction(words_of(story.lines), story.lines)
    admitted = model.model_validate(json.loads(json.dumps(reply)))
    assert admitted.model_dump() == reply
    enums = [part["enum"] for part in parts(schemas.json_schema(model)) if "enum" in part]
    names = {name for enum in enums for name in enum}
    for entry in reply.values():
        assert {*entry} <= names
