from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rectom.benchmarks.archive import unpack
from rectom.errors import DataError
from tests.test_fetch import tar_of, zip_of

MOST = 1_000_000
Pack = Callable[..., bytes]


def taken(packed: bytes, folder: Path, member: str = "data/some", most: int = MOST) -> bytes:
    """What is unpacked from an archive."""
    file = folder / "archive"
    file.write_bytes(packed)
    out = io.BytesIO()
    unpack(file, member, out, most)
    assert [path.name for path in folder.iterdir()] == ["archive"]
    return out.getvalue()


def tar_with(entry: tarfile.TarInfo, data: bytes = b"") -> bytes:
    """An archive of one entry of any kind."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        opened.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def linked(kind: bytes) -> bytes:
    """An archive in which data/some is a link to the password file."""
    entry = tarfile.TarInfo("data/some")
    entry.type, entry.linkname = kind, "/etc/passwd"
    return tar_with(entry)


def zip_linked() -> bytes:
    """The same as a `.zip`."""
    packed = io.BytesIO()
    entry = zipfile.ZipInfo("data/some")
    entry.create_system, entry.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(entry, "/etc/passwd")
    return packed.getvalue()


def sparse() -> bytes:
    """A tar entry of four gigabytes of which almost nothing is in the archive."""
    header = bytearray(tarfile.TarInfo("data/some").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:398], header[398:410] = b"00000000000\0", b"00000000000\0"
    header[483:495] = b"40000000000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return gzip.compress(bytes(header) + bytes(1024))


def long_header() -> bytes:
    """A tar whose extended header claims, and has, more bytes than it may."""
    header = tarfile.TarInfo("data/some")
    header.type, header.size = tarfile.XHDTYPE, 2 * MOST
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(2 * MOST))


def overstated() -> bytes:
    """A `.zip` whose directory says that its file, which is too large, is small."""
    packed = bytearray(zip_of(data__some=bytes(2 * MOST)))
    said = (2 * MOST).to_bytes(4, "little")
    assert packed.count(said) == 2
    return bytes(packed.replace(said, (10).to_bytes(4, "little")))


def encrypted() -> bytes:
    """A `.zip` that says it needs a password."""
    packed = bytearray(zip_of(data__some=b"secret"))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        packed[packed.index(signature) + flags] |= 1
    return bytes(packed)


def packed_otherwise() -> bytes:
    """A `.zip` of a kind that unpacks without a bound."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as opened:
        opened.writestr("data/some", bytes(MOST))
    return packed.getvalue()


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_one_file_is_taken_out(pack: Pack, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1_000
    files = {"other": b"other", "..__..__escape": b"evil", "__etc__evil": b"evil", "data__some": data, "last": b"last"}
    assert taken(pack(**files), tmp_path) == data
    assert taken(pack(**{".__data__some": data}), tmp_path) == data
    assert taken(pack(data__some=data), tmp_path, most=len(data) + tarfile.RECORDSIZE) == data


def test_a_path_that_leads_up_is_only_a_name(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    for pack in (tar_of, zip_of):
        assert taken(pack(**{"..__evil": b"evil"}), folder, "../evil") == b"evil"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("packed", "fault"),
    [
        (tar_of(other=b""), "an archive without the file data/some"),
        (zip_of(other=b""), "an archive without the file data/some"),
        (linked(tarfile.SYMTYPE), "data/some is a link, or no plain file"),
        (linked(tarfile.LNKTYPE), "data/some is a link, or no plain file"),
        (linked(tarfile.DIRTYPE), "data/some is a link, or no plain file"),
        (linked(tarfile.FIFOTYPE), "data/some is a link, or no plain file"),
        (linked(tarfile.CHRTYPE), "data/some is a link, or no plain file"),
        (sparse(), "data/some is a link, or no plain file"),
        (zip_linked(), "data/some is a link, or no plain file"),
        (packed_otherwise(), "data/some is packed in a way that is not read"),
        (encrypted(), "a damaged archive .*encrypted"),
        (b"", "neither a .tar.gz nor a .zip archive"),
        (b"plain text", "neither a .tar.gz nor a .zip archive"),
        (gzip.compress(b"no tar" * 200), "a damaged archive"),
        (gzip.compress(tarfile.TarInfo("data/some").tobuf())[:-12], "a damaged archive"),
        (tar_of(data__some=b"some")[:60], "a damaged archive"),
        (zip_of(data__some=b"some")[:40], "a damaged archive"),
        (zip_of(data__some=b"some" * 99).replace(b"some", b"same"), "without the file|a damaged archive"),
    ],
    ids=map(str, range(18)),
)
def test_what_is_refused(packed: bytes, fault: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=fault):
        taken(packed, tmp_path)


@pytest.mark.parametrize(
    "bomb",
    [
        tar_of(data__some=bytes(2 * MOST)),
        tar_of(before=bytes(2 * MOST), data__some=b""),
        tar_of(**{f"{n}": b"" for n in range(2_500)}),
        zip_of(data__some=bytes(2 * MOST)),
        long_header(),
    ],
    ids=["large", "large before it", "many", "zip", "header"],
)
def test_a_bomb_is_stopped_at_the_bound(bomb: bytes, tmp_path: Path) -> None:
    assert len(bomb) < MOST / 10
    with pytest.raises(DataError, match="an archive that unpacks to more than 1,000,000 bytes"):
        taken(bomb, tmp_path)


def test_no_more_than_the_bound_is_written(tmp_path: Path) -> None:
    for bomb in (tar_of(data__some=bytes(2 * MOST)), zip_of(data__some=bytes(2 * MOST))):
        out = io.BytesIO()
        (tmp_path / "archive").write_bytes(bomb)
        with pytest.raises(DataError):
            unpack(tmp_path / "archive", "data/some", out, MOST)
        assert len(out.getvalue()) <= MOST


def test_a_zip_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a damaged archive \(Bad CRC-32"):
        taken(overstated(), tmp_path)


def test_a_full_disk_is_not_the_archives_fault(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    (tmp_path / "archive").write_bytes(tar_of(data__some=b"some"))
    with pytest.raises(OSError, match="No space left"):
        unpack(tmp_path / "archive", "data/some", Full(), MOST)
