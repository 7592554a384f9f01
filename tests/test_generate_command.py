from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

from tests.laboratory import Ended, call
from tests.test_whole import full_disk, held


def generate(out: Path, *more: object) -> Ended:
    return call("generate", "hitom", "--stories", 2, "--out", out, *more)


def test_the_file_is_written_with_its_folder_and_told(tmp_path: Path) -> None:
    file = tmp_path / "new" / "stories.json"
    assert generate(file).out == f"{file}: 2 stories, 10 questions\n"
    assert list(held(tmp_path)) == ["new/stories.json"]


def test_a_file_stays_as_it_was_where_there_is_no_room_for_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "stories.json"
    generate(file)
    before = held(tmp_path)
    with full_disk():
        done = generate(file, "--seed", 1)
    assert done.errors == [f"rectom: cannot write {file}: File too large; choose another --out"]
    assert held(tmp_path) == before


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    generate(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").stat().st_size


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert generate(pipe).status == 0
    reader.join(timeout=10)
    generate(tmp_path / "file")
    assert read == [(tmp_path / "file").read_bytes()]
    assert pipe.is_fifo()
