from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest

from flows.cli import COMMANDS
from rectom.results.sweep import Cell, Sweep
from tests.laboratory import Ended, call
from tests.test_export import rows_of
from tests.test_exported import write_asked_run
from tests.test_finished import answer, asked, write_run


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with mock.patch.dict(COMMANDS, export=("flows.commands.export", "Write runs for other programs.")):
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two finished runs, one that goes on, and a sweep of all of them."""
    folder = tmp_path / "runs"
    for name, right in (("one", True), ("two", False)):
        write_asked_run(folder / name, [answer(number, right) for number in range(3)])
    write_run(folder / "three", [answer(0)], state="running")
    states = {"one": "finished", "two": "finished", "three": "running", "": "waiting"}
    cells = [Cell("m", "cot", "toy", run=name, state=state) for name, state in states.items()]
    Sweep("all", "running", "2026-01-02", cells).write(folder / "all")
    return folder


def export(runs: Path, *arguments: object) -> Ended:
    return call("export", *arguments, "--runs", runs)


def refused(ended: Ended) -> str:
    """The one line that a command says which does not do what it is told."""
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    return ended.errors[0]


def exported(file: Path) -> list[str]:
    """The runs whose rows a table has, in their order."""
    return list(dict.fromkeys(row["run"] for row in rows_of(file)))


@pytest.mark.parametrize(
    ("form", "files"),
    [
        ("csv", ["results.csv", "calls.csv"]),
        ("parquet", ["results.parquet", "calls.parquet"]),
        ("datasets", ["README.md", "data/results-00000.parquet"]),
        ("inspect", ["one.eval", "two.eval"]),
    ],
)
def test_it_prints_the_files_that_it_wrote(runs: Path, tmp_path: Path, form: str, files: list[str]) -> None:
    out = tmp_path / "out"
    done = export(runs, "one", runs / "two", "--to", form, "--out", out)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [str(out / file) for file in files]
    found = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()}
    assert found == set(files)


def test_a_sweep_stands_for_its_finished_cells_and_each_run_comes_once(runs: Path, tmp_path: Path) -> None:
    assert export(runs, "two", "all", "--to", "csv", "--out", tmp_path / "out").status == 0
    assert exported(tmp_path / "out" / "results.csv") == ["two", "one"]


@pytest.mark.parametrize("lost", ["gone", "../elsewhere/one", "..", ""])
def test_a_cell_whose_run_is_not_beside_the_sweep_is_left_out_and_named(runs: Path, tmp_path: Path, lost: str) -> None:
    shutil.copytree(runs / "one", tmp_path / "elsewhere" / "one")
    shutil.copy(runs / "one" / "manifest.json", tmp_path)
    cells = [Cell("m", "cot", "toy", run="one", state="finished"), Cell("m", "sc", "toy", run=lost, state="finished")]
    Sweep("night", "finished", "2026-01-02", cells).write(runs / "night")
    done = export(runs, "night", "--to", "csv", "--out", tmp_path / "out")
    assert (done.status, exported(tmp_path / "out" / "results.csv")) == (3, ["one"])
    assert done.errors == ["rectom: left out, since its run is gone: toy · sc · m; run the sweep again"]


@pytest.mark.parametrize("form", ["csv", "parquet", "datasets"])
def test_runs_of_one_method_are_told_apart(runs: Path, tmp_path: Path, form: str) -> None:
    write_asked_run(runs / "alone", [answer(0)], [asked(answer(0))], method="rectom", update="model", window=5)
    seeds = {"one": 0, "two": 1}
    cells = [Cell("m", "w/o-det", "toy", "window 5", seed, run, "finished") for run, seed in seeds.items()]
    Sweep("night", "finished", "2026-01-02", cells).write(runs / "night")
    out = tmp_path / "out"
    assert export(runs, "night", "alone", "--to", form, "--out", out).status == 0
    (file,) = out.rglob("results*")
    rows = rows_of(file) if form == "csv" else pq.read_table(file).to_pylist()
    told = [tuple(str(row[name] or 0) for name in ("run", "method", "label", "setting", "seed")) for row in rows]
    assert list(dict.fromkeys(told)) == [
        ("one", "cot", "w/o-det", "window 5", "0"),
        ("two", "cot", "w/o-det", "window 5", "1"),
        ("alone", "rectom", "w/o-det", "rules hitom, update model, window 5", "0"),
    ]
    assert rows[-1]["seed"] == ("" if form == "csv" else None)


def test_one_run_may_become_a_file_for_inspect(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "night.eval"
    assert export(runs, "one", "--to", "inspect", "--out", file).out == f"{file}\n"
    assert file.is_file()


def test_what_is_there_is_kept_unless_forced(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert export(runs, "one", "--to", "csv", "--out", out).status == 0
    (out / "mine.txt").write_text("mine")
    said = refused(export(runs, "two", "--to", "csv", "--out", out))
    assert said == f"rectom: {out} holds something already: choose another --out, or --force to write over it"
    assert exported(out / "results.csv") == ["one"]
    assert export(runs, "two", "--to", "csv", "--out", out, "--force").status == 0
    assert exported(out / "results.csv") == ["two"]
    assert (out / "mine.txt").read_text() == "mine"
    (tmp_path / "a.eval").write_text("a log")
    assert "holds something" in refused(export(runs, "one", "--to", "inspect", "--out", tmp_path / "a.eval"))


def test_an_unfinished_run_is_refused_before_anything_is_written(runs: Path, tmp_path: Path) -> None:
    said = refused(export(runs, "one", "three", "--to", "csv", "--out", tmp_path / "out"))
    assert "three is not finished but running: run its command to the end" in said
    assert not (tmp_path / "out").exists()


def test_what_is_not_there_is_named(runs: Path, tmp_path: Path) -> None:
    said = refused(export(runs, "four", "--to", "csv", "--out", tmp_path / "out"))
    assert said.endswith("there is no run or sweep four in " + f"{runs}; there are all, one, three, two")
    Sweep("none", "running", "2026-01-02", [Cell("m", "cot", "toy")]).write(runs / "none")
    assert "no cell of the sweep" in refused(export(runs, "none", "--to", "csv", "--out", tmp_path / "out"))


def test_runs_of_one_name_are_refused(runs: Path, tmp_path: Path) -> None:
    other = write_asked_run(tmp_path / "elsewhere" / "one", [answer(0)])
    said = refused(export(runs, "one", other, "--to", "inspect", "--out", tmp_path / "out"))
    assert "two of the runs are called one" in said
