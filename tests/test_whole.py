from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rectom.whole import beside, replacing, write


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can have more than 100 bytes: what a full disk is to whoever writes."""
    room, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))


def held(folder: Path) -> dict[str, bytes]:
    """The files of a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path, private: bool, lasting: bool) -> None:
    for data in (b"old", b"new"):
        write(tmp_path / "file", data, private=private, lasting=lasting)
        assert held(tmp_path) == {"file": data}


def test_what_is_private_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    write(tmp_path / "mine", b"", private=True)
    write(tmp_path / "ours", b"")
    (tmp_path / "usual").touch()
    mine, ours, usual = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("mine", "ours", "usual"))
    assert (mine, ours) == (0o600, usual)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_full_disk_keeps_the_old_file_and_no_part_of_the_new_one(tmp_path: Path, lasting: bool) -> None:
    write(tmp_path / "file", b"old")
    with full_disk(), pytest.raises(OSError, match="too large"):
        write(tmp_path / "file", bytes(1000), lasting=lasting)
    assert held(tmp_path) == {"file": b"old"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_a_block_that_raises_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    write(tmp_path / "file", b"old")

    def fail() -> None:
        with replacing(tmp_path / "file") as part:
            part.write_bytes(b"ne")
            raise error

    with pytest.raises(error):
        fail()
    assert held(tmp_path) == {"file": b"old"}


def test_what_is_not_given_its_place_is_deleted(tmp_path: Path) -> None:
    with beside(tmp_path / "file") as part:
        part.write_bytes(b"new")
    with beside(tmp_path / "file"):
        pass
    assert held(tmp_path) == {}


def test_several_may_write_a_file_at_once(tmp_path: Path) -> None:
    with replacing(tmp_path / "file") as one, replacing(tmp_path / "file") as other:
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert held(tmp_path) == {"file": b"one"}


def test_what_lasts_is_on_the_disk_before_its_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def note(number: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(number).st_mode), (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", note)
    write(tmp_path / "file", b"new", lasting=True)
    assert seen == [(False, False), (True, True)]
