from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import ClientTimeout, web

from rectom.benchmarks import fetch as module
from rectom.benchmarks.fetch import SOURCES, Source, data_folder, fetch, find
from rectom.errors import DataError

DATA = bytes(range(256)) * 1_000
FILE = "some.json"


class _Server:
    """Serves DATA at /right and what goes wrong elsewhere; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        match request.path:
            case "/right":
                return web.Response(body=DATA)
            case "/wrong":
                return web.Response(body=DATA[:-1] + b"?")
            case "/short":
                return web.Response(body=DATA[:-1])
            case "/large" | "/broken":
                return await self._stream(request)
            case "/silent":
                await asyncio.sleep(1)
        return web.Response(status=404)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.path == "/broken":
            response.content_length = len(DATA)
        await response.prepare(request)
        await response.write(DATA[: len(DATA) // 2])
        if request.path == "/broken":
            assert request.transport
            request.transport.close()
            return response
        for _ in range(2):
            await response.write(DATA)
        return response


@pytest.fixture
async def server() -> AsyncIterator[_Server]:
    served = _Server()
    application = web.Application()
    application.router.add_get("/{name}", served.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    served.address = f"http://{host}:{port}"
    yield served
    await runner.cleanup()


def _offer(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    source = Source(addresses, FILE, sha256(DATA).hexdigest(), len(DATA), "CC0-1.0")
    monkeypatch.setitem(SOURCES, "some", source)


async def test_the_right_file_is_put_in_its_place(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, f"{server.address}/right")
    told: list[tuple[int, int]] = []
    path = await fetch("some", tmp_path / "new", lambda got, whole: told.append((got, whole)))
    assert path == tmp_path / "new" / "some" / FILE
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert told == sorted(told)
    assert find("some", tmp_path / "new") == path


async def test_an_intact_file_is_not_downloaded_again(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, f"{server.address}/right")
    first = await fetch("some", tmp_path)
    assert await fetch("some", tmp_path) == first
    assert server.asked == ["/right"]


@pytest.mark.parametrize("damage", [DATA[:-1], DATA[:-1] + b"?", b""])
async def test_a_damaged_file_is_downloaded_again(
    damage: bytes, server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, f"{server.address}/right")
    path = await fetch("some", tmp_path)
    path.write_bytes(damage)
    assert (await fetch("some", tmp_path)).read_bytes() == DATA
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("wrong", "256000 bytes whose checksum is not that of the official file"),
        ("short", "255999 bytes whose checksum is not that of the official file"),
        ("none", "the server answers 404"),
        ("broken", "Response payload is not completed"),
        ("large", "larger than the 256000 bytes of the official file"),
    ],
)
async def test_a_fault_leaves_nothing_and_says_what_to_do(
    name: str, fault: str, server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{server.address}/{name}"
    _offer(monkeypatch, address)
    with pytest.raises(DataError) as caught:
        await fetch("some", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"cannot download some ({address}: {fault}")
    assert message.endswith(f"download {address} by hand and give --data FILE")
    assert "\n" not in message
    assert list((tmp_path / "some").iterdir()) == []


async def test_a_fault_leaves_an_older_file_alone(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, f"{server.address}/wrong")
    old = tmp_path / "some" / FILE
    old.parent.mkdir()
    old.write_bytes(b"old")
    with pytest.raises(DataError):
        await fetch("some", tmp_path)
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


async def test_the_next_address_is_tried(server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, f"{server.address}/none", f"{server.address}/right")
    assert (await fetch("some", tmp_path)).read_bytes() == DATA
    assert server.asked == ["/none", "/right"]


async def test_nobody_at_the_address(unused_tcp_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, f"http://127.0.0.1:{unused_tcp_port}/right")
    with pytest.raises(DataError, match=r"Cannot connect to host .*; download .* by hand and give --data FILE"):
        await fetch("some", tmp_path)


async def test_a_server_that_says_nothing_is_given_up(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", ClientTimeout(total=None, sock_read=0.1))
    _offer(monkeypatch, f"{server.address}/silent")
    with pytest.raises(DataError, match=r"[Tt]imeout"):
        await fetch("some", tmp_path)


async def test_cancelling_leaves_nothing(server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, f"{server.address}/right")

    def interrupt(_got: int, _whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await fetch("some", tmp_path, interrupt)
    assert list((tmp_path / "some").iterdir()) == []


async def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, "http://127.0.0.1:9/right")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot write .*: Not a directory; choose another folder"):
        await fetch("some", tmp_path / "file")


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no official address is known for 'tomato'; there is one for hitom"):
        find("tomato")


def test_the_official_file_is_the_one_at_hand(hitom_file: Path) -> None:
    source = SOURCES["hitom"]
    data = hitom_file.read_bytes()
    assert (len(data), sha256(data).hexdigest()) == (source.size, source.sha256)
    assert all(address.startswith("https://") for address in source.addresses)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without data."""
    monkeypatch.delenv("RECTOM_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path


def _put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")
    return path


def test_what_is_given_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTOM_DATA", str(_put(home / "other.json")))
    given = _put(home / "given.json")
    assert find("hitom", given) == given
    assert find("hitom") == home / "other.json"


@pytest.mark.parametrize("place", ["hitom/Hi-ToM_data.json", "Hi-ToM_data.json"])
def test_a_folder_holds_the_file_or_a_folder_of_the_name(
    place: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _put(home / "data" / place)
    monkeypatch.setenv("RECTOM_DATA", str(home / "data"))
    assert find("hitom") == find("hitom", home / "data") == file


def test_the_users_data_folder_comes_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _put(home / "share" / "rectom" / "hitom" / "Hi-ToM_data.json")
    assert find("hitom") == file
    for said in ("", "not/absolute"):
        monkeypatch.setenv("XDG_DATA_HOME", said)
        assert data_folder() == home / ".local" / "share" / "rectom"


@pytest.mark.parametrize("said", [None, "nowhere"])
def test_no_file_is_an_error_that_lists_the_ways(said: str | None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if said:
        monkeypatch.setenv("RECTOM_DATA", str(home / said))
    where = home / said if said else home / "share" / "rectom"
    ways = "give --data FILE, or set RECTOM_DATA to the file or its folder, or run: rectom data get hitom"
    with pytest.raises(DataError) as caught:
        find("hitom")
    assert str(caught.value) == f"no hitom data at {where}; {ways}"
    with pytest.raises(DataError, match=r"no hitom data at .*gone\.json; give --data FILE"):
        find("hitom", home / "gone.json")
