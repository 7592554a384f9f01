"""Imports go down only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What each floor may not import.
ABOVE = {
    "rectom": {"cache", "tasks", "flows", "prefect", "tests", "bench"},
    "cache": {"rectom", "tasks", "flows", "prefect", "tests", "bench"},
    "tasks": {"flows", "prefect", "tests", "bench"},
    "flows": {"tests", "bench"},
}


def files(floor: str) -> list[Path]:
    return sorted((ROOT / floor).rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            yield node.module or ""


@pytest.mark.parametrize("floor", ABOVE)
def test_a_floor_imports_none_above_it(floor: str) -> None:
    assert files(floor)
    for file in files(floor):
        upward = {name for name in imported(file) if name.partition(".")[0] in ABOVE[floor]}
        assert not upward, file.relative_to(ROOT)


def test_prefect_is_imported_in_two_modules_alone() -> None:
    using = {
        str(file.relative_to(ROOT))
        for floor in ABOVE
        for file in files(floor)
        if any(name.partition(".")[0] == "prefect" for name in imported(file))
    }
    assert using == {"flows/prefect_flow.py", "flows/prefect_sweep.py"}


@pytest.mark.parametrize(
    ("library", "floors"),
    [("aiohttp", {"rectom/llm", "rectom/benchmarks"}), ("openai", {"rectom/llm"}), ("diskcache", {"cache"})],
)
def test_each_library_has_its_place(library: str, floors: set[str]) -> None:
    using = {
        str(file.parent.relative_to(ROOT))
        for floor in ABOVE
        for file in files(floor)
        if any(name.partition(".")[0] == library for name in imported(file))
    }
    assert using <= floors
    assert using


def test_nothing_is_unpickled_or_evaluated() -> None:
    for floor in ABOVE:
        for file in files(floor):
            assert not {"pickle", "marshal", "shelve", "dill"} & set(imported(file)), file
            calls = [node.func for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
            names = {func.id for func in calls if isinstance(func, ast.Name)}
            assert not {"eval", "exec"} & names, file
