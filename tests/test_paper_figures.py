from __future__ import annotations

from pathlib import Path

import pytest

from rectom.results import grid
from rectom.results.fault import UNTOLD
from rectom.results.figures.theme import LIGHT
from rectom.results.folder import TIMES
from rectom.results.paper_figures import drawn
from tests.reported import outcome, write


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two methods on ten questions, one with faults and with the times of its calls."""
    faults = [outcome(place, place < 6, fault="" if place < 6 else "revision") for place in range(10)]
    folder = write(tmp_path, "ours", faults)
    times = "".join(f"answer,{1_700_000_000 + 10 * number},0.5\n" for number in range(20))
    (folder / TIMES).write_text(f"step,at,latency_s\n{times}")
    write(tmp_path, "cot", "1" * 5 + "0" * 5, method="cot", tokens=300)
    return tmp_path


def test_the_figures_of_a_report_are_drawn_with_their_titles(runs: Path) -> None:
    found = {figure.name: figure for figure in drawn(grid.read(["ours", "cot"], runs))}
    assert {name: figure.title for name, figure in found.items()} == {
        "orders-hitom-400-gpt-5.4": "hitom/400, gpt-5.4: accuracy by order",
        "tokens-hitom-400": "hitom/400: accuracy against tokens a question",
        "faults-hitom-400": "hitom/400: where wrong answers of RecToM went wrong",
        "times": "calls and their latency over time",
    }
    for name, figure in found.items():
        assert set(figure.files) == {f"{name}{theme}.{form}" for theme in ("", ".dark") for form in ("svg", "png")}
        assert figure.address(".svg").startswith("data:image/svg+xml;base64,")
    lines = found["orders-hitom-400-gpt-5.4"].files["orders-hitom-400-gpt-5.4.svg"].decode()
    assert "RecToM" in lines
    assert "CoT" in lines
    faults = found["faults-hitom-400"].files["faults-hitom-400.svg"].decode()
    assert "revision" in faults
    assert "4 (100 %)" in faults


def test_a_method_looks_alike_where_another_is_missing(runs: Path) -> None:
    write(runs, "tomi", "1" * 10, benchmark="tomi/all")
    found = {figure.name: figure for figure in drawn(grid.read(["cot", "ours", "tomi"], runs))}
    for name in ("orders-hitom-400-gpt-5.4", "orders-tomi-all-gpt-5.4", "tokens-tomi-all"):
        assert LIGHT.series[1] in found[name].files[f"{name}.svg"].decode()


def test_wrong_answers_of_which_nothing_is_told_are_drawn_too(tmp_path: Path) -> None:
    wrong = {0: "revision", 1: "", 2: "", 3: ""}
    answers = [outcome(place, place not in wrong, fault=wrong.get(place, "")) for place in range(10)]
    write(tmp_path, "ours", answers)
    found = {figure.name: figure for figure in drawn(grid.read(["ours"], tmp_path))}
    faults = found["faults-hitom-400"].files["faults-hitom-400.svg"].decode()
    assert all(words in faults for words in ("revision", "1 (25 %)", UNTOLD, "3 (75 %)"))


def test_the_runs_whose_wrong_answers_are_drawn_together_are_named_and_those_without_steps_left_out(runs: Path) -> None:
    write(runs, "untold", "1" * 7 + "0" * 3, window=5)
    write(runs, "right", "1" * 10, window=9)
    write(runs, "other", "1" * 9 + "0", model="mine")
    found = {figure.name: figure for figure in drawn(grid.read(["ours", "cot", "untold", "right", "other"], runs))}
    figure = found["faults-hitom-400"]
    assert figure.title == "hitom/400: where wrong answers of RecToM, RecToM, window 5 with gpt-5.4, mine went wrong"
    faults = figure.files["faults-hitom-400.svg"].decode()
    assert all(words in faults for words in ("4 (50 %)", UNTOLD))
    assert "taken together" in figure.note
    assert f"`{UNTOLD}`: no rule reads the text" in figure.note


def test_the_axis_of_tokens_and_the_frontier_are_explained(runs: Path) -> None:
    found = {figure.name: figure for figure in drawn(grid.read(["ours", "cot"], runs))}
    figure = found["tokens-hitom-400"]
    assert "tokens a question, alone" in figure.files["tokens-hitom-400.svg"].decode()
    assert "The frontier joins" in figure.note


def test_what_is_not_known_is_not_drawn(tmp_path: Path) -> None:
    write(tmp_path, "rules", "1" * 10, model="rules", tokens=0)
    assert [figure.name for figure in drawn(grid.read(["rules"], tmp_path))] == ["orders-hitom-400-rules"]


def test_damaged_times_are_left_out(runs: Path) -> None:
    (runs / "ours" / TIMES).write_text("step,at,latency_s\nanswer,soon,0.5\n")
    assert "times" not in {figure.name for figure in drawn(grid.read(["ours", "cot"], runs))}
