from __future__ import annotations

import asyncio
import io
import tarfile
import zipfile
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from aiohttp import ClientTimeout, web

from rectom.benchmarks import fetch as module
from rectom.benchmarks import registry
from rectom.benchmarks.adapter import Adapter, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.fetch import condition, fetch, held
from rectom.errors import DataError

DATA = bytes(range(256)) * 1_000
SHA256 = sha256(DATA).hexdigest()
FILE = "some.json"
PAGE = b"\n<!DOCTYPE html><html><title>Please log in</title></html>"


def tar_of(**files: bytes) -> bytes:
    """A `.tar.gz` archive; `__` in a name stands for a slash."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def zip_of(**files: bytes) -> bytes:
    """A `.zip` archive; `__` in a name stands for a slash."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name.replace("__", "/"), data)
    return packed.getvalue()


TAR = tar_of(data__some=DATA, up__other=b"other")


class FileServer:
    """Serves what `files` has by path, and what goes wrong elsewhere; keeps the paths it is asked for."""

    def __init__(self) -> None:
        self.files = {
            "/right": DATA,
            "/wrong": DATA[:-1] + b"?",
            "/short": DATA[:-1],
            "/empty": b"",
            "/page": PAGE,
            "/tar": TAR,
            "/zip": zip_of(data__some=DATA),
        }
        self.asked: list[str] = []
        self.address = ""

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_get("/{name:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.address = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if request.path in self.files:
            return web.Response(body=self.files[request.path])
        match request.path:
            case "/large" | "/broken":
                return await self._stream(request)
            case "/silent":
                await asyncio.sleep(0.3)
            case "/redirect":
                raise web.HTTPFound("/right")
            case "/loop":
                raise web.HTTPFound("/loop")
            case "/packed":
                response = web.Response(body=DATA)
                response.enable_compression(web.ContentCoding.gzip)
                return response
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
async def server() -> AsyncIterator[FileServer]:
    async with FileServer() as served:
        yield served


def never_loaded(*_: object) -> Benchmark:
    raise AssertionError("not to be loaded")


def some(*sources: Source) -> Adapter:
    """A benchmark that is only to be downloaded."""
    return Adapter("some", "Some: nothing", never_loaded, {"all": "all"}, "all", "CC0-1.0", sources)


def published(*addresses: str, known: bool = True, member: str = "") -> Source:
    """DATA, as it is published; for an archive, what is known is of TAR."""
    data = TAR if member else DATA
    return Source(FILE, addresses, sha256(data).hexdigest() if known else "", len(data) if known else 0, member)


def everything_in(folder: Path) -> list[Path]:
    """Every file and folder below a folder."""
    return sorted(folder.rglob("*"))


async def failure(source: Source, folder: Path) -> str:
    """What is said of a download that fails; nothing of it may be left."""
    with pytest.raises(DataError) as caught:
        await fetch(some(source), folder)
    assert "\n" not in str(caught.value)
    assert list((folder / "some").iterdir()) == []
    return str(caught.value)


async def test_the_right_file_is_put_in_its_place(server: FileServer, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    adapter = some(published(f"{server.address}/right"))
    (path,) = await fetch(adapter, tmp_path / "new", lambda *what: told.append(what))
    assert path == tmp_path / "new" / "some" / FILE
    assert path.read_bytes() == DATA
    assert told[-1] == (FILE, len(DATA), len(DATA))
    assert told == sorted(told)
    assert adapter.files(tmp_path / "new").path(FILE) == path
    assert list(path.parent.iterdir()) == [path]


async def test_others_may_read_the_file_if_they_may_read_what_the_user_writes(
    server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch()
    (path,) = await fetch(some(published(f"{server.address}/right")), tmp_path)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


async def test_every_source_is_downloaded(server: FileServer, tmp_path: Path) -> None:
    server.files["/b"] = b"b"
    second = Source("deep/below.txt", (f"{server.address}/b",), "", 0)
    paths = await fetch(some(published(f"{server.address}/right"), second), tmp_path)
    assert [path.relative_to(tmp_path / "some").as_posix() for path in paths] == [FILE, "deep/below.txt"]
    assert [path.read_bytes() for path in paths] == [DATA, b"b"]


@pytest.mark.parametrize("known", [True, False])
async def test_an_intact_file_is_not_downloaded_again(known: bool, server: FileServer, tmp_path: Path) -> None:
    adapter = some(published(f"{server.address}/right", known=known))
    first = await fetch(adapter, tmp_path)
    assert await fetch(adapter, tmp_path) == first
    assert server.asked == ["/right"]


@pytest.mark.parametrize("damage", [DATA[:-1], DATA[:-1] + b"?", b""])
async def test_a_damaged_file_is_downloaded_again(damage: bytes, server: FileServer, tmp_path: Path) -> None:
    adapter = some(published(f"{server.address}/right"))
    (path,) = await fetch(adapter, tmp_path)
    path.write_bytes(damage)
    assert (await fetch(adapter, tmp_path))[0].read_bytes() == DATA
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("wrong", f"not the official file: the sha256 is {sha256(DATA[:-1] + b'?').hexdigest()}"),
        ("short", "255999 bytes where the official file has 256000"),
        ("empty", "0 bytes where the official file has 256000"),
        ("none", "the server answers 404"),
        ("broken", "Response payload is not completed"),
        ("large", "larger than 256000 bytes"),
        ("page", "a web page instead of the file (does the network ask for a login?)"),
        ("loop", "it redirects without end"),
    ],
)
async def test_a_fault_leaves_nothing_and_says_what_to_do(
    name: str, fault: str, server: FileServer, tmp_path: Path
) -> None:
    address = f"{server.address}/{name}"
    message = await failure(published(address), tmp_path)
    assert message.startswith(f"cannot download some ({address}: {fault}")
    assert message.endswith(
        f"behind a firewall set HTTPS_PROXY, or download {address} by hand and put it at {tmp_path}/some/{FILE}, or "
        f"elsewhere and give --data PATH or RECTOM_DATA; sha256sum must say {SHA256} of what you downloaded"
    )


@pytest.mark.parametrize(
    ("name", "fault"), [("page", "a web page"), ("empty", "0 bytes where the official file has more"), ("broken", "")]
)
async def test_of_a_file_of_unknown_checksum_some_faults_are_seen(
    name: str, fault: str, server: FileServer, tmp_path: Path
) -> None:
    message = await failure(published(f"{server.address}/{name}", known=False), tmp_path)
    assert f"/{name}: {fault}" in message
    assert "sha256" not in message


async def test_a_file_of_unknown_size_has_a_bound(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 300_000)
    assert "larger than 300000 bytes" in await failure(published(f"{server.address}/large", known=False), tmp_path)


@pytest.mark.parametrize("name", ["redirect", "packed"])
async def test_a_redirect_and_a_packed_answer_are_followed(name: str, server: FileServer, tmp_path: Path) -> None:
    told: list[int] = []
    source = published(f"{server.address}/{name}", known=False)
    (path,) = await fetch(some(source), tmp_path, lambda _file, _got, whole: told.append(whole))
    assert path.read_bytes() == DATA
    assert set(told) == {len(DATA) if name == "redirect" else 0}


async def test_a_fault_leaves_an_older_file_alone(server: FileServer, tmp_path: Path) -> None:
    old = tmp_path / "some" / FILE
    old.parent.mkdir()
    old.write_bytes(b"old")
    with pytest.raises(DataError):
        await fetch(some(published(f"{server.address}/wrong")), tmp_path)
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


async def test_the_next_address_is_tried_and_all_that_fail_are_named(server: FileServer, tmp_path: Path) -> None:
    (path,) = await fetch(some(published(f"{server.address}/none", f"{server.address}/right")), tmp_path)
    assert path.read_bytes() == DATA
    assert server.asked == ["/none", "/right"]
    message = await failure(published(f"{server.address}/none", f"{server.address}/short"), tmp_path / "b")
    assert f"({server.address}/none: the server answers 404; {server.address}/short: 255999 bytes" in message


async def test_nobody_at_the_address(unused_tcp_port: int, tmp_path: Path) -> None:
    message = await failure(published(f"http://127.0.0.1:{unused_tcp_port}/right"), tmp_path)
    assert "Cannot connect to host" in message


async def test_a_server_that_says_nothing_is_given_up(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", ClientTimeout(total=None, sock_read=0.1))
    assert "imeout" in await failure(published(f"{server.address}/silent"), tmp_path)


async def test_the_proxy_of_the_environment_is_used(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.address)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    (path,) = await fetch(some(published("http://benchmark.invalid/right")), tmp_path)
    assert path.read_bytes() == DATA


async def test_cancelling_leaves_nothing(server: FileServer, tmp_path: Path) -> None:
    def interrupt(_file: str, _got: int, _whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await fetch(some(published(f"{server.address}/right")), tmp_path, interrupt)
    assert list((tmp_path / "some").iterdir()) == []


async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot write into .*: Not a directory; choose another folder with --folder"):
        await fetch(some(published("http://127.0.0.1:9/right")), tmp_path / "file")


async def test_a_folder_in_the_place_of_the_file(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "some" / FILE).mkdir(parents=True)
    with pytest.raises(DataError, match=r"cannot write into .*: Is a directory"):
        await fetch(some(published(f"{server.address}/right")), tmp_path)


async def test_a_benchmark_without_addresses(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no address of some is known; give its files with --data PATH or RECTOM_DATA"):
        await fetch(some(), tmp_path)


# Archives.


@pytest.mark.parametrize("name", ["tar", "zip"])
async def test_a_member_is_taken_out_of_its_archive(name: str, server: FileServer, tmp_path: Path) -> None:
    source = published(f"{server.address}/{name}", known=name == "tar", member="data/some")
    for _ in range(2):
        (path,) = await fetch(some(source), tmp_path)
        assert path.read_bytes() == DATA
    assert list(path.parent.iterdir()) == [path]
    assert server.asked == [f"/{name}"]


async def test_an_archive_of_several_files_is_downloaded_once(server: FileServer, tmp_path: Path) -> None:
    address = (f"{server.address}/tar",)
    sources = [Source("a/one", address, "", 0, "data/some"), Source("two", address, "", 0, "up/other")]
    paths = await fetch(some(*sources), tmp_path)
    assert [path.read_bytes() for path in paths] == [DATA, b"other"]
    assert server.asked == ["/tar"]
    paths[1].unlink()
    assert await fetch(some(*sources), tmp_path) == paths
    assert server.asked == ["/tar", "/tar"]


async def test_the_checksum_of_an_archive_is_checked_before_it_is_opened(server: FileServer, tmp_path: Path) -> None:
    server.files["/tar"] = tar_of(data__some=b"changed")
    source = Source(FILE, (f"{server.address}/tar",), sha256(TAR).hexdigest(), 0, "data/some")
    message = await failure(source, tmp_path)
    assert "not the official file: the sha256 is" in message
    assert f"by hand and unpack data/some from it at {tmp_path}/some/{FILE}" in message


@pytest.mark.parametrize(
    ("packed", "fault"),
    [
        (tar_of(other=b""), "an archive without the file data/some"),
        (tar_of(**{"..__..__evil": b"evil", "data__other": b""}), "an archive without the file data/some"),
        (TAR[: len(TAR) // 2], "a damaged archive"),
        (b"no archive", "neither a .tar.gz nor a .zip archive"),
        (tar_of(bomb=bytes(2_000_000), data__some=b""), "an archive that unpacks to more than 1,000,000 bytes"),
    ],
    ids=["another file", "a path that leads up", "cut off", "no archive", "a bomb"],
)
async def test_a_bad_archive_leaves_nothing(
    packed: bytes, fault: str, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 1_000_000)
    server.files["/tar"] = packed
    source = published(f"{server.address}/tar", known=False, member="data/some")
    assert f"/tar: {fault}" in await failure(source, tmp_path / "data")
    assert [path.name for path in everything_in(tmp_path)] == ["data", "some"]


# What is here.


@pytest.mark.parametrize(
    ("data", "source", "said"),
    [
        (DATA, published("x"), "ok"),
        (DATA[:-1], published("x"), "differs"),
        (DATA[:-1] + b"?", published("x"), "differs"),
        (b"", published("x", known=False), "differs"),
        (b"any", published("x", known=False), "not checked"),
        (b"any", published("x", member="data/some"), "not checked"),
        (DATA, Source(FILE, ("x",), SHA256, 0), "ok"),
        (b"any", Source(FILE, ("x",), "", 4), "differs"),
    ],
)
def test_the_condition_of_a_file(data: bytes, source: Source, said: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert condition(source, tmp_path / FILE) == said
    assert condition(source, tmp_path / "none") == condition(source, tmp_path) == "missing"


def test_what_is_held_of_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = some(published("x"), Source("other.txt", ("y",), "", 0))
    monkeypatch.setenv("RECTOM_DATA", str(tmp_path))
    assert [(one.path, one.size, one.condition) for one in held(adapter)] == [(None, 0, "missing")] * 2
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / FILE).write_bytes(b"?")
    (tmp_path / "other.txt").write_bytes(b"other")
    first, second = held(adapter)
    assert (first.path, first.size, first.condition) == (tmp_path / "some" / FILE, 1, "differs")
    assert (second.path, second.size, second.condition) == (tmp_path / "other.txt", 5, "not checked")


def test_one_file_given_is_only_the_one_that_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = some(published("x"), Source("other.txt", ("y",), "", 0))
    for name, data, conditions in [
        (FILE, b"?", ["differs", "missing"]),
        ("renamed", DATA, ["ok", "missing"]),
        ("another", b"?", ["missing", "missing"]),
    ]:
        (tmp_path / name).write_bytes(data)
        monkeypatch.setenv("RECTOM_DATA", str(tmp_path / name))
        assert [one.condition for one in held(adapter)] == conditions


def test_the_official_file_is_the_one_at_hand(hitom_file: Path) -> None:
    (source,) = registry.adapter("hitom").sources
    assert condition(source, hitom_file) == "ok"
    assert len(source.addresses) == 2
    assert all(address.startswith("https://") for address in source.addresses)
