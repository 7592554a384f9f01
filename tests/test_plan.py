"""What a plan says is what is sent then, cell by cell."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flows.commands import sweep as command
from flows.commands.sweep_plan import _print
from flows.plan import Estimate, total
from rectom.results.sweep import FAILED, FINISHED, WAITING, Cell
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, call, contents, serving, spawn
from tests.test_sweep import options, sweep, write

METHODS: list[Any] = [
    *("direct", "cot", "sc:n=3", "simtom", "timetom", "perceptom", "rectom", "rectom-lite"),
    {"label": "w/o-det", "method": "rectom", "update": "model"},
    {"label": "w/o-state", "method": "rectom", "state": "off"},
    {"label": "verify", "method": "rectom", "verify": True},
]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI(any_model=True)) as serves:
        yield serves


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn at the end of a sweep takes longer than all the rest."""
    monkeypatch.setattr(command, "_report", lambda *_: None)


def plan(file: Path, *more: object) -> dict[str, Any]:
    """What a plan says: the cells by their names, and `all`."""
    ended = call("sweep", file, "--plan", "--json", *options(file.parent), *more)
    assert (ended.status, ended.err) == (0, "")
    line = json.loads(ended.out)
    return {**{cell["cell"]: cell for cell in line["cells"]}, "all": line["all"]}


def calls(planned: dict[str, Any]) -> list[int]:
    """The calls that are planned, a cell at a time."""
    return [cell["calls"] for name, cell in planned.items() if name != "all"]


def sent(ended: Ended) -> list[int]:
    """The calls that a sweep sent, a cell at a time."""
    return [cell["summary"]["calls"]["sent"] for cell in ended.line["cells"]]


def model(server: FakeOpenAI, name: str, **more: object) -> dict[str, object]:
    return {"model": name, "base-url": server.base_url, "attempts": 1, **more}


def bytes_of(folder: Path) -> dict[str, str]:
    """Everything that a folder holds, as digests."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("methods", [METHODS, ["sc:n=3", "rectom-lite", METHODS[-1]]], ids=["all", "without-the-usual"])
def test_every_cell_sends_what_was_planned(methods: list[Any], tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=methods, at_once=1)
    planned = plan(file)
    assert server.asked.total() == 0
    ended = sweep(file)
    assert calls(planned) == sent(ended)
    assert planned["all"]["calls"] == server.asked.total() == sum(calls(planned))
    after = plan(file)
    assert calls(after) == [0] * len(methods)
    assert {cell["state"] for name, cell in after.items() if name != "all"} == {FINISHED}
    assert (after["all"]["calls"], after["all"]["prompt"], after["all"]["money"]) == (0, 0, "0.000000")


def test_what_cells_share_is_planned_with_the_first_of_them(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["cot", "sc:n=3", "rectom", "rectom-lite"])
    planned = plan(file)
    assert calls(planned) == [40, 80, 153, 0]
    assert calls(plan(file, "--only", "rectom-lite")) == [8]
    assert sweep(file, "--only", "· rectom ·").status == 0
    rest = plan(file)
    assert rest["fresh/small · rectom · fake"]["state"] == FINISHED
    assert calls(rest) == [40, 80, 0, 0]
    lite = rest["fresh/small · rectom-lite · fake"]
    assert (lite["state"], lite["held"], lite["questions"]) == (WAITING, 8, 40)


def test_what_models_sampling_and_seeds_set_apart_is_planned_for_each(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(
        tmp_path,
        server,
        at_once=1,
        models=[model(server, "a"), model(server, "b"), model(server, "c", **{"model-identity": "b"})],
        methods=["direct", "cot"],
        settings=[
            {"temperature": 0.0},
            {"temperature": 1.0},
            {"temperature": 1.0, "max-tokens": 900},
            {"temperature": 1.0, "top-k": 5},
        ],
        seeds=[0, 1],
        defaults={"samples": 2, "limit": 2},
        skip=[{"model": "a", "method": "direct"}, {"method": "direct", "seed": 1}],
    )
    planned = plan(file)
    # Two questions, two answers to each. A larger limit on the reply's length asks nothing anew.
    once = [4, 4, 0, 4]
    seeds = [calls for calls in once for _ in range(2)]
    assert calls(planned) == [*seeds, *once, *seeds, *[0] * 4, *[0] * 8]
    assert calls(planned) == sent(sweep(file))


def test_a_part_that_is_there_is_not_planned_again(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["rectom", "simtom"], at_once=1)
    whole = plan(file)["all"]["calls"]
    assert sweep(file, "--limit", 15).status == 0
    had = server.asked.total()
    rest = plan(file)
    assert rest["all"]["calls"] == whole - had
    assert sent(sweep(file)) == calls(rest)


def test_after_a_run_was_killed_the_rest_is_planned(tmp_path: Path, server: FakeOpenAI) -> None:
    server.latency_s = 0.01
    methods = ["timetom", "rectom", {"label": "w/o-state", "method": "rectom", "state": "off"}]
    file = write(tmp_path, server, methods=methods, at_once=1, defaults={"concurrency": 8})
    whole = plan(file)["all"]["calls"]
    process = spawn("sweep", file, "--plain", *options(tmp_path))
    while server.asked.total() < whole // 2 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    server.latency_s = 0.0
    rest = plan(file)
    assert whole - server.asked.total() <= rest["all"]["calls"] <= whole - server.asked.total() + 8
    before, found = server.asked.total(), sent(sweep(file))
    unfinished = {name: cell["calls"] for name, cell in rest.items() if cell["state"] == WAITING and name != "all"}
    assert unfinished
    assert found[-len(unfinished) :] == [*unfinished.values()]
    assert server.asked.total() - before == rest["all"]["calls"]
    assert calls(plan(file)) == [0, 0, 0]


def test_what_failed_is_asked_again_as_planned(tmp_path: Path, server: FakeOpenAI) -> None:
    server.broken = "answer"
    file = write(tmp_path, server, methods=["rectom"], defaults={"repairs": 0})
    assert sweep(file).status == 3
    server.broken = ""
    assert calls(plan(file)) == [0]
    again = plan(file, "--retry-failed")
    assert again["all"]["calls"] > 0
    assert sent(sweep(file, "--retry-failed")) == calls(again)
    assert calls(plan(file, "--retry-failed")) == [0]


def test_a_reply_that_is_there_but_of_no_use_is_complained_of_as_planned(tmp_path: Path, server: FakeOpenAI) -> None:
    server.broken = "answer"
    assert sweep(write(tmp_path, server, "first", methods=["rectom"], defaults={"repairs": 0})).status == 3
    server.broken = ""
    file = write(tmp_path, server, "second", methods=["rectom"], defaults={"repairs": 1})
    planned = plan(file)
    assert planned["all"]["calls"] == server.asked["answer"]
    assert sent(sweep(file)) == calls(planned)


def test_a_stage_that_is_forced_is_no_finished_cell(tmp_path: Path, server: FakeOpenAI) -> None:
    assert sweep(write(tmp_path, server, methods=["cot"])).status == 0
    again = plan(write(tmp_path, server, methods=["cot"], defaults={"force": "answering"}))
    assert [again["fresh/small · cot · fake"][name] for name in ("state", "calls")] == [WAITING, 0]


def test_planning_sends_nothing_and_changes_nothing(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["rectom", "cot"])
    plan(file)
    assert not (tmp_path / "runs").exists()
    assert sweep(file, "--limit", 5).status == 0
    runs, kept, had = bytes_of(tmp_path / "runs"), contents(tmp_path / "store"), server.asked.total()
    for more in ([], ["--retry-failed"], ["--only", "cot"], ["--limit", 5]):
        plan(file, *more)
    assert bytes_of(tmp_path / "runs") == runs
    assert contents(tmp_path / "store") == kept
    assert server.asked.total() == had


def test_no_server_is_needed(tmp_path: Path, server: FakeOpenAI) -> None:
    nowhere = [{"model": "fake"}, {"model": "gone", "base-url": "http://127.0.0.1:9/v1"}]
    assert calls(plan(write(tmp_path, server, models=nowhere, methods=["cot"]))) == [40, 40]


def test_a_finished_cell_of_the_batch_api_needs_no_address(tmp_path: Path, server: FakeOpenAI) -> None:
    assert sweep(write(tmp_path, server, methods=["cot"])).status == 0
    batch = write(tmp_path, server, methods=["cot"], models=[{"model": "fake", "transport": "batch"}])
    assert plan(batch)["fresh/small · cot · fake"]["state"] == FINISHED


def test_cells_by_rule_cost_nothing(tmp_path: Path, server: FakeOpenAI) -> None:
    cell = plan(write(tmp_path, server, models=["rules"], methods=["rectom"]))["all"]
    assert (cell["calls"], cell["questions"], cell["money"], cell["currency"]) == (0, 40, "0.000000", "")


PRICES = """
[prices."fake"]
input = 1
output = 10
date = 2026-05-21
[prices."euros"]
input = 2
output = 4
currency = "EUR"
date = 2026-05-21
"""


def test_money_is_told_where_prices_are(tmp_path: Path, server: FakeOpenAI) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    several = [model(server, name, prices=str(prices)) for name in ("fake", "euros", "unpriced")]
    file = write(tmp_path, server, methods=["cot"], models=several)
    found = plan(file)
    dollars, euros, unknown = (found[f"fresh/small · cot · {name}"] for name in ("fake", "euros", "unpriced"))
    assert (dollars["currency"], euros["currency"]) == ("USD", "EUR")
    assert Decimal(dollars["money"]) == Decimal(dollars["prompt"] + 10 * dollars["completion"]) / 1_000_000
    assert Decimal(euros["money"]) == Decimal(2 * euros["prompt"] + 4 * euros["completion"]) / 1_000_000
    assert unknown["money"] is found["all"]["money"] is None
    one = plan(file, "--only", "fake")
    assert (one["all"]["money"], one["all"]["currency"]) == (dollars["money"], "USD")
    assert plan(file, "--only", "fake", "--only", "euros")["all"]["money"] is None
    told = call("sweep", file, "--plan", *options(tmp_path), COLUMNS="140").out
    rows = [line.split() for line in told.splitlines() if line.startswith((" fresh", " all"))]
    cents = [f"{Decimal(one['money']):.2f}" for one in (dollars, euros)]
    assert [row[-2:] for row in rows[:2]] == [[cents[0], "USD"], [cents[1], "EUR"]]
    assert [row[-1] for row in rows[2:]] == ["unknown", "unknown"]


def test_the_prices_of_declared_models_are_taken(
    tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prices = "input = 1, output = 10, batch_input = 0.5, batch_output = 5, date = 2026-05-21"
    Path("models.toml").write_text(f'[models.mine]\nname = "m"\nprices = {{ {prices} }}\n')
    modes = [{"label": "live"}, {"label": "batch", "transport": "batch", "base-url": server.base_url}]
    found = plan(write(tmp_path, server, models=["mine"], methods=["cot"], settings=modes))
    live, batch = (found[f"fresh/small · cot · mine · {label}"] for label in ("live", "batch"))
    assert Decimal(live["money"]) == Decimal(live["prompt"] + 10 * live["completion"]) / 1_000_000
    # Whichever comes first pays: the replies are the same.
    assert (batch["calls"], batch["money"]) == (0, "0.000000")
    alone = plan(tmp_path / "night.toml", "--only", "batch")["all"]
    assert float(alone["money"]) == pytest.approx(float(live["money"]) / 2, abs=1e-6)


def test_replies_are_expected_to_be_as_long_as_those_that_are_there(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, methods=["cot"])
    assert plan(file)["all"]["completion"] == 40 * 250
    assert sweep(file, "--limit", 10).status == 0
    # `I see. Answer: A` has four tokens as the server counts them.
    assert plan(file)["all"]["completion"] == 30 * 4
    # A method that answers in words of another kind, and one whose step of that name answers in JSON.
    others = plan(write(tmp_path, server, "others", methods=["direct", "rectom"]))
    assert others["fresh/small · direct · fake"]["completion"] == 40 * 250
    assert others["fresh/small · rectom · fake"]["completion"] == 153 * 100
    short = write(tmp_path, server, "short", methods=["direct"], defaults={"max-tokens": 3})
    assert plan(short)["all"]["completion"] == 40 * 3


def test_a_cell_that_cannot_be_begun_is_named_and_stops_no_other(tmp_path: Path, server: FakeOpenAI) -> None:
    missing = {"benchmark": "tomi", "data": str(tmp_path / "nothing")}
    file = write(tmp_path, server, methods=["cot", "tomato"], benchmarks=[missing, "fresh/small"])
    told = call("sweep", file, "--plan", *options(tmp_path), COLUMNS="120")
    assert told.status == 0
    lines = [line for line in told.out.splitlines() if line.startswith("cannot begin: ")]
    assert lines[0].startswith("cannot begin: tomi · cot · fake: no tomi data")
    assert lines[2].startswith("cannot begin: fresh/small · tomato · fake: there is no method 'tomato'")
    assert len(lines) == 3
    found = plan(file)
    assert [cell["state"] for name, cell in found.items() if name != "all"] == [FAILED, FAILED, WAITING, FAILED]
    assert calls(found) == [0, 0, 40, 0]
    assert "no tomi data" in found["tomi · cot · fake"]["why"]
    none = call("sweep", file, "--plan", *options(tmp_path), "--only", "tomi")
    assert (none.status, none.out.count("cannot begin: ")) == (3, 2)


ESTIMATES = [Estimate(Cell("a-model-with-a-name", method, "hitom/400"), calls=70_000) for method in ("cot", "rectom")]


def test_a_cell_has_a_line_where_nobody_looks_on(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, models=[model(server, "a-model-with-a-name-that-is-long", label="")])
    told = call("sweep", file, "--plan", *options(tmp_path), COLUMNS="80").out.splitlines()
    assert [line for line in told if line.startswith(" fresh/small · rectom · a-model-with-a-name-that-is-long  ")]


def test_in_a_narrow_terminal_what_cells_share_is_said_once() -> None:
    console = Console(force_terminal=True, color_system=None, width=80)
    with console.capture() as caught:
        _print("night", ESTIMATES, console)
    lines = caught.get().splitlines()
    assert lines[0].rstrip() == "sweep night: what would be sent · hitom/400 · a-model-with-a-name"
    assert [line.split()[0] for line in lines[3:5]] == ["cot", "rectom"]


def test_cells_are_added_up() -> None:
    cell = Cell("m", "cot", "b")
    one = Estimate(cell, WAITING, 4, 1, 3, 30, 20, Decimal("0.5"), "USD")
    done = Estimate(cell, FINISHED, 4, money=Decimal())
    found = total([one, done, one])
    assert (found.questions, found.held, found.calls, found.prompt, found.completion) == (12, 2, 6, 60, 40)
    assert (found.money, found.currency) == (Decimal(1), "USD")
    assert total([one, Estimate(cell, WAITING, 4, 1, 3)]).money is None
    assert total([one, Estimate(cell, WAITING, 4, 1, 3, money=Decimal(1), currency="EUR")]).money is None
    assert total([one, Estimate(cell, WAITING, 4, 4, 0, money=Decimal())]).currency == "USD"
    assert total([]) == Estimate(Cell("", "", "all cells"), money=Decimal())
