"""Downloading files from where their authors publish them, and telling whether a file is the published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, TypeAlias

import aiohttp

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.archive import unpack
from rectom.errors import DataError
from rectom.whole import beside, replacing

#: Told the file's name, the bytes received so far and those that make the whole, or 0 where that is not known.
Progress: TypeAlias = Callable[[str, int, int], None]
Condition: TypeAlias = Literal["ok", "differs", "not checked", "missing"]

_CHUNK: Final = 1 << 16
#: The most bytes that a download may have whose size is not known, and that an archive may unpack to.
_MOST: Final = 1 << 29
#: Seconds to connect and between two chunks; a slow line may take as long as it needs for the whole.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)


def _unheard(_file: str, _got: int, _whole: int) -> None:
    """Progress that nobody looks at."""


async def fetch(adapter: Adapter, folder: Path, on_progress: Progress = _unheard) -> tuple[Path, ...]:
    """Download a benchmark's files to `folder/<name>/` and return their paths, in the order of its sources.

    What is there and does not differ from what is published is left alone. A file gets its name only when it is
    whole, and right as far as that can be told. Raises DataError if no address gives a file, or the folder cannot be
    written; files downloaded before stay.
    """
    if not adapter.sources:
        raise DataError(f"no address of {adapter.name} is known; give its files with --data PATH or RECTOM_DATA")
    instead = "give --data PATH or RECTOM_DATA"
    return await download(adapter.name, adapter.sources, folder / adapter.name, instead, on_progress)


async def download(
    name: str, sources: Sequence[Source], here: Path, instead: str, on_progress: Progress = _unheard
) -> tuple[Path, ...]:
    """Download published files into the folder `here`, as `fetch` does those of a benchmark.

    `name` is what they are together, `instead` what else a user can do. Raises DataError as `fetch` does.
    """
    wanted = [source for source in sources if condition(source, here / source.file) in {"missing", "differs"}]
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
            downloading = _Download(name, here, instead, session, on_progress)
            for _, together in groupby(wanted, key=lambda source: source.addresses):
                await downloading.all_of(tuple(together))
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"cannot write into {here}: {why}; choose another folder with --folder") from None
    return tuple(here / source.file for source in sources)


def condition(source: Source, path: Path) -> Condition:
    """Whether a file is the one published, by size and sha256.

    "not checked" is a file that cannot be read, or of which they are not known: those of a file that is published
    in an archive are the archive's.
    """
    try:
        if not path.is_file():
            return "missing"
        size = path.stat().st_size
        if not size or (source.size and not source.member and size != source.size):
            return "differs"
        if source.member or not source.sha256:
            return "not checked"
        with path.open("rb") as file:
            return "ok" if file_digest(file, "sha256").hexdigest() == source.sha256 else "differs"
    except OSError:
        return "not checked"


@dataclass(frozen=True, slots=True)
class Held:
    """A published file, where it is on this machine (None if it is not), its size there in bytes, its condition."""

    source: Source
    path: Path | None
    size: int
    condition: Condition


def held(adapter: Adapter) -> tuple[Held, ...]:
    """What of a benchmark's files is where RecToM looks for them, in the order of its sources."""
    return tuple(_held(source, adapter.files()) for source in adapter.sources)


def _held(source: Source, files: Files) -> Held:
    try:
        path = files.path(source.file)
    except DataError:
        return Held(source, None, 0, "missing")
    found = condition(source, path)
    # A path to one file stands for any; it is this one if it is called so, or is the very same.
    if path == files.where and path.name != Path(source.file).name and found != "ok":
        return Held(source, None, 0, "missing")
    return Held(source, path, path.stat().st_size, found)


@dataclass(frozen=True, slots=True)
class _Download:
    """Downloads into one folder, which is that of a benchmark or of models."""

    name: str
    folder: Path
    instead: str
    session: aiohttp.ClientSession
    on_progress: Progress

    async def all_of(self, sources: Sequence[Source]) -> None:
        """Get what lies at one place: a file, or an archive of several. DataError tells of all its addresses."""
        first, faults = sources[0], []
        target = self.folder / first.file
        target.parent.mkdir(parents=True, exist_ok=True)
        for address in first.addresses:
            try:
                with beside(target) as part:
                    await self._receive(address, part, first)
                    for source in sources:
                        self._put(part, source)
                return
            except (aiohttp.ClientError, TimeoutError, ConnectionError, DataError) as fault:
                faults.append(f"{address}: {_words(fault)}")
        raise DataError(f"cannot download {self.name} ({'; '.join(faults)}); {self._by_hand(first)}")

    async def _receive(self, address: str, part: Path, source: Source) -> None:
        """Write what is at an address; DataError says what is wrong with it."""
        digest, got, most = sha256(), 0, source.size or _MOST
        async with self.session.get(address) as response:
            if response.status != 200:
                raise DataError(f"the server answers {response.status}")
            whole = source.size or _length(response)
            with part.open("xb") as file:
                async for chunk in response.content.iter_chunked(_CHUNK):
                    if not got and _is_page(chunk):
                        raise DataError("a web page instead of the file (does the network ask for a login?)")
                    got += len(chunk)
                    if got > most:
                        raise DataError(f"larger than {most} bytes")
                    digest.update(chunk)
                    file.write(chunk)
                    self.on_progress(source.file, got, whole)
        if not got or (source.size and got != source.size):
            raise DataError(f"{got} bytes where the official file has {source.size or 'more'}")
        if source.sha256 and digest.hexdigest() != source.sha256:
            raise DataError(f"not the official file: the sha256 is {digest.hexdigest()}")

    def _put(self, part: Path, source: Source) -> None:
        """Give a file its name; if it is a member of an archive, take it out of it."""
        target = self.folder / source.file
        if not source.member:
            part.replace(target)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as unpacked, unpacked.open("xb") as file:
            unpack(part, source.member, file, _MOST)

    def _by_hand(self, source: Source) -> str:
        """What to do where nothing can be downloaded."""
        target = self.folder / source.file
        put = f"unpack {source.member} from it at {target}" if source.member else f"put it at {target}"
        right = f"; sha256sum must say {source.sha256} of what you downloaded" if source.sha256 else ""
        return (
            f"behind a firewall set HTTPS_PROXY, or download {source.addresses[0]} by hand and {put}, or elsewhere "
            f"and {self.instead}{right}"
        )


def _words(fault: Exception) -> str:
    if isinstance(fault, aiohttp.TooManyRedirects):
        return "it redirects without end"
    return str(fault) or type(fault).__name__


def _length(response: aiohttp.ClientResponse) -> int:
    """How many bytes will come, if the server says so: what it says of packed ones is their packed number."""
    return 0 if "Content-Encoding" in response.headers else response.content_length or 0


def _is_page(start: bytes) -> bool:
    return start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html"))
