"""A sweep under a real Prefect server: a flow, a sub-flow a cell, and artifacts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, PrefectServer, execute, finish, serving, spawn
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


def test_a_prefect_server_that_dies_does_not_take_the_sweep_down(tmp_path: Path, server: FakeOpenAI) -> None:
    home = tmp_path / "home"
    started = execute("server", "start", timeout=150, RECTOM_HOME=str(home))
    assert started.status == 0, started.err
    prefect = PrefectServer(started.out.strip(), home)
    server.latency_s = 0.3
    file = write(tmp_path, server, methods=METHODS, defaults={"concurrency": 2})
    # Prefect's client tries five times for every call, which takes minutes.
    few = {"PREFECT_CLIENT_MAX_RETRIES": "1"}
    process = spawn("sweep", file, "--json", *options(tmp_path), RECTOM_HOME=str(home), **few)
    until(lambda: server.asked.total() >= 3, process)

    os.kill(prefect.pid(), signal.SIGKILL)
    ended = finish(process, 120)
    assert ended.status == 0, ended.err
    assert [cell["state"] for cell in ended.line["cells"]] == ["finished", "finished"]
    assert server.asked.total() == 48
