from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from cache import Store
from flows.accounts import outcome_of
from flows.pipeline import pipeline, run_plainly, shards
from flows.replies import StoredReplies
from rectom.benchmarks import hitom
from rectom.errors import EndpointDown, EndpointError, RequestRefused, SettingsError, WrongKey
from rectom.llm import (
    ChatClient,
    ChatRequest,
    Limits,
    MemoryReplies,
    Message,
    ModelId,
    Outcome,
    Reply,
    ReplyStore,
    Retry,
    Timeouts,
)
from rectom.llm.address import Address
from rectom.llm.batch import BatchRefused, BatchTransport, Pace, Size
from rectom.llm.batch_api import BatchApi
from rectom.llm.batch_journal import Job, Journal
from rectom.llm.batch_rows import Place
from rectom.llm.secret import Secret
from rectom.llm.wire import Transport
from rectom.reader.asking import Asker
from rectom.reader.model import ModelReader
from tasks.run import Run, running
from tests.batch_server import BatchServer, Plan, Trouble, echo
from tests.fake_openai import FakeOpenAI
from tests.laboratory import rounds, write_stories
from tests.test_library import modules_after

KEY = "sk-planted-0123456789abcdef"
QUICK = Pace(quiet=0.03, first=0.01, longest=0.03, outage=5.0)
SOON = Retry(attempts=4, first=0.01, cap=0.02)


def question(text: object, model: str = "m", **more: Any) -> ChatRequest:
    return ChatRequest(ModelId(model), (Message("user", str(text)),), **more)


def batches(server: BatchServer, folder: Path, **more: Any) -> BatchTransport:
    options: dict[str, Any] = {"pace": QUICK, "retry": SOON, **more}
    return BatchTransport(Address.parse(server.url), Secret(KEY), folder, **options)


def over(transport: Transport, url: str, replies: ReplyStore | None = None, **more: Any) -> ChatClient:
    """A client as a batch wants it."""
    options: dict[str, Any] = {"limits": Limits(10**6, adaptive=False), "retry": SOON, **more}
    return ChatClient(url, KEY, replies=replies, transport=transport, **options)


async def ask(
    server: BatchServer, folder: Path, texts: Any, replies: ReplyStore | None = None, **more: Any
) -> list[Reply]:
    """Ask everything at once, with a transport that is new."""
    async with over(batches(server, folder, **more), server.url, replies) as client:
        return await asyncio.gather(*(client.ask(question(text)) for text in texts))


async def until(happened: Any) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(20):
        while not happened():  # noqa: ASYNC110  no event tells of it
            await asyncio.sleep(0.002)


def notes(folder: Path) -> list[Path]:
    """The notes of jobs in a journal."""
    return sorted(folder.glob("*.json"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def edit(note: Path, **changes: Any) -> None:
    note.write_bytes(orjson.dumps({**orjson.loads(note.read_bytes()), **changes}))


async def left_behind(server: BatchServer, folder: Path, texts: Any) -> None:
    """Ask, and go away while the batch is under way."""
    server.plans.appendleft(Plan(looks=10**9))
    task = asyncio.create_task(ask(server, folder, texts))
    await until(lambda: any(batch.looks for batch in server.batches.values()))
    task.cancel()
    await asyncio.wait([task])
    newest = list(server.batches.values())[-1]
    newest.plan = Plan(looks=newest.looks + 2)


async def test_what_everybody_waits_for_goes_out_as_one_batch(tmp_path: Path) -> None:
    async with BatchServer() as server:
        replies = MemoryReplies()
        found = await ask(server, tmp_path, range(300), replies)
        assert [reply.text for reply in found] == [f"echo: {n}" for n in range(300)]
        assert all(reply.outcome is Outcome.OK and reply.usage.prompt == 10 for reply in found)
        assert server.sizes == [300]
        assert len(replies.records) == 300
        assert names(tmp_path) == ["lock"]


async def test_a_row_is_called_by_its_requests_key(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await ask(server, tmp_path, ["a"])
        assert server.batches["batch-0"].ids == [f"{question('a').limited_key}-1"]
        assert server.batches["batch-0"].rows[0]["body"] == question("a").body("json_schema")


async def test_each_round_of_dependent_questions_is_a_batch(tmp_path: Path) -> None:
    async with BatchServer() as server, over(batches(server, tmp_path), server.url) as client:

        async def thrice(n: int) -> None:
            for depth in range(3):
                await client.ask(question(f"{n} at {depth}"))

        await asyncio.gather(*map(thrice, range(40)))
        assert server.sizes == [40, 40, 40]


async def test_batches_keep_the_limits_of_rows_and_bytes_and_one_model_each(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await ask(server, tmp_path / "rows", range(10), size=Size(rows=4))
        assert server.sizes == [4, 4, 2]
    async with BatchServer() as server:
        await ask(server, tmp_path / "bytes", ["x" * 400] + ["y" * 401] + ["z"] * 1, size=Size(bytes=1200))
        assert all(len(data) <= 1200 for name, data in server.files.items() if name == server.batches["batch-0"].file)
        assert sum(server.sizes) == 3
        assert len(server.sizes) == 2
    async with BatchServer() as server, over(batches(server, tmp_path / "models"), server.url) as client:
        await asyncio.gather(*(client.ask(question(n, "ab"[n % 2])) for n in range(6)))
        assert server.sizes == [3, 3]
        models = [{row["body"]["model"] for row in batch.rows} for batch in server.batches.values()]
        assert models == [{"a"}, {"b"}]


async def test_a_row_that_fits_no_batch_is_refused_and_the_others_go_out(tmp_path: Path) -> None:
    async with BatchServer() as server:
        async with over(batches(server, tmp_path, size=Size(bytes=1000)), server.url) as client:
            long, short = await asyncio.gather(
                client.ask(question("x" * 1000)), client.ask(question("y")), return_exceptions=True
            )
        assert isinstance(long, RequestRefused)
        assert re.search(r"a request of 1,\d\d\d bytes does not fit", str(long))
        assert isinstance(short, Reply)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(broken=lambda n: n % 3 == 0),
        Plan(broken=lambda n: n % 3 == 0, status=429),
        Plan(expired=lambda n: n % 3 == 0, end="expired"),
        Plan(missing=lambda n: n % 3 == 0),
        Plan(broken=lambda n: True),
        Plan(expired=lambda n: True, end="expired"),
        Plan(first=b'not JSON\n{"custom_id": 3}\n[]\n\n', missing=lambda n: n == 0),
    ],
)
async def test_rows_that_failed_are_asked_again_and_no_others(tmp_path: Path, plan: Plan) -> None:
    async with BatchServer([plan]) as server:
        found = await ask(server, tmp_path, range(9))
        assert [reply.text for reply in found] == [f"echo: {n}" for n in range(9)]
        lost = sum(plan.broken(n) or plan.expired(n) or plan.missing(n) for n in range(9))
        assert server.sizes == [9, lost]
        assert {name[-2:] for name in server.batches["batch-1"].ids} == {"-2"}
        assert notes(tmp_path) == []


async def test_a_reply_that_is_none_is_asked_again_and_not_read_again(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [{"choices": []}]
    async with BatchServer(answer=lambda body: bad.pop() if bad else echo(body)) as server:
        assert (await ask(server, tmp_path, ["a"]))[0].text == "echo: a"
        assert server.sizes == [1, 1]
        assert notes(tmp_path) == []


async def test_a_reply_that_is_nested_too_deeply_fails_alone(tmp_path: Path) -> None:
    bad = [orjson.Fragment(b"[" * 300 + b"]" * 300)]
    async with BatchServer(answer=lambda body: bad.pop() if bad else echo(body)) as server:
        found = await ask(server, tmp_path, range(3))
        assert [reply.text for reply in found] == [f"echo: {n}" for n in range(3)]
        assert server.sizes == [3, 1]
        assert notes(tmp_path) == []


async def test_a_row_that_keeps_failing_ends_in_an_error(tmp_path: Path) -> None:
    async with BatchServer([Plan(expired=lambda n: n == 0)] * 4) as server:
        with pytest.raises(EndpointError, match="batch_expired: too late"):
            await ask(server, tmp_path, ["a"])
        assert server.sizes == [1, 1, 1, 1]


async def test_a_server_without_schemas_is_found_out_by_a_batch(tmp_path: Path) -> None:
    refusal = Plan(broken=lambda _: True, status=400, words="response_format json_schema is not supported")
    async with BatchServer([refusal]) as server, over(batches(server, tmp_path), server.url) as client:
        asked = [question(n, schema_name="s", schema={"type": "object"}) for n in range(3)]
        await asyncio.gather(*map(client.ask, asked))
        formats = [batch.rows[0]["body"]["response_format"]["type"] for batch in server.batches.values()]
        assert formats == ["json_schema", "json_object"]
        assert server.sizes == [3, 3]


async def test_a_batch_that_is_refused_says_why_in_one_line(tmp_path: Path) -> None:
    faults = tuple(("invalid", f"row {n} is odd") for n in range(5))
    async with BatchServer([Plan(faults=faults)]) as server:
        with pytest.raises(BatchRefused) as caught:
            await ask(server, tmp_path, range(3))
        said = str(caught.value)
        assert "batch-0 of 3 rows (line 1: row 0 is odd; " in said
        assert "and 2 more" in said
        assert "\n" not in said
        assert notes(tmp_path) == []


async def test_a_full_queue_at_the_server_splits_what_it_cannot_take(tmp_path: Path) -> None:
    full = Plan(faults=(("token_limit_exceeded", "too many tokens wait"),), looks=1)
    async with BatchServer([full, full, Plan()]) as server:
        found = await ask(server, tmp_path, range(8), size=Size(rows=8))
        assert len(found) == 8
        assert server.sizes[:2] == [8, 4]
        assert sum(server.sizes[2:]) == 8
        assert set(ran_in(server).values()) == {1}


def ran_in(server: BatchServer) -> Mapping[str, int]:
    """How often each row ran: a batch that was refused ran none."""
    ran: dict[str, int] = {}
    for batch in server.batches.values():
        for row in batch.rows if not batch.plan.faults else []:
            text = orjson.dumps(row["body"]).decode()
            ran[text] = ran.get(text, 0) + 1
    return ran


async def test_two_batches_that_are_refused_for_a_full_queue_do_not_wait_for_each_other(tmp_path: Path) -> None:
    full = Plan(faults=(("token_limit_exceeded", "too many tokens wait"),))
    async with BatchServer([full, full]) as server, asyncio.timeout(10):
        assert len(await ask(server, tmp_path, range(8), size=Size(rows=4))) == 8
        assert set(ran_in(server).values()) == {1}


@pytest.mark.parametrize(
    ("where", "how"),
    [
        ("POST /files", {"status": 500}),
        ("POST /files", {"status": 429}),
        ("POST /files", {"status": 200, "body": b"<html>hotel wifi</html>"}),
        ("GET /batches/", {"status": 500}),
        ("GET /batches/", {"status": 503}),
        ("GET /batches/", {"status": 200, "body": b"<html>hotel wifi</html>"}),
        ("GET /files/", {"status": 500}),
        ("GET /files/", {"status": 429}),
        ("GET /files/", {"status": 200, "body": b"<html>hotel wifi</html>"}),
        ("GET /files/", {"status": 200, "body": b""}),
    ],
)
async def test_passing_faults_are_waited_out(tmp_path: Path, where: str, how: dict[str, Any]) -> None:
    async with BatchServer(troubles=[Trouble(where, **how)] * 2) as server:
        assert len(await ask(server, tmp_path, range(3))) == 3
        assert server.sizes == [3]
        assert not server.troubles


@pytest.mark.parametrize("plan", [Plan(broken=lambda n: n % 3 == 0), Plan(missing=lambda n: n % 3 == 0)])
async def test_a_page_instead_of_the_output_costs_no_row_that_is_there(tmp_path: Path, plan: Plan) -> None:
    page = Trouble("GET /files/", 200, body=b"<html>hotel wifi</html>")
    async with BatchServer([plan], troubles=[page]) as server:
        assert len(await ask(server, tmp_path, range(9))) == 9
        assert server.sizes == [9, 3]
        assert not server.troubles


async def test_pages_instead_of_the_output_are_given_up_and_the_job_is_kept(tmp_path: Path) -> None:
    pages = [Trouble("GET /files/", 200, body=b"<html>hotel wifi</html>")] * 10**3
    async with BatchServer(troubles=pages) as server:
        pace = Pace(quiet=0.03, first=0.01, longest=0.02, outage=0.1)
        with pytest.raises(EndpointError, match="something else for the results of the batch batch-0") as caught:
            await ask(server, tmp_path, range(3), pace=pace)
        (note,) = notes(tmp_path)
        assert str(note) in str(caught.value)
        assert names(tmp_path) == [note.name, "lock"]
        server.troubles.clear()
        assert len(await ask(server, tmp_path, range(3))) == 3
        assert server.sizes == [3]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("how", [{"status": 500}, {"status": 200, "body": b"<html>"}])
async def test_a_creation_without_an_answer_is_never_repeated_blindly(
    tmp_path: Path, done: bool, how: dict[str, Any]
) -> None:
    async with BatchServer(troubles=[Trouble("POST /batches", done=done, **how)]) as server:
        assert len(await ask(server, tmp_path, range(3))) == 3
        assert server.sizes == [3]
        assert not server.troubles


async def test_a_server_that_is_out_for_too_long_is_given_up_and_its_jobs_are_kept(tmp_path: Path) -> None:
    troubles = [Trouble("GET /batches/")] * 10**3
    async with BatchServer(troubles=troubles) as server:
        pace = Pace(quiet=0.03, first=0.01, longest=0.02, outage=0.1)
        with pytest.raises(EndpointError, match="trouble"):
            await ask(server, tmp_path, range(3), pace=pace)
        server.troubles.clear()
        assert len(await ask(server, tmp_path, range(3))) == 3
        assert server.sizes == [3]


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (Trouble("POST /files", 401, f"Incorrect API key provided: {KEY}"), WrongKey, "OPENAI_API_KEY"),
        (Trouble("POST /batches", 403, "no permission"), WrongKey, "no permission"),
        (Trouble("POST /files", 404, "Not Found"), BatchRefused, "has no files"),
        (Trouble("POST /batches", 405, "Not allowed"), BatchRefused, "has no batches"),
        (Trouble("POST /batches", 400, "billing is off"), BatchRefused, "billing is off"),
        (Trouble("GET /batches/", 401, "revoked"), WrongKey, "revoked"),
    ],
)
async def test_what_no_try_cures_is_one_line_for_everyone(
    tmp_path: Path, trouble: Trouble, kind: type[EndpointError], words: str
) -> None:
    async with BatchServer(troubles=[trouble]) as server, over(batches(server, tmp_path), server.url) as client:
        errors = await asyncio.gather(*(client.ask(question(n)) for n in range(3)), return_exceptions=True)
        assert {type(error) for error in errors} == {kind}
        assert len({id(error) for error in errors}) == 3
        said = str(errors[0])
        assert words in said
        assert "\n" not in said
        assert KEY not in said
        assert not server.troubles


async def test_nobody_there(tmp_path: Path) -> None:
    async with BatchServer() as server:
        gone = server.url
    transport = BatchTransport(Address.parse(gone), Secret(KEY), tmp_path, pace=QUICK, retry=SOON)
    async with over(transport, gone) as client:
        with pytest.raises(EndpointDown, match="cannot reach http"):
            await client.ask(question("a"))
    assert notes(tmp_path) == []


async def test_a_restart_joins_what_is_under_way(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, range(20))
        # A part is asked for, with something new; the rest is not lost.
        found = await ask(server, tmp_path, [*range(10), "new"])
        assert [reply.text for reply in found] == [*(f"echo: {n}" for n in range(10)), "echo: new"]
        assert server.sizes == [20, 1]
        assert len(notes(tmp_path)) == 1
        downloads = server.asked["GET files"]
        found = await ask(server, tmp_path, range(10, 20))
        assert [reply.text for reply in found] == [f"echo: {n}" for n in range(10, 20)]
        assert server.sizes == [20, 1]
        assert server.asked["GET files"] == downloads
        assert notes(tmp_path) == []


async def test_an_output_that_was_lost_is_downloaded_again(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, range(20))
        await ask(server, tmp_path, range(10))
        (output,) = (name for name in names(tmp_path) if name.endswith(".output.jsonl"))
        (tmp_path / output).write_bytes(b"")
        found = await ask(server, tmp_path, range(10, 20))
        assert [reply.text for reply in found] == [f"echo: {n}" for n in range(10, 20)]
        assert server.sizes == [20]
        assert notes(tmp_path) == []


async def test_a_file_may_be_downloaded_several_times_at_once(tmp_path: Path) -> None:
    async with BatchServer() as server:
        server.files["file"] = bytes(10**6)
        api = BatchApi(Address.parse(server.url), Secret(KEY))
        await asyncio.gather(*(api.download("file", tmp_path / "output") for _ in range(4)))
        await api.close()
    assert names(tmp_path) == ["output"]
    assert (tmp_path / "output").stat().st_size == 10**6


async def test_results_are_on_the_disk_before_the_note_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def note(number: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(number).st_mode), any(tmp_path.glob("*.output.jsonl"))))

    monkeypatch.setattr(os, "fsync", note)
    async with BatchServer() as server:
        await ask(server, tmp_path, ["a"])
    assert seen[-4:] == [(False, False), (True, True), (False, True), (True, True)]


async def test_an_output_that_another_process_takes_away_is_downloaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_and_lost(journal: Journal, job: Job) -> list[Place]:
        found = read(journal, job)
        if server.asked["GET files"] == 1:
            journal.output(job).unlink()
        return found

    read = Journal.read_results
    monkeypatch.setattr(Journal, "read_results", read_and_lost)
    async with BatchServer() as server:
        assert len(await ask(server, tmp_path, range(3))) == 3
        assert (server.sizes, server.asked["GET files"]) == ([3], 2)


async def test_a_changed_request_is_a_new_row(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, ["a"])
        await ask(server, tmp_path, ["b"])
        assert server.sizes == [1, 1]
        assert len(notes(tmp_path)) == 1


@pytest.mark.parametrize("found_by", ["file", "metadata"])
async def test_a_batch_whose_id_was_lost_is_found_at_the_server(tmp_path: Path, found_by: str) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, range(5))
        for n in range(5):  # others', on several pages
            await ask(server, tmp_path / "other", [f"other {n}"])
        (note,) = notes(tmp_path)
        if found_by == "file":
            server.batches["batch-0"].metadata.clear()
        edit(note, batch_id="", **({"file_id": "forgotten"} if found_by == "metadata" else {}))
        found = await ask(server, tmp_path, range(5))
        assert len(found) == 5
        assert server.sizes == [5, 1, 1, 1, 1, 1]
        assert notes(tmp_path) == []


@pytest.mark.parametrize("file_id", ["", "file-none"])
async def test_a_batch_that_was_never_created_is_sent(tmp_path: Path, file_id: str) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, range(5))
        server.batches.clear()
        edit(notes(tmp_path)[0], batch_id="", file_id=file_id)
        assert len(await ask(server, tmp_path, range(5))) == 5
        assert server.sizes == [5]
        assert notes(tmp_path) == []


async def test_a_batch_that_the_server_has_lost_is_not_sent_again_by_itself(tmp_path: Path) -> None:
    async with BatchServer() as server:
        await left_behind(server, tmp_path, range(5))
        server.batches.clear()
        (note,) = notes(tmp_path)
        with pytest.raises(BatchRefused, match="does not know the batch batch-0") as caught:
            await ask(server, tmp_path, range(5))
        assert str(note) in str(caught.value)
        note.unlink()
        assert len(await ask(server, tmp_path, range(5))) == 5


@pytest.mark.parametrize("lost", [False, True])
async def test_jobs_of_another_server_are_left_alone(tmp_path: Path, lost: bool) -> None:
    async with BatchServer() as server, BatchServer() as other:
        await left_behind(server, tmp_path, range(5))
        if lost:
            edit(notes(tmp_path)[0], batch_id="")
        assert len(await ask(other, tmp_path, range(5))) == 5
        assert (server.sizes, other.sizes) == ([5], [5])
        assert len(await ask(server, tmp_path, range(5))) == 5
        assert server.sizes == [5]
        assert notes(tmp_path) == []


async def test_a_batch_cancelled_at_the_server_is_not_sent_again_by_itself(tmp_path: Path) -> None:
    plan = Plan(end="cancelled", missing=lambda n: n == 1)
    async with BatchServer([plan]) as server, over(batches(server, tmp_path), server.url) as client:
        one, two = await asyncio.gather(client.ask(question(0)), client.ask(question(1)), return_exceptions=True)
        assert isinstance(one, Reply)
        assert isinstance(two, BatchRefused)
        assert "was cancelled" in str(two)
        assert server.sizes == [2]


async def test_a_waiter_that_leaves_cancels_no_job(tmp_path: Path) -> None:
    async with BatchServer([Plan(looks=20)]) as server, over(batches(server, tmp_path), server.url) as client:
        first = asyncio.create_task(client.ask(question("a")))
        await until(lambda: server.batches)
        first.cancel()
        await asyncio.wait([first])
        assert (await client.ask(question("a"))).text == "echo: a"
        assert server.sizes == [1]


async def test_a_waiter_that_leaves_before_the_sending_sends_nothing(tmp_path: Path) -> None:
    async with BatchServer() as server, over(batches(server, tmp_path), server.url) as client:
        leaving = asyncio.create_task(client.ask(question("a")))
        staying = asyncio.create_task(client.ask(question("b")))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await staying
        assert server.sizes == [1]


class Full(MemoryReplies):
    """A store without room."""

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        raise SettingsError("no room")


async def test_a_reply_that_could_not_be_kept_stays_in_the_journal(tmp_path: Path) -> None:
    async with BatchServer() as server:
        with pytest.raises(SettingsError, match="no room"):
            await ask(server, tmp_path, ["a"], Full())
        replies = MemoryReplies()
        assert (await ask(server, tmp_path, ["a"], replies))[0].text == "echo: a"
        assert len(replies.records) == 1
        assert server.sizes == [1]
        assert notes(tmp_path) == []


async def test_two_programs_with_one_journal_send_nothing_twice(tmp_path: Path) -> None:
    async with BatchServer() as server:
        server.usual = Plan(looks=30)
        one, two = await asyncio.gather(ask(server, tmp_path, range(30)), ask(server, tmp_path, range(10, 40)))
        assert len(one) == len(two) == 30
        assert set(server.sent.values()) == {1}
        assert len(server.sent) == 40
        await ask(server, tmp_path, ["later"])
        assert notes(tmp_path) == []


async def test_time_outs_do_not_apply(tmp_path: Path) -> None:
    async with BatchServer([Plan(looks=10)]) as server:
        tiny = Timeouts(0.001, 0.001, 0.001, 0.001)
        async with over(batches(server, tmp_path), server.url, timeouts=tiny) as client:
            assert (await client.ask(question("a"))).latency_s > 0.01


async def test_progress_counts_jobs_and_rows(tmp_path: Path) -> None:
    async with BatchServer([Plan(looks=10**9)] * 3) as server:
        transport = batches(server, tmp_path, size=Size(rows=120))
        assert transport.progress() == "no jobs"
        async with over(transport, server.url) as client:
            tasks = [asyncio.create_task(client.ask(question(n))) for n in range(200)]
            await until(lambda: all(batch.looks > 1 for batch in server.batches.values()) and len(server.sizes) == 2)
            assert transport.progress() == "2 jobs, 100 of 200 rows"
            tasks.append(asyncio.create_task(client.ask(question("more"))))
            await asyncio.sleep(0.005)
            assert transport.progress() == "2 jobs, 100 of 200 rows, 1 to send"


async def test_what_is_on_disk_is_for_its_owner_alone_and_holds_no_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "batches"
    caplog.set_level(logging.DEBUG)
    async with BatchServer(troubles=[Trouble("GET /batches/", 500, f"it says {KEY}")]) as server:
        await left_behind(server, folder, range(5))
        await ask(server, folder, range(3))
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [path for path in folder.iterdir() if path.name != "lock"]
    assert len(files) == 3  # the note, the output, and what is done
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert all(KEY.encode() not in path.read_bytes() for path in files)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("rectom")]
    assert ours
    assert KEY not in "\n".join(ours)


async def test_a_request_that_cannot_be_a_row_hangs_nobody(tmp_path: Path) -> None:
    async with BatchServer() as server:
        transport = batches(server, tmp_path)
        with pytest.raises(ValueError, match="line 1 column 1"):
            await transport.post(b"no JSON", "0" * 64)
        await transport.close()


def test_importing_it_imports_no_openai() -> None:
    assert not {"openai", "prefect"} & modules_after("import rectom.llm.batch, rectom.llm.batch_file")


CHILD = """
import asyncio, sys
from pathlib import Path
from cache import Store
from flows.replies import StoredReplies
from rectom.llm import ChatClient, ChatRequest, Limits, Message, ModelId, Retry
from rectom.llm.address import Address
from rectom.llm.batch import BatchTransport, Pace
from rectom.llm.secret import Secret

async def main(url, folder):
    transport = BatchTransport(Address.parse(url), Secret("k"), folder / "batches", pace=Pace(0.03, 0.01, 0.03))
    with Store(folder / "store") as store:
        async with ChatClient(
            url, None, replies=StoredReplies(store), limits=Limits(10**6, adaptive=False), transport=transport
        ) as client:
            async def ask(text):
                await client.ask(ChatRequest(ModelId("m"), (Message("user", text),)))
            async def twice(n):
                await ask(str(n))
                await ask(f"{n} again")
            await asyncio.gather(*map(twice, range(40)))

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


async def test_killed_again_and_again_it_sends_no_row_twice(tmp_path: Path) -> None:
    async with BatchServer() as server:
        server.usual = Plan(looks=8)
        moments = [
            lambda: server.files,  # uploaded, and perhaps created
            lambda: any(batch.output for batch in server.batches.values()),  # the replies are coming in
            lambda: len(server.batches) > 1,
        ]
        for moment in [*moments, lambda: False]:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CHILD, server.url, str(tmp_path), cwd=Path(__file__).parents[1]
            )
            waiting = asyncio.ensure_future(child.wait())
            until_then = asyncio.ensure_future(until(moment))
            await asyncio.wait([waiting, until_then], return_when=asyncio.FIRST_COMPLETED, timeout=30)
            until_then.cancel()
            if not waiting.done():
                child.kill()
            await waiting
            await asyncio.wait([until_then])
        assert child.returncode == 0
        assert len(server.sent) == 80
        assert set(server.sent.values()) == {1}
        with Store(tmp_path / "store") as store:
            assert store.count()["reply"] == 80


def by_rule(body: dict[str, Any]) -> Any:
    """The completion of the fake model."""
    fake = FakeOpenAI()
    step = body["response_format"]["json_schema"]["name"]
    return fake._completion(body, orjson.dumps(fake._reply(step, body)).decode())


async def evaluated(data: Path, client: ChatClient, store: Store) -> tuple[list[Any], Run]:
    """The outcomes of a whole run over a file of stories."""
    benchmark = hitom.load(data, "cotp")
    run = Run(benchmark, ModelReader(Asker(client, ModelId("fake"))), store)
    with running(run):
        await pipeline(shards(run), run_plainly)
    return [outcome_of(run, question.id) for question in benchmark.questions], run


async def test_a_whole_run_scores_as_it_does_live_in_as_many_batches_as_it_has_rounds(tmp_path: Path) -> None:
    data = write_stories(tmp_path)
    async with FakeOpenAI() as fake:
        with Store(tmp_path / "live") as store:
            async with ChatClient(fake.base_url, None, replies=StoredReplies(store)) as client:
                live, _ = await evaluated(data, client, store)
    async with BatchServer(answer=by_rule) as server:
        with Store(tmp_path / "store") as store:
            transport = batches(server, tmp_path / "batches")
            async with over(transport, server.url, StoredReplies(store)) as client:
                batched, run = await evaluated(data, client, store)
        assert [(o.id, o.predicted, o.correct) for o in batched] == [(o.id, o.predicted, o.correct) for o in live]
        assert all(outcome.correct for outcome in batched)
        assert sum(server.sizes) == fake.asked.total()
        assert set(server.sent.values()) == {1}
        # Abstraction beside the chain, the reduced question, observability, revisions one after the other, the answer.
        assert len(server.batches) == 3 + rounds(run)
        assert notes(tmp_path / "batches") == []
