from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flows import model
from flows.commandline import FILE
from rectom.llm.batch_file import BatchFileTransport
from rectom.results.folder import RunFolder, hold
from tests.fake_openai import FakeOpenAI
from tests.laboratory import (
    SMALL_QUESTIONS,
    Ended,
    Lab,
    call,
    finish,
    run_options,
    serving,
    spawn,
    undrawn,
    write_stories,
)
from tests.test_cli import CONCURRENCY, distinct, until

#: The name of the runs here, which `run_options` would not give.
NAME = "night"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stories(tmp_path_factory.mktemp("data"))


@pytest.fixture
def lab(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with serving(FakeOpenAI(keep_bodies=True)) as server:
        yield Lab(tmp_path, data, server)


def begun(lab: Lab, **changes: object) -> list[object]:
    return ["run", *run_options(lab, **{"name": NAME, **changes}), "--plain"]


def resume(lab: Lab, *options: object, **ours: str) -> Ended:
    return call("resume", NAME, "--runs", lab.runs, *options, **ours)


def kill(lab: Lab, *words: object, after: int, **ours: str) -> None:
    """Begin a command, and kill it when so many requests came."""
    lab.server.latency_s = 0.05
    process = spawn(*words, "--concurrency", CONCURRENCY, **ours)
    until(lambda: len(lab.server.bodies) >= after, process)
    process.kill()
    assert finish(process).status == -signal.SIGKILL
    lab.server.latency_s = 0


def manifest(lab: Lab, name: str = NAME) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lab.runs / name / "manifest.json").read_bytes())
    return found


def refused(ended: Ended) -> str:
    assert (ended.status, ended.out) == (1, "")
    assert "Traceback" not in ended.err
    return ended.errors[-1]


@pytest.mark.parametrize("after", [1, 8, 40])
def test_a_killed_run_goes_on_and_sends_what_is_missing_alone(lab: Lab, after: int) -> None:
    kill(lab, *begun(lab), after=after)
    assert "killed" in call("runs", "--runs", lab.runs).out
    done = resume(lab)
    assert done.status == 0, done.err
    assert manifest(lab)["summary"]["correct"] == SMALL_QUESTIONS
    assert manifest(lab)["summary"]["calls"]["cached"] >= after - CONCURRENCY
    assert len(lab.server.bodies) <= distinct(lab) + CONCURRENCY
    assert [path.name for path in lab.runs.iterdir()] == [NAME]


def test_from_another_shell_it_has_the_server_and_the_store_that_it_had(lab: Lab, tmp_path: Path) -> None:
    ours = {"OPENAI_BASE_URL": lab.server.base_url, "RECTOM_CACHE": str(lab.store)}
    kill(lab, *begun(lab, base_url=None, cache=None), after=30, **ours)
    other = str(tmp_path / "other")
    done = resume(lab, RECTOM_CACHE=other)
    assert done.status == 0, done.err
    assert done.errors[0].startswith(
        f"OPENAI_BASE_URL={lab.server.base_url} RECTOM_CACHE={lab.store} rectom run hitom/cotp "
    )
    assert not (tmp_path / "other").exists()
    assert len(lab.server.bodies) <= distinct(lab) + CONCURRENCY


def test_an_address_that_is_set_now_stands_as_the_key_does(lab: Lab) -> None:
    then = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-planted-0123"}
    assert "cannot reach http://127.0.0.1:9/v1" in refused(call(*begun(lab, base_url=None), **then))
    done = resume(lab, OPENAI_BASE_URL=lab.server.base_url, OPENAI_API_KEY="sk-planted-4567")
    assert done.status == 0, done.err
    assert json.loads((lab.runs / NAME / FILE).read_bytes())["environment"] == {"OPENAI_BASE_URL": lab.server.base_url}
    assert not [file for file in lab.folder.rglob("*") if file.is_file() and b"sk-planted" in file.read_bytes()]
    assert "sk-planted" not in str(list(RunFolder(lab.runs / NAME).calls()))


def test_places_that_were_told_from_a_folder_are_found_from_any_other(
    lab: Lab, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stories.json").write_bytes(data.read_bytes())
    monkeypatch.chdir(tmp_path)
    kill(lab, *begun(lab, data="stories.json", runs="runs", cache=None), after=30)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(lab).status == 0
    assert (tmp_path / ".rectom" / "cache").is_dir()
    assert not list((tmp_path / "elsewhere").iterdir())
    assert Path.cwd() == tmp_path / "elsewhere"
    assert len(lab.server.bodies) <= distinct(lab) + CONCURRENCY


def test_a_run_without_a_name_of_its_own_stays_in_its_folder(lab: Lab, data: Path) -> None:
    options = ["--update", "model", "--permute", "names", "--plain"]  # whose names have = and + in them
    assert call("run", *run_options(lab, max_calls=10), *options).status == 3
    (folder,) = lab.runs.iterdir()
    assert {"=", "+"} < set(folder.name)
    assert call("resume", folder.name, "--runs", lab.runs, "--max-calls", "1000").status == 0
    assert (list(lab.runs.iterdir()), manifest(lab, folder.name)["state"]) == ([folder], "finished")
    moved = folder.rename(lab.runs / "moved")
    assert call("resume", moved, "--concurrency", "2").status == 0
    assert list(lab.runs.iterdir()) == [moved]


def test_a_finished_run_says_so_and_sends_nothing(lab: Lab) -> None:
    assert call(*begun(lab)).status == 0
    sent = len(lab.server.bodies)
    done = resume(lab)
    assert (done.status, done.out, done.err) == (0, "night is finished\n", "")
    assert len(lab.server.bodies) == sent
    assert resume(lab, "--concurrency", "2").status == 0
    assert len(lab.server.bodies) == sent


def test_what_failed_is_asked_again_on_request(lab: Lab) -> None:
    lab.server.broken = "revise"
    assert call(*begun(lab, repairs=0)).status == 3
    failed = manifest(lab)["summary"]["failed"]
    assert failed
    lab.server.broken = ""
    told = resume(lab)
    assert told.status == 3
    assert told.out == f"night is finished, but {failed} of its questions failed: --retry-failed asks them again\n"
    assert set(lab.asked_by(lambda: resume(lab, "--retry-failed"))) == {"revise", "answer"}
    assert "--retry-failed" not in (lab.runs / NAME / FILE).read_text()
    assert [session.get("asked_again") for session in manifest(lab)["sessions"]] == [None, failed]
    assert manifest(lab)["summary"]["correct"] == SMALL_QUESTIONS


def test_a_living_run_is_left_alone(lab: Lab) -> None:
    lab.server.latency_s = 0.1
    process = spawn(*begun(lab), "--concurrency", CONCURRENCY)
    until(lambda: len(lab.server.bodies) >= 16, process)
    listed = call("runs", "--runs", lab.runs, "--json").line
    assert (listed["state"], listed["questions"]) == ("running", SMALL_QUESTIONS)
    assert listed["answered"] < SMALL_QUESTIONS
    folder = lab.runs / NAME
    assert refused(resume(lab)) == f"rectom: another process works on {folder}: it needs no resuming"
    removed = call("rm", NAME, "--runs", lab.runs, "--yes")
    assert refused(removed) == f"rectom: a process works on {folder}: stop it first; nothing was removed"
    lab.server.latency_s = 0
    assert finish(process).status == 0
    assert manifest(lab)["summary"]["correct"] == SMALL_QUESTIONS
    assert len(lab.server.bodies) == distinct(lab)


def test_it_ends_with_a_line_of_json_if_that_is_asked_for(lab: Lab) -> None:
    assert call(*begun(lab, max_calls=10), "--json").status == 3
    done = resume(lab, "--max-calls", "1000", "--json")
    assert (done.status, done.line["correct"]) == (0, SMALL_QUESTIONS)
    kept = json.loads((lab.runs / NAME / FILE).read_bytes())["arguments"]
    assert "--json" not in kept
    assert "--plain" in kept
    assert kept[kept.index("--max-calls") + 1] == "1000"


def test_requests_in_files_stay_where_they_are(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "BatchFileTransport", partial(BatchFileTransport, quiet_s=0.05))
    monkeypatch.chdir(tmp_path)
    assert call(*begun(lab), "--transport", "batch-file", "box").status == 3
    (written,) = (tmp_path / "box").iterdir()
    before = written.read_bytes()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f"requests wait in {written}" in resume(lab).errors[-1]
    assert ([*written.parent.iterdir()], written.read_bytes()) == ([written], before)
    assert f"wait in {tmp_path / 'elsewhere' / 'new'}/" in resume(lab, "--transport", "batch-file", "new").errors[-1]
    assert resume(lab, "--transport", "live").status == 0
    assert manifest(lab)["summary"]["correct"] == SMALL_QUESTIONS


def test_a_run_is_found_by_its_folder_in_whatever_way_it_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    (lab.runs / NAME / "tables").mkdir()
    (lab.folder / "link").symlink_to(lab.runs / NAME)
    for place, named in ((lab.runs / NAME / "tables", ".."), (lab.runs / NAME, "."), (lab.folder, "link")):
        monkeypatch.chdir(place)
        done = call("resume", named, "--max-calls", "0")
        assert (done.status, done.errors[-1].startswith("rectom: the budget is spent")) == (3, True)
    assert call("resume", "link", "--max-calls", "1000").status == 0
    assert call("resume", "link").out == "night is finished\n"
    assert list(lab.runs.iterdir()) == [lab.runs / NAME]


def test_a_larger_budget_goes_on(lab: Lab) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    assert resume(lab, "--max-calls", "20").status == 3
    assert manifest(lab)["state"] == "stopped"
    assert resume(lab, "--max-calls", "1000").status == 0
    assert len(lab.server.bodies) == distinct(lab)


def test_what_would_change_the_results_is_refused_by_its_name(lab: Lab, tmp_path: Path) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    before = (lab.runs / NAME / FILE).read_bytes()
    sent = len(lab.server.bodies)
    for option, value in (("temperature", "0.5"), ("method", "cot"), ("limit", "3"), ("reader", "chain=rules")):
        said = refused(resume(lab, f"--{option}", value))
        assert "holds a run with other settings (" in said
        assert option in said
    (tmp_path / "elsewhere" / "other.json").write_bytes(lab.data.read_bytes() + b"\n")
    assert "other settings (data)" in refused(resume(lab, "--data", "other.json"))
    for wrong in (["hitom/400"], ["--dance"]):
        ended = resume(lab, *wrong)
        assert (ended.status, "Usage: rectom run" in ended.err) == (2, True)
    assert len(lab.server.bodies) == sent
    assert (lab.runs / NAME / FILE).read_bytes() == before


def test_a_run_whose_server_was_not_there_goes_on_when_it_is(lab: Lab) -> None:
    assert "is the server running?" in refused(call(*begun(lab, base_url="http://127.0.0.1:9/v1")))
    assert manifest(lab)["state"] == "failed"
    assert resume(lab, "--base-url", lab.server.base_url).status == 0


def test_a_run_that_never_began_may_begin_later(lab: Lab) -> None:
    assert "set OPENAI_BASE_URL" in refused(call(*begun(lab, base_url=None)))
    assert "unbegun" in call("runs", "--runs", lab.runs).out
    assert resume(lab, OPENAI_BASE_URL=lab.server.base_url).status == 0
    assert "finished" in call("runs", "--runs", lab.runs).out


def test_what_cannot_be_taken_up_is_said_with_the_reason(lab: Lab, tmp_path: Path) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    folder = lab.runs / NAME
    with closing(hold(folder)):
        assert refused(resume(lab)) == f"rectom: another process works on {folder}: it needs no resuming"
    for name in ("nosuch", "..", ".", "../runs", ""):
        said = refused(call("resume", name, "--runs", lab.runs))
        assert f"there is no run {name} in".replace("  ", " ") in said
    said = refused(call("resume", "--max-calls", "9", NAME, "--runs", lab.runs))
    assert "there is no run --max-calls in" in said
    assert "; give the name first, then options;" in said
    (tmp_path / "mine").mkdir()
    assert "there is no run" in refused(call("resume", tmp_path / "mine", "--runs", lab.runs))
    kept = json.loads((folder / FILE).read_bytes())
    (folder / FILE).write_text(json.dumps({**kept, "folder": str(tmp_path / "gone")}))
    assert f"{tmp_path / 'gone'} is gone" in refused(resume(lab, "--trust"))
    (folder / FILE).write_text("{")
    assert "cannot be read (it is damaged)" in refused(resume(lab))
    (folder / FILE).unlink()
    assert "does not hold its command: run it again as it was begun" in refused(resume(lab))


def test_a_killed_sweep_goes_on_and_so_does_a_cell_of_it(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(lab.data, "stories.json")
    (tmp_path / "night.toml").write_text(
        'models = ["fake"]\nmethods = ["rectom", "cot"]\n'
        'benchmarks = [{ benchmark = "hitom/cotp", data = "stories.json" }]\n'
        f'[defaults]\nbase-url = "{lab.server.base_url}"\nattempts = 1\nconcurrency = {CONCURRENCY}\n'
    )
    lab.server.latency_s = 0.05
    process = spawn("sweep", tmp_path / "night.toml", "--plain", "--cache", lab.store, "--runs", lab.runs)
    until(lambda: len(lab.server.bodies) >= 30, process)
    process.kill()
    finish(process)
    lab.server.latency_s = 0
    monkeypatch.chdir(tmp_path)
    cell = next(path.name for path in lab.runs.iterdir() if ".rectom." in path.name)
    done = call("resume", cell, "--runs", lab.runs, "--plain")
    assert done.status == 0, done.err
    assert manifest(lab, cell)["summary"]["correct"] == SMALL_QUESTIONS
    with undrawn():
        done = resume(lab, "--at-once", "1")
    assert (done.status, "rectom sweep" in done.err) == (0, True)
    sweep = json.loads((lab.runs / NAME / "sweep.json").read_bytes())
    assert [one["state"] for one in sweep["cells"]] == ["finished", "finished"]
    assert len(list(lab.runs.iterdir())) == 3
    assert len(lab.server.bodies) <= distinct(lab) + 2 * CONCURRENCY


def test_a_command_of_somebody_else_is_printed_and_refused(lab: Lab) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    sent, folder = len(lab.server.bodies), lab.runs / NAME
    kept = json.loads((folder / FILE).read_bytes())
    (folder / FILE).write_text(json.dumps({**kept, "arguments": [*kept["arguments"], "--max-calls", "99\x1b]0;x\x07"]}))
    said = refused(resume(lab))
    assert f"rectom: {folder} is not sealed as yours" in said
    assert f"in {kept['folder']}: rectom run hitom/cotp " in said
    assert said.isprintable()
    assert len(lab.server.bodies) == sent
    (folder / FILE).write_text(json.dumps({**kept, "arguments": [*kept["arguments"], "--max-calls", "1000"]}))
    assert resume(lab, "--trust").status == 0
    assert "night is finished" in resume(lab).out
    assert resume(lab, "--concurrency", "2").status == 0  # it is the user's own now


def test_what_is_taken_up_steers_no_terminal(lab: Lab) -> None:
    assert call(*begun(lab, max_calls=10)).status == 3
    kept = json.loads((lab.runs / NAME / FILE).read_bytes())
    arguments = [*kept["arguments"], "--model-revision", "\x1b]0;taken\x07"]
    (lab.runs / NAME / FILE).write_text(json.dumps({**kept, "arguments": arguments}))
    said = resume(lab, "--trust").err
    assert "]0;taken" in said
    assert {sign for sign in said if not sign.isprintable()} <= {"\n"}
