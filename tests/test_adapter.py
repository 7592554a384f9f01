from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from rectom.benchmarks import registry
from rectom.benchmarks.adapter import Adapter, Files, Source, data_folder, data_place
from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError

FILE = "Hi-ToM_data.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without data."""
    monkeypatch.delenv("RECTOM_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path


def put(path: Path, data: bytes = b"{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


# Where files are looked for.


def test_what_is_given_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = registry.adapter("hitom")
    monkeypatch.setenv("RECTOM_DATA", str(put(home / "other.json")))
    given = put(home / "given.json")
    assert adapter.files(given).path(FILE) == given
    assert adapter.files().path(FILE) == home / "other.json" == data_place()


@pytest.mark.parametrize("place", [f"hitom/{FILE}", FILE])
def test_a_folder_holds_the_file_or_a_folder_of_the_name(
    place: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(home / "data" / place)
    adapter = registry.adapter("hitom")
    monkeypatch.setenv("RECTOM_DATA", "~/data")
    assert adapter.files().path(FILE) == adapter.files(home / "data").path(FILE) == file


def test_the_users_data_folder_comes_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(home / "share" / "rectom" / "hitom" / FILE)
    assert registry.adapter("hitom").files().path(FILE) == file
    monkeypatch.setenv("RECTOM_DATA", "")
    assert data_place() == home / "share" / "rectom"
    for said in ("", "not/absolute"):
        monkeypatch.setenv("XDG_DATA_HOME", said)
        assert data_folder() == home / ".local" / "share" / "rectom"


@pytest.mark.parametrize("said", [None, "nowhere"])
def test_no_file_is_an_error_that_lists_the_ways(said: str | None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if said:
        monkeypatch.setenv("RECTOM_DATA", str(home / said))
    where = home / said if said else home / "share" / "rectom"
    with pytest.raises(DataError) as caught:
        registry.adapter("hitom").open("400")
    assert str(caught.value) == (
        f"no hitom data ({FILE}) at {where}; give --data PATH, or set RECTOM_DATA to the file or its folder, "
        "or run: rectom data get hitom"
    )


# What is read of them.


def test_the_first_of_several_names_is_read(tmp_path: Path) -> None:
    files = Files("some", tmp_path)
    put(tmp_path / "b.txt", b"b")
    assert files.read("a.txt", "b.txt") == b"b"
    put(tmp_path / "some" / "a.txt", b"a")
    assert files.read("a.txt", "b.txt") == b"a"
    with pytest.raises(DataError, match=r"no some data \(c or d\) at"):
        files.read("c", "d")


def test_the_digest_of_one_file_is_its_own_and_of_several_depends_on_all(tmp_path: Path) -> None:
    for name in ("one/x.txt", "two/x.txt"):
        put(tmp_path / name, name.encode())
    files = Files("some", tmp_path)
    files.read("one/x.txt")
    assert files.digest == hash_of(b"one/x.txt")
    files.read("two/x.txt")
    both = files.digest
    assert both not in {hash_of(b"one/x.txt"), hash_of(b"two/x.txt")}
    put(tmp_path / "one/x.txt", b"changed")
    again = Files("some", tmp_path)
    again.read("two/x.txt")
    again.read("one/x.txt")
    assert again.digest != both


def test_the_digest_does_not_depend_on_the_place_or_the_order(tmp_path: Path) -> None:
    here, there = Files("some", tmp_path / "here"), Files("some", tmp_path / "there")
    for name in ("a", "b"):
        put(here.where / name, name.encode())
        put(there.where / "some" / name, name.encode())
    for files, names in ((here, "ab"), (there, "ba")):
        assert [files.read(name) for name in names] == [name.encode() for name in names]
    assert here.digest == there.digest


def test_a_file_given_is_the_first_that_is_read_and_others_lie_beside_it(tmp_path: Path) -> None:
    mine = put(tmp_path / "mine.csv", b"mine")
    put(tmp_path / "labels.txt", b"labels")
    files = Files("some", mine)
    assert files.path("data/official.csv") == mine
    assert files.read("data/official.csv") == b"mine"
    assert files.read("data/labels.txt") == b"labels"
    assert files.read("data/official.csv") == b"mine"
    with pytest.raises(DataError, match=r"no some data \(more\.txt\)"):
        files.path("more.txt")


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.txt")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(DataError, match=r"cannot read .*a\.txt: Permission denied; give --data PATH"):
        Files("some", tmp_path).read("a.txt")


# Adapters.


def load(files: Files, subset: str) -> Benchmark:
    return Benchmark("some", subset, (), (), digest=files.name)


def test_a_subset_is_loaded_by_its_name(tmp_path: Path) -> None:
    adapter = Adapter("some", "Some", load, {"a": "the first", "b": "the second"}, "a", "MIT")
    assert adapter.open("b", tmp_path).subset == "b"
    with pytest.raises(DataError, match="some has no subset 'c'; it has a, b"):
        adapter.open("c", tmp_path)


def test_a_default_that_is_no_subset_is_refused() -> None:
    with pytest.raises(DataError, match="some has no subset 'c', which is to be its default"):
        Adapter("some", "Some", load, {"a": "the first"}, "c", "MIT")


@pytest.mark.parametrize("file", ["../up", "a/../../up", "/etc/passwd", "", "."])
def test_a_source_lies_in_its_folder(file: str) -> None:
    with pytest.raises(DataError, match="does not lie in its folder"):
        Source(file, ("https://example.org",), "", 0)


def test_a_source_has_an_address() -> None:
    with pytest.raises(DataError, match=r"the file a\.txt of a benchmark has no address"):
        Source("a.txt", (), "", 0)
