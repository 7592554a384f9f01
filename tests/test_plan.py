"""What a plan says is what is sent then, cell by cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.laboratory import call, serving
from tests.test_sweep import options, sweep, write

METHODS: list[Any] = [
    *("direct", "cot", "sc:n=3", "simtom", "timetom", "perceptom", "rectom", "rectom-lite"),
    {"label": "w/o-det", "method": "rectom", "update": "model"},
    {"label": "w/o-state", "method": "rectom", "state": "off"},
    {"label": "verify", "method": "rectom", "verify": True},
]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI()) as serves:
        yield serves


def plan(file: Path, *more: object) -> dict[str, Any]:
    """What a plan says: the cells by their names, and `all`."""
    ended = call("sweep", file, "--plan", "--json", *options(file.parent), *more)
    assert ended.status == 0, ended.err
    line = json.loads(ended.out)
    return {**{cell["cell"]: cell for cell in line["cells"]}, "all": line["all"]}


def bytes_of(folder: Path) -> dict[str, str]:
    """Everything that a folder holds, as digests."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_cell_sends_what_was_planned(tmp_path: Path, server: FakeOpenAI) -> None:
    for number, method in enumerate(METHODS):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = write(folder, server, methods=[method])
        planned, before = plan(file)["all"]["calls"], server.asked.total()
        assert server.asked.total() == before
        assert sweep(file).status == 0
        assert server.asked.total() - before == planned, method


def test_what_cells_share_is_planned_once_and_nothing_is_left_at_the_end(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=METHODS)
    planned = plan(file)
    assert planned["fresh/small · rectom-lite · fake"]["calls"] == 0
    assert sweep(file, "--only", "· rectom ·").status == 0
    rest = plan(file)
    assert rest["fresh/small · rectom · fake"]["state"] == "finished"
    assert rest["all"]["calls"] == planned["all"]["calls"] - planned["fresh/small · rectom · fake"]["calls"]
    assert sweep(file).status == 0
    assert server.asked.total() == planned["all"]["calls"]
    assert plan(file)["all"]["calls"] == 0


def test_a_part_that_is_there_is_not_planned_again(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["rectom", "cot"])
    whole = plan(file)["all"]["calls"]
    assert sweep(file, "--limit", 15).status == 0
    sent = server.asked.total()
    assert plan(file)["all"]["calls"] == whole - sent


def test_planning_changes_nothing(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["rectom"])
    assert sweep(file, "--limit", 5).status == 0
    before, sent = bytes_of(tmp_path / "runs"), server.asked.total()
    plan(file)
    assert bytes_of(tmp_path / "runs") == before
    assert server.asked.total() == sent


def test_money_is_told_where_prices_are(tmp_path: Path, server: FakeOpenAI) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[prices."fake"]\ninput = 1\noutput = 10\ndate = 2026-05-21\n')
    file = write(tmp_path, server, methods=["cot"], defaults={"prices": str(prices)})
    cell = plan(file)["fresh/small · cot · fake"]
    assert float(cell["money"]) == pytest.approx((cell["prompt"] + 10 * cell["completion"]) / 1e6)
    assert plan(write(tmp_path, server, methods=["cot"]))["all"]["money"] is None


def test_a_cell_whose_data_are_missing_is_named(tmp_path: Path, server: FakeOpenAI) -> None:
    missing = {"benchmark": "tomi", "data": str(tmp_path / "nothing")}
    file = write(tmp_path, server, methods=["cot"], benchmarks=[missing, "fresh/small"])
    told = call("sweep", file, "--plan", *options(tmp_path), COLUMNS="120")
    assert told.status == 0
    assert "cannot begin: tomi · cot · fake: no tomi data" in told.out
    assert "fresh/small · cot · fake" in told.out
