from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from rectom.errors import DataError, SettingsError
from rectom.llm.address import Address
from rectom.llm.request import ChatRequest, LimitField, Message, ModelId, Sampling, to_bytes

ASK = ChatRequest(ModelId("small", "the-model", "r1"), (Message("system", "Be brief."), Message("user", "Who?")))
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}


@pytest.mark.parametrize(
    "other",
    [
        replace(ASK, model=ModelId("small", "another", "r1")),
        replace(ASK, model=ModelId("small", "the-model", "r2")),
        replace(ASK, sampling=Sampling(temperature=0.7)),
        replace(ASK, sampling=Sampling(temperature=None)),
        replace(ASK, sampling=Sampling(top_p=0.9)),
        replace(ASK, sampling=Sampling(top_k=5)),
        replace(ASK, sampling=Sampling(seed=1)),
        replace(ASK, sampling=Sampling(stop=("\n",))),
        replace(ASK, sampling=Sampling(extra={"reasoning_effort": "low"})),
        replace(ASK, sample=1),
        replace(ASK, messages=ASK.messages[:1]),
        replace(ASK, messages=(Message("user", "Be brief."), ASK.messages[1])),
        replace(ASK, messages=(ASK.messages[0], Message("user", "Who? "))),
        replace(ASK, schema=SCHEMA),
        replace(ASK, schema_name="answer"),
    ],
)
def test_what_the_reply_depends_on_changes_the_key(other: ChatRequest) -> None:
    assert other.key != ASK.key
    assert other.fields() != ASK.fields()


def test_the_servers_name_for_the_model_does_not_change_the_key() -> None:
    assert replace(ASK, model=ModelId("org/small-fp16", "the-model", "r1")).key == ASK.key


def test_an_undeclared_identity_is_the_name() -> None:
    assert replace(ASK, model=ModelId("a")).key == replace(ASK, model=ModelId("b", "a")).key
    assert replace(ASK, model=ModelId("a")).key != replace(ASK, model=ModelId("b")).key


def test_the_length_limit_changes_only_the_key_of_truncated_replies() -> None:
    longer = replace(ASK, sampling=Sampling(max_tokens=1000))
    assert longer.key == ASK.key
    assert len({longer.limited_key, ASK.limited_key, ASK.key}) == 3


def test_the_order_and_the_type_of_equal_values_do_not_change_the_key() -> None:
    turned = {"properties": SCHEMA["properties"], "type": "object"}
    assert replace(ASK, schema=SCHEMA).key == replace(ASK, schema=turned).key
    assert replace(ASK, sampling=Sampling(temperature=0)).key == ASK.key


def test_the_key_is_the_same_in_every_process() -> None:
    assert ASK.key == "e7bf67da7eda5ad94dde8e06d38413b816bff99ef06a0964019425a8ef4bb68b"


def test_the_body_holds_what_is_set_and_the_servers_name() -> None:
    sampling = Sampling(temperature=None, max_tokens=7, extra={"model": "evil", "reasoning_effort": "low"})
    assert replace(ASK, sampling=sampling).body("json_schema") == {
        "model": "small",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
        "max_tokens": 7,
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize(
    ("structured", "sent"),
    [
        (
            "json_schema",
            {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
        ),
        ("json_object", {"type": "json_object"}),
        ("text", None),
    ],
)
def test_the_schema_is_sent_as_the_mode_allows(structured: Any, sent: object) -> None:
    asked = replace(ASK, schema=SCHEMA, schema_name="answer")
    assert asked.body(structured).get("response_format") == sent


def test_half_a_character_is_named() -> None:
    with pytest.raises(DataError, match="half characters"):
        _ = replace(ASK, messages=(Message("user", "\ud83d"),)).key


@pytest.mark.parametrize(
    ("written", "root"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
        ("https://example.org/api", "https://example.org/api/v1"),
        ("https://example.org/v1beta/openai/", "https://example.org/v1beta/openai"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_taken_however_it_is_written(written: str, root: str) -> None:
    assert Address.parse(written).root == root
    assert Address.parse(root).chat == f"{root}/chat/completions"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "localhost:8000",
        "ftp://a/v1",
        "http://me:hunter2@a/v1",
        "http://a/v1?key=hunter2",
        "http://a b",
        "http://a:x",
    ],
)
def test_a_bad_address_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(SettingsError, match="--base-url") as caught:
        Address.parse(written)
    assert "hunter2" not in str(caught.value)


def test_the_server_gets_the_schema_in_its_own_order() -> None:
    """A constrained server writes a reply's fields in that order: what decides must come before what is decided."""
    schema = {"type": "object", "properties": {"fact": {}, "answer": {}}}
    request = ChatRequest(ModelId("m"), (Message("user", "?"),), schema_name="z", schema=schema)
    body = to_bytes(request.body("json_schema")).decode()
    assert body.index('"fact"') < body.index('"answer"')


def test_the_limit_stands_in_the_field_that_the_server_takes_it_in() -> None:
    usual, other = (replace(ASK, sampling=Sampling(max_tokens=7, limit_as=field)) for field in get_args(LimitField))
    assert usual.body("text")["max_tokens"] == other.body("text")["max_completion_tokens"] == 7
    assert "max_tokens" not in other.body("text")
    assert (usual.key, usual.limited_key) == (other.key, other.limited_key)
    assert "max_completion_tokens" not in replace(ASK, sampling=Sampling(limit_as="max_completion_tokens")).body("text")
