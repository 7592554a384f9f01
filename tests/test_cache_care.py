import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from cache import Entry, Imported, Problem, Size, Store, digest, export, import_, prune, stats, verify


def reply(number: int) -> Entry:
    request = {"n": number}
    return Entry("reply", digest(request), {"request": request, "text": "x"})


def stage(number: int) -> Entry:
    fields = {"stage": number}
    return Entry("stage", digest(fields), {"fields": fields, "output": "y" * 1000, "calls": []})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        opened.put_many_now(reply(number) for number in range(100))
        opened.put_many_now(stage(number) for number in range(80))
        opened.put_many_now(Entry("latest", digest(n), {"fields": {}, "outcome": "ok"}) for n in range(5))
        yield opened


def change(store: Store, sql: str, *values: object) -> None:
    assert store._database._sql(sql, values).rowcount > 0


def test_stats(store: Store) -> None:
    found = stats(store)
    assert found.folder == store.folder
    assert {kind: size.entries for kind, size in found.kinds.items()} == {
        "reply": 100,
        "stage": 80,
        "latest": 5,
    }
    assert 0 < found.kinds["stage"].size < 80 * 1000
    assert found.size > sum(size.size for size in found.kinds.values())
    assert found.damaged == 0
    change(store, "UPDATE Cache SET value = x'00' WHERE key = ?", f"stage:{stage(3).key}")
    assert store.get("stage", stage(3).key) is None
    assert stats(store).damaged == 1


def test_stats_of_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as empty:
        assert set(stats(empty).kinds.values()) == {Size(0, 0)}


def test_a_sound_store_has_no_problems(store: Store) -> None:
    assert verify(store) == []


def test_verify_names_the_damaged_and_the_misplaced(store: Store) -> None:
    change(store, "UPDATE Cache SET value = x'00' WHERE key = ?", f"stage:{stage(3).key}")
    store.put_now("reply", digest("another"), reply(1).value)
    store.put_now("stage", digest("another"), stage(1).value)
    store.put_now("latest", digest(1), {})
    found = {problem.entry: problem.what for problem in verify(store)}
    damaged, misplaced = f"stage:{stage(3).key}", f"reply:{digest('another')}"
    assert found.keys() == {damaged, f"latest:{digest(1)}", misplaced, f"stage:{digest('another')}"}
    assert all("\n" not in what and "delete it" not in what for what in found.values())
    assert "counts as missing" in found[damaged]


def test_what_verify_advises_leaves_no_problem(store: Store, tmp_path: Path) -> None:
    store.put_now("reply", digest("another"), reply(1).value)
    store.put_now("stage", digest("another"), stage(1).value)
    assert sorted(re.findall("rectom cache (\\w+)", " ".join(map(str, verify(store))))) == ["export", "import", "prune"]
    prune(store, ["stage"])
    export(store, tmp_path / "archive")
    with Store(tmp_path / "new") as new:
        assert import_(new, tmp_path / "archive") == Imported(added=100, refused=1)
        assert verify(new) == []


@pytest.mark.parametrize("key", ["other:" + "a" * 64, "reply:short", "reply:" + "G" * 64, "", 7])
def test_verify_counts_the_rows_of_others(store: Store, key: object) -> None:
    change(store, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 1, 1, x'00')", key)
    assert verify(store) == [Problem("", "1 rows were not written by this program; they are never read")]


def test_verify_asks_the_database(store: Store) -> None:
    # The index says from now on that it lacks what it holds.
    with closing(sqlite3.connect(store.folder / "cache.db")) as database, database:
        database.execute("PRAGMA writable_schema = 1")
        changed = database.execute(
            "UPDATE sqlite_master SET sql = sql || ' WHERE expire_time > 0' WHERE name = 'Cache_expire_time'"
        )
        assert changed.rowcount == 1
    store.close()
    with Store(store.folder) as again:
        found = verify(again)
    assert found
    assert "index Cache_expire_time" in found[0].what
    assert "import it into a new folder" in found[0].what


def test_prune_takes_the_named_kinds_only(store: Store) -> None:
    assert prune(store, ["stage", "latest"], dry_run=True) == 85
    assert store.count() == {"reply": 100, "stage": 80, "latest": 5}
    assert prune(store, ["stage"]) == 80
    assert store.count() == {"reply": 100, "stage": 0, "latest": 5}
    assert prune(store, ["reply"]) == 100
    assert prune(store, []) == 0
    assert store.count() == {"reply": 0, "stage": 0, "latest": 5}


def test_prune_by_age(store: Store) -> None:
    day = 86_400
    change(store, "UPDATE Cache SET store_time = ? WHERE key = ?", time.time() - 2 * day, f"stage:{stage(3).key}")
    assert prune(store, ["stage"], older_than=timedelta(days=3)) == 0
    assert prune(store, ["stage"], older_than=timedelta(days=1), dry_run=True) == 1
    assert prune(store, ["stage"], older_than=timedelta(days=1)) == 1
    assert not store.contains("stage", stage(3).key)
    assert store.count()["stage"] == 79


def test_a_kind_that_is_none_prunes_nothing(store: Store) -> None:
    for kinds in ("stage", ["stage", "replies"]):
        with pytest.raises(ValueError, match="no kind"):
            prune(store, kinds)
    assert store.count()["stage"] == 80
