from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cache import Store, digest
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, Lab, call, serving, write_stories


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("ran")
    with serving(FakeOpenAI()) as server:
        lab = Lab(folder, write_stories(folder), server)
        lab.run()
        yield lab


@pytest.fixture
def lab(ran: Lab, tmp_path: Path) -> Lab:
    """A lab with a store of its own in which everything is that ran once."""
    shutil.copytree(ran.store, tmp_path / "store")
    return Lab(tmp_path, ran.data, ran.server)


def care(lab: Lab, name: str, *more: object, folder: Path | None = None) -> Ended:
    return call("cache", name, "--cache", folder or lab.store, *more)


def count(folder: Path) -> dict[str, int]:
    with Store(folder) as store:
        return store.count()


def test_stats_count_each_kind(lab: Lab) -> None:
    ended = care(lab, "stats")
    assert ended.status == 0
    said = {kind: int(n.replace(",", "")) for kind, n in re.findall(r"^(\w+) +([\d,]+) entries", ended.out, re.M)}
    assert said == count(lab.store)
    assert said["reply"] == lab.server.asked.total()
    assert str(lab.store) in ended.out


def test_the_store_is_found_by_the_environment(lab: Lab, tmp_path: Path) -> None:
    assert str(lab.store) in call("cache", "stats", RECTOM_CACHE=str(lab.store)).out
    none = call("cache", "stats", RECTOM_HOME=str(tmp_path / "home"))
    assert (none.status, none.out) == (1, "")
    assert f"there is no cache at {tmp_path / 'home' / 'cache'}" in none.err
    assert not (tmp_path / "home").exists()


def test_a_sound_store_is_said_to_be_sound(lab: Lab) -> None:
    ended = care(lab, "verify")
    assert (ended.status, ended.out) == (0, "all entries are sound\n")


def test_an_entry_that_is_not_what_its_key_says_is_found(lab: Lab) -> None:
    with Store(lab.store) as store:
        key = next(store.keys("reply"))
        value = store.get("reply", key)
        assert value
        store.put_now("reply", digest("another"), value)
    ended = care(lab, "verify")
    assert ended.status == 1
    assert f"reply:{digest('another')}" in ended.out
    assert "1 problems" in ended.out


def test_a_stage_result_that_is_none_is_computed_again(lab: Lab) -> None:
    with Store(lab.store) as store:
        for kind in ("stage", "latest"):
            for key in list(store.keys(kind)):
                store.put_now(kind, key, {})
    ended = care(lab, "verify")
    assert ended.status == 1
    assert "counts as missing" in ended.out
    assert not lab.asked_by(lab.run)
    # Of items that are the same only one may be computed: what was noted of the others stays as it is.
    assert "stage:" not in care(lab, "verify").out


def test_pruning_deletes_stage_results_and_a_rerun_makes_them_for_nothing(lab: Lab) -> None:
    before = count(lab.store)
    assert f"{before['stage']:,} entries would be deleted" in care(lab, "prune", "--dry-run").out
    assert count(lab.store) == before
    assert "entries deleted" in care(lab, "prune").out
    assert count(lab.store) == {"reply": before["reply"], "stage": 0, "latest": before["latest"]}
    assert not lab.asked_by(lab.run)
    assert lab.seen
    # Items of equal content may be found again once the first of them is made.
    assert {str(verdict.reason) for verdict in lab.seen.verdicts.values()} - {"hit"} == {"missing"}


def test_what_is_younger_stays(lab: Lab) -> None:
    before = count(lab.store)
    assert "0 entries deleted" in care(lab, "prune", "--older-than", 1).out
    assert count(lab.store) == before


def test_replies_go_only_when_they_are_named_and_that_is_confirmed(lab: Lab) -> None:
    refused = call("cache", "prune", "--cache", lab.store, "--replies", stdin="n\n")
    assert refused.status == 1
    assert refused.out.endswith("nothing deleted\n")
    assert count(lab.store)["reply"] == lab.server.asked.total()
    assert care(lab, "prune", "--replies", "--yes").status == 0
    assert (count(lab.store)["reply"], count(lab.store)["stage"]) == (0, 0)


def test_an_archive_carries_the_replies_to_another_machine(lab: Lab, tmp_path: Path) -> None:
    archive, there = tmp_path / "replies.gz", tmp_path / "there"
    replies = count(lab.store)["reply"]
    assert care(lab, "export", archive).out == f"{archive}: {replies} entries\n"
    assert care(lab, "import", archive, folder=there).out == f"{replies} added, 0 present already, 0 refused\n"
    assert care(lab, "import", archive, folder=there).out == f"0 added, {replies} present already, 0 refused\n"
    assert not lab.asked_by(lambda: lab.run(cache=there))


def test_the_replies_of_one_run_travel_alone(lab: Lab, tmp_path: Path) -> None:
    lab.run(name="part", limit=3)
    archive, there = tmp_path / "part.gz", tmp_path / "there"
    care(lab, "export", archive, "--run", "part", "--runs", lab.runs)
    care(lab, "import", archive, folder=there)
    assert 0 < count(there)["reply"] < count(lab.store)["reply"]
    assert not lab.asked_by(lambda: lab.run(cache=there, limit=3))
    assert lab.asked_by(lambda: lab.run(cache=there))
    assert "leave out --stages" in care(lab, "export", archive, "--run", "part", "--stages").err
    assert "there is no run or sweep other" in care(lab, "export", archive, "--run", "other", "--runs", lab.runs).err


def test_replies_travel_without_what_was_asked(lab: Lab, tmp_path: Path) -> None:
    archive, whole, there = tmp_path / "bare.gz", tmp_path / "whole.gz", tmp_path / "there"
    care(lab, "export", archive, "--bare")
    care(lab, "export", whole)
    assert archive.stat().st_size < whole.stat().st_size / 2
    care(lab, "import", archive, folder=there)
    assert not lab.asked_by(lambda: lab.run(cache=there))
    assert "--bare takes replies alone" in care(lab, "export", archive, "--bare", "--stages").err


def test_stage_results_travel_when_asked_for(lab: Lab, tmp_path: Path) -> None:
    archive, there = tmp_path / "all.gz", tmp_path / "there"
    care(lab, "export", archive, "--stages")
    care(lab, "import", archive, folder=there)
    assert count(there) == {**count(lab.store), "latest": 0}


@pytest.mark.parametrize("name", ["stats", "verify", "prune", "export", "import"])
def test_a_folder_that_is_no_store_is_said_in_one_line(lab: Lab, tmp_path: Path, name: str) -> None:
    file = tmp_path / "a file"
    file.write_text("no store")
    ended = care(lab, name, *([tmp_path / "x.gz"] if name in {"export", "import"} else []), folder=file)
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert "choose another one with --cache DIR" in ended.errors[0]


def test_an_archive_that_is_none_is_said_in_one_line(lab: Lab, tmp_path: Path) -> None:
    for content, words in ((None, "cannot be read"), (b"no archive", "truncated or was changed")):
        archive = tmp_path / "archive.gz"
        if content:
            archive.write_bytes(content)
        ended = care(lab, "import", archive)
        assert ended.status == 1
        assert len(ended.errors) == 1
        assert words in ended.errors[0]


def test_an_archive_that_cannot_be_written_is_said_in_one_line(lab: Lab, tmp_path: Path) -> None:
    ended = care(lab, "export", tmp_path / "no" / "such" / "folder.gz")
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert "cannot be written" in ended.errors[0]


def spoil(folder: Path, kind: int) -> None:
    """Overwrite one page of a store's database: the middle one of those that begin with the number of a kind."""
    content = bytearray((folder / "cache.db").read_bytes())
    places = [place for place in range(0, len(content), 4096) if content[place] == kind]
    place = places[len(places) // 2]
    content[place : place + 4096] = b"\xa5" * 4096
    (folder / "cache.db").write_bytes(content)


def test_what_can_be_read_of_a_damaged_store_is_exported(lab: Lab, tmp_path: Path) -> None:
    archive, there = tmp_path / "saved.gz", tmp_path / "there"
    replies = count(lab.store)["reply"]
    spoil(lab.store, 13)  # with rows on it
    assert "rectom cache export FILE" in care(lab, "verify").err
    ended = care(lab, "export", archive)
    assert ended.status == 3
    assert len(ended.errors) == 1
    lost = re.search(rf"(\d+) entries could not be read; .* move {lab.store} aside and import {archive}", ended.err)
    assert lost
    assert care(lab, "import", archive, folder=there).status == 0
    assert replies - int(lost[1]) <= count(there)["reply"] <= replies
    assert sum(lab.asked_by(lambda: lab.run(cache=there)).values()) <= int(lost[1])


def test_where_nothing_can_be_read_that_is_said_in_one_line(lab: Lab, tmp_path: Path) -> None:
    spoil(lab.store, 5)  # the one that leads to all rows
    ended = care(lab, "export", tmp_path / "saved.gz")
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    assert "move the folder aside and begin with an empty one" in ended.err
    assert not (tmp_path / "saved.gz").exists()


def test_a_damaged_index_costs_no_entry(lab: Lab, tmp_path: Path) -> None:
    replies = count(lab.store)["reply"]
    spoil(lab.store, 2)  # the one that leads to the names of all entries
    ended = care(lab, "export", tmp_path / "saved.gz")
    assert (ended.status, ended.out) == (0, f"{tmp_path / 'saved.gz'}: {replies} entries\n")
    assert "0 entries could not be read; the cache database is damaged" in ended.err


def test_an_archive_without_what_is_damaged_is_partial(lab: Lab, tmp_path: Path) -> None:
    with Store(lab.store) as store:
        key = next(store.keys("reply"))
        store._database._sql("UPDATE Cache SET value = x'00' WHERE key = ?", (f"reply:{key}",))
    ended = care(lab, "export", tmp_path / "saved.gz")
    assert ended.status == 3
    assert ended.errors[-1] == "rectom: 1 entries could not be read"
