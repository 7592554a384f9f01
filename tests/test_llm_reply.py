from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rectom.errors import DataError
from rectom.llm.reply import Outcome, Reply, Usage, parse_reply, split_thinking
from rectom.llm.request import ChatRequest, Message, ModelId, Sampling, canonical
from tests.fault_server import (
    ERROR_IN_200,
    FILTERED,
    LENGTH,
    NO_CHOICES,
    NOT_UTF8,
    NULL,
    REASONING,
    REFUSAL,
    TOOL,
    Fault,
    completion,
    says,
)

BODY = {"messages": [{"role": "user", "content": "Who?"}]}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def bytes_of(fault: Fault) -> bytes:
    return completion(fault, BODY) if fault.body is None else fault.body


@pytest.mark.parametrize(
    ("fault", "outcome", "text"),
    [
        (Fault(), Outcome.OK, "echo: Who?"),
        (Fault(finish=None), Outcome.OK, "echo: Who?"),
        (Fault(message={"content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}), Outcome.OK, "AB"),
        (LENGTH, Outcome.TRUNCATED, "and then and then"),
        (Fault(text="<think>hm", finish="length"), Outcome.TRUNCATED, ""),
        (FILTERED, Outcome.FILTERED, ""),
        (REFUSAL, Outcome.REFUSED, "I would rather not."),
        (NULL, Outcome.EMPTY, ""),
        (says(" \n"), Outcome.EMPTY, ""),
        (REASONING, Outcome.REASONING_ONLY, ""),
        (says("<think>hm, hm"), Outcome.REASONING_ONLY, ""),
        (TOOL, Outcome.TOOL_CALL, ""),
        (NO_CHOICES, Outcome.MALFORMED, ""),
        (NOT_UTF8, Outcome.MALFORMED, ""),
        (ERROR_IN_200, Outcome.MALFORMED, ""),
        (Fault(finish="error"), Outcome.MALFORMED, ""),
        (Fault(body=b""), Outcome.MALFORMED, ""),
        (Fault(body=b"[" * 100_000), Outcome.MALFORMED, ""),
    ],
)
def test_every_reply_has_an_outcome(fault: Fault, outcome: Outcome, text: str) -> None:
    parsed = parse_reply(bytes_of(fault))
    assert (parsed.outcome, parsed.text) == (outcome, text)


@pytest.mark.parametrize("charset", ["", "utf-8", "utf-16", "punycode", "zlib", "no such", "latin-1\x00"])
def test_bytes_of_no_known_charset_are_no_reply(charset: str) -> None:
    body = completion(says("caf"), BODY).replace(b"caf", b"caf\xe9")
    assert parse_reply(body, charset).outcome is Outcome.MALFORMED
    assert parse_reply(body, "windows-1252").text == "café"


def test_a_whole_character_of_two_halves_stays_one() -> None:
    assert (
        parse_reply(b'{"choices": [{"message": {"content": "\\ud83d\\ude00 \\ud83d"}}]}').text
        == "😀 \N{REPLACEMENT CHARACTER}"
    )


def test_a_malformed_reply_says_why() -> None:
    assert parse_reply(bytes_of(ERROR_IN_200)).fault == "upstream is ill"
    assert "choices" in parse_reply(bytes_of(NO_CHOICES)).fault


@pytest.mark.parametrize(
    ("content", "text", "thinking"),
    [
        ("A", "A", ""),
        ("<think>a</think> A", "A", "a"),
        ("a</think>A", "A", "a"),
        ("<think>a</think>A<think>b</think>B", "AB", "a\nb"),
        ("A<think>b", "A", "b"),
        ("a</think>A</think>B", "A</think>B", "a"),
        ("a</think>A<think>b", "A", "a\nb"),
        ("A<think>b</think>B</think>C<think>", "AB</think>C", "b"),
        ("A<think>b<think>c</think>B<thi", "AB<thi", "b<think>c"),
        ("</think><think> a </think> A B ", "A B", "a"),
        ("<think></think>", "", ""),
        ("", "", ""),
    ],
)
def test_thinking_is_parted_from_the_text(content: str, text: str, thinking: str) -> None:
    assert split_thinking(content) == (text, thinking)


def test_a_text_of_many_thoughts_is_parted_in_one_walk() -> None:
    # Where each step copies what is left, this takes minutes.
    assert split_thinking("A<think>a</think>" * 400_000) == ("A" * 400_000, "\n".join("a" * 400_000))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_classified(body: bytes) -> None:
    assert isinstance(parse_reply(body).outcome, Outcome)


@settings(deadline=None)
@given(choices=JSON_VALUES, message=JSON_VALUES, content=JSON_VALUES, finish=JSON_VALUES, usage=JSON_VALUES)
def test_any_completion_is_classified(choices: Any, message: Any, content: Any, finish: Any, usage: Any) -> None:
    full = [{"message": {"content": content, "refusal": message}, "finish_reason": finish}]
    for found in (choices, [choices], [{"message": message}], full):
        body = orjson.dumps({"choices": found, "usage": usage}, default=str) if _small(found, usage) else b"{}"
        parsed = parse_reply(body)
        assert "<think>" not in parsed.text
        assert all(count >= 0 for count in (parsed.usage.prompt, parsed.usage.completion))


def _small(*values: Any) -> bool:
    try:
        orjson.dumps(values)
    except TypeError:
        return False
    return True


@settings(deadline=None)
@given(st.lists(st.sampled_from(["<think>", "</think>", "A", " "]), max_size=12))
def test_no_thinking_is_left_in_the_text(parts: list[str]) -> None:
    text, _ = split_thinking("".join(parts))
    assert "<think>" not in text


@pytest.mark.parametrize(
    "usage", [None, [], "many", {"prompt_tokens": None}, {"prompt_tokens": -3}, {"prompt_tokens": True}]
)
def test_unreadable_usage_counts_nothing(usage: object) -> None:
    assert Usage.from_server(usage) == Usage()


def test_usage_is_read_with_its_details_and_adds_up() -> None:
    usage = Usage.from_server(
        {
            "prompt_tokens": 10,
            "completion_tokens": 7.0,
            "completion_tokens_details": {"reasoning_tokens": 4},
            "prompt_tokens_details": {"cached_tokens": 8},
        }
    )
    assert usage == Usage(10, 7, 4, 8)
    assert usage + Usage(1, 1, 1, 1) == Usage(11, 8, 5, 9)


@pytest.mark.parametrize(
    ("total", "completion"),
    [(1820, 1520), (320, 20), (7, 20), (None, 20), (True, 20), (1e300, 20), ("1820", 20), (2**60, 20)],
)
def test_what_is_thought_beside_the_completion_is_counted_with_it(total: object, completion: int) -> None:
    told = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": total}
    assert Usage.from_server(told) == Usage(300, completion)


@pytest.mark.parametrize(
    ("limit", "asked", "fits"), [(100, None, True), (99, None, False), (99, 99, True), (99, 50, True), (50, 99, False)]
)
def test_a_reply_fits_by_what_it_took_or_by_the_limit_it_had(limit: int, asked: int | None, fits: bool) -> None:
    reply = Reply("k", "Ann", Outcome.OK, Usage(1, 100), 0.5, 1, "sent", limit=asked)
    assert reply.fits(limit) is fits
    assert reply.fits(None)


@pytest.mark.parametrize("limit", [None, 9])
def test_a_records_limit_is_read_back_and_older_ones_have_none(limit: int | None) -> None:
    asked = ChatRequest(ModelId("m"), (Message("user", "Who?"),))
    record = Reply(asked.key, "Ann", Outcome.OK, Usage(), 0.5, 2, "sent", limit=limit).to_record(asked)
    assert Reply.from_record(record).limit == limit
    del record["limit"]
    assert Reply.from_record(record).limit is None


def test_a_record_goes_through_json_and_back() -> None:
    asked = ChatRequest(ModelId("m"), (Message("user", "Who?"),), Sampling(max_tokens=9))
    reply = Reply(asked.key, "Ann", Outcome.OK, Usage(1, 2, 3, 4), 0.5, 2, "cached", "hm", "m-0")
    record = orjson.loads(orjson.dumps(reply.to_record(asked)))
    assert Reply.from_record(record) == reply
    assert record["request"] == asked.fields()


@pytest.mark.parametrize(
    ("outcome", "limited"), [(Outcome.OK, False), (Outcome.EMPTY, False), (Outcome.TRUNCATED, True)]
)
def test_a_records_key_is_the_digest_of_its_request(outcome: Outcome, limited: bool) -> None:
    asked = ChatRequest(ModelId("m"), (Message("user", "Who?"),), Sampling(max_tokens=9))
    reply = Reply(asked.limited_key if limited else asked.key, "", outcome, Usage(), 0.5, 1, "sent")
    record = reply.to_record(asked)
    assert hashlib.sha256(canonical(record["request"])).hexdigest() == record["key"]


@pytest.mark.parametrize(
    "damage",
    [
        *({"outcome": "good"}, {"text": None}, {"attempts": "x"}, {"attempts": "3"}, {"key": 3}, {"latency_s": None}),
        *({"latency_s": "nan"}, {"latency_s": float("nan")}, {"latency_s": float("inf")}, {"at": "nan"}, {"at": None}),
    ],
)
def test_a_damaged_record_is_named(damage: dict[str, object]) -> None:
    asked = ChatRequest(ModelId("m"), (Message("user", "Who?"),))
    reply = Reply(asked.key, "Ann", Outcome.OK, Usage(), 0.5, 2, "sent")
    with pytest.raises(DataError, match="damaged"):
        Reply.from_record({**reply.to_record(asked), **damage})
