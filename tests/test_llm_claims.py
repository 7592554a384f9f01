from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from rectom.errors import RequestRefused
from rectom.llm import ChatClient, ChatRequest, MemoryReplies, Message, ModelId, Reply
from rectom.llm.claims import Claims
from tests.fault_server import HANG, OK, FaultServer, error

KEY = "ab" * 32


def elsewhere(file: Path, code: str) -> subprocess.Popen[str]:
    """Another program that does something with claims `c` to `KEY`, and says so."""
    head = (
        f"from pathlib import Path\nfrom rectom.llm.claims import Claims\nKEY, c = {KEY!r}, Claims(Path({str(file)!r}))"
    )
    command = [sys.executable, "-c", f"{head}\n{code}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(program: subprocess.Popen[str]) -> str:
    assert program.stdout
    return program.stdout.readline().strip()


def met(claims: Claims) -> bool:
    """Look out for another program, for as long as one needs to start."""
    end = time.monotonic() + 20
    while claims.alone and time.monotonic() < end:
        time.sleep(0.005)
        claims.look()
    return not claims.alone


def test_a_claim_is_of_one_program_until_it_drops_it(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    assert claims.take(KEY)
    assert claims.take(KEY)
    with elsewhere(
        tmp_path / "claims", "for _ in range(2): print(c.take(KEY), c.take('c' * 64), flush=True); input()"
    ) as other:
        assert met(claims)
        assert said(other) == "False True"
        assert not claims.take("c" * 64)
        claims.drop(KEY)
        claims.drop(KEY)
        assert other.stdin
        print(file=other.stdin, flush=True)
        assert said(other) == "True True"
        assert not claims.take(KEY)
        print(file=other.stdin, flush=True)
    assert claims.take(KEY)
    claims.close()
    assert (tmp_path / "claims").read_bytes() == b""


def test_a_program_that_is_slow_to_look_keeps_its_claims(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    assert claims.take(KEY)
    code = (
        "import sys\nfrom pathlib import Path\nfrom rectom.llm import claims\nclaims._PATIENCE_S = 60\n"
        "print('ready', flush=True)\nc = claims.Claims(Path(sys.argv[1]))\nprint(c.take(sys.argv[2]), flush=True)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "claims"), KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert said(other) == "ready"
        time.sleep(0.5)
        claims.look()
        assert said(other) == "False"
    claims.close()


def test_a_killed_program_claims_nothing(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    with elsewhere(tmp_path / "claims", "print(c.take(KEY), flush=True); input()") as other:
        assert met(claims)
        assert said(other) == "True"
        assert not claims.take(KEY)
        other.kill()
        other.wait()
        assert claims.take(KEY)
    claims.close()


async def test_what_another_program_asks_for_is_waited_for_and_then_asked(tmp_path: Path) -> None:
    claims, replies = Claims(tmp_path / "claims"), MemoryReplies()
    requests = [ChatRequest(ModelId("small"), (Message("user", str(i)),)) for i in range(3)]
    code = (
        f"c.take({requests[0].limited_key!r}); c.take({requests[1].limited_key!r}); print('ready', flush=True); input()"
    )
    async with FaultServer() as server, ChatClient(server.url, None, replies=replies, claims=claims) as client:
        with elsewhere(tmp_path / "claims", code) as other:
            assert await asyncio.to_thread(said, other) == "ready"
            asked = [asyncio.create_task(client.ask(request)) for request in requests]
            assert (await asked[2]).source == "sent"
            await asyncio.sleep(0.3)
            assert not asked[0].done()
            assert client.stats.in_flight == 0
            reply = await asked[2]
            # The other program stores its reply to the first, and dies over the second.
            await replies.keep(requests[0].key, replace(reply, key=requests[0].key).to_record(requests[0]))
            async with asyncio.timeout(10):
                assert (await asked[0]).source == "cached"
            other.kill()
        assert (await asked[1]).text == "echo: 1"
        assert len(server.requests) == 2
        assert (await client.ask(requests[0], fresh=True)).source == "sent"
    claims.close()


async def test_a_failed_request_drops_its_claim(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    request = ChatRequest(ModelId("small"), (Message("user", "Who?"),))
    async with FaultServer(usual=error(400, "no")) as server, ChatClient(server.url, None, claims=claims) as client:
        (fault,) = await asyncio.gather(client.ask(request), return_exceptions=True)
        assert isinstance(fault, Exception)
    with elsewhere(tmp_path / "claims", f"print(c.take({request.limited_key!r}), flush=True)") as other:
        assert said(other) == "True"
    claims.close()


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from cache import Store
from flows.replies import StoredReplies
from rectom.llm import ChatClient, ChatRequest, Limits, Message, ModelId
from rectom.llm.claims import Claims

async def main(url, folder):
    claims = Claims(folder / "claims")
    with Store(folder / "cache") as store:
        replies = StoredReplies(store)
        async with ChatClient(url, None, replies=replies, limits=Limits(8), claims=claims) as client:
            asked = [ChatRequest(ModelId("small"), (Message("user", str(i)),)) for i in range(150)]
            got = await asyncio.gather(*map(client.ask, asked))
    stats = client.stats
    print(json.dumps([stats.sent, stats.cached, [reply.text for reply in got]]))

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


async def test_two_programs_over_one_store_share_the_work(tmp_path: Path) -> None:
    async with FaultServer(usual=replace(OK, latency=0.03)) as server:
        command = [sys.executable, "-c", PROGRAM, server.url, str(tmp_path)]
        programs = [
            await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            for _ in range(2)
        ]
        outputs = await asyncio.gather(*(program.communicate() for program in programs))
    assert [program.returncode for program in programs] == [0, 0], outputs
    (sent, cached, texts), (other_sent, other_cached, other_texts) = (json.loads(out) for out, _ in outputs)
    assert texts == other_texts == [f"echo: {i}" for i in range(150)]
    asked = Counter(seen.body["messages"][0]["content"] for seen in server.requests)
    assert len(asked) == 150
    assert sent + other_sent == len(server.requests) <= 152
    assert cached + other_cached == 300 - len(server.requests)


def prompts(count: int) -> list[ChatRequest]:
    return [ChatRequest(ModelId("small"), (Message("user", str(i)),)) for i in range(count)]


def test_a_claim_is_of_one_owner_within_a_program(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims", shared=True)
    assert claims.contested
    assert claims.take(KEY, "one")
    assert claims.take(KEY, "one")
    assert not claims.take(KEY, "other")
    assert not claims.take(KEY)
    claims.drop(KEY, "other")
    claims.drop("c" * 64, "other")
    assert not claims.take(KEY, "other")
    claims.drop(KEY, "one")
    assert claims.take(KEY, "other")
    claims.close()


def test_claims_of_several_owners_are_one_lock_each_for_other_programs(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims", shared=True)
    assert claims.take(KEY, "one")
    with elsewhere(
        tmp_path / "claims", "for _ in range(3): print(c.take(KEY), c.take('c' * 64), flush=True); input()"
    ) as other:
        assert met(claims)
        assert said(other) == "False True"
        assert not claims.take("c" * 64, "one")
        claims.drop(KEY, "other")
        assert other.stdin
        print(file=other.stdin, flush=True)
        assert said(other) == "False True"
        claims.drop(KEY, "one")
        print(file=other.stdin, flush=True)
        assert said(other) == "True True"
        assert not claims.take(KEY, "one")
        print(file=other.stdin, flush=True)
    assert claims.take(KEY, "one")
    claims.close()


def test_a_program_is_contested_when_another_comes(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    before = claims.contested
    with elsewhere(tmp_path / "claims", "input()") as other:
        assert met(claims)
        assert (before, claims.contested) == (False, True)
        assert other.stdin
        print(file=other.stdin, flush=True)
    claims.close()


async def test_two_clients_of_one_program_ask_once(tmp_path: Path) -> None:
    claims, replies = Claims(tmp_path / "claims", shared=True), MemoryReplies()
    async with (
        FaultServer(usual=replace(OK, latency=0.02)) as server,
        ChatClient(server.url, None, replies=replies, claims=claims) as one,
        ChatClient(server.url, None, replies=replies, claims=claims) as other,
    ):
        asked = [client.ask(request) for request in prompts(30) for client in (one, other)]
        got = await asyncio.gather(*asked)
        assert len(server.requests) == 30
        assert one.stats.sent + other.stats.sent == 30
        assert one.stats.cached + other.stats.cached == 30
    assert [reply.text for reply in got] == [f"echo: {i}" for i in range(30) for _ in range(2)]
    claims.close()


async def test_what_one_client_fails_at_the_other_asks(tmp_path: Path) -> None:
    claims, replies = Claims(tmp_path / "claims", shared=True), MemoryReplies()
    # The first one to come is refused, after a while in which the other one waits for it.
    refused = replace(error(400, "no"), latency=0.3)
    async with (
        FaultServer([refused]) as server,
        ChatClient(server.url, None, replies=replies, claims=claims) as one,
        ChatClient(server.url, None, replies=replies, claims=claims) as other,
    ):
        (request,) = prompts(1)
        first = asyncio.create_task(one.ask(request))
        await server.arrived.wait()
        second = asyncio.create_task(other.ask(request))
        await asyncio.sleep(0.1)
        assert len(server.requests) == 1
        failed, reply = await asyncio.gather(first, second, return_exceptions=True)
        assert isinstance(failed, RequestRefused)
        assert isinstance(reply, Reply)
        assert (reply.text, reply.source) == ("echo: 0", "sent")
        assert (one.stats.sent, other.stats.sent) == (1, 1)
    claims.close()


async def test_what_a_closed_client_had_claimed_the_other_asks(tmp_path: Path) -> None:
    claims, replies = Claims(tmp_path / "claims", shared=True), MemoryReplies()
    hanging = [HANG] * 5
    async with (
        FaultServer(hanging) as server,
        ChatClient(server.url, None, replies=replies, claims=claims) as other,
    ):
        async with ChatClient(server.url, None, replies=replies, claims=claims) as one:
            lost = [asyncio.create_task(one.ask(request)) for request in prompts(5)]
            while len(server.requests) < 5:
                server.arrived.clear()
                await server.arrived.wait()
            wanted = [asyncio.create_task(other.ask(request)) for request in prompts(5)]
            await asyncio.sleep(0.1)
            assert other.stats.sent == 0
        ended = await asyncio.gather(*lost, return_exceptions=True)
        assert all(isinstance(one, BaseException) for one in ended)
        async with asyncio.timeout(10):
            assert [reply.source for reply in await asyncio.gather(*wanted)] == ["sent"] * 5
        assert len(server.requests) == 10
    claims.close()


async def test_a_cancelled_question_gives_up_its_claim(tmp_path: Path) -> None:
    claims, (request,) = Claims(tmp_path / "claims", shared=True), prompts(1)
    async with FaultServer([HANG]) as server, ChatClient(server.url, None, claims=claims) as client:
        asked = asyncio.create_task(client.ask(request))
        await server.arrived.wait()
        assert not claims.take(request.limited_key, "another")
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert claims.take(request.limited_key, "another")
    claims.close()
