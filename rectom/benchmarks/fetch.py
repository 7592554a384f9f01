"""Where benchmark files come from, and where they are on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final

import aiohttp

from rectom.benchmarks.base import digest_of
from rectom.errors import DataError


@dataclass(frozen=True, slots=True)
class Source:
    """A benchmark file: its official addresses, best first; its name, sha256 (hex) and size in bytes; its licence."""

    addresses: tuple[str, ...]
    file: str
    sha256: str
    size: int
    licence: str


SOURCES: Final[dict[str, Source]] = {
    "hitom": Source(
        addresses=(
            "https://raw.githubusercontent.com/ying-hui-he/Hi-ToM_dataset/main/Hi-ToM_data.json",
            "https://huggingface.co/datasets/Hi-ToM/Hi-ToM_Dataset/resolve/main/Hi-ToM_data.json",
        ),
        file="Hi-ToM_data.json",
        sha256="1c4077bbcdf815b91dbb791b60dbce3920a98bd63317954ebf94a532d43cd573",
        size=2_267_625,
        licence="Apache-2.0",
    ),
}

#: Told the bytes received so far and those that make the whole file.
Progress = Callable[[int, int], None]

_CHUNK: Final = 1 << 16
#: Seconds to connect and between two chunks; a slow line may take as long as it needs for the whole.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)


async def fetch(name: str, folder: Path, on_progress: Progress = lambda _got, _whole: None) -> Path:
    """Download a benchmark file to `folder/name/` and return its path; an intact file there is left alone.

    The file gets its name only when its size and sha256 are right. Raises DataError if no official address gives
    it, or the folder cannot be written.
    """
    source = _source(name)
    target = folder / name / source.file
    try:
        if _intact(target, source):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        faults = []
        async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
            for address in source.addresses:
                try:
                    with _replacing(target) as part:
                        await _receive(session, address, part, source, on_progress)
                    return target
                except (aiohttp.ClientError, TimeoutError, DataError) as fault:
                    faults.append(f"{address}: {str(fault) or type(fault).__name__}")
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror}; choose another folder") from None
    by_hand = f"download {source.addresses[0]} by hand and give --data FILE"
    raise DataError(f"cannot download {name} ({'; '.join(faults)}); {by_hand}")


def find(name: str, given: Path | None = None) -> Path:
    """The path of a benchmark file on this machine.

    It is the path given; or what RECTOM_DATA says, a file or a folder that holds `<name>/<file>` or `<file>`; or
    lies in the user's data folder. Raises DataError, with these three ways, if there is none.
    """
    source = _source(name)
    said = os.environ.get("RECTOM_DATA")
    where = given or (Path(said).expanduser() if said else data_folder())
    for path in (where, where / name / source.file, where / source.file):
        if path.is_file():
            return path
    raise DataError(
        f"no {name} data at {where}; give --data FILE, or set RECTOM_DATA to the file or its folder, "
        f"or run: rectom data get {name}"
    )


def data_folder() -> Path:
    """Where the user's benchmark files lie: `$XDG_DATA_HOME/rectom`, usually `~/.local/share/rectom`."""
    said = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = said if said.is_absolute() else Path.home() / ".local" / "share"
    return base / "rectom"


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise DataError(f"no official address is known for {name!r}; there is one for {', '.join(SOURCES)}")
    return SOURCES[name]


def _intact(file: Path, source: Source) -> bool:
    if not file.is_file() or file.stat().st_size != source.size:
        return False
    return digest_of(file.read_bytes()) == source.sha256


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file that takes the target's place if all goes well, and otherwise is gone."""
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as part:
        temporary = Path(part.name)
        try:
            yield part
            part.flush()
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


async def _receive(
    session: aiohttp.ClientSession, address: str, part: IO[bytes], source: Source, on_progress: Progress
) -> None:
    """Write the file at an address; DataError says what was wrong with it."""
    digest, got = sha256(), 0
    async with session.get(address) as response:
        if response.status != 200:
            raise DataError(f"the server answers {response.status}")
        async for chunk in response.content.iter_chunked(_CHUNK):
            got += len(chunk)
            if got > source.size:
                raise DataError(f"larger than the {source.size} bytes of the official file")
            digest.update(chunk)
            part.write(chunk)
            on_progress(got, source.size)
    if digest.hexdigest() != source.sha256:
        raise DataError(f"{got} bytes whose checksum is not that of the official file")
