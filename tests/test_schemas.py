from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
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

MODELS = {
    "abstraction": schemas.abstraction(WORDS, 3),
    "abstraction of noise": schemas.abstraction(Vocabulary(containers=("box",)), 1),
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


def test_an_abstraction_offers_the_storys_very_names() -> None:
    schema = schemas.json_schema(MODELS["abstraction"])
    change, claim, tell = (schema["$defs"][name]["properties"] for name in ("Change", "Claim", "Tell"))
    facts = [*PRESENCE, *LOCATION]
    assert change["facts"]["items"]["enum"] == [*(f"+{fact}" for fact in facts), *(f"-{fact}" for fact in facts)]
    assert claim["claims"]["enum"] == tell["tells"]["enum"] == tell["to"]["enum"] == ["Anne", "Bob"]
    assert claim["fact"]["enum"] == tell["fact"]["enum"] == LOCATION


def test_an_abstraction_has_one_entry_a_line() -> None:
    schema = schemas.json_schema(MODELS["abstraction"])
    steps = schema["properties"]["steps"]
    assert (steps["minItems"], steps["maxItems"]) == (3, 3)
    line = schema["$defs"]["Change"]["properties"]["line"]
    assert (line["minimum"], line["maximum"]) == (1, 3)
    assert len(steps["items"]["anyOf"]) == 3


def test_lines_without_objects_offer_no_claims() -> None:
    schema = schemas.json_schema(schemas.abstraction(Vocabulary(("Anne",), ("hall",)), 1))
    assert "$defs" in schema
    assert "Claim" not in schema["$defs"]


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
    many = Vocabulary(tuple(f"P{n}" for n in range(30)), tuple(f"r{n}" for n in range(30)), ("ball",), ("box",))
    schema = schemas.json_schema(schemas.abstraction(many, 1))
    facts = schema["$defs"]["Change"]["properties"]["facts"]["items"]
    assert facts["type"] == "string"
    assert "enum" not in facts


def test_facts_in_other_words_are_bounded_where_the_server_keeps_to_the_schema() -> None:
    """And read leniently: what a server that does not sends is mended, or told what is wrong with it."""
    model = schemas.happenings(WORDS, 1)
    facts = schemas.json_schema(model)["$defs"]["Change"]["properties"]["facts"]
    assert facts["maxItems"] == 12
    pattern = re.compile(facts["items"]["pattern"])
    assert all(map(pattern.search, ["is(can,full)", "in(a cup,the box)"]))
    assert not any(map(pattern.search, ["full(can)", "is(a,b),is(c,d)", f"is(can,{'very_' * 20}full)"]))
    model.model_validate({"steps": [{**STEP, "facts": ["the can is full"] * 13}]})


def test_world_facts_are_all_that_a_vocabulary_can_form() -> None:
    presence, location = schemas.world_facts(WORDS)
    assert sorted(presence) == sorted(str(in_room(who, room)) for who in ("Anne", "Bob") for room in ("hall", "den"))
    assert location == [str(inside("ball", "box")), str(inside("ball", "bag"))]


STEP: dict[str, Any] = {"line": 1, "facts": []}
CLAIM = {"line": 1, "claims": "Anne", "fact": "in(ball,box)"}
TELL = {"line": 1, "tells": "Anne", "to": "Bob", "fact": "in(ball,box)"}


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [STEP, STEP],
        [{**STEP, "line": 0}],
        [{**STEP, "line": 2}],
        [{**STEP, "why": "because"}],
        [{**STEP, "facts": ["+in(ball,trunk)"]}],
        [{**STEP, "facts": ["+in(box,ball)"]}],
        [{**STEP, "facts": ["in(ball,box)"]}],
        [{**CLAIM, "claims": "Zoe"}],
        [{**CLAIM, "to": "Bob"}],
        [{**CLAIM, **STEP}],
        [{"line": 1, "tells": "Anne", "fact": "in(ball,box)"}],
        [{"line": 1}],
    ],
)
def test_an_abstraction_of_another_form_is_refused(steps: list[dict[str, Any]]) -> None:
    model = schemas.abstraction(WORDS, 1)
    assert validates(model, {"steps": [STEP]})
    assert validates(model, {"steps": [CLAIM]})
    assert validates(model, {"steps": [TELL]})
    assert not validates(model, {"steps": steps})


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
    model = schemas.abstraction(words_of(story.lines), len(story.lines))
    admitted = model.model_validate(json.loads(json.dumps(reply)))
    assert admitted.model_dump() == reply
    enums = [part["enum"] for part in parts(schemas.json_schema(model)) if "enum" in part]
    names = {name for enum in enums for name in enum}
    for step in reply["steps"]:
        assert {*step.get("facts", [])} <= names
