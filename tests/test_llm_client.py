from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from rectom.errors import (
    EndpointBusy,
    EndpointDown,
    EndpointError,
    EndpointFault,
    RectomError,
    RequestRefused,
    UnknownModel,
    WrongKey,
)
from rectom.llm import (
    ChatClient,
    ChatRequest,
    Limits,
    MemoryReplies,
    Message,
    ModelId,
    Outcome,
    Retry,
    Sampling,
    Timeouts,
    Usage,
    WouldSend,
)
from tests.fault_server import (
    CUT,
    DRIP,
    ERROR_IN_200,
    FILTERED,
    HANG,
    HTML,
    LENGTH,
    NO_CHOICES,
    NO_SCHEMAS,
    NOT_UTF8,
    NULL,
    OK,
    REASONING,
    REFUSAL,
    RESET,
    TOOL,
    UNKNOWN_MODEL,
    WRONG_KEY,
    WRONG_KIND,
    Fault,
    FaultServer,
    error,
    says,
)

KEY = "planted-0123456789-secret"
NOWHERE = "http://127.0.0.1:9"
QUICK = Retry(attempts=3, first=0.001, cap=0.01)
SHORT = Timeouts(connect=0.2, first_byte=0.3, between_bytes=0.4, total=5)
SCHEMA = {"type": "object"}
DEEP = b"[" * 1000 + b"]" * 1000


def ask(text: str = "Who?", **fields: Any) -> ChatRequest:
    return ChatRequest(ModelId("small"), (Message("user", text),), **fields)


class SlowReplies(MemoryReplies):
    """A store whose `keep` waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.may = asyncio.Event()

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        self.begun.set()
        await self.may.wait()
        await super().keep(key, record)


async def test_300_asks_of_30_prompts_send_30() -> None:
    replies = MemoryReplies()
    async with (
        FaultServer(usual=replace(OK, latency=0.05)) as server,
        ChatClient(server.url, None, replies=replies, limits=Limits(16)) as client,
    ):
        got = await asyncio.gather(*(client.ask(ask(f"prompt {i % 30}")) for i in range(300)))
        again = await client.ask(ask("prompt 7"))
    assert len(server.requests) == 30
    assert [reply.text for reply in got] == [f"echo: prompt {i % 30}" for i in range(300)]
    assert (client.stats.sent, client.stats.shared, client.stats.cached) == (30, 270, 1)
    assert client.stats.usage == Usage(300, 150)
    assert {reply.source for reply in got} == {"sent", "shared"}
    assert again.source == "cached"
    assert len(replies.records) == 30


async def test_samples_of_one_prompt_are_sent_apart() -> None:
    async with FaultServer() as server, ChatClient(server.url, None) as client:
        await asyncio.gather(*(client.ask(ask(sample=i)) for i in range(5)))
    assert len(server.requests) == 5


async def test_a_reply_is_kept_before_it_is_returned() -> None:
    replies = SlowReplies()
    async with FaultServer() as server, ChatClient(server.url, None, replies=replies) as client:
        asked = asyncio.create_task(client.ask(ask()))
        await replies.begun.wait()
        await asyncio.sleep(0.05)
        assert not asked.done()
        replies.may.set()
        reply = await asked
    assert replies.records[reply.key]["text"] == "echo: Who?"


async def test_a_store_that_fails_is_heard() -> None:
    class FullDisk(MemoryReplies):
        async def keep(self, key: str, record: Mapping[str, Any]) -> None:
            raise OSError("no space left")

    async with FaultServer() as server, ChatClient(server.url, None, replies=FullDisk()) as client:
        with pytest.raises(OSError, match="no space left"):
            await client.ask(ask())


async def test_no_more_than_the_limit_is_in_flight() -> None:
    limits = Limits(4)
    async with (
        FaultServer(usual=replace(OK, latency=0.02)) as server,
        ChatClient(server.url, None, limits=limits) as one,
        ChatClient(server.url, None, limits=limits) as two,
    ):
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(20) for client in (one, two)))
    assert server.max_in_flight == 4


async def test_the_queue_is_first_come_first_served() -> None:
    async with FaultServer() as server, ChatClient(server.url, None, limits=Limits(1)) as client:
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(20)))
    assert [seen.body["messages"][0]["content"] for seen in server.requests] == [str(i) for i in range(20)]


async def test_a_conversation_goes_on_before_others_begin() -> None:
    def answered(text: str) -> ChatRequest:
        begun = ask(text)
        return replace(begun, messages=(*begun.messages, Message("assistant", "He."), Message("user", "Who else?")))

    async with FaultServer() as server, ChatClient(server.url, None, limits=Limits(1)) as client:
        await asyncio.gather(*map(client.ask, [ask("0"), ask("1"), answered("2"), ask("3"), answered("4")]))
    assert [seen.body["messages"][0]["content"] for seen in server.requests] == ["0", "2", "4", "1", "3"]


async def test_time_in_the_queue_counts_toward_no_timeout() -> None:
    timeouts = Timeouts(connect=0.6, first_byte=0.6, between_bytes=0.6, total=0.6)
    async with (
        FaultServer(usual=replace(OK, latency=0.1)) as server,
        ChatClient(server.url, None, limits=Limits(1), timeouts=timeouts, retry=Retry(attempts=1)) as client,
    ):
        got = await asyncio.gather(*(client.ask(ask(str(i))) for i in range(10)))
    assert all(0.09 < reply.latency_s < 0.6 for reply in got)


async def test_the_body_and_the_key_reach_the_server() -> None:
    asked = ask(sampling=Sampling(temperature=0.5, max_tokens=9), schema=SCHEMA, schema_name="answer")
    async with FaultServer() as server, ChatClient(server.url.removesuffix("/v1"), KEY) as client:
        await client.ask(asked)
    assert server.requests[0].body == asked.body("json_schema")
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


# --- replies that are no answers


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (NULL, Outcome.EMPTY),
        (LENGTH, Outcome.TRUNCATED),
        (FILTERED, Outcome.FILTERED),
        (REFUSAL, Outcome.REFUSED),
        (REASONING, Outcome.REASONING_ONLY),
        (TOOL, Outcome.TOOL_CALL),
    ],
)
async def test_no_answer_is_recorded_with_its_cost_and_asked_again(fault: Fault, outcome: Outcome) -> None:
    replies = MemoryReplies()
    async with FaultServer([fault]) as server, ChatClient(server.url, None, replies=replies) as client:
        first = await client.ask(ask())
        assert first.outcome is outcome
        assert replies.records[first.key]["outcome"] == outcome.value
        assert replies.records[first.key]["usage"]["completion"] == 5
        async with ChatClient(NOWHERE, None, replies=replies, replay_failures=True) as replaying:
            replayed = await replaying.ask(ask())
        assert (replayed.outcome, replayed.source) == (outcome, "cached")
        second = await client.ask(ask())
    assert (second.outcome, second.source, len(server.requests)) == (Outcome.OK, "sent", 2)


async def test_raising_the_length_limit_asks_only_the_truncated_again() -> None:
    def answer(body: dict[str, Any]) -> Fault:
        long = body["messages"][0]["content"] == "long"
        return LENGTH if long and body["max_tokens"] < 100 else OK

    replies = MemoryReplies()
    async with FaultServer(usual=answer) as server, ChatClient(server.url, None, replies=replies) as client:
        for limit in (10, 1000):
            for text in ("short", "long"):
                reply = await client.ask(ask(text, sampling=Sampling(max_tokens=limit)))
        assert (reply.outcome, len(server.requests)) == (Outcome.OK, 3)
        reply = await client.ask(ask("long", sampling=Sampling(max_tokens=10)))
        assert reply.source == "cached"  # it is known to need no more than 5 tokens
        await client.ask(ask("short", sampling=Sampling(max_tokens=4)))
    assert len(server.requests) == 4


async def test_a_truncated_reply_does_not_displace_an_answer() -> None:
    replies = MemoryReplies()
    async with FaultServer([OK, LENGTH]) as server, ChatClient(server.url, None, replies=replies) as client:
        await client.ask(ask())
        cut = await client.ask(ask(sampling=Sampling(max_tokens=3)))
        full = await client.ask(ask())
    assert (cut.outcome, full.outcome, full.source) == (Outcome.TRUNCATED, Outcome.OK, "cached")


async def test_a_whole_reply_is_taken_again_whatever_its_server_counts() -> None:
    replies = MemoryReplies()
    over = replace(OK, usage={"prompt_tokens": 10, "completion_tokens": 150})

    async def sent(limit: int | None) -> int:
        async with FaultServer(usual=over) as server, ChatClient(server.url, None, replies=replies) as client:
            assert (await client.ask(ask(sampling=Sampling(max_tokens=limit)))).outcome is Outcome.OK
        return len(server.requests)

    assert [await sent(limit) for limit in (100, 100, 120, None, 50, 50, 100)] == [1, 0, 0, 0, 1, 0, 0]


async def test_thinking_is_kept_apart() -> None:
    async with FaultServer([says("<think>hm</think>Ann")]) as server, ChatClient(server.url, None) as client:
        reply = await client.ask(ask())
    assert (reply.text, reply.reasoning, reply.model) == ("Ann", "hm", "small-0")


# --- the store


async def test_another_address_and_key_find_the_same_replies() -> None:
    replies = MemoryReplies()
    async with FaultServer() as server, ChatClient(server.url, KEY, replies=replies) as client:
        sent = await client.ask(ask())
    async with ChatClient(NOWHERE, "another-key", replies=replies) as client:
        assert await client.ask(ask()) == replace(sent, source="cached")


async def test_fresh_asks_again_and_keeps_the_new_reply() -> None:
    replies = MemoryReplies()
    async with (
        FaultServer([says("old"), says("new")]) as server,
        ChatClient(server.url, None, replies=replies) as client,
    ):
        await client.ask(ask())
        assert (await client.ask(ask(), fresh=True)).text == "new"
        assert (await client.ask(ask())).text == "new"
    assert len(server.requests) == 2


@pytest.mark.parametrize("damage", [{"outcome": "?"}, {"key": "of another request"}, {"text": None}])
async def test_a_damaged_record_is_a_miss(damage: dict[str, Any]) -> None:
    replies = MemoryReplies()
    async with FaultServer() as server, ChatClient(server.url, None, replies=replies) as client:
        reply = await client.ask(ask())
        replies.records[reply.key] = {**replies.records[reply.key], **damage}
        assert (await client.ask(ask())).source == "sent"


async def test_offline_replays_and_names_what_it_would_send() -> None:
    replies = MemoryReplies()
    async with FaultServer() as server, ChatClient(server.url, None, replies=replies) as client:
        await client.ask(ask())
        async with ChatClient(server.url, None, replies=replies, offline=True) as offline:
            assert (await offline.ask(ask())).source == "cached"
            for fresh in (False, True):
                with pytest.raises(WouldSend, match="no stored reply of small") as caught:
                    await offline.ask(ask("What?") if not fresh else ask(), fresh=fresh)
        assert caught.value.request == ask()
    assert len(server.requests) == 1


# --- sharing


async def test_one_waiter_that_leaves_does_not_take_the_others_along() -> None:
    async with FaultServer([replace(OK, latency=0.1)]) as server, ChatClient(server.url, None) as client:
        first, second = (asyncio.create_task(client.ask(ask())) for _ in range(2))
        await asyncio.sleep(0.03)
        first.cancel()
        assert (await second).text == "echo: Who?"
        with pytest.raises(asyncio.CancelledError):
            await first
    assert len(server.requests) == 1


async def test_the_failure_of_one_is_the_failure_of_all() -> None:
    async with FaultServer(usual=error(400, "no")) as server, ChatClient(server.url, None) as client:
        got = await asyncio.gather(*(client.ask(ask()) for _ in range(5)), return_exceptions=True)
    assert len(server.requests) == 1
    assert [type(fault) for fault in got] == [RequestRefused] * 5
    assert len(set(map(id, got))) == 5
    assert client.stats.failed == 1


async def test_when_the_last_waiter_leaves_the_request_is_called_off() -> None:
    async with FaultServer([HANG]) as server, ChatClient(server.url, None, limits=Limits(1)) as client:
        asked = asyncio.create_task(client.ask(ask()))
        await server.arrived.wait()
        asked.cancel()
        await asyncio.wait([asked])
        async with asyncio.timeout(5):
            reply = await client.ask(ask())
    assert (reply.source, len(server.requests)) == ("sent", 2)


async def test_a_reply_that_came_is_kept_though_nobody_waits_any_more() -> None:
    replies = SlowReplies()
    async with FaultServer() as server, ChatClient(server.url, None, replies=replies) as client:
        asked = asyncio.create_task(client.ask(ask()))
        await replies.begun.wait()
        asked.cancel()
        asyncio.get_running_loop().call_later(0.05, replies.may.set)
    assert len(replies.records) == 1


async def test_closing_ends_what_is_in_flight() -> None:
    async with FaultServer(usual=HANG) as server, ChatClient(server.url, None) as client:
        asked = asyncio.create_task(client.ask(ask()))
        await server.arrived.wait()
        await client.aclose()
        with pytest.raises(EndpointError, match="closed"):
            await asked


# --- retries


@pytest.mark.parametrize(
    "fault",
    [
        *(error(status, "later") for status in (408, 409, 429, 500, 502, 503, 504, 529)),
        RESET,
        CUT,
        HANG,
        HTML,
        WRONG_KIND,
        NOT_UTF8,
        NO_CHOICES,
        ERROR_IN_200,
        replace(DRIP, latency=0.8),
    ],
)
async def test_a_passing_fault_is_asked_again(fault: Fault) -> None:
    async with FaultServer([fault]) as server, ChatClient(server.url, None, retry=QUICK, timeouts=SHORT) as client:
        reply = await client.ask(ask())
    assert (reply.outcome, reply.attempts, len(server.requests)) == (Outcome.OK, 2, 2)
    assert (client.stats.sent, client.stats.retried, client.stats.failed) == (1, 1, 0)


@pytest.mark.parametrize(
    ("fault", "raised", "words"),
    [
        (error(429, "slow down"), EndpointBusy, "still busy .*HTTP 429 .slow down"),
        (error(503, "loading"), EndpointBusy, "HTTP 503 .loading"),
        (error(500, "oops"), EndpointFault, "HTTP 500 .oops"),
        (RESET, EndpointFault, "no reply after all retries"),
        (CUT, EndpointFault, "no JSON"),
        (HANG, EndpointFault, "no reply within 0.5 s"),
        (replace(DRIP, latency=0.8), EndpointFault, "nothing more of the reply within 0.4 s"),
        (HTML, EndpointFault, "text/html instead of JSON"),
        (WRONG_KIND, EndpointFault, "text/plain"),
        (NOT_UTF8, EndpointFault, "UTF-8"),
        (ERROR_IN_200, EndpointFault, "upstream is ill"),
        (Fault(status=500, body=b"<html>", kind="text/html"), EndpointFault, "an HTML page"),
        (Fault(status=500, body=b'{"detail": %s}' % DEEP), EndpointFault, "HTTP 500 .no words"),
        (Fault(status=500, body=b'{"error": {"message": %s}}' % DEEP), EndpointFault, "HTTP 500 .no words"),
    ],
)
async def test_a_lasting_fault_has_its_name(fault: Fault, raised: type[EndpointError], words: str) -> None:
    async with FaultServer(usual=fault) as server, ChatClient(server.url, None, retry=QUICK, timeouts=SHORT) as client:
        with pytest.raises(raised, match=words) as caught:
            await client.ask(ask())
    assert len(server.requests) == 3
    assert "\n" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)  # it becomes the failure of a question, and is published
    assert client.stats.failed == 1


async def test_a_dripping_reply_ends_with_the_total_timeout() -> None:
    timeouts = Timeouts(first_byte=5, between_bytes=5, total=0.3)
    async with (
        FaultServer(usual=DRIP) as server,
        ChatClient(server.url, None, retry=Retry(attempts=1), timeouts=timeouts) as client,
    ):
        with pytest.raises(EndpointFault, match=r"no whole reply within 0\.3 s"):
            await client.ask(ask())


async def test_retry_after_is_kept_in_seconds_and_as_a_date() -> None:
    def in_two_seconds(_: dict[str, Any]) -> Fault:
        if len(server.requests) > 2:
            return OK
        return error(503, "wait", Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True))

    async with (
        FaultServer([error(429, "wait", Retry_After="0.4")], in_two_seconds) as server,
        ChatClient(server.url, None, retry=QUICK) as client,
    ):
        await client.ask(ask())
    first, second, third = (seen.at for seen in server.requests)
    assert 0.4 <= second - first < 0.9
    assert 0.9 <= third - second < 2.5  # a date has no fractions of a second


async def test_an_endless_retry_after_is_bounded() -> None:
    retry = Retry(attempts=3, named_cap=0.1, total=0.15)
    began = time.monotonic()
    async with (
        FaultServer(usual=error(429, "go", Retry_After="19288")) as server,
        ChatClient(server.url, None, retry=retry) as client,
    ):
        with pytest.raises(EndpointBusy):
            await client.ask(ask())
    assert time.monotonic() - began < 1
    assert len(server.requests) == 2


async def test_the_usage_of_a_malformed_reply_is_counted() -> None:
    async with FaultServer([Fault(finish="error")]) as server, ChatClient(server.url, None, retry=QUICK) as client:
        await client.ask(ask())
    assert client.stats.usage == Usage(20, 10)


async def test_a_completion_of_another_content_type_is_taken_and_paid_once() -> None:
    plain = replace(OK, kind="text/plain")
    async with FaultServer(usual=plain) as server, ChatClient(server.url, None, retry=QUICK) as client:
        assert (await client.ask(ask())).text == "echo: Who?"
    assert (len(server.requests), client.stats.usage) == (1, Usage(10, 5))


def strange(text: str, encoding: str = "utf-8", kind: str = "application/json", **more: object) -> Fault:
    """A completion in JSON that is not strict, or in other bytes than those of UTF-8."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    body = json.dumps({"choices": [choice], "usage": usage, **more}, ensure_ascii="\ud83d" in text)
    return Fault(body=body.encode(encoding), kind=kind)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (strange("café \ud83d"), "café \N{REPLACEMENT CHARACTER}"),
        (strange("café", "utf-8-sig"), "café"),
        (strange("café", weight=float("nan")), "café"),
        (strange("café", "latin-1", "application/json; charset=latin-1"), "café"),
        (strange("café", "latin-1", 'application/json; charset="ISO-8859-1"'), "café"),
        (strange("café", "utf-16", "application/json; charset=utf-16"), "café"),
    ],
)
async def test_a_completion_that_is_no_strict_json_is_taken_and_paid_once(fault: Fault, text: str) -> None:
    async with FaultServer(usual=fault) as server, ChatClient(server.url, None, retry=QUICK) as client:
        assert (await client.ask(ask())).text == text
    assert (len(server.requests), client.stats.usage) == (1, Usage(10, 5))


async def test_what_is_paid_for_and_cannot_be_used_is_asked_for_once_more_at_most() -> None:
    for fault in (Fault(finish="error"), Fault(body=b" " * (8 * 2**20 + 1))):
        async with FaultServer(usual=fault) as server, ChatClient(server.url, None, retry=QUICK) as client:
            with pytest.raises(EndpointFault, match=r"no choices|a reply of more than 8,388,608 bytes"):
                await client.ask(ask())
        assert len(server.requests) == 2


def test_a_lack_of_files_lowers_the_limit_and_is_no_missing_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    async def main() -> None:
        async with FaultServer() as server, ChatClient(server.url, None, retry=QUICK) as client:
            monkeypatch.setattr("rectom.llm.wire.socket.socket", none_left)
            with pytest.raises(EndpointFault, match=r"Too many open files: raise the limit \(ulimit -n\)"):
                await client.ask(ask())
            assert client.stats.limit < 64
            monkeypatch.undo()
            assert (await client.ask(ask())).outcome is Outcome.OK

    asyncio.run(main())


# --- what no retry cures


async def test_nobody_there() -> None:
    async with ChatClient(NOWHERE, None, retry=QUICK) as client:
        with pytest.raises(
            EndpointDown, match=r"cannot reach http://127.0.0.1:9/v1: .*--base-url gives another address"
        ):
            await client.ask(ask())
        sent = client.stats.sent + client.stats.retried
        for i in range(20):
            with pytest.raises(EndpointDown, match="cannot reach"):
                await client.ask(ask(str(i)))
        assert sent == client.stats.sent + client.stats.retried == 3


async def test_a_wrong_name_of_the_host() -> None:
    async with ChatClient("http://nowhere.invalid", None, retry=Retry(attempts=1)) as client:
        with pytest.raises(EndpointDown, match=r"nowhere.invalid"):
            await client.ask(ask())


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_ends_everything_at_once(status: int) -> None:
    async with (
        FaultServer(usual=error(status, f"bad key {KEY}")) as server,
        ChatClient(server.url, KEY, limits=Limits(2)) as client,
    ):
        got = await asyncio.gather(*(client.ask(ask(str(i))) for i in range(20)), return_exceptions=True)
    assert {type(fault) for fault in got} == {WrongKey}
    assert len(server.requests) <= 2


@pytest.mark.parametrize("fault", [UNKNOWN_MODEL, error(400, "no", "model_not_found")])
async def test_an_unknown_model_is_named_with_those_known(fault: Fault) -> None:
    def answer(body: dict[str, Any]) -> Fault:
        return fault if body["model"] == "nobody" else OK

    async with FaultServer(usual=answer) as server, ChatClient(server.url, KEY) as client:
        for _ in range(3):
            with pytest.raises(UnknownModel, match="'nobody'; the server knows: large, small"):
                await client.ask(replace(ask(), model=ModelId("nobody")))
        assert len(server.requests) == 1
        assert (await client.ask(ask())).outcome is Outcome.OK


async def test_a_refused_request_is_told_shortly_on_one_line() -> None:
    words = "Your\n\x1b[31mprompt\x00 " + "is long " * 200
    async with FaultServer(usual=error(400, words)) as server, ChatClient(server.url, None) as client:
        with pytest.raises(RequestRefused, match=r"Your \[31mprompt is long") as caught:
            await client.ask(ask())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 450
    assert len(server.requests) == 1


async def test_a_redirect_is_not_followed() -> None:
    async with (
        FaultServer() as other,
        FaultServer(usual=Fault(status=307, headers={"Location": other.url})) as server,
        ChatClient(server.url, KEY) as client,
    ):
        with pytest.raises(RequestRefused, match="HTTP 307"):
            await client.ask(ask())
    assert not other.requests


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await ChatClient(NOWHERE, None).ask(ask())


# --- reply formats


async def test_a_refused_reply_format_is_stepped_down_once_for_all() -> None:
    def answer(body: dict[str, Any]) -> Fault:
        return NO_SCHEMAS if body.get("response_format", {}).get("type") == "json_schema" else OK

    async with FaultServer(usual=answer) as server, ChatClient(server.url, None, retry=Retry(attempts=1)) as client:
        await asyncio.gather(*(client.ask(ask(str(i), schema=SCHEMA)) for i in range(4)))
        assert (client.structured, len(server.requests)) == ("json_object", 8)
        await client.ask(ask("one more", schema=SCHEMA))
        assert len(server.requests) == 9
        await client.ask(ask("without a schema"))
    assert client.stats.sent == 6
    assert client.stats.schemas == {"json_object": 5}


async def test_a_server_without_any_reply_format_gets_text() -> None:
    def answer(body: dict[str, Any]) -> Fault:
        return error(422, "response_format: unsupported") if "response_format" in body else OK

    async with FaultServer(usual=answer) as server, ChatClient(server.url, None) as client:
        assert (await client.ask(ask(schema=SCHEMA))).outcome is Outcome.OK
    assert (client.structured, len(server.requests)) == ("text", 3)


async def test_a_refusal_of_something_else_does_not_step_down() -> None:
    async with FaultServer(usual=error(400, "temperature too high")) as server, ChatClient(server.url, None) as client:
        with pytest.raises(RequestRefused):
            await client.ask(ask(schema=SCHEMA))
    assert (client.structured, len(server.requests)) == ("json_schema", 1)


# --- secrets and weight


FAULTS = [
    *(error(status, f"you sent Bearer {KEY}, " * 20) for status in (302, 400, 401, 403, 404, 422, 429, 500, 503)),
    Fault(status=400, body=f"plain {KEY}".encode(), kind="text/plain"),
    Fault(status=400, body=f'{{"error": "{"x" * 280}{KEY}"}}'.encode()),
    Fault(body=f'{{"error": {{"message": "{KEY}"}}}}'.encode()),
    Fault(body=b"all is well", kind=f"text/{KEY}"),
    error(400, f"response_format {KEY}"),
    *(RESET, CUT, HANG, HTML, NOT_UTF8, NO_CHOICES, WRONG_KEY, UNKNOWN_MODEL),
]


async def test_no_error_and_no_log_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = []
    for fault in FAULTS:
        replies = MemoryReplies()
        async with FaultServer(usual=fault) as server:
            server.models = [KEY]
            async with ChatClient(server.url, KEY, replies=replies, retry=QUICK, timeouts=SHORT) as client:
                with pytest.raises(RectomError) as caught:
                    await client.ask(ask(schema=SCHEMA))
                told += [repr(vars(client)), repr(client), str(client), repr(client.stats)]
        assert server.requests
        told += [*traceback.format_exception(caught.value), repr(caught.value), repr(replies.records)]
        assert caught.value.__cause__ is caught.value.__context__ is None
    everything = "\n".join([*told, *(record.getMessage() for record in caplog.records), caplog.text])
    for piece in (KEY, KEY[:12], KEY[-12:]):
        assert piece not in everything
    assert "[key]" in everything


@pytest.mark.parametrize(("key", "shown"), [(KEY, "[key]"), ("none", "none")])
async def test_no_reply_holds_the_key_unless_it_is_a_mere_word(key: str, shown: str) -> None:
    replies = MemoryReplies()
    said = {"content": f"you sent {key}, Bearer xyz", "reasoning_content": f"is {key} one?"}
    body = {"model": f"m-{key}", "choices": [{"message": said, "finish_reason": "stop"}]}
    async with (
        FaultServer(usual=Fault(body=json.dumps(body).encode())) as server,
        ChatClient(server.url, key, replies=replies) as client,
    ):
        reply = await client.ask(ask())
    assert (reply.text, reply.model) == (f"you sent {shown}, Bearer xyz", f"m-{shown}")
    assert reply.reasoning == f"is {shown} one?"
    assert KEY not in repr(replies.records)


def test_a_key_that_no_header_can_carry_is_refused_unseen() -> None:
    with pytest.raises(WrongKey) as caught:
        ChatClient(NOWHERE, f"{KEY}\r\nHost: evil")
    assert KEY not in str(caught.value)


def test_the_import_is_light() -> None:
    heavy = "{'openai', 'pydantic', 'prefect', 'cache', 'jinja2', 'rich'}"
    code = f"import sys, rectom.llm; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
