from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rectom.llm import ChatClient, Limits
from rectom.llm.address import Address
from rectom.llm.batch import BatchTransport
from rectom.llm.batch_file import BatchFileTransport
from rectom.llm.lent import Lent
from rectom.llm.secret import Secret
from rectom.llm.wire import NoResponse, Response
from tests.batch_server import BatchServer
from tests.test_llm_batch import KEY, batches, question


class Noting:
    """A transport that notes what is done with it; opening and closing take a while, and may fail."""

    def __init__(self, *, fails: int = 0) -> None:
        self.done: list[str] = []
        self.fails = fails

    async def open(self) -> None:
        self.done.append("opens")
        await asyncio.sleep(0.01)
        if self.fails:
            self.fails -= 1
            raise OSError("no room")
        self.done.append("open")

    async def close(self) -> None:
        self.done.append("closes")
        await asyncio.sleep(0.01)
        self.done.append("closed")

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        self.done.append(f"{payload.decode()} under {key}")
        return NoResponse("nobody there", unreachable=True)


class Telling(Noting):
    """One that can say how far it is."""

    def progress(self) -> str:
        return "2 jobs"


async def test_it_is_opened_with_the_first_and_closed_with_the_last() -> None:
    noting = Noting()
    lent = Lent(noting)
    await asyncio.gather(lent.open(), lent.open())
    await lent.close()
    assert noting.done == ["opens", "open"]
    assert await lent.post(b"Who?", "k") == NoResponse("nobody there", unreachable=True)
    await lent.close()
    await lent.open()
    assert noting.done[2:] == ["Who? under k", "closes", "closed", "opens", "open"]
    await lent.close()


async def test_nobody_uses_it_before_it_is_open() -> None:
    noting = Noting()
    lent = Lent(noting)

    async def use() -> None:
        await lent.open()
        await lent.post(b"Who?", "k")

    await asyncio.gather(use(), use())
    assert noting.done == ["opens", "open", "Who? under k", "Who? under k"]


async def test_who_comes_while_the_last_one_leaves_finds_it_open() -> None:
    noting = Noting()
    lent = Lent(noting)
    await lent.open()
    await asyncio.gather(lent.close(), lent.open())
    assert noting.done == ["opens", "open", "closes", "closed", "opens", "open"]
    await asyncio.gather(lent.open(), lent.close())
    assert len(noting.done) == 6


async def test_what_could_not_be_opened_is_opened_for_the_next() -> None:
    noting = Noting(fails=1)
    lent = Lent(noting)
    with pytest.raises(OSError, match="no room"):
        await lent.open()
    await lent.open()
    await lent.close()
    assert noting.done == ["opens", "opens", "open", "closes", "closed"]


def test_it_says_what_the_transport_says() -> None:
    assert Lent(Telling()).progress() == "2 jobs"
    assert Lent(Noting()).progress() == ""


def test_it_remembers_what_the_transport_does(tmp_path: Path) -> None:
    assert not Lent(Noting()).remembers
    assert Lent(BatchFileTransport(tmp_path)).remembers
    assert Lent(BatchTransport(Address.parse("http://a"), Secret(None), tmp_path)).remembers


async def test_clients_one_after_the_other_use_one_batch_transport(tmp_path: Path) -> None:
    async with BatchServer() as server:
        lent = Lent(batches(server, tmp_path))
        for name in ("Ann", "Bob"):
            async with ChatClient(server.url, KEY, limits=Limits(1000, adaptive=False), transport=lent) as client:
                assert (await client.ask(question(name))).text == f"echo: {name}"
                assert client.under_way == "no jobs"
    assert server.sizes == [1, 1]
