from __future__ import annotations

from pathlib import Path

import pytest

from rectom.results.grid import read
from rectom.results.statistics import wilson
from rectom.results.values import accuracy, beside, eff, official, official_of, percent, printed, thousands
from tests.reported import failed, outcome, write


def test_an_accuracy_has_wilsons_interval_and_what_failed_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, "a", [*(outcome(n, True) for n in range(3)), failed(3, "answer")])
    (cell,) = read(["a"], tmp_path).cells.values()
    found = accuracy(cell.questions)
    low, high = wilson(0.75, 4)
    assert (found.text, found.number, found.span) == ("75.00", 75, f"{100 * low:.1f}, {100 * high:.1f}")
    assert found.ends == (100 * low, 100 * high)
    assert accuracy([]).number is None


def test_figures_are_rounded_and_nothing_is_minus_nought() -> None:
    assert (eff(3.806, (3.2, 4.05)).text, eff(3.806, (3.2, 4.05)).span) == ("3.81", "3.20, 4.05")
    assert (percent(-0.00001, (-0.0001, 0.02)).text, percent(-0.00001, (-0.0001, 0.02)).span) == ("0.00", "0.0, 2.0")
    assert percent(-0.07, None).text == "-7.00"
    tokens = thousands(6618.4, (6500, 6700))
    assert (tokens.text, tokens.span, tokens.number, tokens.ends) == ("6.62K", "6.50, 6.70", 6618.4, (6500, 6700))


@pytest.mark.parametrize(
    ("ours", "number", "key", "paper", "apart"),
    [
        (percent(0.98, None), 97.75, "hitom all", "97.75", "+0.25"),
        (thousands(6500, None), 6.6, "hitom tok", "6.6K", "-0.10K"),
        (eff(3.5, None), 3.8, "hitom eff", "3.8", "-0.30"),
        (accuracy([]), 97.75, "hitom all", "97.75", ""),
        (percent(0.977499999, None), 97.75, "hitom all", "97.75", "+0.00"),
        (percent(0.98, None), None, "hitom all", "", ""),
    ],
)
def test_the_papers_figure_is_put_beside_ours(
    ours: object, number: float | None, key: str, paper: str, apart: str
) -> None:
    found = beside(ours, number, key)  # type: ignore[arg-type]
    assert (found.paper, found.apart) == (paper, apart)
    assert printed(number, key).text == (paper or "–")


def test_the_official_measure_is_the_one_over_all_questions(tmp_path: Path) -> None:
    for name, value in (("a", "41.00"), ("b", "43.00")):
        folder = write(tmp_path, name, "11111", draw=int(name == "b"))
        (folder / "tables").mkdir()
        rows = f"official measure,questions,value\nmacro-f1: place,3,90.00\nmacro-f1,5,{value}\n"
        (folder / "tables" / "official.csv").write_text(rows)
    assert official_of(tmp_path / "a") == ("macro-f1", 41)
    (cell,) = read(["a", "b"], tmp_path).cells.values()
    assert official(cell).text == "42.00"


@pytest.mark.parametrize("text", [None, "", "official measure,questions,value\n", "a,1,b\n", "a\n"])
def test_no_official_measure_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "tables").mkdir()
        (tmp_path / "tables" / "official.csv").write_text(text)
    assert official_of(tmp_path) is None
