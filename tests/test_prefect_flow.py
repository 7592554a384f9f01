"""The pipeline under a real Prefect server: what it records, and what it may not take down."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cache
from cache import Store
from flows.pipeline import STAGES
from tests.fake_openai import FakeOpenAI
from tests.laboratory import (
    SMALL,
    SMALL_QUESTIONS,
    Ended,
    Lab,
    PrefectServer,
    call,
    environment,
    execute,
    finish,
    run_options,
    serving,
    spawn,
    write_stories,
)
from tests.test_cli import until

pytestmark = pytest.mark.prefect

TASKS = {
    f"{name.replace('_', ' ')} · shard {n}/{SMALL.stories}" for name in STAGES for n in range(1, SMALL.stories + 1)
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stories(tmp_path_factory.mktemp("data"))


@pytest.fixture
def lab(tmp_path: Path, data: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI()) as server:
        yield Lab(tmp_path, data, server)


def run(lab: Lab, prefect: PrefectServer, name: str, *more: object, key: str = "none") -> Ended:
    options = (*run_options(lab, name=name), "--json", *more)
    return execute("run", *options, RECTOM_HOME=str(prefect.home), OPENAI_API_KEY=key)


def plain(lab: Lab, *more: object) -> Ended:
    return call("run", *run_options(lab, name="plain"), "--plain", "--json", *more)


def lines(lab: Lab, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (lab.runs / name / "results.jsonl").read_text().splitlines()]


def query(prefect: PrefectServer, what: str, **filters: Any) -> list[dict[str, Any]]:
    """What the server answers to a filter of its REST API."""
    request = urllib.request.Request(
        f"{prefect.url}/api/{what}/filter",
        data=json.dumps({"limit": 200, **filters}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        found: list[dict[str, Any]] = json.load(reply)
        return found


def flow_runs(prefect: PrefectServer, name: str) -> list[dict[str, Any]]:
    """The flow runs of a name, the latest last."""
    return query(prefect, "flow_runs", flow_runs={"name": {"any_": [name]}}, sort="START_TIME_ASC")


def task_runs(prefect: PrefectServer, flow_run: str, count: int = len(TASKS)) -> list[dict[str, Any]]:
    """The task runs of a flow run; they are recorded a moment after they ended."""
    deadline = time.monotonic() + 15
    while True:
        found = query(prefect, "task_runs", flow_runs={"id": {"any_": [flow_run]}})
        ended = [task for task in found if task["state_type"] in {"COMPLETED", "FAILED"}]
        if len(ended) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.3)


def artifacts(prefect: PrefectServer, flow_run: str) -> dict[str, dict[str, Any]]:
    """The artifacts of a flow run by key."""
    found = query(prefect, "artifacts", artifacts={"flow_run_id": {"any_": [flow_run]}})
    return {artifact["key"]: artifact for artifact in found}


def check_for_the_key(ended: Ended, lab: Lab, prefect_server: PrefectServer) -> None:
    """The key reached neither Prefect nor anything else."""
    places = [lab.folder, prefect_server.home]
    written = [path for place in places for path in place.rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in written)
    assert not [path for path in written if b"planted-0123456789" in path.read_bytes()]
    assert "planted" not in ended.out + ended.err


def test_a_run_is_the_same_as_without_and_everything_but_the_key_is_recorded(
    lab: Lab, prefect_server: PrefectServer
) -> None:
    ended = run(lab, prefect_server, "recorded", key="sk-planted-0123456789")
    assert ended.status == 0, ended.err
    check_for_the_key(ended, lab, prefect_server)
    sent = lab.server.asked.total()
    assert (ended.line["correct"], ended.line["calls"]["sent"]) == (SMALL_QUESTIONS, sent)

    again = plain(lab)
    assert again.line["calls"]["sent"] == 0
    assert lab.server.asked.total() == sent
    assert lines(lab, "plain") == lines(lab, "recorded")
    changing = ("run", "calls", "tokens", "wall_s")
    assert {k: v for k, v in again.line.items() if k not in changing} == {
        k: v for k, v in ended.line.items() if k not in changing
    }

    (flow,) = flow_runs(prefect_server, "recorded")
    assert flow["state_type"] == "COMPLETED"
    tasks = task_runs(prefect_server, flow["id"])
    assert Counter(task["name"] for task in tasks) == Counter(TASKS)
    assert {task["state_name"] for task in tasks} == {"Completed"}

    made = artifacts(prefect_server, flow["id"])
    table = json.loads(made["rectom-accuracy"]["data"])
    assert table[-1] | {"95 % interval": ""} == {
        "order": "all",
        "questions": SMALL_QUESTIONS,
        "correct": SMALL_QUESTIONS,
        "accuracy": "100.00",
        "95 % interval": "",
    }
    assert float(made["rectom-progress"]["data"]) == 100.0
    assert made["rectom-progress"]["description"] == f"{SMALL_QUESTIONS} of {SMALL_QUESTIONS} questions answered"
    assert "report.html" in made["rectom-report"]["data"]

    # The same again: every task is found by its key.
    repeated = run(lab, prefect_server, "recorded")
    assert repeated.line["calls"] == {**ended.line["calls"], "sent": 0, "cached": sent}
    _, flow = flow_runs(prefect_server, "recorded")
    assert {task["state_name"] for task in task_runs(prefect_server, flow["id"])} == {"Cached"}
    assert lines(lab, "recorded") == lines(lab, "plain")

    # Results that went behind Prefect's back are made again from the replies, whatever Prefect remembers.
    with Store(lab.store) as store:
        cache.prune(store, ("stage", "latest"))
    pruned = run(lab, prefect_server, "recorded")
    assert (pruned.status, pruned.line["calls"]["sent"]) == (0, 0)
    assert lines(lab, "recorded") == lines(lab, "plain")
    *_, flow = flow_runs(prefect_server, "recorded")
    assert {task["state_name"] for task in task_runs(prefect_server, flow["id"])} == {"Completed"}


def test_what_was_run_plainly_is_not_sent_again_and_a_forced_stage_runs_again(
    lab: Lab, prefect_server: PrefectServer
) -> None:
    plain(lab)
    sent = lab.server.asked.total()
    forced = run(lab, prefect_server, "after-plain", "--force", "completion")
    assert forced.status == 0, forced.err
    assert lab.server.asked.total() == sent
    assert lines(lab, "after-plain") == lines(lab, "plain")
    (flow,) = flow_runs(prefect_server, "after-plain")
    states = {task["state_name"] for task in task_runs(prefect_server, flow["id"]) if "completion" in task["name"]}
    assert states == {"Completed"}


def test_questions_that_fail_fail_no_task(lab: Lab, prefect_server: PrefectServer) -> None:
    lab.server.broken = "revise"
    ended = run(lab, prefect_server, "broken")
    assert ended.status == 3
    assert ended.line["failed"] > 0
    (flow,) = flow_runs(prefect_server, "broken")
    assert flow["state_type"] == "COMPLETED"
    sent = lab.server.asked.total()
    again = run(lab, prefect_server, "broken")
    assert (again.status, lab.server.asked.total()) == (3, sent)


def test_a_server_of_the_model_that_is_gone_is_one_line(lab: Lab, prefect_server: PrefectServer) -> None:
    lab.server.model = "moved away"
    ended = run(lab, prefect_server, "gone")
    assert ended.status == 1
    assert len(ended.errors) == 1, ended.err
    assert "it does not serve 'fake'" in ended.errors[0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_one_line_under_prefect_too(
    lab: Lab, prefect_server: PrefectServer, how: signal.Signals
) -> None:
    lab.server.latency_s = 0.4
    options = run_options(lab, name="interrupted", concurrency=2)
    process = spawn("run", *options, "--json", RECTOM_HOME=str(prefect_server.home))
    until(lambda: lab.server.asked.total() >= 10, process)
    process.send_signal(how)
    ended = finish(process, 30)
    assert ended.status == 130
    assert ended.errors == ["rectom: interrupted; the same command goes on where it was"]
    lab.server.latency_s = 0
    assert plain(lab).line["correct"] == SMALL_QUESTIONS
    assert lab.server.asked.total() <= 53 + 2


def test_without_a_server_everything_is_recorded_when_the_run_ends(lab: Lab) -> None:
    home = lab.folder / "home"
    ended = execute("run", *run_options(lab, name="alone"), "--json", RECTOM_HOME=str(home), timeout=180)
    assert (ended.status, ended.line["correct"]) == (0, SMALL_QUESTIONS)
    assert "Traceback" not in ended.err
    with sqlite3.connect(home / "prefect" / "prefect.db") as database:
        rows = database.execute("SELECT name, state_type FROM task_run").fetchall()
    database.close()
    assert Counter(rows) == Counter((name, "COMPLETED") for name in TASKS)
    sent = lab.server.asked.total()
    assert plain(lab).line["calls"]["sent"] == 0
    assert lab.server.asked.total() == sent


_BEGIN = """
import asyncio, os
from flows import prefect_server
prefect_server.prepare()
from flows import prefect_flow
from prefect.server.api.server import SubprocessASGIServer
async def work(): print("working", os.environ.get("OPENAI_API_KEY"))
SubprocessASGIServer.start = lambda _: print("started", os.environ.get("OPENAI_API_KEY"))
asyncio.run(prefect_flow._begun(work))
"""


def test_a_server_that_prefect_starts_gets_no_key(tmp_path: Path) -> None:
    ours = environment(RECTOM_HOME=str(tmp_path), OPENAI_API_KEY="planted")
    begun = subprocess.run([sys.executable, "-c", _BEGIN], env=ours, capture_output=True, text=True, check=True)
    assert begun.stdout == "started None\nworking planted\n"
    ours["PREFECT_API_URL"] = "http://127.0.0.1:9/api"
    begun = subprocess.run([sys.executable, "-c", _BEGIN], env=ours, capture_output=True, text=True, check=True)
    assert begun.stdout == "working planted\n"
