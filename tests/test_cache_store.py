import asyncio
import logging
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache import KINDS, CacheCorrupt, CacheError, Entry, Store, digest
from cache.disk import VALUE_LIMIT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("aé\n\x00"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=8,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        yield opened


def entries(count: int, kind: str = "reply") -> list[Entry]:
    return [Entry(kind, digest([kind, number]), {"n": number}) for number in range(count)]


def value(kind: str, content: object) -> dict[str, Any]:
    """A value of the form of its kind that holds `content`."""
    forms: dict[str, dict[str, Any]] = {
        "reply": {"text": content},
        "stage": {"fields": {"a": content}, "output": content, "calls": [content]},
        "latest": {"fields": {"a": content}, "outcome": "ok"},
    }
    return forms[kind]


def damage(store: Store, name: str) -> None:
    with closing(sqlite3.connect(store.folder / "cache.db")) as database, database:
        changed = database.execute("UPDATE Cache SET value = x'789c0102' WHERE key = ?", (name,))
        assert changed.rowcount == 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.sampled_from(KINDS).flatmap(
            lambda kind: st.tuples(st.just(kind), st.integers(0, 5), JSON.map(partial(value, kind)))
        ),
        max_size=12,
    )
)
def test_what_was_put_last_comes_back(puts: list[tuple[str, int, dict[str, Any]]]) -> None:
    expected = {(kind, digest(number)): value for kind, number, value in puts}
    with tempfile.TemporaryDirectory() as folder:
        with Store(Path(folder)) as store:
            store.put_many_now([Entry(kind, digest(number), value) for kind, number, value in puts])
            check(store, expected)
        with Store(Path(folder)) as store:
            check(store, expected)


def check(store: Store, expected: dict[tuple[str, str], dict[str, Any]]) -> None:
    for kind in KINDS:
        mine = {key: value for (of, key), value in expected.items() if of == kind}
        assert dict(store.iterate(kind)) == mine
        assert list(store.keys(kind)) == sorted(mine)
        assert store.count()[kind] == len(mine)
        for key, value in mine.items():
            assert repr(store.get(kind, key)) == repr(value)
            assert store.contains(kind, key)


def test_what_is_not_there(store: Store) -> None:
    assert store.get("reply", digest(1)) is None
    assert not store.contains("reply", digest(1))
    assert list(store.iterate("reply")) == []


async def test_kinds_do_not_mix(store: Store) -> None:
    key = digest(1)
    await store.put("stage", key, value("stage", 1))
    assert store.get("reply", key) is None
    assert store.get("stage", key) == value("stage", 1)


async def test_a_put_is_on_the_disk_when_it_returns(store: Store) -> None:
    await store.put("reply", digest(1), {"n": 1})
    with closing(sqlite3.connect(store.folder / "cache.db")) as other:
        assert other.execute("SELECT COUNT(*) FROM Cache").fetchone() == (1,)


async def test_a_value_is_stored_as_it_was_when_it_was_put(store: Store) -> None:
    value = {"n": 1}
    waiting = asyncio.ensure_future(store.put("reply", digest(1), value))
    await asyncio.sleep(0)
    value["n"] = 2
    await waiting
    assert store.get("reply", digest(1)) == {"n": 1}


async def test_put_many_stores_all(store: Store) -> None:
    await store.put_many(entries(1000))
    assert [value for _, value in store.iterate("reply")] == [
        entry.value for entry in sorted(entries(1000), key=lambda entry: entry.key)
    ]


async def test_a_cancelled_put_is_written_nevertheless(store: Store) -> None:
    waiting = asyncio.ensure_future(store.put("reply", digest(1), {"n": 1}))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await store.put("reply", digest(2), {"n": 2})
    assert store.get("reply", digest(1)) == {"n": 1}


@pytest.mark.parametrize("key", ["", "short", "A" * 64, "g" * 64, "a" * 65, "a" * 64 + "\n", 1, None])
def test_a_key_is_a_digest(store: Store, key: Any) -> None:
    with pytest.raises(ValueError, match=r"cache\.digest"):
        store.get("reply", key)
    with pytest.raises(ValueError, match=r"cache\.digest"):
        store.put_now("reply", key, {})


async def test_a_kind_is_a_known_one(store: Store) -> None:
    for kind in ("replies", "", "reply:"):
        with pytest.raises(ValueError, match="no kind"):
            await store.put(kind, digest(1), {})
        with pytest.raises(ValueError, match="no kind"):
            list(store.iterate(kind))


@pytest.mark.parametrize("value", [None, [1], "text", {"a": {1, 2}}, {"a": float("nan")}, {1: 2}])
async def test_a_value_that_is_no_json_object_harms_nobody_else(store: Store, value: Any) -> None:
    results = await asyncio.gather(
        store.put("reply", digest(1), {"n": 1}),
        store.put("reply", digest(2), value),
        store.put("reply", digest(3), {"n": 3}),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), TypeError, type(None)]
    assert store.count()["reply"] == 2


def test_a_value_has_a_limit(store: Store) -> None:
    with pytest.raises(CacheError, match="over the"):
        store.put_now("stage", digest(1), {"a": "x" * VALUE_LIMIT})


def test_delete(store: Store) -> None:
    store.put_many_now(entries(200))
    gone = [entry.key for entry in entries(150)]
    store.delete("reply", [*gone, digest("never there")])
    assert store.count()["reply"] == 50
    assert store.get("reply", gone[0]) is None


async def test_a_damaged_entry_is_a_miss_told_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    await store.put_many(entries(3))
    hurt = entries(3)[1]
    damage(store, f"reply:{hurt.key}")
    with caplog.at_level(logging.WARNING):
        assert store.get("reply", hurt.key) is None
        assert store.get("reply", hurt.key) is None
        assert dict(store.iterate("reply"))[hurt.key] is None
    assert store.damaged == {f"reply:{hurt.key}"}
    assert len(caplog.records) == 1
    assert "rectom cache verify" in caplog.text
    assert store.contains("reply", hurt.key)
    assert sum(value is not None for _, value in store.iterate("reply")) == 2
    await store.put(*hurt)
    assert store.get("reply", hurt.key) == hurt.value
    assert store.damaged == set()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("stage", {}),
        ("stage", {"fields": {}, "output": 1}),
        ("stage", {"fields": [], "output": 1, "calls": []}),
        ("stage", {"fields": {}, "output": 1, "calls": None}),
        ("latest", {}),
        ("latest", {"fields": {}}),
        ("latest", {"structured": None}),
    ],
)
def test_an_entry_that_is_not_of_its_kind_is_a_miss(
    store: Store, caplog: pytest.LogCaptureFixture, kind: str, value: dict[str, Any]
) -> None:
    store.put_now(kind, digest(1), value)
    assert store.get(kind, digest(1)) is None
    assert list(store.iterate(kind)) == [(digest(1), None)]
    assert store.damaged == {f"{kind}:{digest(1)}"}
    assert "counts as missing" in caplog.text


def test_a_page_that_is_damaged_while_the_store_is_open(store: Store) -> None:
    store.put_many_now([Entry("reply", digest(n), {"text": digest(n) * 20}) for n in range(3000)])
    store.close()
    database = store.folder / "cache.db"
    size = database.stat().st_size
    with Store(store.folder) as again:
        with database.open("r+b") as file:
            file.seek(8192 * 4)
            file.write(b"\xa5" * (size - 8192 * 4))
        with pytest.raises(CacheCorrupt, match="import FILE"):
            all(again.contains("reply", digest(number)) for number in range(3000))


def test_iterating_while_entries_come_and_go(store: Store) -> None:
    store.put_many_now(entries(500))
    seen = []
    for key, _ in store.iterate("reply"):
        seen.append(key)
        if len(seen) == 10:
            last = max(entry.key for entry in entries(500))
            store.delete("reply", [last])
            store.put_now("reply", "f" * 64, {"new": True})
    assert len(seen) == 500
    assert seen[-1] == "f" * 64


def test_iterating_reads_a_page_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_many_now(entries(1000))
    pages = []
    query = store.query

    def counted(*args: Any) -> list[tuple[Any, ...]]:
        pages.append(query(*args))
        return pages[-1]

    monkeypatch.setattr(store, "query", counted)
    walk = store.iterate("reply")
    next(walk)
    assert len(pages) == 1
    assert len(pages[0]) < 100


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.close()
    store.close()
    with pytest.raises(CacheError, match="closed"):
        store.put_now("reply", digest(1), {})
    with pytest.raises(CacheError, match="closed"):
        store.get("reply", digest(1))
    with pytest.raises(CacheError, match="closed"):
        list(store.iterate("reply"))


async def test_closing_writes_what_waits(tmp_path: Path) -> None:
    store = Store(tmp_path)
    waiting = [asyncio.ensure_future(store.put(*entry)) for entry in entries(300)]
    await asyncio.sleep(0)
    store.close()
    await asyncio.gather(*waiting)
    with Store(tmp_path) as again:
        assert again.count() == {"reply": 300, "stage": 0, "latest": 0}
