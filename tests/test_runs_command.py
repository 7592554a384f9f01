from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from rectom.results.folder import hold
from rectom.results.sweep import Cell, Sweep
from tests.laboratory import Ended, call, command, environment
from tests.test_finished import SETTINGS, answer, write_run
from tests.test_listing import MONEY, begin, opened

#: A name that settings give, as long as they get.
LONG = "hitom-400+choices.0+names.0.rectom-update=model.some-model-of-many-billion-parameters.0a1b2c"


def ago(**time: float) -> str:
    return (datetime.now(UTC) - timedelta(**time)).isoformat()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a run of every kind and a sweep."""
    place = tmp_path / "runs"
    wrong = answer(1, False, failed_step="answer", predicted=None)
    write_run(place / "good", [answer(0), answer(1)], money=MONEY, ended=ago(hours=3, minutes=5))
    write_run(place / "partial-1", [answer(0), wrong, answer(2, False), answer(3, False)], ended=ago(days=2, hours=1))
    settings = {
        **SETTINGS,
        "benchmark": "hitom/400+choices.0+names.0",
        "model": "some-model-of-many-billion-parameters",
    }
    write_run(place / LONG, [answer(0)], settings=settings, ended=ago(minutes=7))
    begin(place / "killed-1", [answer(0), wrong], sessions=[{"started": ago(minutes=3)}], questions=400)
    write_run(place / "bad", [answer(0)])
    (place / "bad" / "manifest.json").write_text("{")
    ends = {"good": "finished", "partial-1": "failed", "gone": "finished"}
    cells = [Cell("m", "cot", "toy", seed=n, run=run, state=end) for n, (run, end) in enumerate(ends.items())]
    Sweep("night", "partial", ago(hours=9), cells, ago(hours=8)).write(place / "night")
    return place


def shown(runs: Path, *arguments: object) -> dict[str, str]:
    """The lines of a list by the names in them."""
    ended = call("runs", "--runs", runs, *arguments)
    assert (ended.status, ended.err) == (0, "")
    header, *lines = ended.out.splitlines()
    assert header.startswith("name ")
    return {line.split()[0]: line for line in lines}


def test_it_tells_of_every_run_in_a_line(runs: Path) -> None:
    lines = {name: " ".join(line.split()) for name, line in shown(runs).items()}
    assert lines == {
        "killed-1": "killed-1 killed 2/400 3 min toy/all · rectom · rules hitom · 1 failed",
        LONG: f"{LONG} finished 100.0 [21,100] 1 4 0 1 s 7 min",
        "good": "good finished 100.0 [34,100] 2 4 0 1.25 USD 1 s 3 h toy/all · rectom · rules hitom",
        "night": "night partial 8 h sweep: 2 finished, 1 failed",
        "partial-1": "partial-1 partial 25.0 [5,70] 4 4 0 1 s 2 d toy/all · rectom · rules hitom · 1 failed",
        "bad": "bad damaged",
    }


def test_a_name_that_tells_the_method_and_its_options_is_not_told_again(runs: Path) -> None:
    settings = {"benchmark": "toy/all", "data": "d" * 64, "method": "cot:conclude=on", "model": "m"}
    name = "toy-all.cot-conclude=on.m.0a1b2c"
    write_run(runs / name, [answer(0)], settings=settings)
    line = shown(runs)[name]
    assert "toy/all" not in line
    assert "·" not in line


def test_the_latest_come_first_unless_it_is_told_otherwise(runs: Path) -> None:
    assert list(shown(runs)) == ["killed-1", LONG, "good", "night", "partial-1", "bad"]
    assert list(shown(runs, "--sort", "name")) == ["bad", "good", LONG, "killed-1", "night", "partial-1"]
    assert list(shown(runs, "--sort", "accuracy"))[:3] == ["good", LONG, "partial-1"]
    assert next(iter(shown(runs, "--sort", "cost"))) == "good"


def test_some_are_chosen_by_name_and_by_state(runs: Path) -> None:
    assert set(shown(runs, "*-1")) == {"killed-1", "partial-1"}
    assert set(shown(runs, "good", "bad", "nosuch")) == {"good", "bad"}
    assert set(shown(runs, "--state", "partial")) == {"night", "partial-1"}
    assert set(shown(runs, "p*", "--state", "partial")) == {"partial-1"}
    assert call("runs", "--runs", runs, "--state", "dead").status == 2


def test_a_sweep_s_name_lists_the_runs_of_its_cells(runs: Path) -> None:
    assert list(shown(runs, "night")) == ["good", "night", "partial-1"]
    assert set(shown(runs, "nigh?", "bad")) == {"good", "night", "partial-1", "bad"}
    assert set(shown(runs, "night", "--state", "finished")) == {"good"}
    Sweep("night", "partial", ago(hours=9), [Cell("m", "cot", "toy", run="../runs/good")]).write(runs / "night")
    assert set(shown(runs, "night")) == {"night"}


def test_a_column_that_would_be_empty_is_left_out(runs: Path) -> None:
    header = call("runs", "--runs", runs, "partial-1").out.splitlines()[0]
    assert header.split() == ["name", "state", "accuracy", "done", "calls", "tokens", "took", "age"]


def test_a_run_that_is_held_is_running(runs: Path) -> None:
    with closing(hold(runs / "killed-1")):
        assert set(shown(runs, "--state", "running")) == {"killed-1"}


def test_json_has_a_line_a_run_with_all_there_is(runs: Path) -> None:
    ended = call("runs", "--runs", runs, "--json", "--sort", "name")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["name"] for line in lines] == ["bad", "good", LONG, "killed-1", "night", "partial-1"]
    good, night = lines[1], lines[4]
    assert datetime.fromisoformat(good.pop("since")) < datetime.now(UTC) - timedelta(hours=3)
    assert good.pop("interval") == pytest.approx([0.342372, 1.0], abs=1e-6)
    assert good == {
        "name": "good",
        "state": "finished",
        "benchmark": "toy/all",
        "method": "rectom",
        "model": "",
        "setting": "rules hitom",
        "questions": 2,
        "answered": 2,
        "failed": 0,
        "accuracy": 1.0,
        "calls": 4,
        "tokens": 0,
        "money": "1.250000",
        "currency": "USD",
        "wall_s": 1.0,
        "cells": None,
        "runs": [],
    }
    assert night["cells"] == {"finished": 2, "failed": 1}
    assert night["runs"] == ["good", "partial-1", "gone"]


def in_terminal(columns: int, *arguments: object) -> list[str]:
    """What a terminal of a width is given, line by line, without colours."""
    ours, theirs = pty.openpty()
    told = environment(COLUMNS=str(columns), TERM="xterm")
    with subprocess.Popen(command(*arguments), stdout=theirs, env=told) as process:
        os.close(theirs)
        said = b""
        while part := _read(ours):
            said += part
    os.close(ours)
    assert process.returncode == 0
    return [click.unstyle(line) for line in said.decode().splitlines()]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # closed at the other end
        return b""


def test_in_a_narrow_terminal_a_name_has_a_line_of_its_own(runs: Path) -> None:
    lines = in_terminal(80, "runs", "--runs", runs)
    assert LONG in lines
    assert lines[2 * 3].startswith("good  toy/all")
    figures = lines[1::2]
    assert all(len(line) <= 80 for line in figures)
    assert figures[0].split() == ["state", "accuracy", "done", "calls", "tokens", "money", "took", "age"]
    assert len({line.index("finished") for line in figures if "finished" in line}) == 1
    wide = in_terminal(220, "runs", "--runs", runs)
    assert len(wide) == 7
    assert [line.split()[0] for line in wide[:2]] == ["name", "killed-1"]


def test_what_a_folder_says_does_nothing_to_the_terminal(runs: Path) -> None:
    settings = {**SETTINGS, "model": "\x1b]0;evil\x07"}
    money = {**MONEY, "currency": "[bold]\nUSD\x1b[2J"}
    write_run(runs / "new", [answer(0)], settings=settings, money=money).rename(runs / "a\x1b[2J b")
    write_run(runs / "new", [answer(0)]).rename(runs / "a\n[bold]b")
    ended = call("runs", "--runs", runs, "a*b", "--sort", "cost")
    _, first, second = ended.out.splitlines()
    assert first.startswith("a?[2J b ")
    assert " 1.25 [bold]?USD?[2J " in first
    assert first.endswith("· ?]0;evil? · rules hitom")
    assert second.startswith("a?[bold]b ")
    lines = [json.loads(line) for line in call("runs", "--runs", runs, "a*b", "--json").out.splitlines()]
    assert {line["name"] for line in lines} == {"a\x1b[2J b", "a\n[bold]b"}


def test_it_opens_no_results_of_what_is_finished_and_no_traces_at_all(runs: Path) -> None:
    with opened() as files:
        assert len(shown(runs)) == 6
    bulk = ("traces.jsonl", "results.jsonl", "calls.jsonl.gz", "times.csv", "report.html")
    assert [file for file in files if file[1] in bulk] == [("killed-1", "results.jsonl")]


def refused(ended: Ended) -> str:
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    return ended.errors[0]


def test_where_there_is_nothing_it_says_what_makes_a_run(runs: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "nosuch", runs / "good"):
        ended = call("runs", "--runs", place)
        assert (ended.status, ended.out) == (0, "")
        assert ended.errors == [f"no runs in {place}: `rectom run` makes one, --runs says where they are"]
    ended = call("runs", "--runs", runs, "nosuch")
    assert ended.errors == [f"none of the 6 runs in {runs} is meant: rectom runs lists all"]
    (tmp_path / "file").write_text("")
    assert "Not a directory; give --runs FOLDER" in refused(call("runs", "--runs", tmp_path / "file"))
