from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from flows.seal import FILE, is_sealed, seal
from tests.test_whole import held


@pytest.fixture(autouse=True)
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path / "share" / "rectom"


def run(folder: Path, name: str = "night") -> Path:
    (folder / name).mkdir()
    return folder / name


def test_a_seal_is_of_one_command_and_goes_with_it(tmp_path: Path) -> None:
    night = run(tmp_path)
    seal(night, b"command")
    assert is_sealed(night, b"command")
    assert not is_sealed(night, b"another")
    moved = night.rename(tmp_path / "moved")
    assert is_sealed(moved, b"command")
    assert not is_sealed(run(tmp_path), b"command")


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path, share: Path) -> None:
    first, second = run(tmp_path, "a"), run(tmp_path, "b")
    seal(first, b"command")
    (key,) = share.iterdir()
    before = key.read_bytes()
    seal(second, b"command")
    assert held(share) == {"seal.key": before}
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert (first / FILE).read_bytes() == (second / FILE).read_bytes()
    assert before.hex().encode() not in (first / FILE).read_bytes()


def test_a_seal_of_another_user_or_machine_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = run(tmp_path)
    seal(night, b"command")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    assert not is_sealed(night, b"command")
    seal(night, b"command")
    assert is_sealed(night, b"command")


@pytest.mark.parametrize("what", ["a file", "an empty key", "a link"])
def test_where_no_key_can_be_nothing_is_sealed_and_no_run_hindered(tmp_path: Path, share: Path, what: str) -> None:
    night = run(tmp_path)
    if what == "a file":
        share.parent.write_text("")
    else:
        share.mkdir(parents=True)
        if what == "an empty key":
            (share / "seal.key").touch()
        else:
            (share / "seal.key").symlink_to("nosuch")
    seal(night, b"command")
    assert held(night) == {}
    (night / FILE).write_text("")
    assert not is_sealed(night, b"command")


def test_a_seal_that_is_a_pipe_is_none(tmp_path: Path) -> None:
    night = run(tmp_path)
    os.mkfifo(night / FILE)
    assert not is_sealed(night, b"command")
