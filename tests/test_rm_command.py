from __future__ import annotations

import os
import pty
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from rectom.results.folder import RunFolder, hold
from rectom.results.sweep import Cell, Sweep
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, Lab, call, command, environment, run_options, serving, write_stories
from tests.test_finished import SETTINGS, answer, write_run
from tests.test_listing import begin

BEGUN = "2026-11-28T08:00:00+00:00"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs in several states, a sweep of two of them, and a folder that is no run."""
    place = tmp_path / "runs"
    for name in ("hitom-a", "hitom-b", "tomi-a"):
        write_run(place / name, [answer(0)])
        (place / name / "tables").mkdir()
        (place / name / "tables" / "accuracy.md").write_text("| |")
    begin(place / "killed", [answer(0)])
    with RunFolder(place / "unbegun").open(SETTINGS):
        pass
    cells = [Cell("m", "cot", "toy", run=name, state="finished") for name in ("hitom-a", "tomi-a", "..", "notes", "")]
    Sweep("night", "finished", BEGUN, cells, BEGUN).write(place / "night")
    (place / "notes").mkdir()
    (place / "notes" / "mine.txt").write_text("mine")
    return place


def rm(runs: Path, *arguments: object) -> Ended:
    return call("rm", *arguments, "--runs", runs)


def refused(ended: Ended) -> str:
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    return ended.errors[0]


def left(runs: Path) -> set[str]:
    return {path.name for path in runs.iterdir()}


def test_a_run_is_removed_by_its_name(runs: Path) -> None:
    before = left(runs)
    done = rm(runs, "hitom-a", "killed", "unbegun", "--yes")
    assert (done.status, done.err) == (0, "")
    said = "removed hitom-a, killed, unbegun; replies stay in the store: the same run again costs nothing\n"
    assert done.out == said
    assert left(runs) == before - {"hitom-a", "killed", "unbegun"}


def test_a_pattern_names_several(runs: Path) -> None:
    assert rm(runs, "hitom-*", "hitom-a", "--yes").status == 0
    assert left(runs) == {"tomi-a", "killed", "unbegun", "night", "notes"}
    assert rm(runs, "*", "--yes").status == 0
    assert left(runs) == {"notes"}


def test_of_a_sweep_the_runs_stay_unless_they_are_to_go(runs: Path) -> None:
    assert rm(runs, "night", "--yes").status == 0
    assert {"hitom-a", "hitom-b", "tomi-a"} < left(runs)
    Sweep(
        "night", "finished", BEGUN, [Cell("m", "cot", "toy", run="hitom-a"), Cell("m", "cot", "..", run="../x")]
    ).write(runs / "night")
    assert rm(runs, "night", "--with-runs", "--yes").out.startswith("removed night, hitom-a;")
    assert left(runs) == {"hitom-b", "tomi-a", "killed", "unbegun", "notes"}


def test_runs_that_another_sweep_has_stay(runs: Path) -> None:
    Sweep("day", "finished", BEGUN, [Cell("m", "cot", "toy", run="tomi-a")]).write(runs / "day")
    said = rm(runs, "night", "--with-runs", "--yes").out.splitlines()
    assert said[0].startswith("removed night, hitom-a;")
    assert said[1:] == ["kept tomi-a, which other sweeps have, too"]
    assert {"day", "tomi-a"} < left(runs)
    assert rm(runs, "day", "tomi-a", "--with-runs", "--yes").out.startswith("removed day, tomi-a;")


def test_a_cell_may_name_nothing_but_a_run_of_the_place(runs: Path, tmp_path: Path) -> None:
    assert rm(runs, "night", "--with-runs", "--yes").status == 0
    assert left(runs) == {"hitom-b", "killed", "unbegun", "notes"}
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    "name", ["../runs/hitom-a", "../outside", "/", ".", "..", "", "notes", "link", "nosuch", "n?such"]
)
def test_what_is_no_run_of_the_place_is_not_removed(runs: Path, tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "outside", [answer(0)])
    (runs / "link").symlink_to(tmp_path / "outside")
    before = left(runs)
    assert " ".join(f"there is no run {name} in {runs}".split()) in refused(rm(runs, "hitom-a", name, "--yes"))
    assert left(runs) == before
    assert (tmp_path / "outside" / "manifest.json").is_file()


def test_an_absolute_name_is_none(runs: Path) -> None:
    assert "there is no run" in refused(rm(runs, runs / "hitom-a", "--yes"))
    assert (runs / "hitom-a").is_dir()


def test_links_are_removed_and_not_what_they_lead_to(runs: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "outside", [answer(0)])
    (runs / "hitom-a" / "elsewhere").symlink_to(tmp_path / "outside")
    (runs / "hitom-a" / "tables" / "elsewhere").symlink_to(tmp_path / "outside")
    (runs / "link").symlink_to(tmp_path / "outside")
    assert rm(runs, "hitom-a", "--yes").status == 0
    assert rm(runs, "*", "--yes").status == 0
    assert left(runs) == {"notes", "link"}
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == [
        "manifest.json",
        "results.jsonl",
        "traces.jsonl",
    ]


def test_the_place_itself_may_be_a_link(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs)
    assert rm(tmp_path / "link", "hitom-a", "--yes").status == 0
    assert "hitom-a" not in left(runs)
    assert "there is no run a in" in refused(rm(tmp_path / "nosuch", "a", "--yes"))
    (tmp_path / "file").write_text("")
    assert "cannot read" in refused(rm(tmp_path / "file", "a", "--yes"))


def test_odd_names_can_be_removed(runs: Path) -> None:
    for name in ("a b", "a[1]", "a\x1b[2J"):
        write_run(runs / "new", [answer(0)]).rename(runs / name)
    assert rm(runs, "a[1]", "--yes").out.startswith("removed a[1];")
    assert rm(runs, "a*", "--yes").out.startswith("removed a?[2J, a b;")
    assert not {"a b", "a[1]", "a\x1b[2J"} & left(runs)


def test_what_a_process_works_on_stays_and_all_else_with_it(runs: Path) -> None:
    before = left(runs)
    with closing(hold(runs / "killed")):
        said = refused(rm(runs, "*", "--yes"))
        assert said == f"rectom: a process works on {runs / 'killed'}: stop it first; nothing was removed"
        assert left(runs) == before
    assert rm(runs, "killed", "--yes").status == 0


def test_without_a_terminal_it_wants_to_be_told(runs: Path) -> None:
    said = refused(call("rm", "hitom-a", "--runs", runs, stdin="y\n"))
    assert said == "rectom: hitom-a would be removed, and there is nobody to ask: give --yes"
    many = refused(rm(runs, "*"))
    assert "7 runs (" not in many
    assert "hitom-a, hitom-b, killed, night, tomi-a, unbegun would be removed" in many
    for number in range(5):
        shutil.copytree(runs / "tomi-a", runs / f"tomi-{number}")
    assert "6 runs" not in refused(rm(runs, "tomi-*"))
    assert "11 runs (hitom-a, hitom-b, killed, night, tomi-0, tomi-1, …) would" in refused(rm(runs, "*"))


def in_terminal(runs: Path, given: bytes) -> tuple[int, bytes]:
    """Remove a run in a terminal, with an answer given there: the exit status, and what was said."""
    ours, theirs = pty.openpty()
    words = command("rm", "hitom-a", "--runs", runs)
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, env=environment()) as process:
        os.close(theirs)
        os.write(ours, given)
        said, _ = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, said


def test_in_a_terminal_it_asks(runs: Path) -> None:
    assert in_terminal(runs, b"n\n") == (1, b"Remove hitom-a? [y/N]: nothing removed\n")
    assert in_terminal(runs, b"\x04") == (1, b"Remove hitom-a? [y/N]: \nnothing removed\n")
    assert (runs / "hitom-a").is_dir()
    status, said = in_terminal(runs, b"y\n")
    assert (status, said.startswith(b"Remove hitom-a? [y/N]: removed hitom-a; replies stay")) == (0, True)
    assert not (runs / "hitom-a").exists()


@pytest.mark.parametrize("last", ["results.jsonl", "manifest.json", "lock"])
def test_a_removal_that_is_cut_short_leaves_a_run_that_can_be_removed(runs: Path, last: str) -> None:
    unlink = Path.unlink

    def fail(path: Path) -> None:
        if path.name == last:
            raise OSError(5, "Input/output error")
        unlink(path)

    with mock.patch.object(Path, "unlink", fail):
        said = refused(rm(runs, "hitom-a", "--yes"))
    assert said == f"rectom: cannot remove {runs / 'hitom-a'}: Input/output error"
    assert rm(runs, "hitom-a", "--yes").status == 0
    assert "hitom-a" not in left(runs)


def test_a_rerun_of_what_was_removed_sends_nothing(tmp_path: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, write_stories(tmp_path), server)
        words = ["run", *run_options(lab), "--plain", "--json"]
        name = call(*words).line["run"]
        sent = server.asked.total()
        assert rm(lab.runs, name, "--yes").status == 0
        assert not (lab.runs / name).exists()
        again = call(*words).line
        assert (again["calls"]["sent"], server.asked.total()) == (0, sent)
