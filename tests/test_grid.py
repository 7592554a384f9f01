from __future__ import annotations

from pathlib import Path

import pytest

from rectom.errors import DataError
from rectom.results.finished import Finished
from rectom.results.grid import Grid, Labels, read, role_of
from rectom.results.sweep import FAILED, STOPPED
from tests.reported import cell, outcome, write, write_sweep
from tests.test_listing import opened


def labels(grid: Grid) -> list[tuple[str, str, str, str]]:
    return [(one.model, one.method, one.benchmark, one.setting) for one in grid.cells]


def test_runs_are_arranged_by_their_settings(tmp_path: Path) -> None:
    write(tmp_path, "a", "10101", method="cot")
    write(tmp_path, "b", "11111")
    write(tmp_path, "c", "11111", update="model")
    write(tmp_path, "d", "11111", state="off", benchmark="tomi/all+names.7", limit=5)
    grid = read(["a", "b", str(tmp_path / "c"), "d"], tmp_path)
    assert labels(grid) == [
        ("gpt-5.4", "cot", "hitom/400", ""),
        ("gpt-5.4", "rectom", "hitom/400", ""),
        ("gpt-5.4", "w/o-det", "hitom/400", ""),
        ("gpt-5.4", "w/o-state", "tomi/all+names, first 5", ""),
    ]
    assert [one.family for one in grid.cells.values()] == ["hitom", "hitom", "hitom", "tomi"]
    assert grid.lines[1] == ("rectom", "")
    assert [len(one.questions) for one in grid.cells.values()] == [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("settings", "role"),
    [
        ({"method": "sc:n=5"}, "sc:n=5"),
        ({"method": "rectom", "update": "model"}, "w/o-det"),
        ({"method": "rectom", "state": "off"}, "w/o-state"),
        ({"method": "rectom", "state": "on", "update": "rules"}, "rectom"),
    ],
)
def test_an_ablation_is_told_by_its_settings(settings: dict[str, object], role: str) -> None:
    assert role_of(settings) == role


def test_a_label_of_a_sweep_does_not_hide_what_the_method_is(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", state="off", identity="gpt-5.4-2026")
    write_sweep(tmp_path, "night", cell("a", "histories", model="big"))
    (found,) = read(["night"], tmp_path).cells.values()
    assert (found.labels.method, found.role, found.asked) == ("histories", "w/o-state", "hitom/400")
    assert found.model_names == {"big", "gpt-5.4", "gpt-5.4-2026"}


def test_cells_that_are_not_finished_are_kept_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111")
    write(tmp_path, "torn", "11111", method="cot")
    (tmp_path / "torn" / "results.jsonl").write_text("{")
    write_sweep(
        tmp_path,
        "night",
        cell("a"),
        cell("torn", "cot"),
        cell("gone", "sc"),
        cell("b", "simtom", STOPPED, why="the budget is spent"),
        cell("", "timetom", FAILED, why="no data"),
        cell("../elsewhere", "direct"),
        cell("c", "perceptom", "waiting"),
    )
    grid = read([str(tmp_path / "night")], tmp_path)
    why = {found.labels.method: found.missing[0].why for found in grid.cells.values() if found.missing}
    assert list(why) == ["cot", "sc", "simtom", "timetom", "direct", "perceptom"]
    assert "torn" in why["cot"]
    assert "holds no run" in why["sc"]
    assert [why[name] for name in ("simtom", "timetom", "perceptom")] == [
        "stopped: the budget is spent",
        "failed: no data",
        "waiting",
    ]
    assert "does not tell which run" in why["direct"]


def test_seeds_of_a_cell_are_pooled_question_by_question(tmp_path: Path) -> None:
    one = [outcome(n, n == 0, tokens=100) for n in range(2)]
    other = [outcome(n, False, tokens=400, failed_step="answer", predicted=None) for n in range(2)]
    write(tmp_path, "s0", one)
    write(tmp_path, "s1", other, draw=1)
    (found,) = read(["s0", "s1"], tmp_path).cells.values()
    assert [(q.score, q.tries, q.failed, q.tokens) for q in found.questions] == [(0.5, 2, 1, 250), (0, 2, 1, 250)]
    assert [q.failed_steps for q in found.questions] == [("answer",), ("answer",)]
    single = Finished.read(tmp_path / "s0")
    assert [q.key for q in found.questions] == [q.key for q in single.questions]


def test_samples_weigh_as_much_as_they_are(tmp_path: Path) -> None:
    three = [outcome(0, n < 1, id=f"q0#{n}") for n in range(3)]
    write(tmp_path, "three", three, samples=3)
    write(tmp_path, "one", [outcome(0, True)], draw=3)
    (found,) = read(["three", "one"], tmp_path).cells.values()
    assert [(q.tries, q.score) for q in found.questions] == [(4, 0.5)]


def test_permuted_seeds_are_one_cell_and_the_same_question_only_with_the_same_seeds(tmp_path: Path) -> None:
    def seeds(method: str, *numbers: int) -> frozenset[str]:
        names = [f"{method}{seed}" for seed in numbers]
        for name, seed in zip(names, numbers, strict=True):
            permuted = [outcome(0, True, asked=f"asked {seed}")]
            write(tmp_path, name, permuted, method=method, benchmark=f"hitom/400+names.{seed}")
        (found,) = read(names, tmp_path).cells.values()
        assert (found.labels.benchmark, len(found.questions)) == ("hitom/400+names", 1)
        return found.keys

    assert seeds("cot", 1, 2) == seeds("sc", 1, 2) == seeds("direct", 2, 1)
    assert seeds("cot", 1, 2) != seeds("sc", 1)


def test_samples_of_several_sizes_are_cells_of_their_own_and_their_seeds_are_not(tmp_path: Path) -> None:
    for name, sample in {"a": "10.0", "b": "20.0", "c": "20.1"}.items():
        write(tmp_path, name, "11111", benchmark=f"hitom/400+stories.{sample}")
    found = {labels.benchmark: len(cell.tried) for labels, cell in read([*"abc"], tmp_path).cells.items()}
    assert found == {"hitom/400+stories.10": 1, "hitom/400+stories.20": 2}


def test_runs_that_differ_in_more_than_their_draws_are_cells_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111", temperature=1.0)
    write(tmp_path, "b", "11111", temperature=0.0)
    write(tmp_path, "c", "11111", window=5, temperature=1.0, readers={"observe": "rules", "chain": "model"})
    assert [one[3] for one in labels(read(["a", "b", "c"], tmp_path))] == [
        "temperature 1.0",
        "temperature 0.0",
        "observe by rules, window 5",
    ]


def test_other_data_are_another_benchmark(tmp_path: Path) -> None:
    write(tmp_path, "a", "11111")
    write(tmp_path, "b", "11111", method="cot", data="e" * 64)
    assert [one[2] for one in labels(read(["a", "b"], tmp_path))] == [
        "hitom/400, data dddddddd",
        "hitom/400, data eeeeeeee",
    ]


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path, "a", "10101")
    write_sweep(tmp_path, "night", cell("a"))
    (found,) = read(["a", "night", str(tmp_path / "a")], tmp_path).cells.values()
    assert [question.tries for question in found.questions] == [1] * 5


def test_the_papers_benchmarks_come_first(tmp_path: Path) -> None:
    names = ["tomi/all", "fantom/324", "hitom/400", "bigtom/400"]
    for name in names:
        write(tmp_path, name[:4], "11111", benchmark=name)
    grid = read([name[:4] for name in names], tmp_path)
    assert grid.benchmarks == ["hitom/400", "bigtom/400", "fantom/324", "tomi/all"]


def test_a_peer_has_the_same_setting_or_else_none(tmp_path: Path) -> None:
    for name, method in {"a": "rectom", "b": "rectom", "c": "cot", "d": "rectom"}.items():
        write(tmp_path, name, "11111", method=method)
    cells = [cell("a"), cell("b", setting="w5"), cell("c", "cot"), cell("d", "mine", setting="w5")]
    write_sweep(tmp_path, "night", *cells)
    grid = read(["night"], tmp_path)
    windowed, plain = (
        grid.cells[Labels("gpt-5.4", "mine", "hitom/400", "w5")],
        grid.cells[Labels("gpt-5.4", "cot", "hitom/400")],
    )

    def peer(of: object, method: str) -> str:
        found = grid.peer(of, method)  # type: ignore[arg-type]
        return found.tried[0].folder.name if found else ""

    assert [peer(windowed, "rectom"), peer(plain, "rectom"), peer(windowed, "cot"), peer(plain, "sc")] == [
        "b",
        "a",
        "c",
        "",
    ]


def test_a_method_with_options_is_a_peer_where_there_is_none_without(tmp_path: Path) -> None:
    for name, method in {"a": "rectom", "b": "cot:conclude=on"}.items():
        write(tmp_path, name, "11111", method=method)
    grid = read(["a", "b"], tmp_path)
    of = grid.cells[Labels("gpt-5.4", "rectom", "hitom/400")]
    found = grid.peer(of, "cot")
    assert found
    assert found.labels.method == "cot:conclude=on"
    write(tmp_path, "c", "11111", method="cot")
    plain = read(["a", "b", "c"], tmp_path).peer(of, "cot")
    assert plain
    assert plain.labels.method == "cot"


# What is refused.


def test_an_unknown_name_is_refused_with_what_there_is(tmp_path: Path) -> None:
    write(tmp_path, "a", "1")
    write_sweep(tmp_path, "night", cell("a"))
    with pytest.raises(DataError, match=r"there is no run or sweep b in .*; there are a, night$"):
        read(["b"], tmp_path)


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, "a", "1")
    text = (folder / "manifest.json").read_text().replace('"finished"', '"running"')
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="a is not finished but running"):
        read(["a"], tmp_path)


def test_a_sweep_of_which_nothing_is_finished_is_refused(tmp_path: Path) -> None:
    write_sweep(tmp_path, "night", cell("a", state="waiting"), cell("b", "cot", FAILED, why="no server"))
    with pytest.raises(DataError, match=r"night: no run is finished yet"):
        read(["night"], tmp_path)


def test_no_traces_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path, "a", "11111")
    with opened() as files:
        read(["a"], tmp_path)
    assert {name for where, name in files if where == folder.name} == {"manifest.json", "results.jsonl"}
