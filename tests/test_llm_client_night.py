"""What a client lives through between evening and morning: busy servers, restarts, dead peers, budgets, neighbours.

Hours pass in virtual time against a server made of a few lines; the rest goes over real HTTP with tiny time-outs.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from rectom.errors import EndpointDown, EndpointError, EndpointFault, RectomError, WrongKey
from rectom.llm import ChatClient, ChatRequest, Limits, MemoryReplies, Message, ModelId, Reply, Retry, Timeouts
from rectom.llm.wire import NoResponse, Response, watched_socket
from tests.fault_server import HANG, LENGTH, OK, REFUSAL, RESET, STALL, Fault, FaultServer, completion, error
from tests.virtual_time import Headers, now, run

NOWHERE = "http://127.0.0.1:9"
QUICK = Retry(attempts=4, first=0.001, cap=0.01)


def ask(text: str) -> ChatRequest:
    return ChatRequest(ModelId("small"), (Message("user", text),))


class Server:
    """A transport that answers after `latency`; `meet` says how, given the time and the number in flight."""

    def __init__(self, meet: Callable[[float, int], Response | NoResponse], latency: float = 1.0) -> None:
        self.meet = meet
        self.latency = latency
        self.in_flight = 0
        self.arrived: list[float] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        self.arrived.append(now())
        self.in_flight += 1
        try:
            met = self.meet(now(), self.in_flight)
            await asyncio.sleep(self.latency if isinstance(met, Response) and met.status == 200 else 0.01)
            return met
        finally:
            self.in_flight -= 1


def says(status: int, **headers: str) -> Response:
    body = completion(OK, {"messages": [{"content": "yes"}]}) if status == 200 else b'{"error": "later"}'
    return Response(status, Headers({name.replace("_", "-"): value for name, value in headers.items()}), body, 1.0)


GONE = NoResponse("connection refused", unreachable=True)


def ask_all(server: Server, number: int, **options: Any) -> tuple[list[Reply | BaseException], ChatClient, float]:
    """What became of so many requests, the client, and the seconds it took."""

    async def main() -> tuple[list[Reply | BaseException], ChatClient, float]:
        async with ChatClient(NOWHERE, None, transport=server, **options) as client:
            asked = (client.ask(ask(str(i))) for i in range(number))
            return await asyncio.gather(*asked, return_exceptions=True), client, now()

    return run(main())


def kinds(got: list[Reply | BaseException]) -> Counter[str]:
    return Counter(type(each).__name__ for each in got)


# --- busy servers


@pytest.mark.parametrize("headers", [{}, {"Retry_After": "1"}])
def test_a_server_with_little_room_is_found_out_and_kept_busy(headers: dict[str, str]) -> None:
    server = Server(lambda _, in_flight: says(200) if in_flight <= 10 else says(429, **headers), latency=5.0)
    got, client, took = ask_all(server, 1000)
    assert kinds(got) == {"Reply": 1000}
    assert took < 1.35 * 1000 / 10 * 5.0
    assert client.stats.retried < 350


def test_a_storm_that_ends_costs_little_of_the_night() -> None:
    server = Server(lambda at, _: says(503) if 30 < at < 330 else says(200))
    got, client, took = ask_all(server, 4_000)
    # Nobody fails: whoever is refused goes to the end of the queue.
    assert kinds(got) == {"Reply": 4_000}
    assert took < 4_000 / 64 + 300 + 20
    assert client.stats.retried < 64 / 0.3 + 200


def test_refused_for_ever_everyone_is_told_in_the_end() -> None:
    server = Server(lambda *_: says(429))
    got, client, took = ask_all(server, 100)
    assert kinds(got) == {"EndpointBusy": 100}
    assert len(server.arrived) == 600
    assert took < 600 * 5.1
    assert client.stats.errors == {"EndpointBusy": 100}
    assert client.stats.in_flight == 0
    assert client.stats.limit == 1


def test_a_request_that_backs_off_holds_up_nobody() -> None:
    refused: list[float] = []

    def meet(at: float, _: int) -> Response:
        if not refused:
            refused.append(at)
            return says(500)
        return says(200)

    server = Server(meet)
    got, _, took = ask_all(server, 4, limits=Limits(1), retry=Retry(first=1000, cap=1000, total=1e6))
    assert kinds(got) == {"Reply": 4}
    assert took > 4.02  # it waited for longer than the others took
    assert server.arrived[:4] == pytest.approx([0, 0.01, 1.01, 2.01])


def test_a_server_that_comes_back_does_not_meet_the_whole_queue_at_once() -> None:
    server = Server(lambda at, _: says(429) if at < 120 else says(200))
    ask_all(server, 500)
    back = [at for at in server.arrived if at >= 120]
    first = back[0]
    assert sum(at < first + 1 for at in back) == 1
    assert sum(at < first + 2 for at in back) <= 3
    assert sum(at < first + 3 for at in back) <= 7


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "30"},
        {"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "30s"},
        {"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "0m30s"},
    ],
)
def test_no_request_is_sent_before_the_time_that_a_refusal_names(headers: dict[str, str]) -> None:
    server = Server(lambda at, _: says(429, **headers) if 5 <= at < 6 else says(200))
    got, _, _ = ask_all(server, 1000)
    assert kinds(got) == {"Reply": 1000}
    last_refused = max(at for at in server.arrived if 5 <= at < 6)
    assert not [at for at in server.arrived if last_refused + 0.02 < at < last_refused + 30]
    assert [at for at in server.arrived if last_refused + 30 <= at < last_refused + 32]


def test_no_request_is_sent_before_the_time_that_a_spent_reply_names() -> None:
    def meet(at: float, _: int) -> Response:
        fields = {"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "20s"}
        return says(200, **fields) if 5 <= at < 6 else says(200, x_ratelimit_remaining_requests="7")

    server = Server(meet)
    ask_all(server, 1000)
    assert not [at for at in server.arrived if 6.01 < at < 26]
    assert sum(26 <= at < 27.1 for at in server.arrived) >= 64  # and the limit has not fallen


def test_a_named_time_is_bounded_for_the_gate_as_well() -> None:
    server = Server(lambda at, _: says(429, Retry_After="1000000") if at < 1 else says(200))
    got, _, took = ask_all(server, 100)
    assert kinds(got) == {"Reply": 100}
    assert 600 < took < 610


def test_slow_replies_to_what_was_sent_before_a_burst_do_not_hide_it() -> None:
    server = Server(lambda _, in_flight: says(200) if in_flight <= 32 else NoResponse("slow", False, timed_out=True))
    got, client, _ = ask_all(server, 200)
    assert kinds(got) == {"Reply": 200}
    assert client.stats.limit < 50


# --- restarts


def test_a_server_that_restarts_kills_no_night() -> None:
    server = Server(lambda at, _: GONE if 30 < at < 330 else says(200))
    got, _, took = ask_all(server, 4_000, retry=Retry(attempts=2))
    assert kinds(got) == {"Reply": 4_000}
    assert took < 4_000 / 64 + 300 + 40
    assert sum(30 < at < 330 for at in server.arrived) < 400


def test_a_server_that_stays_away_ends_the_run_after_its_time() -> None:
    server = Server(lambda at, _: GONE if at > 30 else says(200))
    got, _, took = ask_all(server, 4_000, retry=Retry(down_s=200))
    assert kinds(got)["EndpointDown"] == 4_000 - kinds(got)["Reply"]
    assert 230 < took < 245


def test_a_server_that_never_was_there_is_told_at_once() -> None:
    server = Server(lambda *_: GONE)
    got, _, took = ask_all(server, 1000)
    assert kinds(got) == {"EndpointDown": 1000}
    assert took < 5
    assert len(server.arrived) < 3 * 64 + 100


async def test_a_server_that_restarts_at_its_port_is_found_again() -> None:
    async with (
        FaultServer() as server,
        ChatClient(server.url, None, retry=Retry(attempts=2, first=0.05, cap=0.1)) as client,
    ):
        await client.ask(ask("before"))
        await server.__aexit__(None, None, None)
        during = [asyncio.create_task(client.ask(ask(f"during {i}"))) for i in range(5)]
        await asyncio.sleep(0.5)
        async with FaultServer(port=server.port):
            async with asyncio.timeout(5):
                got = await asyncio.gather(*during)
    assert [reply.text for reply in got] == [f"echo: during {i}" for i in range(5)]


async def test_a_wrong_port_is_told_at_once() -> None:
    began = time.monotonic()
    async with ChatClient(NOWHERE, None) as client:
        got = await asyncio.gather(*(client.ask(ask(str(i))) for i in range(300)), return_exceptions=True)
    assert {type(fault) for fault in got} == {EndpointDown}
    assert time.monotonic() - began < 5


# --- dead peers


@pytest.mark.parametrize(
    ("fault", "words"), [(HANG, "no reply within"), (STALL, "nothing more of the reply within 0.2 s")]
)
async def test_a_peer_that_died_is_noticed_and_the_question_asked_again(fault: Fault, words: str) -> None:
    timeouts = Timeouts(connect=0.1, first_byte=0.2, between_bytes=0.2, total=60)
    began = time.monotonic()
    async with (
        FaultServer([OK, fault]) as server,
        ChatClient(server.url, None, timeouts=timeouts, retry=QUICK) as client,
    ):
        await client.ask(ask("first"))
        last = await client.ask(ask("last"))
        assert (last.text, last.attempts) == ("echo: last", 2)
        assert time.monotonic() - began < 1
        server.usual = fault
        with pytest.raises(EndpointFault, match=words):
            await client.ask(ask("never"))
    assert time.monotonic() - began < 4


async def test_a_peer_that_never_takes_the_call_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        address = listening.getsockname()
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(address)  # they fill the queue that nobody empties
        async with ChatClient(
            f"http://127.0.0.1:{address[1]}", None, timeouts=Timeouts(connect=0.1), retry=QUICK
        ) as client:
            with pytest.raises(EndpointDown, match="cannot reach"):
                await client.ask(ask("anyone"))
        for caller in callers:
            caller.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="this system does not say how it keeps connections")
def test_a_silent_peer_is_asked_for_a_sign_of_life() -> None:
    with watched_socket(60, (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, every, tries = (
            made.getsockopt(socket.IPPROTO_TCP, name)
            for name in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert idle + every * tries == 60


async def test_time_outs_lower_the_limit_once_for_all() -> None:
    timeouts = Timeouts(connect=0.1, first_byte=0.2, between_bytes=0.2, total=60)
    limits, seen = Limits(16), list[int]()

    def note() -> None:
        """As each request is sent."""
        seen.append(limits.limit)

    async with (
        FaultServer([HANG] * 16) as server,
        ChatClient(server.url, None, limits=limits, timeouts=timeouts, retry=QUICK, admit=note) as client,
    ):
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(16)))
    assert seen[:17] == [16] * 16 + [11]
    assert min(seen) == 11
    assert len(server.requests) == len(seen) == 32


# --- storms over HTTP


@pytest.mark.parametrize(
    "storm",
    [
        [error(429, "slow down")] * 10,
        [error(503, "loading")] * 10,
        [RESET] * 20,
        [error(429, "wait", Retry_After="0.2")] * 20,
        [error(429, "wait", retry_after_ms="100"), error(503, "loading"), RESET, error(502, "gone"), HANG] * 4,
    ],
)
async def test_a_storm_over_http_loses_nothing(storm: list[Fault]) -> None:
    timeouts = Timeouts(connect=0.1, first_byte=0.2, between_bytes=0.2, total=60)
    retry = Retry(attempts=8, first=0.01, cap=0.05)
    async with (
        FaultServer(storm, usual=replace(OK, latency=0.005)) as server,
        ChatClient(server.url, None, limits=Limits(8), timeouts=timeouts, retry=retry) as client,
    ):
        got = await asyncio.gather(*(client.ask(ask(str(i))) for i in range(100)))
    assert [reply.text for reply in got] == [f"echo: {i}" for i in range(100)]
    assert len(server.requests) == 100 + len(storm)
    assert client.stats.limit >= 7


async def test_first_refused_with_a_time_128_are_done_within_256_requests() -> None:
    seen: set[str] = set()

    def first_refused(body: dict[str, Any]) -> Fault:
        text = body["messages"][0]["content"]
        known = text in seen
        seen.add(text)
        return replace(OK, latency=0.02) if known else error(429, "wait", Retry_After="0.4")

    began = time.monotonic()
    async with FaultServer(usual=first_refused) as server, ChatClient(server.url, None) as client:
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(128)))
    assert len(server.requests) == 256
    assert 0.8 < time.monotonic() - began < 2.0


async def test_an_account_without_credit_ends_the_run() -> None:
    spent = error(429, "You exceeded your current quota", "insufficient_quota")
    async with FaultServer(usual=spent) as server, ChatClient(server.url, None, limits=Limits(2)) as client:
        got = await asyncio.gather(*(client.ask(ask(str(i))) for i in range(20)), return_exceptions=True)
    assert {type(fault) for fault in got} == {WrongKey}
    assert "nothing left to spend" in str(got[0])
    assert len(server.requests) <= 2


# --- budgets


class Spent(RectomError):
    """The budget is used up."""


def test_what_the_budget_does_not_admit_is_not_sent() -> None:
    admitted: list[float] = []

    def admit() -> None:
        if len(admitted) == 100:
            raise Spent("no more than 100 calls")
        admitted.append(now())

    replies = MemoryReplies()
    server = Server(lambda *_: says(200))
    got, client, took = ask_all(server, 1000, admit=admit, replies=replies, limits=Limits(32))
    assert kinds(got) == {"Reply": 100, "Spent": 900}
    assert len(server.arrived) == 100
    assert len(replies.records) == 100
    assert took == 4.0  # the last that were under way are waited for
    assert client.stats.errors == {"Spent": 900}
    assert str(got[-1]) == "no more than 100 calls"


def test_at_the_end_of_the_budget_nobody_sleeps_on() -> None:
    server = Server(lambda at, _: says(500) if at < 1 else says(200), latency=2.0)
    retry = Retry(first=1e5, cap=1e5, total=1e9)
    admitted: list[float] = []

    async def main() -> None:
        def admit() -> None:
            admitted.append(now())
            if len(admitted) > 3:
                raise Spent("no more")

        async with ChatClient(NOWHERE, None, transport=server, admit=admit, retry=retry) as client:
            sleeping = [asyncio.create_task(client.ask(ask(str(i)))) for i in range(2)]
            await asyncio.sleep(1)
            last = asyncio.create_task(client.ask(ask("under way")))
            await asyncio.sleep(0)
            with pytest.raises(Spent):
                await client.ask(ask("one too many"))
            with pytest.raises(Spent):
                await asyncio.gather(*sleeping)
            assert now() < 2
            assert (await last).text == "echo: yes"

    run(main())


def test_a_wrong_key_ends_those_that_wait_for_a_named_time() -> None:
    class Odd(Server):
        async def post(self, payload: bytes, key: str) -> Response | NoResponse:
            first = not self.arrived
            met = await super().post(payload, key)
            if first:
                return met
            await asyncio.sleep(2)
            return says(401)

    server = Odd(lambda *_: says(429, Retry_After="500"))
    got, _, took = ask_all(server, 7, limits=Limits(1))
    assert kinds(got) == {"WrongKey": 7}
    assert took > 500  # the limit is one in flight: nobody knows before

    server = Odd(lambda *_: says(429, Retry_After="500"))

    async def main() -> None:
        async with ChatClient(NOWHERE, None, transport=server, limits=Limits(2)) as client:
            slow = asyncio.create_task(client.ask(ask("first")))
            await asyncio.sleep(0.001)
            others = [asyncio.create_task(client.ask(ask(str(i)))) for i in range(6)]
            got = await asyncio.gather(slow, *others, return_exceptions=True)
            assert kinds(got) == {"WrongKey": 7}
            assert now() < 3

    run(main())


# --- figures


async def test_figures_by_kind() -> None:
    plan = [OK, LENGTH, REFUSAL, error(400, "no"), error(500, "oops"), error(500, "oops")]
    async with FaultServer(plan) as server, ChatClient(server.url, None, retry=Retry(attempts=2, first=0.01)) as client:
        assert (client.stats.in_flight, client.stats.limit) == (0, 0)
        for i in range(5):
            try:
                await client.ask(ask(str(i)))
            except EndpointError:
                assert client.stats.in_flight == 0
        hanging = asyncio.create_task(client.ask(ask("hang")))
        server.usual = HANG
        server.arrived.clear()
        await server.arrived.wait()
        assert (client.stats.in_flight, client.stats.limit) == (1, 64)
        hanging.cancel()
        await asyncio.wait([hanging])
    assert client.stats.in_flight == 0
    assert client.stats.outcomes == {"ok": 1, "truncated": 1, "refused": 1}
    assert client.stats.errors == {"RequestRefused": 1, "EndpointFault": 1}
    assert client.stats.failed == 2


# --- ends


def quota(*_: object) -> Response:
    return Response(429, Headers({}), b'{"error": {"code": "insufficient_quota"}}', 1.0)


def ended_together(server: Server, number: int, **options: Any) -> tuple[ChatClient, float]:
    """The client of so many requests, the first error of which calls off the rest, and the seconds it took."""

    client = ChatClient(NOWHERE, None, transport=server, **options)
    ended = 0.0

    async def main() -> None:
        nonlocal ended
        try:
            async with client, asyncio.TaskGroup() as group:
                for i in range(number):
                    group.create_task(client.ask(ask(str(i))))
        finally:
            ended = now()

    with pytest.raises(ExceptionGroup):
        run(main())
    return client, ended


@pytest.mark.parametrize("last", [quota(), says(401), GONE])
def test_what_is_with_the_server_when_a_run_ends_is_waited_for_and_kept(last: Response | NoResponse) -> None:
    replies = MemoryReplies()
    server = Server(lambda *_: last if len(server.arrived) == 1 else says(200), latency=3.0)
    client, took = ended_together(server, 20, replies=replies, limits=Limits(8), retry=Retry(attempts=1))
    assert (len(server.arrived), len(replies.records), took) == (8, 7, 3.0)
    assert client.stats.usage.prompt == 70


def test_when_a_run_ends_nothing_is_sent_again() -> None:
    server = Server(lambda *_: quota() if len(server.arrived) == 1 else says(429, Retry_After="500"))
    _, took = ended_together(server, 20, limits=Limits(8))
    assert len(server.arrived) == 8
    assert took < 1


class FullDisk(MemoryReplies):
    """A store with room for so many records."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.refused = 0

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        if len(self.records) == self.room and not self.refused:
            self.refused += 1
            raise OSError("no space left")
        await super().keep(key, record)


def test_on_a_full_disk_nothing_more_is_sent_and_what_comes_is_kept_where_it_can_be() -> None:
    replies = FullDisk(10)
    server = Server(lambda *_: says(200), latency=3.0)
    got, _, _ = ask_all(server, 100, replies=replies, limits=Limits(8))
    assert kinds(got) == {"Reply": 15, "OSError": 85}
    assert (len(server.arrived), len(replies.records)) == (16, 15)


def test_a_reply_that_alone_cannot_be_kept_ends_nothing_else() -> None:
    class Picky(MemoryReplies):
        async def keep(self, key: str, record: Mapping[str, Any]) -> None:
            if key == ask("3").key:
                raise EndpointFault("too large")
            await super().keep(key, record)

    got, client, _ = ask_all(Server(lambda *_: says(200)), 10, replies=Picky(), limits=Limits(2))
    assert kinds(got) == {"Reply": 9, "EndpointFault": 1}
    assert client.stats.errors == {"EndpointFault": 1}


@pytest.mark.parametrize("halted", [False, True])
def test_an_interrupt_waits_for_nothing(halted: bool) -> None:
    server = Server(lambda *_: says(200), latency=1000.0)

    async def main() -> None:
        async with ChatClient(NOWHERE, None, transport=server) as client:
            asked = asyncio.create_task(client.ask(ask("long")))
            await asyncio.sleep(1)
            if halted:
                client.halt(Spent("no more"))
            await asked

    async def interrupted() -> None:
        work = asyncio.create_task(main())
        await asyncio.sleep(2)
        work.cancel()
        await asyncio.wait([work])
        assert now() == 2.0

    run(interrupted())
    assert server.in_flight == 0


def test_an_interrupt_ends_the_wait_for_what_is_with_the_server() -> None:
    class Closed(Server):
        closed = False

        async def close(self) -> None:
            self.closed = True

    server = Closed(lambda *_: says(200), latency=1000.0)

    async def main() -> None:
        async with ChatClient(NOWHERE, None, transport=server) as client:
            asked = asyncio.create_task(client.ask(ask("long")))
            await asyncio.sleep(1)
            client.halt(Spent("no more"))
            asked.cancel()

    async def interrupted() -> None:
        work = asyncio.create_task(main())
        await asyncio.sleep(2)
        assert server.in_flight == 1
        work.cancel()
        await asyncio.wait([work])
        assert (now(), server.closed) == (2.0, True)

    run(interrupted())


def test_a_batch_is_not_waited_for_since_its_journal_loses_nothing() -> None:
    class Batches(Server):
        remembers = True

    server = Batches(lambda *_: quota() if len(server.arrived) == 1 else says(200), latency=1e5)
    _, took = ended_together(server, 8)
    assert took < 1


# --- neighbours


async def test_what_another_client_has_stored_meanwhile_is_not_sent() -> None:
    replies = MemoryReplies()
    async with (
        FaultServer(usual=replace(OK, latency=0.01)) as server,
        ChatClient(server.url, None, replies=replies, limits=Limits(4)) as one,
        ChatClient(server.url, None, replies=replies, limits=Limits(4)) as two,
    ):
        got = await asyncio.gather(
            *(one.ask(ask(str(i))) for i in range(100)), *(two.ask(ask(str(i))) for i in reversed(range(100)))
        )
    assert [reply.text for reply in got[:100]] == [f"echo: {i}" for i in range(100)]
    assert 100 <= len(server.requests) <= 110
    assert one.stats.sent + two.stats.sent == len(server.requests)
    assert one.stats.cached + two.stats.cached == 200 - len(server.requests)
    assert one.stats.usage.prompt == 10 * one.stats.sent


async def test_a_fresh_request_looks_into_no_store() -> None:
    replies = MemoryReplies()
    async with (
        FaultServer(usual=replace(OK, latency=0.01)) as server,
        ChatClient(server.url, None, replies=replies, limits=Limits(1)) as client,
    ):
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(5)))
        await asyncio.gather(*(client.ask(ask(str(i)), fresh=True) for i in range(5)))
    assert len(server.requests) == 10


class Durable(MemoryReplies):
    """A store on a slow disk."""

    kept = 0

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        await asyncio.sleep(0.05)
        await super().keep(key, record)
        self.kept += 1


async def test_no_more_than_the_limit_is_ever_unsaved() -> None:
    replies = Durable()
    unsaved: list[int] = []

    def answer(_: dict[str, Any]) -> Fault:
        unsaved.append(len(server.requests) - replies.kept)
        return OK

    async with (
        FaultServer(usual=answer) as server,
        ChatClient(server.url, None, replies=replies, limits=Limits(4)) as client,
    ):
        await asyncio.gather(*(client.ask(ask(str(i))) for i in range(20)))
    assert max(unsaved) <= 4
