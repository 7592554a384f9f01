from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rectom.results.folder import RunFolder
from rectom.results.grid import Grid, read
from rectom.results.sheet import Sheet
from rectom.results.summary import Cost
from rectom.results.troubles import failures_sheet, faults_sheet, runs_sheet
from tests.reported import cell, failed, outcome, write, write_sweep


def grid(runs: Path) -> Grid:
    """Two runs of which one failed here and there, and was wrong here and there; and a cell that is not done."""
    wrong = {1: "answer", 2: "abstraction", 6: "answer", 7: "", 11: "state observability", 12: "odd step"}
    answers = [outcome(n, n not in wrong, fault=wrong.get(n, "")) for n in range(15)]
    answers[3], answers[4], answers[8] = failed(3, "revise"), failed(4, "answer"), failed(8, "revise")
    write(runs, "a+b", answers)
    write(runs, "cot", "1" * 15, method="cot")
    write_sweep(runs, "night", cell("a+b"), cell("cot", "cot"), cell("x", "simtom", "failed", why="no server"))
    return read(["night"], runs)


def texts(sheet: Sheet | None) -> list[tuple[str, ...]]:
    assert sheet
    return [(*row.heads, *(value.text for value in row.values)) for row in sheet.rows]


def test_failures_are_counted_by_run_and_step(tmp_path: Path) -> None:
    assert texts(failures_sheet(grid(tmp_path))) == [("a+b", "revise", "2", "15"), ("a+b", "answer", "1", "15")]


def test_faults_are_counted_by_step_and_order_and_no_wrong_answer_is_left_out(tmp_path: Path) -> None:
    arranged = grid(tmp_path)
    sheet = faults_sheet(arranged, tmp_path / "night")
    assert texts(sheet) == [
        ("a+b", "abstraction", "0", "0", "1", "0", "0", "1"),
        ("a+b", "state observability", "0", "1", "0", "0", "0", "1"),
        ("a+b", "answer", "0", "2", "0", "0", "0", "2"),
        ("a+b", "odd step", "0", "0", "1", "0", "0", "1"),
        ("a+b", "not told", "0", "0", "1", "2", "1", "4"),
    ]
    assert sheet
    told = sum(row.values[-1].number or 0 for row in sheet.rows)
    run = next(run for found in arranged.cells.values() for run, _ in found.finished if run.name == "a+b")
    assert told == sum(1 - one.score for one in run.questions)


def test_counts_lead_to_the_cases_on_the_page_of_the_run(tmp_path: Path) -> None:
    sheet = faults_sheet(grid(tmp_path), tmp_path / "night")
    assert sheet
    cells = {row.heads[1]: row.values for row in sheet.rows}
    assert cells["state observability"][1].link == "../a%2Bb/report.html#fault=state%20observability&order=1"
    assert cells["answer"][-1].link == "../a%2Bb/report.html#fault=answer"
    assert cells["answer"][0].link == ""
    elsewhere = faults_sheet(grid(tmp_path), tmp_path / "far" / "out")
    assert elsewhere
    assert elsewhere.rows[0].values[2].link.startswith("../../a%2Bb/report.html#")


def test_every_run_with_steps_has_its_rows_and_no_other(tmp_path: Path) -> None:
    write(tmp_path, "talks", "11001", benchmark="fantom/324")
    write(tmp_path, "cot", "10001", method="cot")
    sheet = faults_sheet(read(["talks", "cot"], tmp_path), tmp_path)
    assert texts(sheet) == [("talks", "not told", "0", "0", "1", "1", "0", "2")]
    assert sheet
    assert any(note.startswith("`not told`: no rule reads the text") for note in sheet.notes)


def test_the_name_of_a_run_is_a_head_that_leads_to_its_page(tmp_path: Path) -> None:
    sheet = runs_sheet(grid(tmp_path), tmp_path / "night")
    assert sheet.corner[-1] == "Run"
    assert [row.heads[-1] for row in sheet.rows] == ["a+b", "cot", "failed: no server"]
    assert [row.link for row in sheet.rows] == ["../a%2Bb/report.html", "../cot/report.html", ""]


def test_where_nothing_went_wrong_there_is_no_table(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111")
    fine = read(["a"], tmp_path)
    assert failures_sheet(fine) is None
    assert faults_sheet(fine, tmp_path) is None


def test_every_run_is_listed_and_what_is_not_there_says_why(tmp_path: Path) -> None:
    grid(tmp_path)
    spent = Cost(sent=19, cached=1, prompt=700, completion=200)
    steps = {"abstract": {"latency_s": 3600.4}, "answer": {"latency_s": 64.8}, "older": {}}
    run = RunFolder(tmp_path / "a+b")
    told = run.manifest()
    told["summary"] |= {"calls": spent.calls(), "tokens": spent.tokens()}
    run.write_manifest({**told, "steps": steps})
    rows = texts(runs_sheet(read(["night"], tmp_path), tmp_path / "night"))
    assert rows == [
        ("hitom/400", "gpt-5.4", "RecToM", "a+b", "15", "40.00", "3", "20", "900", "15,000", "1:01:05"),
        ("hitom/400", "gpt-5.4", "CoT", "cot", "15", "100.00", "0", "4", "0", "15,000", "–"),
        ("hitom/400", "gpt-5.4", "SimToM", "failed: no server", *["–"] * 7),
    ]


def test_samples_are_counted_each(tmp_path: Path) -> None:
    tries = [outcome(1, n == 0, id=f"q1#{n}", fault="answer" if n else "") for n in range(3)]
    tries += [replace(outcome(2, False, fault=""), id=f"q2#{n}") for n in range(3)]
    write(tmp_path, "a", tries, samples=3)
    rows = texts(faults_sheet(read(["a"], tmp_path), tmp_path))
    assert rows == [("a", "answer", "2", "0", "2"), ("a", "not told", "0", "3", "3")]


def test_a_failed_answer_whose_step_is_told_hides_no_other(tmp_path: Path) -> None:
    tries = [replace(failed(1, "revise"), id="q1#1", fault="revision"), outcome(1, False, id="q1#2")]
    write(tmp_path, "a", tries, samples=2)
    rows = texts(faults_sheet(read(["a"], tmp_path), tmp_path))
    assert rows == [("a", "revision", "1", "1"), ("a", "not told", "1", "1")]
