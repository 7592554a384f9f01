import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import diskcache
import orjson
import pytest

from cache import CacheCorrupt, CacheError, CacheFormat, CacheFull, CacheReadOnly, Entry, Store, digest
from cache import folder as folder_module


def failure(folder: Path) -> CacheError:
    with pytest.raises(CacheError) as caught:
        Store(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "--cache DIR" in str(caught.value) or "free space" in str(caught.value)
    return caught.value


def test_the_folder_is_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "cache"
    with Store(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert orjson.loads((folder / "format.json").read_bytes()) == {"format": "rectom-cache", "version": 1}


def test_the_rights_of_a_folder_that_exists_are_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Store(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert type(failure(tmp_path / "file")) is CacheReadOnly
    assert type(failure(tmp_path / "file" / "below")) is CacheReadOnly


def test_a_folder_in_place_of_the_database(tmp_path: Path) -> None:
    Store(tmp_path).close()
    (tmp_path / "cache.db").unlink()
    (tmp_path / "cache.db").mkdir()
    assert type(failure(tmp_path)) is CacheReadOnly


def test_a_database_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Rights do not stop root: SQLite itself is told to open the file for reading only.
    Store(tmp_path).close()
    connect = sqlite3.connect

    def reading(path: str, **options: object) -> sqlite3.Connection:
        return connect(f"file:{path}?immutable=1", uri=True, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", reading)
    assert type(failure(tmp_path)) is CacheReadOnly


@pytest.mark.parametrize(
    ("number", "kind"),
    [(13, CacheReadOnly), (30, CacheReadOnly), (28, CacheFull), (122, CacheFull), (5, CacheError)],
)
def test_a_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[CacheError]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CacheError) as caught:
        Store(tmp_path / "cache")
    assert type(caught.value) is kind


@pytest.mark.parametrize("keep", [0, 4096], ids=["no database", "a database cut off"])
def test_a_corrupt_database_is_told_at_once(tmp_path: Path, keep: int) -> None:
    with Store(tmp_path) as store:
        store.put_many_now(Entry("reply", digest(n), {"n": n}) for n in range(500))
    database = tmp_path / "cache.db"
    content = database.read_bytes()
    database.write_bytes(content[:keep] + b"\xa5" * (len(content) - keep))
    error = failure(tmp_path)
    assert type(error) is CacheCorrupt
    assert "move the folder aside and import FILE" in str(error)


def test_settings_that_are_not_ours(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        database.execute("INSERT INTO Settings VALUES ('disk_surprise', 1)")
    assert type(failure(tmp_path)) is CacheCorrupt


@pytest.mark.parametrize(
    "mark",
    [
        b'{"format": "rectom-cache", "version": 2}',
        b'{"format": "other", "version": 1}',
        b"[]",
        b"torn {",
        b"",
    ],
)
def test_another_format_is_refused(tmp_path: Path, mark: bytes) -> None:
    Store(tmp_path).close()
    (tmp_path / "format.json").write_bytes(mark)
    assert type(failure(tmp_path)) is CacheFormat


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path)) as other:
        other["a"] = 1
    assert type(failure(tmp_path)) is CacheFormat


def test_nothing_is_ever_culled(tmp_path: Path) -> None:
    with Store(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database:
        found = dict(database.execute("SELECT key, value FROM Settings"))
    assert found["eviction_policy"] == "none"
    assert found["cull_limit"] == 0
    assert found["size_limit"] >= 2**60
    assert found["disk_min_file_size"] >= 2**60
    assert found["sqlite_synchronous"] == 2
    assert found["sqlite_journal_mode"] == "wal"
    assert found["statistics"] == 0


def test_thousands_above_the_size_limit_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit by which diskcache drops entries, scaled down; with its other defaults most of these would go.
    monkeypatch.setitem(folder_module._SETTINGS, "size_limit", 2**20)
    with Store(tmp_path) as store:
        for start in range(0, 6000, 1000):
            store.put_many_now(
                Entry("reply", digest(n), {"n": n, "text": "x" * 500}) for n in range(start, start + 1000)
            )
        assert store.count()["reply"] == 6000
        assert sum(1 for _ in store.iterate("reply")) == 6000


def test_opening_does_not_look_through_the_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        rows = ((f"stage:{digest(n)}", b"x") for n in range(20_000))
        database.executemany("INSERT INTO Cache (key, raw, mode, value) VALUES (?, 1, 1, ?)", rows)
    connect, steps = sqlite3.connect, []

    def counting(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_progress_handler(lambda: steps.append(1), 1000)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    with Store(tmp_path) as store:
        assert store.get("stage", digest(1)) is None
        assert next(store.keys("stage"))
        # A look at every row would be some ten thousands of SQLite's instructions.
        assert len(steps) < 5
        assert store.count()["stage"] == 20_000
        assert len(steps) > 15


def test_many_processes_may_make_the_folder_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from cache import Store, digest\n"
        "with Store(Path(sys.argv[1])) as s: s.put_now('reply', digest(sys.argv[2]), {'n': sys.argv[2]})"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "cache")]
    children = [subprocess.Popen([*command, str(number)]) for number in range(6)]
    assert [child.wait(timeout=60) for child in children] == [0] * 6
    with Store(tmp_path / "cache") as store:
        assert store.count()["reply"] == 6


def test_names_with_a_variable_and_a_home_mean_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WHICH", "cache")
    with Store(Path("~/$WHICH")) as store:
        assert store.folder == tmp_path / "cache"
        assert (tmp_path / "cache" / "cache.db").exists()
        assert (tmp_path / "cache" / "format.json").exists()


def test_an_error_that_is_being_handled_is_not_taken_for_the_store_s(tmp_path: Path) -> None:
    Store(tmp_path).close()
    (tmp_path / "cache.db").write_bytes(b"noise" * 1000)
    try:
        raise PermissionError(13, "the caller's")
    except PermissionError:
        assert type(failure(tmp_path)) is CacheCorrupt
