from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path

import orjson
import pytest

from rectom.errors import SettingsError
from rectom.llm.batch_journal import Job, Journal
from rectom.llm.batch_rows import RowId

KEYS = [f"{n:064x}" for n in range(4)]


def begun(folder: Path) -> tuple[Journal, Job]:
    journal = Journal(folder)
    return journal, journal.begin([journal.next_row(key) for key in KEYS], "d", "s")


def reopened(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.load()
    return journal


def put_output(journal: Journal, job: Job, *keys: str) -> None:
    """The server's output with replies to some keys."""
    rows = [{"custom_id": f"{key}-1", "response": {"status_code": 200, "body": {}}} for key in keys]
    journal.output(job).write_bytes(b"\n".join(map(orjson.dumps, rows)))
    job.ended = job.created + 7
    journal.note(job)


def test_a_job_is_on_disk_before_it_is_anywhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    journal, job = begun(folder)
    (found,) = reopened(folder).jobs
    assert (found.name, found.digest, found.server, found.size, found.batch_id) == (job.name, "d", "s", 4, "")
    assert found.rows == {key: RowId(key, 1) for key in KEYS}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.note_of(job).stat().st_mode) == 0o600


def test_what_is_done_with_is_not_looked_for_again(tmp_path: Path) -> None:
    journal, job = begun(tmp_path)
    journal.settle(job, KEYS[:2])
    later = reopened(tmp_path)
    assert [later.holding(key) is not None for key in KEYS] == [False, False, True, True]
    later.settle(later.jobs[0], KEYS[2:])
    assert list(tmp_path.iterdir()) == []


def test_what_two_processes_have_done_together_is_found_by_a_third(tmp_path: Path) -> None:
    one, job = begun(tmp_path)
    two = reopened(tmp_path)
    one.settle(job, KEYS[:2])
    two.settle(two.jobs[0], KEYS[2:3])
    two.settle(two.jobs[0], [])
    assert list(reopened(tmp_path).jobs[0].rows) == KEYS[3:]
    one.settle(job, KEYS[3:])
    assert reopened(tmp_path).jobs == []
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_another_process_has_ended_keeps_what_is_wanted_here_alone(tmp_path: Path) -> None:
    one, job = begun(tmp_path)
    two = reopened(tmp_path)
    one.settle(job, KEYS)
    mine = two.jobs[0]
    put_output(two, mine, *KEYS)
    two.note_of(mine).unlink()
    two.end(mine, KEYS[:2])
    two.settle(mine, KEYS[:1])
    assert list(reopened(tmp_path).jobs[0].rows) == KEYS[1:2]
    two.settle(mine, KEYS[1:2])
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_another_process_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    one, job = begun(tmp_path)
    two = reopened(tmp_path)
    two.end(two.jobs[0], KEYS[:2])
    one.settle(job, KEYS)
    two.settle(two.jobs[0], KEYS[:1])
    assert list(tmp_path.iterdir()) == []


def test_an_ended_job_holds_its_replies_and_nothing_of_the_rows_that_failed(tmp_path: Path) -> None:
    journal, job = begun(tmp_path)
    put_output(journal, job, *KEYS[:3])
    later = reopened(tmp_path)
    assert [later.holding(key) is not None for key in KEYS] == [True, True, True, False]
    found = later.jobs[0]
    assert all(found.results[key].good for key in KEYS[:3])
    assert found.latency_s == pytest.approx(7)
    found.taken.add(KEYS[0])
    assert later.holding(KEYS[0]) is None
    assert later.next_row(KEYS[0]) == RowId(KEYS[0], 2)


def test_rows_of_another_try_are_not_taken_for_ours(tmp_path: Path) -> None:
    journal, job = begun(tmp_path)
    put_output(journal, job)
    journal.output(job).write_bytes(orjson.dumps({"custom_id": f"{KEYS[0]}-2", "response": {"body": {}}}))
    assert reopened(tmp_path).jobs == []


@pytest.mark.parametrize("content", [b"", bytes(100), None])
def test_a_job_whose_output_was_lost_waits_for_it_again(tmp_path: Path, content: bytes | None) -> None:
    journal, job = begun(tmp_path)
    put_output(journal, job)
    if content is None:
        journal.output(job).unlink()
    else:
        journal.output(job).write_bytes(content)
    journal.errors(job).write_bytes(orjson.dumps({"custom_id": f"{KEYS[0]}-1", "error": "late"}))
    (found,) = reopened(tmp_path).jobs
    assert (list(found.rows), found.ended, found.results) == (KEYS, 0.0, {})
    assert list(tmp_path.iterdir()) == [journal.note_of(job)]


def test_the_newest_job_holds_a_key(tmp_path: Path) -> None:
    journal, _ = begun(tmp_path)
    newer = journal.begin([journal.next_row(KEYS[0])], "e", "s")
    assert newer.rows[KEYS[0]].attempt == 2
    assert journal.holding(KEYS[0]) is newer
    journal.settle(newer, [KEYS[0]])
    held = journal.holding(KEYS[0])
    assert held is not None
    assert held.digest == "d"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"version": 9}', b'{"version": 1, "rows": 3}'])
def test_a_note_that_is_none_is_left_alone(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"{'a' * 32}.json"
    path.write_bytes(content)
    (tmp_path / "format.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert reopened(tmp_path).jobs == []
    assert "is no note of a batch" in caplog.text
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert reopened(tmp_path / "none").jobs == []


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used"):
        begun(tmp_path / "file" / "batches")


async def test_the_lock_lets_one_in_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []

    async def enter(n: int) -> None:
        async with Journal(tmp_path).lock():
            inside.append(n)
            await asyncio.sleep(0.01)
            assert inside == [n]
            inside.clear()

    await asyncio.gather(*map(enter, range(3)))
