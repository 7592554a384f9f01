from __future__ import annotations

import asyncio
import logging
import shlex
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from cache import Store
from flows.replies import StoredReplies
from rectom.errors import Partial, RequestRefused, SettingsError
from rectom.llm import ChatClient, Limits, MemoryReplies, Reply, ReplyStore, Retry
from rectom.llm.batch_file import BatchFileTransport, BatchPending
from tests.batch_server import Cluster, none
from tests.fake_openai import FakeOpenAI
from tests.laboratory import rounds, write_stories
from tests.test_llm_batch import by_rule, evaluated, names, question

NOWHERE = "http://127.0.0.1:9/v1"


def through(folder: Path, replies: ReplyStore | None = None, quiet_s: float = 0.02) -> ChatClient:
    """A client that goes through files."""
    transport = BatchFileTransport(folder, quiet_s=quiet_s)
    retry = Retry(first=0.01, cap=0.01)
    return ChatClient(
        NOWHERE, None, replies=replies, transport=transport, limits=Limits(10**6, adaptive=False), retry=retry
    )


async def ask(folder: Path, texts: Any, replies: ReplyStore | None = None, **more: Any) -> list[Reply]:
    """Ask everything at once, with a transport that is new."""
    async with through(folder, replies) as client:
        return await asyncio.gather(*(client.ask(question(text, **more)) for text in texts))


async def pending(folder: Path, texts: Any, **more: Any) -> BatchPending:
    """Ask, and be put off."""
    with pytest.raises(BatchPending) as caught:
        await ask(folder, texts, **more)
    return caught.value


def run(cluster: Cluster, folder: Path, number: int = 1, skip: Any = none) -> None:
    """Answer a file of requests."""
    requests = (folder / f"requests-{number:04}.jsonl").read_bytes()
    (folder / f"results-{number:04}.jsonl").write_bytes(cluster.run(requests, skip))


async def test_requests_are_written_run_and_read(tmp_path: Path) -> None:
    folder, cluster = tmp_path / "my files", Cluster()
    said = await pending(folder, range(30))
    assert names(folder) == ["requests-0001.jsonl"]
    assert (said.waiting, [path.name for path, _ in said.files]) == (30, ["requests-0001.jsonl"])
    rows = [orjson.loads(line) for line in (folder / "requests-0001.jsonl").read_bytes().splitlines()]
    assert rows[0] == {
        "custom_id": f"{question(0).limited_key}-1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": question(0).body("json_schema"),
    }
    run(cluster, folder)
    replies = MemoryReplies()
    assert [reply.text for reply in await ask(folder, range(30), replies)] == [f"echo: {n}" for n in range(30)]
    assert len(replies.records) == 30
    assert names(folder) == ["requests-0001.jsonl", "results-0001.jsonl"]


async def test_the_error_says_in_one_line_what_to_run(tmp_path: Path) -> None:
    said = await pending(tmp_path / "a b", ["x"], model="org/model 'one'")
    line = str(said)
    assert isinstance(said, Partial)
    assert "\n" not in line
    command = shlex.split(line.split("`")[1])
    assert command[:2] == ["vllm", "run-batch"]
    assert command[-1] == "org/model 'one'"
    assert command[2:6] == ["-i", f"{tmp_path}/a b/requests-0001.jsonl", "-o", f"{tmp_path}/a b/results-0001.jsonl"]
    assert line.startswith("1 request waits in ")
    assert line.endswith("then the same command again")


async def test_everyone_who_waits_is_told(tmp_path: Path) -> None:
    async with through(tmp_path) as client:
        errors = await asyncio.gather(*(client.ask(question(n)) for n in range(5)), return_exceptions=True)
    assert all(isinstance(error, BatchPending) and error.waiting == 5 for error in errors)
    assert len({id(error) for error in errors}) == 5


async def test_what_waits_is_not_written_again(tmp_path: Path) -> None:
    await pending(tmp_path, range(5))
    said = await pending(tmp_path, range(7))
    assert [path.name for path, _ in said.files] == ["requests-0001.jsonl", "requests-0002.jsonl"]
    assert len((tmp_path / "requests-0002.jsonl").read_bytes().splitlines()) == 2
    assert "and so on for each" in str(said)
    await pending(tmp_path, range(7))
    assert len(names(tmp_path)) == 2


async def test_models_have_files_of_their_own(tmp_path: Path) -> None:
    async with through(tmp_path) as client:
        with pytest.raises(BatchPending) as caught:
            await asyncio.gather(*(client.ask(question(n, "ab"[n % 2])) for n in range(6)))
    assert [(path.name, model) for path, model in caught.value.files] == [
        ("requests-0001.jsonl", "a"),
        ("requests-0002.jsonl", "b"),
    ]


async def test_only_what_a_run_left_out_is_written_anew(tmp_path: Path) -> None:
    cluster = Cluster()
    await pending(tmp_path, range(10))
    run(cluster, tmp_path, skip=lambda n: n >= 6)
    said = await pending(tmp_path, range(10))
    assert [path.name for path, _ in said.files] == ["requests-0002.jsonl"]
    assert said.waiting == 4
    ids = [orjson.loads(line)["custom_id"] for line in (tmp_path / "requests-0002.jsonl").read_bytes().splitlines()]
    assert ids == [f"{question(n).limited_key}-2" for n in range(6, 10)]
    # A result of the first file that comes late is as good.
    late = cluster.run((tmp_path / "requests-0001.jsonl").read_bytes(), skip=lambda n: n < 9)
    (tmp_path / "late.jsonl").write_bytes(late)
    run(cluster, tmp_path, 2)
    assert len(await ask(tmp_path, range(10))) == 10
    assert len(names(tmp_path)) == 5


def result(text: object, attempt: int = 1, **more: Any) -> bytes:
    """A line of results."""
    row = {"id": "1", "custom_id": f"{question(text).limited_key}-{attempt}", "response": None, "error": None, **more}
    return orjson.dumps(row) + b"\n"


async def test_a_row_that_failed_is_written_again(tmp_path: Path) -> None:
    await pending(tmp_path, ["a"])
    (tmp_path / "out.jsonl").write_bytes(result("a", error={"message": "the GPU fell over"}))
    said = await pending(tmp_path, ["a"])
    assert [path.name for path, _ in said.files] == ["requests-0002.jsonl"]
    (tmp_path / "out.jsonl").write_bytes(result("a", 2, response={"status_code": 500, "body": None}, error="again"))
    said = await pending(tmp_path, ["a"])
    assert [path.name for path, _ in said.files] == ["requests-0003.jsonl"]


async def test_a_refusal_is_final_until_its_line_is_removed(tmp_path: Path) -> None:
    await pending(tmp_path, ["a"])
    refusal = {"status_code": 400, "request_id": "r", "body": None}
    (tmp_path / "out.jsonl").write_bytes(result("a", response=refusal, error="the prompt is too long"))
    with pytest.raises(RequestRefused, match="the prompt is too long"):
        await ask(tmp_path, ["a"])
    assert names(tmp_path) == ["out.jsonl", "requests-0001.jsonl"]


async def test_a_model_without_schemas_is_found_out(tmp_path: Path) -> None:
    schema: dict[str, Any] = {"schema_name": "s", "schema": {"type": "object"}}

    async def put_off() -> list[str]:
        with pytest.raises(BatchPending) as caught:
            async with through(tmp_path) as client:
                await client.ask(question("a", **schema))
        return [path.name for path, _ in caught.value.files]

    assert await put_off() == ["requests-0001.jsonl"]
    (row,) = (orjson.loads(line) for line in (tmp_path / "requests-0001.jsonl").read_bytes().splitlines())
    refusal = {"status_code": 400, "body": {"error": {"message": "response_format is not supported"}}}
    (tmp_path / "out.jsonl").write_bytes(orjson.dumps({"custom_id": row["custom_id"], "response": refusal}))
    assert await put_off() == ["requests-0002.jsonl"]
    assert await put_off() == ["requests-0002.jsonl"]
    run(Cluster(), tmp_path, 2)
    async with through(tmp_path) as client:
        assert (await client.ask(question("a", **schema))).text == "echo: a"


async def test_files_of_any_content_are_read_and_bad_lines_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await pending(tmp_path, ["a"])
    good = Cluster().run((tmp_path / "requests-0001.jsonl").read_bytes())
    (tmp_path / "mixed.jsonl").write_bytes(
        b'\xff\xfe\n[1]\n{"custom_id": "theirs", "response": {}}\n{"custom_id": 7, "error": null}\n\n'
        + good
        + good[:40]
    )
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "notes.txt").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert (await ask(tmp_path, ["a"]))[0].text == "echo: a"
    assert "mixed.jsonl: 3 lines are no results" in caplog.text


async def test_results_that_come_while_a_client_is_open_are_found(tmp_path: Path) -> None:
    async with through(tmp_path) as client:
        with pytest.raises(BatchPending):
            await client.ask(question("a"))
        run(Cluster(), tmp_path)
        assert (await client.ask(question("a"))).text == "echo: a"


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    await pending(folder, ["a"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "requests-0001.jsonl").stat().st_mode) == 0o600


async def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used"):
        await ask(tmp_path / "file", ["a"])


async def test_a_whole_run_comes_to_its_end_in_as_many_passes_as_it_has_rounds(tmp_path: Path) -> None:
    data, folder, cluster = write_stories(tmp_path), tmp_path / "files", Cluster(by_rule)
    async with FakeOpenAI() as fake:
        with Store(tmp_path / "live") as store:
            async with ChatClient(fake.base_url, None, replies=StoredReplies(store)) as client:
                live, _ = await evaluated(data, client, store)
    passes = 0
    while True:
        with Store(tmp_path / "store") as store:
            # A disk may take long to keep a reply, and what is asked next would then come too late for its pass.
            async with through(folder, StoredReplies(store), quiet_s=0.5) as client:
                try:
                    found, run_ = await evaluated(data, client, store)
                    break
                except BatchPending as said:
                    passes += 1
                    (path,) = (path for path, _ in said.files)
        assert path.name == f"requests-{passes:04}.jsonl"
        run(cluster, folder, passes)
    assert [(o.id, o.predicted) for o in found] == [(o.id, o.predicted) for o in live]
    assert all(outcome.correct for outcome in found)
    assert set(cluster.ran.values()) == {1}
    assert sum(cluster.ran.values()) == fake.asked.total()
    assert passes == 3 + rounds(run_)


async def test_what_an_answer_leads_to_is_written_with_what_is_missing(tmp_path: Path) -> None:
    await pending(tmp_path, ["a", "b"])
    run(Cluster(), tmp_path, skip=lambda n: n == 1)
    async with through(tmp_path) as client:

        async def further() -> Reply:
            await client.ask(question("a"))
            return await client.ask(question("after a"))

        errors = await asyncio.gather(further(), client.ask(question("b")), return_exceptions=True)
    assert [getattr(error, "waiting", None) for error in errors] == [2, 2]
    rows = map(orjson.loads, (tmp_path / "requests-0002.jsonl").read_bytes().splitlines())
    assert sorted(row["body"]["messages"][0]["content"] for row in rows) == ["after a", "b"]


async def test_a_refusal_counts_no_more_once_the_row_was_written_again(tmp_path: Path) -> None:
    await pending(tmp_path, ["a"])
    written = (tmp_path / "requests-0001.jsonl").read_bytes()
    (tmp_path / "out.jsonl").write_bytes(result("a", response={"status_code": 400, "body": {}}))
    (tmp_path / "requests-0002.jsonl").write_bytes(written.replace(b'-1"', b'-2"', 1))
    said = await pending(tmp_path, ["a"])
    assert [path.name for path, _ in said.files] == ["requests-0002.jsonl"]
