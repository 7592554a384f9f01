from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rectom.errors import DataError
from rectom.results.folder import RunFolder, hold
from rectom.results.listing import Listed, is_called, is_held, listed, look, printed
from rectom.results.outcome import Outcome
from rectom.results.statistics import wilson
from rectom.results.sweep import Cell, Sweep
from rectom.whole import beside
from tests.test_finished import SETTINGS, answer, asked, write_run

MONEY = {"billed": "0.100000", "whole": "1.250000", "currency": "USD", "date": "2026-05-21"}
BEGUN = "2026-11-28T08:00:00+00:00"

#: Where it is noted which files are opened, while somebody asks: each with the name of its folder.
_NOTED: list[list[tuple[str, str]]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _NOTED and isinstance(arguments[0], str | bytes | os.PathLike):
        path = Path(os.fsdecode(arguments[0]))
        _NOTED[-1].append((path.parent.name, path.name))


sys.addaudithook(_note)


@contextmanager
def opened() -> Iterator[list[tuple[str, str]]]:
    """Every file that is opened meanwhile, in whatever way: its folder and its name."""
    _NOTED.append([])
    try:
        yield _NOTED[-1]
    finally:
        _NOTED.clear()


def begin(folder: Path, outcomes: list[Outcome], **manifest: Any) -> Path:
    """A run that has begun and not ended."""
    with RunFolder(folder).open(SETTINGS) as run:
        run.write_manifest({"run": folder.name, "state": "running", "settings": SETTINGS, **manifest})
        for outcome in outcomes:
            run.append(outcome, asked(outcome))
    return folder


def found(folder: Path) -> Listed:
    there = look(folder)
    assert there
    return there


def test_a_finished_run_is_listed_with_its_figures(tmp_path: Path) -> None:
    sessions = [{"started": BEGUN, "ended": "2026-11-28T09:00:00+00:00"}]
    outcomes = [answer(0), answer(1), answer(2, False)]
    run = found(write_run(tmp_path / "night", outcomes, money=MONEY, sessions=sessions, ended="2026-11-28T09:00:01Z"))
    assert (run.name, run.state, run.benchmark, run.method) == ("night", "finished", "toy/all", "rectom")
    assert (run.questions, run.answered, run.failed) == (3, 3, 0)
    assert (run.accuracy, run.interval) == (0.666667, wilson(0.666667, 3))
    assert (run.calls, run.tokens, run.wall_s) == (4, 0, 1.0)
    assert (run.money, run.currency) == (Decimal("1.25"), "USD")
    assert run.since == datetime(2026, 11, 28, 9, 0, 1, tzinfo=UTC)
    assert run.to_json()["money"] == "1.250000"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"benchmark": "hitom/400", "rules": "hitom", "window": None, "temperature": 0.0}, ""),
        ({"benchmark": "fresh/400", "rules": "literal", "window": 5}, "rules literal, window 5"),
        ({"benchmark": "hitom/400", "update": "model", "draw": 3}, "update model, draw 3"),
        (
            {"benchmark": "hitom/400", "method": "rectom", "readers": {"chain": "rules", "answer": "model"}},
            "chain by rules",
        ),
        ({"benchmark": "hitom/400", "method": "rectom-lite", "readers": {"chain": "either", "abstract": "model"}}, ""),
    ],
)
def test_what_sets_a_run_apart_is_told(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    assert found(write_run(tmp_path / "night", [answer(0)], settings={"data": "d" * 64, **settings})).setting == words


def test_samples_and_tries_of_a_ballot_do_not_narrow_the_interval(tmp_path: Path) -> None:
    samples = [answer(number, number < 3, id=f"{number}#{sample}") for number in range(4) for sample in (1, 2, 3)]
    run = found(write_run(tmp_path / "samples", samples, settings={**SETTINGS, "samples": 3}))
    assert (run.questions, run.interval) == (12, wilson(0.75, 4))
    tries = [
        answer(number, number < 3, id=f"{number}/{place}", ballot=str(number)) for number in range(4) for place in "ab"
    ]
    run = found(write_run(tmp_path / "ballots", tries))
    assert (run.questions, run.interval) == (8, wilson(0.75, 4))


def test_a_finished_run_with_failed_questions_is_partial(tmp_path: Path) -> None:
    run = found(write_run(tmp_path / "night", [answer(0), answer(1, False, failed_step="answer", predicted=None)]))
    assert (run.state, run.failed, run.accuracy) == ("partial", 1, 0.5)


def test_a_run_is_running_as_long_as_somebody_holds_it(tmp_path: Path) -> None:
    folder = begin(tmp_path / "night", [answer(0)], sessions=[{"started": BEGUN}])
    with closing(hold(folder)):
        assert (found(folder).state, is_held(folder)) == ("running", True)
    run = found(folder)
    assert (run.state, is_held(folder)) == ("killed", False)
    assert (run.answered, run.questions, run.accuracy, run.calls) == (1, None, None, None)
    assert run.since == datetime.fromisoformat(BEGUN)
    with closing(hold(folder)):  # to look has left nothing behind
        pass


def test_the_answers_of_an_unfinished_run_are_counted_once_and_whole(tmp_path: Path) -> None:
    folder = begin(tmp_path / "night", [answer(0), answer(1), answer(0), answer(2)], questions=80)
    with (folder / "results.jsonl").open("ab") as file:
        file.write(b'{"id":"3","story_id":"s1","ord')
    run = found(folder)
    assert (run.answered, run.questions) == (3, 80)


def test_of_an_unfinished_run_it_is_told_how_many_failed(tmp_path: Path) -> None:
    outcomes = [answer(n, False, failed_step="chain", predicted='"failed_step":null') for n in range(3)]
    run = found(begin(tmp_path / "night", [*outcomes, answer(3, False), answer(1)]))  # 1 was asked again
    assert (run.answered, run.failed) == (4, 2)


@pytest.mark.parametrize("state", ["interrupted", "stopped", "failed"])
def test_a_run_that_stopped_tells_what_its_sessions_paid(tmp_path: Path, state: str) -> None:
    paid = {"started": BEGUN, "ended": "2026-11-28T08:30:00+00:00", "sent": 20, "prompt": 900, "completion": 100}
    killed = {"started": "2026-11-28T07:00:00+00:00"}
    run = found(begin(tmp_path / "night", [answer(0)], sessions=[killed, paid], state=state))
    assert (run.state, run.calls, run.tokens) == (state, 20, 1000)
    assert run.since == datetime(2026, 11, 28, 8, 30, tzinfo=UTC)


def test_a_run_that_never_began_is_told_from_other_folders(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "early").open(SETTINGS):
        assert found(tmp_path / "early").state == "running"
    assert found(tmp_path / "early").state == "unbegun"
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "results.jsonl").write_text("")
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    assert [look(tmp_path / name) for name in ("empty", "notes", "nosuch")] == [None] * 3
    assert [run.name for run in listed(tmp_path)] == ["early"]


def test_what_a_kill_left_half_written_hides_no_run(tmp_path: Path) -> None:
    for place, part in (("a", "manifest.json.4711.part"), ("b", "command.jsonx_3k9a7q"), ("c", "sweep.json.1.part")):
        hold(tmp_path / place).close()
        (tmp_path / place / part).write_text("{")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "locksmiths.md").write_text("# Locksmiths")
    assert [(run.name, run.state) for run in listed(tmp_path)] == [(name, "unbegun") for name in "abc"]


@pytest.mark.parametrize("name", ["manifest.json", "sweep.json", "command.json", "command.seal"])
def test_what_is_being_written_hides_no_run(tmp_path: Path, name: str) -> None:
    hold(tmp_path / "night").close()
    with beside(tmp_path / "night" / name) as part:
        part.write_text("{")
        assert found(tmp_path / "night").state == "unbegun"


def test_a_run_that_is_removed_at_the_moment_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "night", [answer(0)])

    def manifest(run: RunFolder) -> dict[str, Any]:
        shutil.rmtree(run.folder)
        raise DataError(f"{run.folder} holds no run")

    monkeypatch.setattr(RunFolder, "manifest", manifest)
    assert look(folder) is None


def test_a_sweep_is_listed_with_the_states_of_its_cells(tmp_path: Path) -> None:
    states = ["finished", "finished", "running", "waiting"]
    cells = [Cell("m", "cot", "toy", seed=number, state=state) for number, state in enumerate(states)]
    Sweep("all", "running", BEGUN, cells).write(tmp_path / "all")
    with closing(hold(tmp_path / "all")):
        sweep = found(tmp_path / "all")
        assert (sweep.state, sweep.cells) == ("running", {"finished": 2, "running": 1, "waiting": 1})
    sweep = found(tmp_path / "all")
    assert (sweep.state, sweep.cells) == ("killed", {"finished": 2, "killed": 1, "waiting": 1})
    assert sweep.is_sweep
    assert sweep.since == datetime.fromisoformat(BEGUN)
    Sweep("all", "partial", BEGUN, cells, "2026-11-28T10:00:00+00:00").write(tmp_path / "all")
    assert found(tmp_path / "all").state == "partial"


def change(manifest: dict[str, Any], where: str, value: object) -> bytes:
    at, *further = where.split(".")
    inner = manifest
    for name in further:
        inner, at = inner[at], name
    inner[at] = value
    return json.dumps(manifest).encode()


DAMAGES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "nothing": lambda _: b"",
    "half of it": lambda manifest: json.dumps(manifest).encode()[:100],
    "a list": lambda _: b"[]",
    "no settings": lambda manifest: change(manifest, "settings", None),
    "settings in a list": lambda manifest: change(manifest, "settings", ["cot"]),
    "no summary": lambda manifest: change(manifest, "summary", None),
    "words for accuracy": lambda manifest: change(manifest, "summary.accuracy", "good"),
    "words for calls": lambda manifest: change(manifest, "summary.calls.sent", "many"),
    "money that is none": lambda manifest: change(manifest, "money", {"whole": "NaN"}),
    "words for money": lambda manifest: change(manifest, "money", {"whole": "much"}),
    "sessions without form": lambda manifest: change(manifest, "sessions", 7),
    "a state that there is not": lambda manifest: change(manifest, "state", "\x1b[31mdancing"),
    "a number for a state": lambda manifest: change(manifest, "state", 7),
    "accuracy that is no number": lambda manifest: change(manifest, "summary.accuracy", "nan"),
    "accuracy over 1": lambda manifest: change(manifest, "summary.accuracy", 7),
    "time without end": lambda manifest: change(manifest, "summary.wall_s", "inf"),
    "money without measure": lambda manifest: change(manifest, "money", {"whole": "1e999999", "currency": "USD"}),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_manifest_is_listed_as_that(tmp_path: Path, damage: Callable[[dict[str, Any]], bytes]) -> None:
    write_run(tmp_path / "good", [answer(0)])
    file = write_run(tmp_path / "bad", [answer(0)]) / "manifest.json"
    file.write_bytes(damage(json.loads(file.read_bytes())))
    assert [(run.name, run.state) for run in listed(tmp_path)] == [("bad", "damaged"), ("good", "finished")]


def test_things_in_the_way_are_damaged_too(tmp_path: Path) -> None:
    (tmp_path / "a" / "manifest.json").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "sweep.json").write_text('{"name": "b", "state": "running", "started": 7, "cells": []}')
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "sweep.json").write_text("{}")
    (begin(tmp_path / "d", []) / "results.jsonl").unlink()
    Sweep("e", "\x1b[31mrunning", BEGUN, []).write(tmp_path / "e")
    Sweep("f", "finished", BEGUN, [Cell("m", "cot", "toy", state="\x1b]0;evil\x07")]).write(tmp_path / "f")
    (tmp_path / "g").write_text("a file")
    assert [(run.name, run.state) for run in listed(tmp_path)] == [(name, "damaged") for name in "abcdef"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir(mode=0)
    assert list(listed(tmp_path)) == [Listed("secret", "damaged")]


def test_the_place_may_be_missing_or_a_link_but_no_file(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "night", [answer(0)])
    (tmp_path / "link").symlink_to("runs")
    assert [run.name for run in listed(tmp_path / "link")] == ["night"]
    assert list(listed(tmp_path / "nosuch")) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot read .*file: Not a directory; give --runs FOLDER"):
        list(listed(tmp_path / "file"))


def test_names_are_taken_as_they_are_and_printed_without_their_tricks(tmp_path: Path) -> None:
    names = ["a b", "a[1]", "a\x1b[2J", os.fsdecode(b"a\xff"), "\u00e4"]
    for name in names:
        write_run(tmp_path / "new", [answer(0)]).rename(tmp_path / name)
    assert {run.name for run in listed(tmp_path)} == {"a b", "a[1]", "a\x1b[2J", "a\ufffd", "\u00e4"}
    assert {printed(run.name) for run in listed(tmp_path)} == {"a b", "a[1]", "a?[2J", "a\ufffd", "\u00e4"}
    assert is_called("a[1]", "a[1]")
    assert [is_called(name, "a*") for name in ("ab", "ba")] == [True, False]


def test_a_listing_opens_nothing_of_a_finished_run_but_its_manifest(tmp_path: Path) -> None:
    for number in range(20):
        folder = write_run(tmp_path / f"run{number:02}", [answer(0), answer(1)])
        RunFolder(folder).write("calls.jsonl.gz", b"calls")
    begin(tmp_path / "unfinished", [answer(0)])
    Sweep("all", "finished", BEGUN, [Cell("m", "cot", "toy", run="run00", state="finished")]).write(tmp_path / "all")
    with opened() as files:
        assert len(list(listed(tmp_path))) == 22
    read = [file for file in files if file[0] != tmp_path.name]
    assert sorted(read) == sorted(
        [
            *((f"run{number:02}", "manifest.json") for number in range(20)),
            *(("unfinished", name) for name in ("manifest.json", "lock", "results.jsonl")),
            ("all", "sweep.json"),
        ]
    )


@pytest.mark.parametrize("name", ["manifest.json", "sweep.json", "lock", "results.jsonl"])
def test_a_pipe_or_an_endless_file_holds_no_list_up(tmp_path: Path, name: str) -> None:
    for place, target in (("a", ""), ("b", "/dev/zero")):
        path = begin(tmp_path / place, [answer(0)]) / name
        path.unlink(missing_ok=True)
        if target:
            path.symlink_to(target)
        else:
            os.mkfifo(path)
    write_run(tmp_path / "c", [answer(0)])
    state = "killed" if name == "lock" else "damaged"
    assert [(run.name, run.state) for run in listed(tmp_path)] == [("a", state), ("b", state), ("c", "finished")]


def test_a_manifest_larger_than_any_is_not_read(tmp_path: Path) -> None:
    folder = begin(tmp_path / "night", [])
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(2**40)
    assert found(folder).state == "damaged"


def test_a_run_behind_a_link_is_listed(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "night").symlink_to(write_run(tmp_path / "elsewhere", [answer(0)]))
    assert [(run.name, run.state) for run in listed(tmp_path / "runs")] == [("night", "finished")]
