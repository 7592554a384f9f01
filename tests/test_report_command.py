from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from flows.cli import COMMANDS
from tests.laboratory import Ended, Lab, call, command, environment, serving, undrawn, write_stories
from tests.reported import cell, failed, outcome, write, write_sweep
from tests.test_whole import full_disk, held


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with mock.patch.dict(COMMANDS, report=("flows.commands.report", "The paper's tables from runs and sweeps.")):
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A sweep of two finished cells and one that is not, and a run beside it."""
    folder = tmp_path / "runs"
    write(folder, "ours", [*(outcome(n, True) for n in range(39)), failed(39, "answer")])
    write(folder, "cot", "10" * 20, method="cot", tokens=600)
    write(folder, "other", "1" * 10, method="timetom", benchmark="tomi/all")
    cells = [cell("cot", "cot"), cell("ours"), cell("x", "simtom", "failed", why="no server")]
    write_sweep(folder, "night", *cells)
    return folder


def report(runs: Path, *arguments: object, columns: int = 80, drawn: bool = False) -> Ended:
    with nullcontext() if drawn else undrawn():
        return call("report", *arguments, "--runs", runs, COLUMNS=str(columns))


def refused(ended: Ended) -> str:
    """The one line that a command says which does not do what it is told."""
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    return ended.errors[0]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_sweep_is_reported_into_its_own_folder(runs: Path) -> None:
    done = report(runs, "night", drawn=True)
    assert (done.status, done.err) == (0, "")
    night = (runs / "night").resolve()
    assert done.out.splitlines()[-1] == str(night / "index.html")
    names = ("table1", "table3", "pairs", "failures", "faults", "runs")
    told = {
        *("sweep.json", "index.html", "report.md", "report.tex"),
        *(f"tables/{name}.{form}" for name in names for form in ("md", "csv", "tex")),
    }
    drawn = ("orders-hitom-400-gpt-5.4", "tokens-hitom-400", "faults-hitom-400")
    kinds = [f"{theme}{form}" for theme in ("", ".dark") for form in (".svg", ".png")]
    assert files(night) == told | {f"figures/{name}{kind}" for name in drawn for kind in kinds}
    page = (night / "index.html").read_text()
    assert page.count('<img src="data:image/svg+xml;base64,') == page.count("<picture>") == len(drawn)


def test_figures_may_be_left_out(runs: Path, tmp_path: Path) -> None:
    assert report(runs, "night", "--no-figures", "--out", tmp_path / "bare", drawn=True).status == 0
    assert not [name for name in files(tmp_path / "bare") if name.startswith("figures")]


def test_the_terminal_shows_the_tables_in_short_and_fits_it(runs: Path) -> None:
    done = report(runs, "night", "--beside-paper")
    lines = done.out.splitlines()
    cells = [line.split() for line in lines]
    assert ["CoT", "50.00", "50.00", "50.00", "50.00", "50.00", "50.00†"] in [line[-7:] for line in cells]
    assert ["(100.00)", "(88.75)", "(60.00)", "(68.75)", "(71.25)", "(77.75)"] in cells
    assert "Missing: SimToM with gpt-5.4 on hitom/400: failed: no server." in lines
    assert "failed answers, which count as wrong: 1; the report lists them by run and step" in lines
    tables = [line for line in lines if not line.startswith(("Table", "Missing", "Difference", "Which", "†", "/"))]
    assert max(map(len, tables)) <= 80
    wide = report(runs, "night", columns=160)
    assert "97.50 [87.1, 99.6]" in wide.out


def test_more_orders_than_fit_are_shown_one_part_below_the_other(tmp_path: Path) -> None:
    write(tmp_path, "deep", [outcome(n, n % 9 < 7, 9) for n in range(90)], benchmark="fresh/deep")
    done = report(tmp_path, "deep")
    lines = done.out.splitlines()
    heads = [line.split() for line in lines if line.startswith("Model")]
    assert heads[0] == ["Model", "Method", "0th", "1st", "2nd", "3rd", "4th", "5th"]
    assert heads[1] == ["Model", "Method", "6th", "7th", "8th", "Overall"]
    assert max(len(line) for line in lines if not line.startswith(("Table", "/"))) <= 80


@pytest.mark.parametrize(("columns", "tables"), [(80, 2), (90, 2), (200, 1)])
def test_names_are_read_however_narrow_the_terminal_is(tmp_path: Path, columns: int, tables: int) -> None:
    kinds = {
        "bigtom/400": ("forward_belief_true", "forward_belief_false"),
        "fantom/324": ("/accessible", "/inaccessible"),
    }
    for (name, ends), method in product(kinds.items(), ("cot", "rectom")):
        answers = [outcome(n, n % 3 > 0, 2, group=ends[n % 2]) for n in range(40)]
        write(tmp_path, f"{name[:6]}-{method}", answers, method=method, model="qwen2.5-coder-1.5b", benchmark=name)
    done = report(tmp_path, *(path.name for path in tmp_path.iterdir()), columns=columns)
    beliefs = done.out.partition("Table 5")[2].partition("\n\n")[0].splitlines()
    heads = [line.split() for line in beliefs if line.startswith("Model")]
    assert heads == [["Model", "Method", *["True", "belief", "False", "belief", "Overall"] * (3 - tables)]] * tables
    assert sum(line.startswith("qwen2.5-coder-1.5b  CoT  ") for line in beliefs) == tables
    assert any(
        line.split()[:5] == ["Benchmark", "Model", "Method", "Against", "Difference"] for line in done.out.splitlines()
    )


def test_a_folder_that_is_no_sweep_is_not_taken_for_one(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "night").mkdir()
    monkeypatch.chdir(tmp_path)
    assert report(runs, "night").out.splitlines()[-1] == str(runs.resolve() / "night" / "index.html")


@pytest.mark.parametrize(
    ("names", "folder", "linked"),
    [
        (["ours"], "ours.report", "ours"),
        (["cot", "ours", "other"], "cot+2.report", "ours"),
        (["night", "other"], "night+1.report", "other"),
    ],
)
def test_other_reports_have_a_folder_beside_the_runs(runs: Path, names: list[str], folder: str, linked: str) -> None:
    done = report(runs, *names)
    assert done.out.splitlines()[-1] == str(runs.resolve() / folder / "index.html")
    assert (runs / folder / "index.html").is_file()
    assert f'href="../{linked}/report.html"' in (runs / folder / "index.html").read_text()


def test_a_form_is_printed_and_writes_nothing_unless_asked(runs: Path, tmp_path: Path) -> None:
    before = files(runs)
    assert "| gpt-5.4 | CoT |" in report(runs, "night", "--markdown").out
    assert r"\begin{tabular}{llrrrrrr}" in report(runs, "night", "--latex").out
    rows = list(csv.DictReader(io.StringIO(report(runs, "night", "--csv").out)))
    assert {row["table"] for row in rows} == {"table1", "table3", "pairs", "failures", "faults", "runs"}
    told = [json.loads(line) for line in report(runs, "night", "--json").out.splitlines()]
    assert [table["table"] for table in told] == ["table1", "table3", "pairs", "failures", "faults", "runs"]
    assert files(runs) == before
    done = report(runs, "night", "--json", "--out", tmp_path / "out")
    assert json.loads(done.out.splitlines()[0])["table"] == "table1"
    assert done.errors == [str(tmp_path / "out" / "index.html")]
    assert 'href="../runs/ours/report.html"' in (tmp_path / "out" / "index.html").read_text()


def test_a_report_is_written_although_nobody_reads_it_to_the_end(runs: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    given = command("report", "night", "--no-figures", "--out", tmp_path / "out", "--runs", runs)
    with os.fdopen(writing) as closed:
        assert subprocess.run(given, stdout=closed, env=environment(), check=False).returncode == 1
    assert (tmp_path / "out" / "index.html").is_file()


@pytest.mark.parametrize("form", [(), ("--markdown",), ("--latex",), ("--csv",), ("--json",)])
def test_a_terminal_obeys_nothing_of_a_run(runs: Path, tmp_path: Path, form: tuple[str, ...]) -> None:
    answers = [outcome(n, True, group=f"kind {n % 2}\x1b[1A") for n in range(4)]
    write(runs, "foreign", answers, method="x\x1b[2J", model="gpt\x1b[2J", benchmark="toy\x1b]0;x\x07/all")
    write_sweep(runs, "theirs", cell("foreign"), cell("x", "cot\x1b[2J", "failed", why="no\x1b[2J server"))
    done = report(runs, "foreign", "theirs", *form, "--out", tmp_path / "out")
    assert done.status == 0
    assert "\x1b" not in done.out + done.err


def test_the_baseline_can_be_chosen(runs: Path) -> None:
    told = [json.loads(line) for line in report(runs, "night", "--against", "cot", "--json").out.splitlines()]
    (row,) = next(table for table in told if table["table"] == "pairs")["rows"]
    assert row["heads"] == ["hitom/400", "gpt-5.4", "RecToM", "CoT"]


# What is refused.


def test_what_cannot_be_reported_is_refused_in_one_line(runs: Path, tmp_path: Path) -> None:
    assert "there is no run or sweep day in" in refused(report(runs, "day"))
    assert "there is no such method here; there are cot, rectom" in refused(report(runs, "night", "--against", "sc"))
    write_sweep(runs, "empty", cell("x", state="waiting"))
    assert "empty: no run is finished yet" in refused(report(runs, "empty"))
    manifest = runs / "cot" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished"', '"stopped"'))
    assert "cot is not finished but stopped" in refused(report(runs, "cot"))
    (tmp_path / "file").write_text("")
    done = report(runs, "ours", "--out", tmp_path / "file")
    assert done.status == 1
    assert done.errors[0].startswith(f"rectom: cannot write to {tmp_path / 'file'}: ")
    assert report(runs).status == 2


def test_a_report_stays_as_it_was_where_there_is_no_room_for_a_new_one(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert report(runs, "ours", "--out", out).status == 0
    before = held(out)
    with full_disk():
        done = report(runs, "ours", "cot", "--out", out)
    assert done.errors == [f"rectom: cannot write to {out}: File too large; choose another --out"]
    assert held(out) == before


def test_a_report_is_not_written_behind_a_link_within_its_folder(runs: Path, tmp_path: Path) -> None:
    for name in ("mine", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "tables").symlink_to("../mine")
    said = refused(report(runs, "ours", "--out", tmp_path / "out"))
    assert f"cannot write to {tmp_path / 'out' / 'tables'}: it is a link to another place; remove it, or" in said
    assert held(tmp_path / "mine") == {}


# On real runs.


def test_a_run_over_http_is_reported_as_it_is_in_its_own_tables(tmp_path: Path) -> None:
    lab = Lab(tmp_path, write_stories(tmp_path))
    with serving(lab.server):
        done = lab.run()
    folder = done.report.parent
    # The traces are not needed: the run tells what it asked.
    (folder / "traces.jsonl").write_text("not to be read")
    told = [json.loads(line) for line in report(lab.runs, folder.name, "--json").out.splitlines()]
    overall = told[0]["rows"][0]["values"][-1]
    assert overall["value"] == pytest.approx(100 * done.line["accuracy"])
    tokens = next(table for table in told if table["table"] == "table3")["rows"][0]["values"][0]["value"]
    assert tokens == pytest.approx(done.line["tokens"]["standalone"] / done.line["questions"])
