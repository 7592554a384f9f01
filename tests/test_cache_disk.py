import os
import pickle
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from diskcache.core import MODE_BINARY, MODE_PICKLE, MODE_RAW

from cache import Store, digest, verify
from cache.disk import VALUE_LIMIT, DamagedValue, JsonDisk

KEY = digest({"n": 1})


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        opened.put_now("reply", KEY, {"text": "yes"})
        yield opened


def plant(store: Store, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(store.folder / "cache.db")) as database, database:
        assert database.execute(sql, values).rowcount == 1


def test_a_planted_pickle_is_never_run(store: Store, tmp_path: Path) -> None:
    crater = tmp_path / "crater"
    payload = pickle.dumps(Bomb(crater))
    plant(store, "UPDATE Cache SET mode = ?, value = ?", MODE_PICKLE, payload)
    assert store.get("reply", KEY) is None
    assert list(store.iterate("reply")) == [(KEY, None)]
    assert verify(store)
    assert not crater.exists()
    pickle.loads(payload)  # the bomb is a live one
    assert crater.exists()


def test_a_pickle_in_a_file_is_never_run(store: Store, tmp_path: Path) -> None:
    crater = tmp_path / "crater"
    (store.folder / "bomb.val").write_bytes(pickle.dumps(Bomb(crater)))
    plant(store, "UPDATE Cache SET mode = ?, filename = ?, value = NULL", MODE_PICKLE, "bomb.val")
    assert store.get("reply", KEY) is None
    assert not crater.exists()


def test_a_pickled_key_is_never_run(store: Store, tmp_path: Path) -> None:
    crater = tmp_path / "crater"
    payload = pickle.dumps(Bomb(crater))
    plant(store, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, 'x')", payload)
    assert [key for key, _ in store.iterate("reply")] == [KEY]
    assert [problem.what for problem in verify(store)] == [
        "1 rows were not written by this program; they are never read"
    ]
    with pytest.raises(DamagedValue):
        JsonDisk(str(tmp_path)).get(payload, 0)
    assert not crater.exists()


def test_a_path_in_the_database_is_neither_read_nor_removed(store: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(zlib.compress(b'{"a": 1}'))
    plant(store, "UPDATE Cache SET mode = ?, filename = ?, value = NULL", MODE_BINARY, str(secret))
    assert store.get("reply", KEY) is None
    store.put_now("reply", KEY, {"text": "new"})
    assert store.get("reply", KEY) == {"text": "new"}
    assert secret.exists()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"no zlib",
        zlib.compress(b'{"a": 1}')[:-3],
        zlib.compress(b"no json"),
        zlib.compress(b"[1]"),
        zlib.compress(b'{"a": "' + b"x" * VALUE_LIMIT + b'"}'),
        "text",
        7,
        None,
    ],
    ids=["empty", "noise", "cut", "no json", "a list", "too long", "text", "number", "null"],
)
def test_a_damaged_value_is_a_miss(store: Store, value: object) -> None:
    plant(store, "UPDATE Cache SET mode = ?, value = ?", MODE_RAW, value)
    assert store.get("reply", KEY) is None
    assert store.damaged == {f"reply:{KEY}"}


def test_values_stay_in_the_database(store: Store) -> None:
    store.put_now("stage", KEY, {"output": os.urandom(10**6).hex()})
    assert {file.name.partition("-")[0] for file in store.folder.iterdir()} == {"cache.db", "format.json"}


@pytest.mark.parametrize("key", [1, b"x", ("a",), None])
def test_only_text_is_a_key(tmp_path: Path, key: object) -> None:
    with pytest.raises(TypeError):
        JsonDisk(str(tmp_path)).put(key)
