"""One file out of an archive from elsewhere. Nothing else of the archive is written, and never more than a bound."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from rectom.errors import DataError

_CHUNK: Final = 1 << 16
#: What the standard library raises for damaged archives, encrypted ones and those packed in unknown ways.
_FAULTS: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    OverflowError,
    RuntimeError,
)


def unpack(archive: Path, member: str, out: IO[bytes], most: int) -> None:
    """Write the file `member` of a `.tar.gz` or `.zip` archive to `out`.

    Raises DataError if the archive is neither or is damaged, if it has no such file or a link in its place, or if
    more than `most` bytes come out of it; then a part may have been written.
    """
    try:
        with archive.open("rb") as packed:
            start = packed.read(4)
            packed.seek(0)
            if start.startswith(b"\x1f\x8b"):
                _from_tar(packed, member, out, most)
            elif start == b"PK\x03\x04":
                _from_zip(packed, member, out, most)
            else:
                raise DataError("neither a .tar.gz nor a .zip archive")
    except _FAULTS as fault:
        raise DataError(f"a damaged archive ({str(fault) or type(fault).__name__})") from None


class _Bounded(io.BufferedIOBase):
    """A stream that refuses to give more than `most` bytes, counting what is only skipped, too."""

    def __init__(self, read: Callable[[int], bytes], most: int) -> None:
        self._read = read
        self._left = self._most = most

    def read(self, size: int | None = None) -> bytes:
        """The next bytes."""
        data = self._read(size or _CHUNK)
        self._left -= len(data)
        if self._left < 0:
            raise DataError(f"an archive that unpacks to more than {self._most:,} bytes")
        return data


def _from_tar(packed: IO[bytes], member: str, out: IO[bytes], most: int) -> None:
    # Read as a stream: what stands before the member is bounded, and no offset in the archive leads anywhere.
    with gzip.open(packed) as plain, tarfile.open(fileobj=_Bounded(plain.read, most), mode="r|") as opened:
        for entry in opened:
            if entry.name.removeprefix("./") == member:
                # The holes of a sparse file take no room in the archive.
                data = opened.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                if data is None:
                    raise DataError(f"an archive in which {member} is a link, or no plain file")
                _copy(_Bounded(data.read, most), out)
                return
    raise DataError(f"an archive without the file {member}")


def _from_zip(packed: IO[bytes], member: str, out: IO[bytes], most: int) -> None:
    with zipfile.ZipFile(packed) as opened:
        entry = next((entry for entry in opened.infolist() if entry.filename.removeprefix("./") == member), None)
        if entry is None:
            raise DataError(f"an archive without the file {member}")
        if entry.is_dir() or stat.S_ISLNK(entry.external_attr >> 16):
            raise DataError(f"an archive in which {member} is a link, or no plain file")
        # Other packings do not bound what a single read unpacks.
        if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise DataError(f"an archive in which {member} is packed in a way that is not read")
        with opened.open(entry) as data:
            _copy(_Bounded(data.read, most), out)


def _copy(source: _Bounded, out: IO[bytes]) -> None:
    while chunk := source.read():
        out.write(chunk)
