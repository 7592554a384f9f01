import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cache import (
    ArchiveError,
    CacheCorrupt,
    CacheError,
    Entry,
    Imported,
    Rescued,
    Store,
    digest,
    export,
    import_,
    rescue,
)
from cache.salvage import EXACT, Salvage

PAGE = 4096
TABLE, TABLE_INNER, INDEX = 13, 5, 10
"""How a page of SQLite's begins: a leaf of a table, a page that leads to such leaves, a leaf of an index."""


def reply(number: int) -> Entry:
    request = {"n": number}
    # Some have pages of their own, beside the one that their row is on.
    text = random.Random(number).randbytes(9000 if number % 40 == 0 else 300).hex()
    return Entry("reply", digest(request), {"request": request, "text": text})


def stage(number: int) -> Entry:
    fields = {"stage": number}
    return Entry("stage", digest(fields), {"fields": fields, "output": "y", "calls": []})


ENTRIES = [*map(reply, range(300)), *map(stage, range(30))]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of 330 entries."""
    folder = tmp_path_factory.mktemp("sound")
    with Store(folder) as store:
        store.put_many_now(ENTRIES)
    return (folder / "cache.db").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Store(tmp_path / "cache").close()
    return tmp_path / "cache"


def pages(database: bytes, kind: int) -> list[int]:
    return [place // PAGE for place in range(0, len(database), PAGE) if database[place] == kind]


def put_down(folder: Path, database: bytes, *hit: int, noise: bool = True) -> None:
    """Write a database with noise or zeros on some of its pages."""
    content = bytearray(database)
    for page in hit:
        content[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE) if noise else bytes(PAGE)
    (folder / "cache.db").write_bytes(content)


def on_page(database: bytes, page: int) -> set[str]:
    """The names of the entries on a page: they are plain text."""
    names = re.findall(rb"(?:reply|stage):[0-9a-f]{64}", database[page * PAGE : (page + 1) * PAGE])
    return {name.decode() for name in names}


def row_page(database: bytes, place: float) -> int:
    """The first (0.0) to the last (1.0) of the pages that hold several rows."""
    found = [page for page in pages(database, TABLE) if len(on_page(database, page)) > 3]
    return found[round(place * (len(found) - 1))]


def saved(folder: Path) -> list[Entry]:
    with Salvage(folder) as salvage:
        return list(salvage.entries())


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "zeros"])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0], ids=["first", "middle", "last"])
def test_what_is_on_other_pages_comes_out_and_goes_into_a_new_store(
    sound: bytes, folder: Path, tmp_path: Path, place: float, noise: bool
) -> None:
    page = row_page(sound, place)
    put_down(folder, sound, page, noise=noise)
    kinds, archive = ("reply", "stage"), tmp_path / "archive"
    with Store(folder) as store, pytest.raises(CacheCorrupt, match="rectom cache export FILE"):
        export(store, archive, kinds)
    done = rescue(folder, archive, kinds)
    with Store(tmp_path / "new") as new:
        assert import_(new, archive) == Imported(added=done.entries)
        found = {f"{kind}:{key}": value for kind in kinds for key, value in new.iterate(kind)}
    whole = {f"{kind}:{key}": value for kind, key, value in ENTRIES}
    assert done.lost == len(whole) - len(found) > 0
    assert whole.keys() - found.keys() <= on_page(sound, page)
    assert all(whole[name] == value for name, value in found.items())


def test_of_every_page_that_is_lost_the_others_are_saved(sound: bytes, folder: Path) -> None:
    leaves = pages(sound, TABLE)[-20:]
    put_down(folder, sound, *leaves[::2])
    lost = set[str]().union(*(on_page(sound, page) for page in leaves[::2]))
    found = {f"{kind}:{key}" for kind, key, _ in saved(folder)}
    assert {f"{kind}:{key}" for kind, key, _ in ENTRIES} - found <= lost


def test_a_damaged_index_loses_nothing(sound: bytes, folder: Path, tmp_path: Path) -> None:
    put_down(folder, sound, *pages(sound, INDEX))
    assert rescue(folder, tmp_path / "archive", ("reply", "stage")) == Rescued(entries=330, lost=0)


def test_of_a_file_that_was_cut_off_the_beginning_is_saved(sound: bytes, folder: Path) -> None:
    (folder / "cache.db").write_bytes(sound[: len(sound) // 2])
    with pytest.raises(CacheCorrupt):
        Store(folder)
    assert 100 < len(saved(folder)) < 300


def test_settings_that_are_damaged_lose_nothing(sound: bytes, folder: Path) -> None:
    put_down(folder, sound)
    with closing(sqlite3.connect(folder / "cache.db")) as database, database:
        database.execute("INSERT INTO Settings VALUES ('disk_surprise', 1)")
    with pytest.raises(CacheCorrupt):
        Store(folder)
    assert sorted(saved(folder)) == sorted(ENTRIES)


def test_numbers_far_apart_are_told_by_the_index(sound: bytes, folder: Path) -> None:
    put_down(folder, sound)
    with closing(sqlite3.connect(folder / "cache.db")) as database, database:
        database.execute("UPDATE Cache SET rowid = -rowid")
        database.execute("UPDATE Cache SET rowid = -rowid * ?", (70 * EXACT,))
    spread = (folder / "cache.db").read_bytes()
    hit = [row_page(spread, place) for place in (0.25, 0.5, 0.75)]
    put_down(folder, spread, *hit)
    found = {f"{kind}:{key}" for kind, key, _ in saved(folder)}
    lost = set[str]().union(*(on_page(spread, page) for page in hit))
    assert {f"{kind}:{key}" for kind, key, _ in ENTRIES} - found <= lost


@pytest.mark.parametrize("place", [0.5, 1.0], ids=["middle", "last"])
def test_what_neither_the_table_nor_its_index_names_is_counted(sound: bytes, folder: Path, place: float) -> None:
    page = row_page(sound, place)
    put_down(folder, sound, page, *pages(sound, INDEX))
    with Salvage(folder) as salvage:
        found = {f"{kind}:{key}" for kind, key, _ in salvage.entries()}
        assert salvage.lost == 330 - len(found) > 0
    assert {f"{kind}:{key}" for kind, key, _ in ENTRIES} - found <= on_page(sound, page)


def test_where_nothing_can_be_saved_that_is_said(sound: bytes, folder: Path, tmp_path: Path) -> None:
    for hit in (pages(sound, TABLE_INNER), [0]):
        put_down(folder, sound, *hit)
        with pytest.raises(CacheCorrupt, match="nothing can be saved") as caught:
            rescue(folder, tmp_path / "archive")
        assert "\n" not in str(caught.value)
        assert "begin with an empty one" in str(caught.value)
        assert not (tmp_path / "archive").exists()


def test_an_older_archive_is_not_replaced_by_a_poorer_one(sound: bytes, folder: Path, tmp_path: Path) -> None:
    put_down(folder, sound, pages(sound, TABLE)[-1])
    (tmp_path / "archive").write_bytes(b"old")
    with pytest.raises(ArchiveError, match="export to a new file"):
        rescue(folder, tmp_path / "archive")
    assert (tmp_path / "archive").read_bytes() == b"old"


def test_a_lock_is_not_taken_for_damage(sound: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_down(folder, sound)
    monkeypatch.setattr("cache.salvage.LOCK_SECONDS", 0.1)
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CacheError, match="locked for too long"):
            Salvage(folder)


def test_nothing_is_written(sound: bytes, folder: Path) -> None:
    put_down(folder, sound, pages(sound, TABLE)[-1])
    before = (folder / "cache.db").read_bytes()
    saved(folder)
    assert (folder / "cache.db").read_bytes() == before


def test_what_another_process_has_not_yet_moved_into_the_file_is_saved(folder: Path) -> None:
    with Store(folder) as store:
        store.put_now(*reply(1))
        assert saved(folder) == [reply(1)]
