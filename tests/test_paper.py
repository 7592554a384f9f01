from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from pathlib import Path

import pytest

from rectom.results.paper import BENCHMARKS, paper

SEEDS = Path(__file__).parents[2] / "shared" / "seeds"
#: The labels of the paper's tables, and what its methods are called here.
LABELS = {
    "table1": "tab:hitom_order_accuracy",
    "table2": "tab:bigtom_fantom_order_accuracy",
    "table3": "tab:token_efficiency",
    "table4": "tab:rectom_ablation",
    "table5": "tab:bigtom_forward_belief",
}
METHODS = {"CoT": "cot", "SimToM": "simtom", "TimeToM": "timetom", "RecToM": "rectom"}
FAMILIES = ("hitom", "bigtom", "fantom")


@pytest.fixture(scope="module")
def source() -> str:
    """The LaTeX of the paper."""
    for file in sorted(SEEDS.glob("*.txt")) if SEEDS.is_dir() else []:
        if LABELS["table1"] in (text := file.read_text("utf-8")):
            return text
    pytest.skip(f"the paper's LaTeX is not in {SEEDS}")


def rows_of(source: str, label: str) -> Iterator[tuple[str, str, list[str]]]:
    """The model, the method and the cells of each row of a table of the paper."""
    body = source[: source.index(rf"\label{{{label}}}")].rpartition(r"\begin{tabular}")[2]
    body = body.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    model = ""
    for row in body.replace(r"\midrule", "").replace(r"\rowcolor{LightBlue}", "").split(r"\\"):
        plain = re.sub(r"\\textcolor\{\w+\}|\\multirow\{\d\}\{\*\}|\\text\w\w|\\underline|[{}]|\(ours\)", "", row)
        first, *cells = (cell.strip() for cell in plain.split("&"))
        model = first or model
        if cells:
            yield model, METHODS.get(cells[0], cells[0]), cells[1:]


@pytest.mark.parametrize("name", LABELS)
def test_every_number_is_that_of_the_paper(source: str, name: str) -> None:
    table = paper().tables[name]
    told = {
        (model, method): ["--" if isnan(number) else number for number in numbers]
        for model, methods in table.values.items()
        for method, numbers in methods.items()
    }
    printed = {
        (model, method): [cell if cell == "--" else float(cell.removesuffix("K")) for cell in cells]
        for model, method, cells in rows_of(source, LABELS[name])
    }
    assert told == printed
    assert len(told) == {"table3": 8, "table4": 12}.get(name, 16)


def test_every_row_has_a_number_for_every_column() -> None:
    for table in paper().tables.values():
        for methods in table.values.values():
            assert {len(numbers) for numbers in methods.values()} == {len(table.columns)}
        assert table.values.keys() <= paper().models.keys()


def value(table: str, model: str, method: str, column: str) -> float:
    found = paper().tables[table].value(model, method, column)
    assert found is not None
    return found


def rows(table: str) -> list[tuple[str, str]]:
    found = paper().tables[table]
    return [(model, method) for model in found.values for method in found.methods(model)]


def test_hitoms_overall_is_the_mean_of_its_orders() -> None:
    for row in rows("table1"):
        orders = [value("table1", *row, f"hitom {order}") for order in range(5)]
        assert value("table1", *row, "hitom all") == pytest.approx(sum(orders) / 5, abs=0.005001)


def test_fantoms_overall_is_that_of_its_181_and_143_questions() -> None:
    for row in rows("table2"):
        right = 181 * value("table2", *row, "fantom 1") + 143 * value("table2", *row, "fantom 2")
        assert value("table2", *row, "fantom all") == pytest.approx(right / 324, abs=0.011)


def test_forward_belief_is_the_mean_of_its_halves_and_that_of_table_2() -> None:
    for row in rows("table5"):
        halves = value("table5", *row, "bigtom true") + value("table5", *row, "bigtom false")
        assert value("table5", *row, "bigtom forward") == pytest.approx(halves / 2, abs=0.005001)
        assert value("table5", *row, "bigtom forward") == value("table2", *row, "bigtom all")


def test_a_drop_is_the_difference_to_the_full_method_of_the_tables_before() -> None:
    for model, method in rows("table4"):
        for family in FAMILIES:
            before = "table1" if family == "hitom" else "table2"
            full = value("table4", model, "rectom", f"{family} acc")
            assert full == value(before, model, "rectom", f"{family} all")
            if method != "rectom":
                drop = full - value("table4", model, method, f"{family} acc")
                assert value("table4", model, method, f"{family} drop") == pytest.approx(drop, abs=0.011)


def test_eff_is_what_accuracies_and_rounded_tokens_allow() -> None:
    checked = 0
    for model, method in rows("table3"):
        for family in FAMILIES:
            before = "table1" if family == "hitom" else "table2"
            if method == "cot":
                continue
            gain = value(before, model, method, f"{family} all") - value(before, model, "cot", f"{family} all")
            more = value("table3", model, method, f"{family} tok") - value("table3", model, "cot", f"{family} tok")
            possible = sorted([gain / (more - 0.1), gain / (more + 0.1)])
            assert possible[0] - 0.051 <= value("table3", model, method, f"{family} eff") <= possible[1] + 0.051
            checked += 1
    assert checked == 18


def test_a_dash_and_an_unknown_cell_are_no_number() -> None:
    table = paper().tables["table3"]
    assert table.value("GPT-5.4", "cot", "hitom eff") is None
    assert table.value("GPT-5.4", "sc", "hitom eff") is None
    assert table.value("GPT-5.4", "cot", "tomi tok") is None
    assert table.methods("Qwen3.5") == ()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-5.4", "GPT-5.4"),
        ("gemini-3-flash", "Gemini-3"),
        ("Qwen/Qwen3.5-27B", "Qwen3.5"),
        ("gemma-4-26b-a4b", "Gemma-4"),
        ("Gemma-4", "Gemma-4"),
        ("qwen3.5", "Qwen3.5"),
        ("qwen3.5-9b", None),
        ("rules", None),
    ],
)
def test_a_model_is_known_by_its_names(name: str, known: str | None) -> None:
    assert paper().model({name, "something else"}) == known


def test_the_declared_models_are_those_of_the_paper() -> None:
    from rectom.llm.catalogue import catalogue

    declared = catalogue(Path("/nowhere"))
    assert {paper().model({name, provider.name}) for name, provider in declared.items()} >= {*paper().models}


def test_the_papers_benchmarks_are_subsets_that_there_are() -> None:
    from rectom.benchmarks.registry import adapter

    for name, asked in BENCHMARKS.items():
        assert asked.partition("/")[2] in adapter(name).subsets
