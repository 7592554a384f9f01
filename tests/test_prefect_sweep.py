"""A sweep under a real Prefect server: a flow, a sub-flow a cell, and artifacts."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.laboratory import (
    SMALL_QUESTIONS,
    Ended,
    Lab,
    PrefectServer,
    call,
    execute,
    finish,
    run_options,
    serving,
    spawn,
    write_stories,
)
from tests.test_cli import until
from tests.test_prefect_flow import artifacts, flow_runs, query
from tests.test_sweep import options, write

pytestmark = pytest.mark.prefect

METHODS = ["cot", "rectom-lite"]
CELLS = {"fresh/small · cot · fake", "fresh/small · rectom-lite · fake"}


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI()) as serves:
        yield serves


def sweep(file: Path, prefect: PrefectServer) -> Ended:
    return execute("sweep", file, "--json", *options(file.parent), RECTOM_HOME=str(prefect.home), timeout=120)


def cells_of(prefect: PrefectServer, flow: dict[str, Any]) -> list[dict[str, Any]]:
    """The sub-flows of a flow run."""
    return query(prefect, "flow_runs", flow_runs={"parent_flow_run_id": {"any_": [flow["id"]]}})


def test_every_cell_is_a_sub_flow_and_the_artifacts_tell_the_end(
    tmp_path: Path, server: FakeOpenAI, prefect_server: PrefectServer
) -> None:
    ended = sweep(write(tmp_path, server, "night", methods=METHODS), prefect_server)
    assert ended.status == 0, ended.err
    (flow,) = flow_runs(prefect_server, "sweep night")
    assert flow["state_type"] == "COMPLETED"
    within = cells_of(prefect_server, flow)
    assert {cell["name"] for cell in within} == CELLS
    assert {cell["state_type"] for cell in within} == {"COMPLETED"}
    (cell,) = (cell for cell in within if "cot" in cell["name"])
    tasks = query(prefect_server, "task_runs", flow_runs={"id": {"any_": [cell["id"]]}})
    assert {task["name"] for task in tasks} == {f"answering · shard {n}/4" for n in range(1, 5)}

    made = artifacts(prefect_server, flow["id"])
    rows = json.loads(made["rectom-sweep"]["data"])
    assert [(row["method"], row["state"], row["accuracy"]) for row in rows] == [
        ("cot", "finished", "32.50"),
        ("rectom-lite", "finished", "100.00"),
    ]
    assert float(made["rectom-sweep-progress"]["data"]) == 100.0
    assert made["rectom-sweep-progress"]["description"] == "2 finished"
    assert "night/index.html" in made["rectom-sweep-report"]["data"]


def test_a_prefect_server_that_dies_takes_neither_a_run_nor_a_sweep_down(
    tmp_path: Path, server: FakeOpenAI, prefect_server: PrefectServer
) -> None:
    """The last of the tests with Prefect: it ends the server."""
    server.latency_s = 0.2
    file = write(tmp_path, server, at_once=1, methods=METHODS, defaults={"concurrency": 2})
    # Prefect's client tries five times for every call, which takes minutes.
    home = {"RECTOM_HOME": str(prefect_server.home), "PREFECT_CLIENT_MAX_RETRIES": "0"}
    with serving(FakeOpenAI(latency_s=0.2)) as other:
        lab = Lab(tmp_path / "lab", write_stories(tmp_path), other)
        swept = spawn("sweep", file, "--json", *options(tmp_path), **home)
        run = spawn("run", *run_options(lab, name="orphan", concurrency=4), "--json", **home)
        until(lambda: server.asked.total() >= 3, swept)
        until(lambda: other.asked.total() >= 8, run)
        os.kill(prefect_server.pid(), signal.SIGKILL)
        cells, ended = finish(swept, 120), finish(run, 120)
    assert (cells.status, ended.status) == (0, 0), cells.err + ended.err
    assert server.asked.total() == 48
    assert [cell["state"] for cell in cells.line["cells"]] == ["finished", "finished"]
    assert ended.line["correct"] == SMALL_QUESTIONS
    assert "Traceback" not in cells.err + ended.err
    # On a busy machine a server refuses a call before it dies, and the run goes on without it from there.
    assert re.search("the results are complete all the same|Prefect failed .*; going on without it", ended.err)
    stopped = call("server", "stop", RECTOM_HOME=str(prefect_server.home))
    assert stopped.status == 1
