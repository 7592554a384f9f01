from __future__ import annotations

import contextlib
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rectom.llm import BadReply, ChatClient, ChatRequest, MemoryReplies, Message, ModelId, Outcome, ask_json
from rectom.llm.structured import find_json
from tests.fault_server import LENGTH, NULL, REASONING, REFUSAL, TOOL, Fault, FaultServer, says

ASK = ChatRequest(ModelId("small"), (Message("user", "A or B? Reply as JSON."),))


class Choice(BaseModel):
    answer: Literal["A", "B"]


def parse(value: object) -> str:
    return Choice.model_validate(value).answer


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "A"}',
        ' {"answer": "A"}\n',
        '```json\n{"answer": "A"}\n```',
        'Sure! {"answer": "A"} Anything else?',
        'Not {"answer": "B"}, but {"answer": "A"}',
        'Given {x}, {"answer": "A"}',
        'So {"answer": "A"} and "}{"',
    ],
)
def test_json_is_found_in_what_surrounds_it(text: str) -> None:
    assert find_json(text) == {"answer": "A"}


def test_braces_and_quotes_in_strings_do_not_count() -> None:
    assert find_json(r'see {"answer": "a } \" { b", "n": {"m": {}}}') == {"answer": 'a } " { b', "n": {"m": {}}}


@pytest.mark.parametrize("text", ["", "A", '{"answer": {"answer": "A"}, "why', "{}}{", "{" * 100_000])
def test_no_piece_of_a_broken_object_is_taken(text: str) -> None:
    if text == "{}}{":
        assert find_json(text) == {}
        return
    with pytest.raises(ValueError, match="no JSON object"):
        find_json(text)


@settings(deadline=None)
@given(st.text(alphabet='{}"\\[]:,a1 ', max_size=40))
def test_any_text_is_json_or_a_fault(text: str) -> None:
    with contextlib.suppress(ValueError):
        find_json(text)


async def test_a_good_reply_needs_no_repair() -> None:
    async with FaultServer(usual=says('{"answer": "B"}')) as server, ChatClient(server.url, None) as client:
        answer = await ask_json(client, ASK, parse)
    assert (answer.value, answer.repairs, len(answer.replies)) == ("B", 0, 1)
    assert answer.faults == []


@pytest.mark.parametrize(
    ("bad", "quoted", "named"),
    [
        (says("It is A."), "It is A.", "no JSON object"),
        (says('{"answer": "C"}'), '{"answer": "C"}', "answer: Input should be 'A' or 'B'"),
        (says('["A"]'), '["A"]', "the reply: Input should be"),
        (LENGTH, "and then and then", "length limit"),
        (NULL, "(no text)", "empty"),
        (REASONING, "(no text)", "all reasoning"),
        (REFUSAL, "I would rather not.", "refusal"),
        (TOOL, "(no text)", "tool call"),
    ],
)
async def test_a_bad_reply_is_repaired_in_the_same_conversation(bad: Fault, quoted: str, named: str) -> None:
    async with (
        FaultServer([bad], says('{"answer": "B"}')) as server,
        ChatClient(server.url, None) as client,
    ):
        answer = await ask_json(client, ASK, parse)
    assert (answer.value, answer.repairs) == ("B", 1)
    (fault,) = answer.faults
    assert named in fault
    sent = server.requests[1].body["messages"]
    assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == quoted
    assert named in sent[2]["content"]
    assert "pydantic.dev" not in sent[2]["content"]


async def test_after_all_repairs_every_reply_is_handed_over() -> None:
    async with FaultServer(usual=says("no")) as server, ChatClient(server.url, None) as client:
        with pytest.raises(BadReply, match="3 tries: no JSON object") as caught:
            await ask_json(client, ASK, parse, repairs=2)
    assert len(server.requests) == 3
    assert sum(reply.usage.completion for reply in caught.value.replies) == 15
    assert "no JSON" in caught.value.why


async def test_each_bad_reply_has_its_fault_in_the_order_of_the_replies() -> None:
    plan = [says("It is A."), says('{"answer": "C"}'), LENGTH]
    named = ("no JSON object", "answer: Input should be", "length limit")
    async with FaultServer(plan, says('{"answer": "A"}')) as server, ChatClient(server.url, None) as client:
        answer = await ask_json(client, ASK, parse, repairs=3)
    async with FaultServer(plan) as server, ChatClient(server.url, None) as client:
        with pytest.raises(BadReply) as caught:
            await ask_json(client, ASK, parse, repairs=2)
    assert (answer.repairs, len(answer.replies)) == (3, 4)
    assert answer.faults == caught.value.faults
    assert all(words in fault for words, fault in zip(named, answer.faults, strict=True))
    assert caught.value.why == answer.faults[-1]
    assert str(caught.value) == f"no usable reply in 3 tries: {answer.faults[-1]}"


async def test_a_fault_is_told_in_one_line_of_bounded_length() -> None:
    def refuse(_: object) -> None:
        raise ValueError("first\n\n  second " + "x" * 5000)

    async with FaultServer(usual=says("{}")) as server, ChatClient(server.url, None) as client:
        with pytest.raises(BadReply) as caught:
            await ask_json(client, ASK, refuse, repairs=0)
    (fault,) = caught.value.faults
    assert fault.startswith("first second xxx")
    assert len(fault) == 1000


async def test_no_repairs_means_one_try() -> None:
    async with FaultServer(usual=says("no")) as server, ChatClient(server.url, None) as client:
        with pytest.raises(BadReply):
            await ask_json(client, ASK, parse, repairs=0)
    assert len(server.requests) == 1


async def test_a_rerun_replays_the_bad_reply_and_its_repair() -> None:
    replies = MemoryReplies()
    async with FaultServer([says("It is A.")], says('{"answer": "A"}')) as server:
        for sent in (2, 2):
            async with ChatClient(server.url, None, replies=replies) as client:
                answer = await ask_json(client, ASK, parse)
            assert (answer.value, answer.repairs, len(server.requests)) == ("A", 1, sent)
    assert [reply.source for reply in answer.replies] == ["cached", "cached"]


async def test_a_long_bad_reply_is_quoted_by_its_beginning() -> None:
    async with (
        FaultServer([says("x" * 50_000)], says('{"answer": "A"}')) as server,
        ChatClient(server.url, None) as client,
    ):
        answer = await ask_json(client, ASK, parse)
    assert answer.replies[0].outcome is Outcome.OK
    assert len(server.requests[1].body["messages"][1]["content"]) == 4000
