from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from rectom.results.regular import Irregular, appended, lines, opened, read, refuse_links


def odd(folder: Path) -> dict[Path, str]:
    """What stands in the place of a file, each with what is said of it."""
    (folder / "file").write_bytes(b"theirs")
    (folder / "link").symlink_to(folder / "file")
    (folder / "dangling").symlink_to(folder / "nosuch")
    (folder / "device").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    link = "it is a link to another place"
    found = {"link": link, "dangling": link, "device": link, "pipe": "it is no regular file"}
    return {folder / name: words for name, words in found.items()}


def test_what_is_no_regular_file_is_neither_read_nor_added_to(tmp_path: Path) -> None:
    for path, words in odd(tmp_path).items():
        for act in (opened, read, appended):
            with pytest.raises(Irregular, match=words) as caught:
                act(path)
            assert caught.value.filename == str(path)
    with pytest.raises(Irregular, match="it is no regular file"):
        read(Path("/dev/zero"))
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nosuch")
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert not (tmp_path / "nosuch").exists()


def test_a_pipe_that_somebody_reads_is_not_added_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(Irregular, match="it is no regular file"):
            appended(tmp_path / "pipe")
    finally:
        os.close(reader)


def test_a_file_is_read_and_added_to_also_where_its_folder_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to("there")
    for words in (b"one", b" two"):
        with appended(tmp_path / "here" / "file") as file:
            file.write(words)
    assert read(tmp_path / "here" / "file") == b"one two"
    with pytest.raises(Irregular, match="it is a link"):
        refuse_links(tmp_path / "here" / "tables" / "file", tmp_path)
    for within in (tmp_path, tmp_path / "here"):
        refuse_links(within / "file", within)
        refuse_links(within / "there" / "file", within)


def test_no_more_is_read_than_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(10))
    assert read(tmp_path / "file", 10) == bytes(10)
    with pytest.raises(Irregular, match="it is larger than 9 bytes"):
        read(tmp_path / "file", 9)
    assert list(lines(io.BytesIO(b"ab\n\nabc"), "file", 3)) == [b"ab\n", b"\n", b"abc"]
    with pytest.raises(Irregular, match="it has a line of more than 3 bytes"):
        list(lines(io.BytesIO(b"ab\nabcd\n"), "file", 3))
