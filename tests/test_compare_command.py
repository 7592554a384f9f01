from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from unittest import mock

import pytest

from flows.cli import COMMANDS
from rectom.llm import Sampling
from rectom.llm.budget import Budget
from rectom.llm.prices import Prices
from rectom.results.summary import Cost
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Ended, Lab, call, serving, write_stories
from tests.reported import write_sweep
from tests.test_finished import SETTINGS, answer, write_run


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with mock.patch.dict(COMMANDS, compare=("flows.commands.compare", "Compare runs over the same questions.")):
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs over the same twelve questions of six stories, a third over eight of them."""
    folder = tmp_path / "runs"
    answers = [answer(number, number % 3 > 0) for number in range(12)]
    write_run(folder / "cot", [answer(number, number % 2 > 0, tokens=600, calls=1) for number in range(12)])
    failed = answer(4, False, predicted=None, failed_step="revise")
    settings = {**SETTINGS, "rules": "literal", "readers": {"chain": "model", "answer": "rules"}, "window": 5}
    write_run(folder / "ours", [*answers[:4], failed, *answers[5:]], settings=settings)
    write_run(folder / "part", answers[2:10], settings={**SETTINGS, "benchmark": "toy/part"}, cost=Cost(billed=10))
    return folder


def compare(runs: Path, *arguments: object) -> Ended:
    """`rectom compare` in a terminal of 80 columns."""
    return call("compare", *arguments, "--runs", runs, COLUMNS="80")


def refused(ended: Ended) -> str:
    """The one line that a command says which does not do what it is told."""
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    return ended.errors[0]


# What it prints.


def test_the_tables_have_every_run_and_order_and_fit_80_columns(runs: Path) -> None:
    done = compare(runs, "cot", "ours")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "A  cot  (baseline)  rules=hitom, readers=rules" in lines
    assert "B  ours  rules=literal, readers=chain:model answer:rules, window=5" in lines
    assert "toy/all: 12 questions about 6 stories" in lines
    cells = [line.split() for line in lines]
    assert ["all", "12", "A", "50.00", "25.4", "to", "74.6", "0", "1.00", "600"] in cells
    assert ["B", "58.33", "32.0", "to", "80.7", "1", "4.00", "1000"] in cells
    assert [line[:3] for line in cells if line[:2] == ["all", "B"]] == [["all", "B", "+8.33"]]
    assert "McNemar" in done.out


def heads(runs: Path, *names: str) -> list[str]:
    """The lines about the runs, by which they are told apart."""
    return compare(runs, *names).out.splitlines()[: len(names)]


def test_a_setting_that_only_some_runs_name_is_told_of_all_that_have_it(runs: Path) -> None:
    told: dict[str, dict[str, object]] = {
        "full": {},
        "histories": {"state": "off"},
        "by-model": {"update": "model", "draw": 3},
        "usual": {"temperature": 0.0, "samples": 1, "window": None},
    }
    for name, more in told.items():
        write_run(runs / name, [answer(number) for number in range(12)], settings={**SETTINGS, **more})
    plain = {"benchmark": "toy/all", "data": "d" * 64, "method": "cot", "model": "m"}
    write_run(runs / "thoughts", [answer(number) for number in range(12)], settings=plain)
    assert heads(runs, "full", "histories") == ["A  full  (baseline)  state=on", "B  histories  state=off"]
    assert heads(runs, "full", "by-model", "histories") == [
        "A  full  (baseline)  update=rules, state=on",
        "B  by-model  update=model, draw=3, state=on",
        "C  histories  update=rules, state=off",
    ]
    assert heads(runs, "full", "usual") == ["A  full  (baseline)", "B  usual"]
    assert heads(runs, "thoughts", "full") == [
        "A  thoughts  (baseline)  method=cot, model=m",
        "B  full  method=rectom, rules=hitom, readers=rules",
    ]


def test_five_runs_fit_80_columns_too(runs: Path) -> None:
    for name in ("x", "y", "z"):
        write_run(runs / f"a-run-with-a-name-of-{name}", [answer(number, number % 5 > 0) for number in range(12)])
    more = [f"a-run-with-a-name-of-{name}" for name in "xyz"]
    done = compare(runs, "cot", "ours", *more)
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in done.out
    last = lines[max(number for number, line in enumerate(lines) if line.startswith("all ")) :]
    assert [line.split()[0] for line in last[:4]] == ["all", "C", "D", "E"]


def test_json_is_a_line_a_comparison_and_nothing_else(runs: Path) -> None:
    done = compare(runs, "cot", "ours", "--json")
    (line,) = map(json.loads, done.out.splitlines())
    assert (line["run"], line["against"], line["all"]["questions"], line["all"]["run"]["failed"]) == (
        "ours",
        "cot",
        12,
        1,
    )
    assert line["all"]["eff"] == pytest.approx(100 / 12 / 0.4, abs=1e-5)
    assert done.err == ""


def test_the_baseline_can_be_named_apart(runs: Path) -> None:
    one, other = (compare(runs, *names, "--json") for names in (("ours", "cot"), ("cot", "ours", "--against", "ours")))
    assert one.out == other.out
    assert compare(runs, "cot", "--against", "ours", "--json").out == one.out
    assert one.line["against"] == "ours"


def test_a_run_may_be_given_by_its_folder(runs: Path) -> None:
    assert compare(runs, runs / "cot", f"{runs / 'ours'}/", "--json").out == compare(runs, "cot", "ours", "--json").out


def test_the_same_seed_gives_the_same_interval(runs: Path) -> None:
    def interval(*more: object) -> list[float]:
        found: list[float] = compare(runs, "cot", "ours", "--json", *more).line["all"]["difference_interval"]
        return found

    assert interval() == interval("--seed", 0, "--resamples", 2000)
    assert len({tuple(interval("--seed", seed, "--resamples", 100)) for seed in range(6)}) > 1


def test_markdown_and_latex_name_the_runs(runs: Path) -> None:
    shown = compare(runs, "cot", "ours", "--markdown").out
    assert shown.count("| --- |") == 3
    assert "| all | 12 | cot | 50.00 | 25.4 to 74.6 | 0 | 1.00 | 600 |" in shown
    typeset = compare(runs, "cot", "ours", "--latex").out
    assert typeset.count(r"\begin{tabular}") == typeset.count(r"\end{tabular}") == 3
    assert r"all & 12 & cot & 50.00" in typeset


def test_csv_is_one_table(runs: Path) -> None:
    rows = list(csv.DictReader(compare(runs, "cot", "ours", "--csv").out.splitlines()))
    assert [(row["order"], row["run"]) for row in rows[-2:]] == [("all", "cot"), ("all", "ours")]
    assert float(rows[-1]["difference"]) == pytest.approx(1 / 12, abs=1e-6)
    assert rows[-2]["difference"] == rows[-2]["money"] == ""


def test_runs_of_one_name_are_told_apart(runs: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere" / "cot", [answer(number) for number in range(12)])
    shown = compare(runs, "cot", tmp_path / "elsewhere" / "cot", "--markdown").out
    assert "| all | 12 | cot (1) |" in shown
    assert "| all | 12 | cot (2) |" in shown


def test_a_name_is_no_markup(runs: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "[red]x[bold]", [answer(number) for number in range(12)])
    assert "[red]x[bold]" in compare(runs, "cot", tmp_path / "[red]x[bold]").out


@pytest.mark.parametrize("form", [(), ("--markdown",), ("--latex",), ("--csv",), ("--json",)])
def test_a_terminal_obeys_nothing_of_a_run(runs: Path, tmp_path: Path, form: tuple[str, ...]) -> None:
    settings = {**SETTINGS, "rules": "\x1b]0;rules\x07", "benchmark": "toy/\x1b[2Jall"}
    write_run(tmp_path / "a\x1b[2J", [answer(number) for number in range(10)], settings=settings)
    done = compare(runs, "cot", tmp_path / "a\x1b[2J", "--intersect", *form)
    assert done.status == 0
    assert "\x1b" not in done.out + done.err


# What it refuses.


def test_other_questions_are_refused_and_the_shared_ones_compared_if_wanted(runs: Path) -> None:
    said = refused(compare(runs, "cot", "part"))
    assert "cot has 12 (toy/all), part has 8 (toy/part); they share 8: --intersect compares those" in said
    done = compare(runs, "cot", "part", "--intersect")
    assert "toy/all, toy/part: 8 questions about 4 stories" in done.out
    assert "left out, since not all runs have them: 4 of A, 0 of B" in done.out
    told = compare(runs, "cot", "part", "--intersect", "--csv")
    assert "4 of cot, 0 of part" in told.errors[0]
    assert compare(runs, "cot", "part", "--intersect", "--json").line["left_out"] == {"run": 0, "against": 4}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["cot"], "compare takes from 2 to 26 different runs, not 1"),
        (["cot", "cot"], "compare takes from 2 to 26 different runs, not 1"),
        (["cot", "night"], "there is no run night in .*; there are cot, ours, part"),
    ],
)
def test_what_is_no_comparison_is_refused(runs: Path, names: list[str], said: str) -> None:
    assert re.search(said, refused(compare(runs, *names)))


def test_sweeps_unfinished_and_damaged_runs_are_named(runs: Path) -> None:
    write_sweep(runs, "night")
    assert "night is a sweep: give runs of it, which" in refused(compare(runs, "cot", "night"))
    write_run(runs / "half", [answer(0)], state="interrupted")
    assert "half is not finished but interrupted" in refused(compare(runs, "cot", "half"))
    (runs / "part" / "results.jsonl").write_bytes((runs / "part" / "results.jsonl").read_bytes()[:-9])
    assert "part/results.jsonl, row 8: not JSON" in refused(compare(runs, "cot", "part"))


# With runs as they are made.


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI()) as server:
        yield Lab(tmp_path, write_stories(tmp_path), server)


def test_real_runs_are_compared_with_what_they_cost(lab: Lab) -> None:
    prices = Prices(input=Decimal("0.1"), output=Decimal("0.4"), date=date(2026, 5, 21))
    literal = lab.run(model="rules", rules="literal", name="literal")
    asked = lab.run(name="asked", budget=Budget(prices=prices))
    again = lab.run(name="again")
    sampled = lab.run(name="sampled", samples=2, sampling=Sampling(temperature=1.0))
    done = compare(lab.runs, "literal", "asked", "again", "sampled", "--json")
    first, second, third = (json.loads(line) for line in done.out.splitlines())
    assert first["all"]["questions"] == third["all"]["questions"] == SMALL_QUESTIONS
    assert first["all"]["against"]["accuracy"] == pytest.approx(literal.line["accuracy"], abs=1e-6)
    assert first["all"]["run"]["accuracy"] == third["all"]["run"]["accuracy"] == asked.line["accuracy"] == 1
    assert first["all"]["c"] == third["all"]["c"] == SMALL_QUESTIONS - literal.line["correct"] > 0
    assert first["all"]["run"]["tokens"] == pytest.approx(asked.cost.standalone / SMALL_QUESTIONS, abs=1e-3)
    assert third["all"]["run"]["tokens"] == pytest.approx(sampled.cost.standalone / SMALL_QUESTIONS / 2, abs=1e-3)
    assert first["paid"]["run"]["tokens_billed"] == asked.cost.billed > 0
    assert first["paid"]["run"]["money"] == f"{asked.money.whole:.6f}"
    assert (second["paid"]["run"]["tokens_billed"], second["paid"]["run"]["money"]) == (0, None)
    assert again.cost.standalone == asked.cost.standalone
    shown = compare(lab.runs, "literal", "asked", "sampled").out
    assert "a question that was asked several times counts once" in shown
    assert "none" in shown
    assert "unknown" in shown


def test_a_run_taken_up_again_still_knows_what_it_paid(lab: Lab) -> None:
    lab.run(model="rules", rules="literal", name="literal")
    paid = lab.run(name="asked").cost.billed
    lab.run(name="asked")
    line = compare(lab.runs, "literal", "asked", "--json").line
    assert line["paid"]["run"]["tokens_billed"] == paid


def test_a_permuted_run_is_over_other_questions(lab: Lab) -> None:
    lab.run(model="rules", name="plain")
    lab.run(model="rules", name="permuted", permuted=("choices",), seed=7)
    said = refused(compare(lab.runs, "plain", "permuted", "--intersect"))
    assert "they share none" in said
