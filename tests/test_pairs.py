from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from rectom.errors import SettingsError
from rectom.results.comparison import compare
from rectom.results.finished import Finished
from rectom.results.grid import Filled, Grid, Labels, read
from rectom.results.pairs import Pairs, check
from rectom.results.statistics import holm
from tests.reported import cell, write, write_sweep


def answers(seed: int, share: float, count: int = 100) -> str:
    chance = Random(seed)
    return "".join("1" if chance.random() < share else "0" for _ in range(count))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three methods over the same questions, a fourth over fewer of them."""
    write(tmp_path, "cot", answers(1, 0.5), method="cot", tokens=600)
    write(tmp_path, "simtom", answers(2, 0.7), method="simtom", tokens=2300)
    write(tmp_path, "rectom", answers(3, 0.95), tokens=6600)
    write(tmp_path, "sc", answers(3, 0.95, 50), method="sc", tokens=6600)
    return tmp_path


def of(grid: Grid, method: str) -> Filled:
    return grid.cells[Labels("gpt-5.4", method, "hitom/400")]


def test_a_difference_is_the_one_that_compare_finds(runs: Path) -> None:
    grid = read(["cot", "simtom", "rectom"], runs)
    found = Pairs(grid).difference(of(grid, "simtom"), of(grid, "rectom"))
    expected = compare([Finished.read(runs / name) for name in ("rectom", "simtom")]).rows[-1].differences[0]
    assert found
    assert (found.b, found.c, found.p, found.accuracy) == (expected.b, expected.c, expected.p, expected.accuracy)
    assert found.interval == pytest.approx(expected.interval)


def test_eff_and_its_interval_are_of_the_same_resamples(runs: Path) -> None:
    grid = read(["cot", "simtom"], runs)
    pairs, (cot, simtom) = Pairs(grid), (of(grid, "cot"), of(grid, "simtom"))
    gain = pairs.difference(simtom, cot)
    assert gain
    assert gain.interval
    # All questions take the same tokens, so that accuracy alone varies.
    assert gain.eff == pytest.approx(100 * gain.accuracy / 1.7)
    assert pairs.eff(simtom, cot) == pytest.approx([100 * end / 1.7 for end in gain.interval])
    assert pairs.tokens(simtom) == (2300, 2300)
    assert pairs.eff(cot, simtom) is None


def test_other_questions_are_not_paired(runs: Path) -> None:
    grid = read(["rectom", "sc"], runs)
    assert Pairs(grid).difference(of(grid, "sc"), of(grid, "rectom")) is None
    (trial,) = Pairs(grid).trials()
    assert (trial.cell.labels.method, trial.difference, trial.is_significant) == ("sc", None, False)


def test_every_method_is_tested_against_rectom_and_holm_is_over_the_benchmark(runs: Path) -> None:
    for name, method in (("other-cot", "cot"), ("other-rectom", "rectom")):
        write(runs, name, answers(len(name), 0.6), method=method, model="gemma-4", tokens=600)
    trials = Pairs(read(["cot", "simtom", "rectom", "other-cot", "other-rectom"], runs)).trials()
    told = [(one.cell.labels.model, one.cell.labels.method, one.baseline.labels.method) for one in trials]
    assert told == [("gpt-5.4", "cot", "rectom"), ("gpt-5.4", "simtom", "rectom"), ("gemma-4", "cot", "rectom")]
    found = [one.difference for one in trials if one.difference]
    assert [one.holm for one in found] == holm([one.p for one in found])
    assert [one.is_significant for one in trials] == [True, True, False]


@pytest.mark.parametrize(
    ("names", "against", "baseline"),
    [
        (["cot", "simtom"], None, "cot"),
        (["simtom", "sc"], None, "simtom"),
        (["cot", "simtom", "rectom"], "simtom", "simtom"),
    ],
)
def test_the_baseline_is_rectom_or_cot_or_the_one_that_is_named(
    runs: Path, names: list[str], against: str | None, baseline: str
) -> None:
    trials = Pairs(read(names, runs)).trials(against)
    assert {one.baseline.labels.method for one in trials} == {baseline}
    assert len(trials) == len(names) - 1


def test_settings_of_one_method_are_tested_against_the_first(runs: Path) -> None:
    write(runs, "literal", answers(4, 0.8))
    write_sweep(runs, "night", cell("literal", setting="a"), cell("rectom", setting="b"))
    (trial,) = Pairs(read(["night"], runs)).trials()
    assert (trial.cell.labels.setting, trial.baseline.labels.setting) == ("b", "a")


def test_a_method_that_is_not_there_is_no_baseline(runs: Path) -> None:
    grid = read(["cot", "rectom"], runs)
    check(grid, "cot")
    with pytest.raises(SettingsError, match="--against sc: there is no such method here; there are cot, rectom"):
        check(grid, "sc")
