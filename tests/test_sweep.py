"""Sweeps over HTTP: cells side by side, killed, refused, out of budget, and two sweeps at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cache import CacheError, CacheFull, CacheReadOnly, Store
from flows import sweep as ours
from flows.evaluate import evaluate as evaluated
from flows.sweep import chosen
from rectom.errors import SettingsError
from rectom.results.comparison import Figures
from rectom.results.exported import Exported
from rectom.results.finished import Finished
from rectom.results.folder import hold
from rectom.results.listing import listed
from rectom.results.sweep import FAILED, FINISHED, RUNNING, STOPPED, WAITING, Sweep
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, call, change_prompt, finish, serving, spawn, undrawn, write_stories

#: The requests of `SMALL` and how many of them are different.
METHODS = ["cot", "rectom", "rectom-lite", {"label": "w/o-state", "method": "rectom", "state": "off"}]
DIFFERENT = 40 + 153 + 103


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI(any_model=True)) as serves:
        yield serves


def toml(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {toml(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def write(folder: Path, server: FakeOpenAI, name: str = "night", at_once: int = 4, **more: object) -> Path:
    """A sweep's file: `METHODS` by the fake model over eight generated stories, unless changed."""
    told: dict[str, object] = {
        "models": [{"model": "fake", "base-url": server.base_url, "attempts": 1}],
        "methods": METHODS,
        "benchmarks": ["fresh/small"],
        "at-once": at_once,
        **more,
    }
    file = folder / f"{name}.toml"
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in told.items()))
    return file


def options(folder: Path) -> list[object]:
    return ["--cache", folder / "store", "--runs", folder / "runs"]


def sweep(file: Path, *more: object, folder: Path | None = None) -> Ended:
    with undrawn():
        return call("sweep", file, "--plain", "--json", *options(folder or file.parent), *more)


def cells(ended: Ended) -> dict[str, dict[str, Any]]:
    """The cells of a sweep's line by their methods."""
    return {cell["method"]: cell for cell in ended.line["cells"]}


def results(folder: Path, cell: dict[str, Any]) -> list[dict[str, Any]]:
    lines = (folder / "runs" / cell["run"] / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_cell_is_the_run_that_its_command_is(tmp_path: Path, server: FakeOpenAI) -> None:
    ended = sweep(write(tmp_path, server))
    assert ended.status == 0, ended.err
    assert server.asked.total() == DIFFERENT
    done = cells(ended)
    assert {name: cell["state"] for name, cell in done.items()} == dict.fromkeys(done, FINISHED)
    assert {name: cell["summary"]["correct"] for name, cell in done.items()} == {
        "cot": 13,
        "rectom": 40,
        "rectom-lite": 40,
        "w/o-state": 40,
    }
    one = done["w/o-state"]
    alone = tmp_path / "alone"
    model = ("--model", "fake", "--base-url", server.base_url)
    again = call("run", "fresh/small", "--state", "off", *model, "--plain", "--json", *options(alone))
    assert again.line["run"] == one["run"]
    found, expected = results(tmp_path, one), results(alone, one)
    assert [line["predicted"] for line in found] == [line["predicted"] for line in expected]
    kept = Sweep.read(tmp_path / "runs" / "night")
    assert (kept.name, kept.state, len(kept.cells)) == ("night", "finished", 4)
    assert kept.started <= kept.ended


def test_every_place_tells_the_same_interval_where_questions_are_asked_several_times(
    tmp_path: Path, server: FakeOpenAI
) -> None:
    ended = sweep(write(tmp_path, server, methods=["cot"], defaults={"samples": 3, "limit": 10}))
    (done,) = cells(ended).values()
    folder = tmp_path / "runs" / done["run"]
    questions = Finished.read(folder).questions
    low, high = (f"{100 * end:.1f}" for end in Figures.of(questions).interval)
    assert (len(questions), done["summary"]["questions"], done["summary"]["different"]) == (10, 30, 10)
    told = f"{low} to {high}"
    assert told in ended.err
    assert told in (folder / "tables" / "accuracy.md").read_text().splitlines()[-1]
    assert told in (folder / "report.html").read_text()
    assert f"[{low}, {high}]" in call("report", "night", "--runs", tmp_path / "runs", "--latex").out.replace("$-$", "-")
    for interval in (Exported.read(folder).interval, next(listed(tmp_path / "runs")).interval):
        assert interval
        assert [f"{100 * end:.1f}" for end in interval] == [low, high]
    model = ("--method", "cot", "--model", "fake", "--base-url", server.base_url)
    again = call("run", "fresh/small", *model, "--samples", 3, "--limit", 10, "--plain", *options(tmp_path))
    assert told in again.out


def test_a_cell_that_fails_stops_no_other(tmp_path: Path, server: FakeOpenAI) -> None:
    nowhere = {"label": "gone", "model": "gone", "base-url": "http://127.0.0.1:9/v1", "attempts": 1}
    here = {"model": "fake", "base-url": server.base_url}
    missing = {"benchmark": "tomi", "data": str(tmp_path / "nothing")}
    file = write(tmp_path, server, models=[nowhere, here], methods=["cot"], benchmarks=[missing, "fresh/small"])
    ended = sweep(file)
    assert ended.status == 3
    states = {(cell["benchmark"], cell["model"]): cell["state"] for cell in ended.line["cells"]}
    assert states == {
        ("tomi", "gone"): FAILED,
        ("tomi", "fake"): FAILED,
        ("fresh/small", "gone"): FAILED,
        ("fresh/small", "fake"): FINISHED,
    }
    why = {cell["why"] for cell in ended.line["cells"] if cell["benchmark"] == "tomi"}
    assert all(str(tmp_path / "nothing") in words for words in why)
    assert "failed: tomi · cot · gone: no tomi data" in ended.err


@pytest.mark.parametrize("kind", [CacheFull, CacheReadOnly])
def test_a_store_that_takes_no_more_ends_the_sweep(
    tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, kind: type[CacheError]
) -> None:
    room, stored = 10, Store.put

    async def put(store: Store, what: str, *entry: Any) -> None:
        nonlocal room
        room -= what == "reply"
        if room < 0:
            raise kind(f"no room in {store.folder}")
        await stored(store, what, *entry)

    monkeypatch.setattr(Store, "put", put)
    file = write(tmp_path, server, at_once=2)
    ended = sweep(file)
    assert (ended.status, ended.errors[-1]) == (1, f"rectom: no room in {tmp_path / 'store'}")
    kept = Sweep.read(tmp_path / "runs" / "night")
    assert kept.state == "interrupted"
    assert kept.ended
    assert [cell.state for cell in kept.cells] == [WAITING] * 4
    monkeypatch.undo()
    assert sweep(file).status == 0


def test_a_sweep_that_is_killed_anywhere_loses_nothing_and_pays_once(tmp_path: Path, server: FakeOpenAI) -> None:
    server.latency_s = 0.02
    at_once = 8
    file = write(tmp_path, server, defaults={"concurrency": at_once})
    random, kills = Random(6), 0
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        before = server.asked.total()
        process = spawn("sweep", file, "--plain", "--json", *options(tmp_path))
        wanted = before + random.randrange(1, 90)
        while server.asked.total() < wanted and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        kills += 1
    ended = finish(process)
    assert kills >= 3
    assert ended.status == 0, ended.err
    assert DIFFERENT <= server.asked.total() <= DIFFERENT + kills * at_once
    whole = cells(ended)
    server.latency_s = 0
    undisturbed = cells(sweep(file, folder=tmp_path / "other"))
    for name, cell in whole.items():
        assert results(tmp_path, cell) == results(tmp_path / "other", undisturbed[name])
    assert cells(sweep(file)) == whole
    assert server.asked.total() <= 2 * DIFFERENT + kills * at_once


def test_two_sweeps_share_their_cells(tmp_path: Path, server: FakeOpenAI) -> None:
    server.latency_s = 0.02
    files = [write(tmp_path, server, name) for name in ("one", "two")]
    processes = [spawn("sweep", file, "--plain", "--json", *options(tmp_path)) for file in files]
    ended = [finish(process) for process in processes]
    assert [one.status for one in ended] == [0, 0], [one.err for one in ended]
    assert server.asked.total() == DIFFERENT
    runs = [{cell["run"] for cell in one.line["cells"]} for one in ended]
    assert runs[0] == runs[1]


def test_a_cell_that_waits_is_told_of_and_written_once(
    tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, server, methods=["cot"])
    run = tmp_path / "runs" / cells(sweep(file))["cot"]["run"]
    (run / "manifest.json").unlink()
    lock, looks, states = hold(run), 0, []

    async def evaluate(*arguments: Any) -> object:
        nonlocal looks
        looks += 1
        if looks == 5:
            lock.close()
        return await evaluated(*arguments)

    def written(told: Sweep, folder: Path) -> None:
        states.append(told.cells[0].state)
        write_whole(told, folder)

    write_whole = Sweep.write
    monkeypatch.setattr(ours, "evaluate", evaluate)
    monkeypatch.setattr(Sweep, "write", written)
    monkeypatch.setattr(ours, "_LOOK_S", 0.0)
    ended = sweep(file)
    assert (ended.status, looks) == (0, 5)
    assert [line.split()[0] for line in ended.errors if line.endswith(("· fake", "works on it"))] == [WAITING, FINISHED]
    assert states == [WAITING, WAITING, RUNNING, FINISHED, FINISHED]


def test_the_same_sweep_is_not_run_twice_at_once(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server)
    lock = hold(tmp_path / "runs" / "night")
    ended = sweep(file)
    assert ended.status == 1
    assert ended.errors[-1].startswith(f"rectom: another process works on {tmp_path / 'runs' / 'night'}: wait for it")
    assert ended.errors[-1].endswith(f", or choose another name in {file}")
    lock.close()
    assert sweep(file, "--only", "cot").status == 0


def test_cells_at_one_address_share_one_limit(tmp_path: Path, server: FakeOpenAI) -> None:
    server.latency_s = 0.005
    models = [
        {"model": f"fake-{number}", "base-url": server.base_url, "concurrency": most}
        for number, most in enumerate((64, 3))
    ]
    assert sweep(write(tmp_path, server, models=models, methods=["cot"])).status == 0
    assert server.asked.total() == 80
    assert server.most_in_flight == 3


def test_a_budget_is_of_all_cells_together(tmp_path: Path, server: FakeOpenAI) -> None:
    file = write(tmp_path, server, budget={"max-calls": 100})
    ended = sweep(file)
    assert ended.status == 3
    assert server.asked.total() == 100
    stopped = [cell for cell in ended.line["cells"] if cell["state"] == STOPPED]
    assert stopped
    assert all("the sweep's budget is spent (100 calls)" in cell["why"] for cell in stopped)
    assert sweep(file, "--max-calls", 1000).status == 0
    assert server.asked.total() == DIFFERENT


def test_a_budget_of_each_cell_stops_that_cell(tmp_path: Path, server: FakeOpenAI) -> None:
    ended = sweep(write(tmp_path, server, methods=["cot", "rectom"], defaults={"max-calls": 45}))
    found = cells(ended)
    assert (found["cot"]["state"], found["rectom"]["state"]) == (FINISHED, STOPPED)
    assert "--max-calls" in found["rectom"]["why"]


def test_what_is_finished_is_not_done_again(
    tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, server)
    first = cells(sweep(file))
    pages = {name: tmp_path / "runs" / cell["run"] / "results.jsonl" for name, cell in first.items()}
    written = {name: page.stat().st_mtime_ns for name, page in pages.items()}
    assert sweep(file).status == 0
    assert {name: page.stat().st_mtime_ns for name, page in pages.items()} == written
    change_prompt(monkeypatch, "revise")
    assert sweep(file).status == 0
    changed = {name for name, page in pages.items() if page.stat().st_mtime_ns != written[name]}
    assert changed == {"rectom", "rectom-lite"}


def test_what_failed_is_asked_again_only_if_that_is_wanted(tmp_path: Path, server: FakeOpenAI) -> None:
    server.broken = "answer"
    file = write(tmp_path, server, methods=["rectom"], defaults={"repairs": 0})
    ended = sweep(file)
    assert ended.status == 3
    assert cells(ended)["rectom"]["summary"]["failed"] == 40
    server.broken, before = "", server.asked.total()
    assert sweep(file).status == 3
    assert server.asked.total() == before
    mended = sweep(file, "--retry-failed")
    assert mended.status == 0
    assert cells(mended)["rectom"]["summary"]["failed"] == 0
    assert not [kept for kept in tmp_path.rglob("command.json") if "--retry-failed" in kept.read_text()]


def test_cells_of_higher_priority_are_begun_first(tmp_path: Path, server: FakeOpenAI) -> None:
    methods = ["direct", {"method": "cot", "priority": 2}, {"method": "simtom", "priority": 1}]
    ended = sweep(write(tmp_path, server, methods=methods, at_once=1))
    assert ended.status == 0
    told = [line.split(" · ")[1] for line in ended.errors if line.lstrip().startswith("finished")]
    assert told == ["cot", "simtom", "direct"]


def test_only_some_cells_are_run(tmp_path: Path, server: FakeOpenAI) -> None:
    ended = sweep(write(tmp_path, server), "--only", "rectom-l*", "--only", "cot")
    assert {cell["method"] for cell in ended.line["cells"]} == {"cot", "rectom-lite"}
    refused = sweep(write(tmp_path, server), "--only", "tomato")
    assert refused.status == 1
    assert "no cell is called tomato; there are fresh/small · cot · fake; " in refused.errors[-1]


def test_the_folder_tells_of_all_cells_also_where_only_some_are_run(tmp_path: Path, server: FakeOpenAI) -> None:
    missing = {"benchmark": "tomi", "data": str(tmp_path / "nothing")}
    file = write(tmp_path, server, methods=["direct", "cot"], benchmarks=["fresh/small", missing])
    folder = tmp_path / "runs" / "night"
    for only, finished in (
        ("fresh*cot", {"cot"}),
        ("fresh*direct", {"direct", "cot"}),
        ("fresh*cot", {"direct", "cot"}),
    ):
        ended = sweep(file, "--only", only)
        assert (ended.status, ended.line["state"], len(ended.line["cells"])) == (0, "finished", 1)
        kept = Sweep.read(folder)
        assert [(cell.benchmark, cell.method) for cell in kept.cells] == [
            ("fresh/small", "direct"),
            ("fresh/small", "cot"),
            ("tomi", "direct"),
            ("tomi", "cot"),
        ]
        assert {cell.method for cell in kept.cells if cell.state == FINISHED} == finished
        assert {cell.state for cell in kept.cells if cell.benchmark == "tomi"} == {WAITING}
        assert kept.state == "partial"


def test_cells_that_are_left_alone_keep_what_is_recorded_where_they_cannot_be_looked_at(
    tmp_path: Path, server: FakeOpenAI
) -> None:
    from_file = {"benchmark": "hitom/cotp", "data": str(write_stories(tmp_path))}
    file = write(tmp_path, server, methods=["direct", "cot"], benchmarks=["fresh/small", from_file])
    assert sweep(file, "--limit", 2).status == 0
    folder = tmp_path / "runs" / "night"
    before = Sweep.read(folder)
    Path(from_file["data"]).unlink()
    (damaged,) = (cell for cell in before.cells if cell.name.startswith("fresh/small · direct"))
    (tmp_path / "runs" / damaged.run / "manifest.json").write_text('{"summary": []}')
    ended = sweep(file, "--limit", 2, "--only", "fresh*cot")
    assert (ended.status, ended.line["state"]) == (0, "finished")
    assert Sweep.read(folder).cells == before.cells
    (folder / "sweep.json").write_text("damaged")
    assert sweep(file, "--limit", 2, "--only", "fresh*cot").status == 0
    assert [cell.state for cell in Sweep.read(folder).cells] == [WAITING, FINISHED, WAITING, WAITING]


def test_what_was_under_way_when_a_sweep_was_killed_waits(tmp_path: Path, server: FakeOpenAI) -> None:
    missing = {"benchmark": "tomi", "data": str(tmp_path / "nothing")}
    file = write(tmp_path, server, methods=["cot"], benchmarks=["fresh/small", missing])
    folder = tmp_path / "runs" / "night"
    assert sweep(file, "--only", "fresh").status == 0
    record = folder / "sweep.json"
    record.write_text(record.read_text().replace('"waiting"', '"running"'))
    assert sweep(file, "--only", "fresh").status == 0
    assert [cell.state for cell in Sweep.read(folder).cells] == [FINISHED, WAITING]


@pytest.mark.parametrize("plan", [(), ("--plan",)])
def test_names_that_look_like_markup_or_would_steer_the_terminal_do_neither(
    tmp_path: Path, server: FakeOpenAI, plan: tuple[str, ...]
) -> None:
    model = {"model": "fake", "base-url": server.base_url, "label": "[/INST]\x1b[2J"}
    missing = {"benchmark": "tomi", "data": str(tmp_path / "\x1b[3J")}
    file = write(tmp_path, server, "[red]", models=[model], methods=["cot"], benchmarks=["fresh/small", missing])
    ended = call("sweep", file, "--plain", *options(tmp_path / "[" / "red]"), "--limit", 1, *plan, COLUMNS="140")
    assert ended.status in {0, 3}, ended.err
    assert "fresh/small · cot · [/INST] [2J" in ended.out
    assert "tomi · cot · [/INST] [2J: no tomi data" in ended.out
    assert {sign for sign in ended.out + ended.err if not sign.isprintable()} == {"\n"}
    assert ended.out.startswith("sweep [red]: ")
    assert plan or f"report: {tmp_path}/[/red]/runs/[red]/" in ended.out


def test_nothing_is_chosen_of_nothing() -> None:
    assert chosen([], []) == ()
    with pytest.raises(SettingsError, match="no cell is called x"):
        chosen([], ["x"])


def test_what_is_hardly_meant_is_noted_once(tmp_path: Path, server: FakeOpenAI) -> None:
    ended = sweep(write(tmp_path, server, methods=["sc:n=2"], seeds=[0, 1]), "--limit", "1")
    assert ended.status == 0, ended.err
    assert ended.err.count("note: --method sc:n=2 at temperature 0 asks for one chain of thought 2 times") == 1
