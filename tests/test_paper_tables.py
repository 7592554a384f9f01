from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rectom.results.grid import Grid, read
from rectom.results.outcome import Outcome
from rectom.results.pairs import Pairs
from rectom.results.paper_tables import Tables
from rectom.results.sheet import Mark, Row, Sheet
from tests.reported import cell, outcome, write, write_sweep


def sheets(grid: Grid, beside_paper: bool = False) -> dict[str, Sheet]:
    pairs = Pairs(grid)
    return {sheet.name: sheet for sheet in Tables(grid, pairs, pairs.trials(), beside_paper).sheets()}


def row(sheet: Sheet, method: str, model: str = "gpt-5.4") -> Row:
    return next(one for one in sheet.rows if one.heads == (model, method))


def texts(sheet: Sheet, method: str, model: str = "gpt-5.4") -> list[str]:
    return [value.text for value in row(sheet, method, model).values]


def columns(sheet: Sheet) -> list[tuple[str, str]]:
    return [(column.group, column.name) for column in sheet.columns]


def grouped(groups: Sequence[str], right: str, orders: Sequence[int | None] = (1,), **more: Any) -> list[Outcome]:
    """Questions of these kinds in turn."""
    return [
        outcome(n, sign == "1", group=groups[n % len(groups)], order=orders[n % len(orders)], **more)
        for n, sign in enumerate(right)
    ]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The paper's methods on few questions of its three benchmarks, with one model of the paper."""
    hitom = {"cot": "10000" * 8, "simtom": "11010" * 8, "rectom": "11111" * 8}
    belief, access = (
        ("forward_belief_true", "forward_belief_false"),
        ("first-order/accessible", "second-order/inaccessible"),
    )
    for method, right in hitom.items():
        tokens = {"cot": 600, "simtom": 2300, "rectom": 6600}[method]
        write(tmp_path, f"h-{method}", right, method=method, tokens=tokens)
        write(
            tmp_path, f"b-{method}", grouped(belief, right[:20], tokens=tokens), method=method, benchmark="bigtom/400"
        )
        fantom = grouped(access, right[:20], (1, 2), tokens=tokens)
        write(tmp_path, f"f-{method}", fantom, method=method, benchmark="fantom/324")
    write(tmp_path, "h-det", "11110" * 8, update="model")
    write(tmp_path, "h-state", "11000" * 8, state="off")
    return tmp_path


ALL = [f"{letter}-{method}" for letter in "hbf" for method in ("cot", "simtom", "rectom")]


def test_table_1_is_by_order(runs: Path) -> None:
    sheet = sheets(read(ALL, runs))["table1"]
    names = [f"{order}-Order" for order in ("0th", "1st", "2nd", "3rd", "4th")]
    assert columns(sheet) == [("Hi-ToM", name) for name in [*names, "Overall"]]
    assert texts(sheet, "CoT") == ["100.00", "0.00", "0.00", "0.00", "0.00", "20.00"]
    assert texts(sheet, "SimToM") == ["100.00", "100.00", "0.00", "100.00", "0.00", "60.00"]
    assert [value.mark for value in row(sheet, "RecToM").values] == [Mark.BEST] * 6
    assert [value.mark for value in row(sheet, "SimToM").values] == [
        *(Mark.BEST, Mark.BEST, Mark.SECOND, Mark.BEST, Mark.SECOND, Mark.SECOND)
    ]
    assert all(value.span for one in sheet.rows for value in one.values)
    assert "hitom/400: 40 questions." in sheet.notes


def test_table_2_has_big_tom_in_all_and_fantom_by_order(runs: Path) -> None:
    sheet = sheets(read(ALL, runs))["table2"]
    assert columns(sheet) == [
        ("Big-ToM", "Overall"),
        *(("FanToM", name) for name in ("1st-Order", "2nd-Order", "Overall")),
    ]
    assert texts(sheet, "SimToM") == ["60.00", "60.00", "60.00", "60.00"]


def test_table_3_has_tokens_and_what_they_bring(runs: Path) -> None:
    sheet = sheets(read(ALL, runs))["table3"]
    assert columns(sheet)[:3] == [("Hi-ToM", "Tok"), ("Hi-ToM", "Eff"), ("Big-ToM", "Tok")]
    assert texts(sheet, "CoT")[:2] == ["0.60K", "–"]
    assert texts(sheet, "SimToM")[:2] == ["2.30K", f"{40 / 1.7:.2f}"]
    assert texts(sheet, "RecToM")[:2] == ["6.60K", f"{80 / 6:.2f}"]
    assert [row(sheet, name).values[1].mark for name in ("SimToM", "RecToM")] == [Mark.BEST, Mark.SECOND]
    assert all(value.mark is None for one in sheet.rows for value in one.values[::2])


def test_table_4_has_the_ablations_and_what_they_lose(runs: Path) -> None:
    found = sheets(read([*ALL, "h-det", "h-state"], runs))
    sheet = found["table4"]
    assert [one.heads[1] for one in sheet.rows] == ["RecToM", "w/o-det", "w/o-state"]
    assert texts(sheet, "RecToM")[:4] == ["100.00", "–", "100.00", "–"]
    assert texts(sheet, "w/o-det") == ["80.00", "20.00", *["–"] * 4]
    assert texts(sheet, "w/o-state")[:2] == ["40.00", "60.00"]
    low, high = row(sheet, "w/o-det").values[1].ends or (0, 0)
    assert 0 < low <= 20.001
    assert high >= 19.999
    assert [one.heads[1] for one in found["table1"].rows] == ["CoT", "SimToM", "RecToM"]
    assert "table4" not in sheets(read(ALL, runs))


def test_table_5_has_true_and_false_beliefs_of_both(runs: Path) -> None:
    sheet = sheets(read(ALL, runs))["table5"]
    kinds = ("True belief", "False belief", "Overall")
    assert columns(sheet) == [
        *(("Big-ToM forward belief", kind) for kind in kinds),
        *(("FanToM", kind) for kind in kinds),
    ]
    assert texts(sheet, "CoT") == ["20.00", "20.00", "20.00"] * 2


def test_accessible_does_not_count_what_is_inaccessible(tmp_path: Path) -> None:
    answers = grouped(("first-order/accessible", "first-order/inaccessible"), "10" * 10)
    write(tmp_path, "a", answers, benchmark="fantom/324")
    assert texts(sheets(read(["a"], tmp_path))["table5"], "RecToM") == ["100.00", "0.00", "50.00"]


def test_a_method_that_differs_is_marked_in_the_column_of_all(runs: Path) -> None:
    sheet = sheets(read(ALL, runs))["table1"]
    assert [value.significant for value in row(sheet, "CoT").values] == [False] * 5 + [True]
    assert not any(value.significant for value in row(sheet, "RecToM").values)
    assert sheet.notes[1].startswith("†: differs from RecToM")


# Other benchmarks.


def test_another_benchmark_has_a_table_of_its_own_by_order_or_by_kind(tmp_path: Path) -> None:
    write(tmp_path, "tomi", grouped(["a"], "110100", (0, 1, 2)), benchmark="tomi/all")
    write(tmp_path, "kinds", grouped(["plot", ""], "1101"), benchmark="opentom/all")
    write(tmp_path, "plain", grouped([""], "1101", (None,)), benchmark="mindgames/all")
    official = tmp_path / "kinds" / "tables" / "official.csv"
    official.parent.mkdir()
    official.write_text("official measure,questions,value\nmacro-f1,4,33.33\n")
    found = sheets(read(["tomi", "kinds", "plain"], tmp_path))
    assert columns(found["other1"])[0] == ("tomi/all", "0th-Order")
    assert [name for _, name in columns(found["other2"])] == ["other", "plot", "Overall", "macro-f1"]
    assert texts(found["other2"], "RecToM") == ["100.00", "50.00", "75.00", "33.33"]
    assert [name for _, name in columns(found["other3"])] == ["Overall"]
    assert [len(found[name].columns) for name in ("table3",)] == [6]
    assert not {"table1", "table2", "table5"} & found.keys()


def test_more_than_three_benchmarks_have_their_costs_in_turn(tmp_path: Path) -> None:
    for n in range(5):
        write(tmp_path, f"r{n}", "11111", benchmark=f"toy{n}/all")
    found = sheets(read([f"r{n}" for n in range(5)], tmp_path))
    assert [(len(found[name].columns), found[name].title[:11]) for name in ("table3", "table3-2")] == [
        (6, "Table 3: to"),
        (4, "Table 3 (2)"),
    ]


def test_runs_without_tokens_have_no_table_of_costs(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", tokens=0, model="rules")
    assert "table3" not in sheets(read(["a"], tmp_path))


def test_another_subset_takes_the_papers_place_only_where_its_own_is_not(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", benchmark="hitom/cotp")
    found = sheets(read(["a"], tmp_path), beside_paper=True)
    assert columns(found["table1"])[0][0] == "Hi-ToM (hitom/cotp)"
    assert any("these are not the same questions" in note for note in found["table1"].notes)
    write(tmp_path, "b", "11111")
    found = sheets(read(["a", "b"], tmp_path))
    assert columns(found["table1"])[0][0] == "Hi-ToM"
    assert "hitom/cotp" in found["other1"].title


# What is missing.


def test_what_is_missing_is_a_dash_and_a_line(runs: Path) -> None:
    cells = [
        cell("h-cot", "cot"),
        cell("h-rectom"),
        cell("h-simtom", "simtom", "stopped", why="the budget is spent"),
        cell("h-more", seed=1, state="waiting"),
    ]
    write_sweep(runs, "night", *cells)
    sheet = sheets(read(["night"], runs), beside_paper=True)["table1"]
    assert texts(sheet, "SimToM") == ["–"] * 6
    assert [value.paper for value in row(sheet, "SimToM").values][-1] == "89.75"
    assert "Missing: SimToM with gpt-5.4 on hitom/400: stopped: the budget is spent." in sheet.notes
    seed = "hitom/400 · rectom · gpt-5.4 · seed 1"
    assert f"Missing: RecToM with gpt-5.4 on hitom/400 ({seed}): waiting." in sheet.notes


def test_rows_over_other_questions_are_said_to_be_and_have_no_eff(runs: Path) -> None:
    write(runs, "short", "11111", method="timetom", tokens=3000)
    found = sheets(read([*ALL, "short"], runs))
    assert any("Not all rows are over the same questions of hitom/400" in note for note in found["table1"].notes)
    assert texts(found["table3"], "TimeToM")[:2] == ["3.00K", "–"]
    assert not any("same questions of" in note for note in found["table2"].notes)


def test_a_limit_that_the_label_hides_is_told(runs: Path) -> None:
    write(runs, "few", "11111", limit=5)
    write_sweep(runs, "night", cell("few", benchmark="easy"))
    notes = sheets(read(["night"], runs))["table1"].notes
    assert "easy is hitom/400." in notes
    assert "easy: only the first 5 questions." in notes


# The paper's numbers.


def test_the_papers_numbers_stand_beside_ours_and_its_other_methods_below(runs: Path) -> None:
    found = sheets(read([*ALL, "h-det"], runs), beside_paper=True)
    overall = row(found["table1"], "RecToM").values[-1]
    assert (overall.text, overall.paper, overall.apart) == ("100.00", "100.00", "+0.00")
    simtom = row(found["table1"], "SimToM").values
    assert (simtom[1].paper, simtom[1].apart, simtom[-1].paper, simtom[-1].apart) == (
        "92.50",
        "+7.50",
        "89.75",
        "-29.75",
    )
    assert texts(found["table1"], "TimeToM (paper)") == ["100.00", "92.50", "90.00", "87.50", "81.25", "90.25"]
    assert [one.heads[1] for one in found["table1"].rows if one.paper] == ["TimeToM (paper)"]
    assert [value.paper for value in row(found["table2"], "CoT").values] == ["99.00", "88.95", "86.71", "87.96"]
    assert [value.paper for value in row(found["table3"], "SimToM").values][:2] == ["2.3K", "7.3"]
    assert [value.apart for value in row(found["table3"], "SimToM").values][:2] == ["+0.00K", f"{40 / 1.7 - 7.3:+.2f}"]
    assert [value.paper for value in row(found["table4"], "w/o-det").values][:2] == ["100.00", "0.00"]
    assert texts(found["table4"], "w/o-state (paper)")[:2] == ["93.00", "7.00"]
    beliefs = [value.paper for value in row(found["table5"], "RecToM").values]
    assert beliefs == ["99.50", "99.50", "99.50", "", "", ""]


def test_what_is_to_be_known_of_the_papers_numbers_is_said_where_they_are_shown(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", benchmark="hitom/length-1")
    write(tmp_path, "b", "11111", benchmark="hitom/length-1", model="llama")
    write(tmp_path, "c", grouped(["forward_belief_true"] * 3, "111"), benchmark="bigtom/400")
    notes = sheets(read(["a", "b", "c"], tmp_path), beside_paper=True)["table1"].notes
    assert "The paper has no numbers for llama." in notes
    assert any(note.startswith("The paper's numbers are over hitom/400, ours over hitom/length-1") for note in notes)
    assert any("is not known" in note and "393 (98.25 %)" in note for note in notes)
    found = sheets(read(["a", "b", "c"], tmp_path), beside_paper=True)["table2"]
    assert not any("393" in note or "no numbers" in note for note in found.notes)
    alone = sheets(read(["b"], tmp_path), beside_paper=True)["table1"].notes
    assert "The paper has no numbers for llama." in alone
    assert not any("The paper's numbers" in note or "393" in note for note in alone)
    assert not any("paper" in note for note in sheets(read(["a", "b"], tmp_path))["table1"].notes)


def test_without_being_asked_the_paper_is_silent(runs: Path) -> None:
    for sheet in sheets(read(ALL, runs)).values():
        assert not any(value.paper or one.paper for one in sheet.rows for value in one.values)


def test_a_model_that_is_not_of_the_paper_has_nothing_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", model="llama")
    write(tmp_path, "b", "11111", model="mine", identity="Qwen/Qwen3.5-27B")
    sheet = sheets(read(["a", "b"], tmp_path), beside_paper=True)["table1"]
    assert [one.heads for one in sheet.rows if one.heads[0] == "llama"] == [("llama", "RecToM")]
    assert not any(value.paper for value in row(sheet, "RecToM", "llama").values)
    assert row(sheet, "RecToM", "mine").values[-1].paper == "100.00"
    assert texts(sheet, "CoT (paper)", "mine")[-1] == "90.50"
