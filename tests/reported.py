"""Finished runs of a few questions, for the tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rectom.results.outcome import Outcome
from rectom.results.sweep import FINISHED, Cell, Sweep
from tests.test_finished import write_run


def outcome(place: int, right: bool, orders: int = 5, **changes: Any) -> Outcome:
    """What came of a question; a story has one of each order."""
    order, story = place % orders, place // orders
    fields = {
        "id": f"q{place}",
        "story_id": f"s{story}",
        "order": order,
        "gold": "box",
        "predicted": "box" if right else "bag",
        "correct": right,
        "failed_step": None,
        "calls": 4,
        "tokens": 1000,
        "asked": f"asked {place}",
    }
    return Outcome(**{**fields, **changes})


def failed(place: int, step: str) -> Outcome:
    """A question that failed."""
    return outcome(place, False, predicted=None, failed_step=step)


def write(
    runs: Path,
    name: str,
    answers: Sequence[Outcome] | str,
    *,
    method: str = "rectom",
    model: str = "gpt-5.4",
    benchmark: str = "hitom/400",
    tokens: int = 1000,
    **settings: Any,
) -> Path:
    """A finished run: its outcomes, or a text with a 1 for each right answer."""
    if isinstance(answers, str):
        answers = [outcome(place, sign == "1", tokens=tokens) for place, sign in enumerate(answers)]
    told: Mapping[str, Any] = {"benchmark": benchmark, "data": "d" * 64, "method": method, "model": model, **settings}
    return write_run(runs / name, answers, settings=told)


def write_sweep(runs: Path, name: str, *cells: Cell) -> Path:
    """The folder of a sweep of these cells."""
    Sweep(name, "partial", "2026-05-21T20:00:00+00:00", cells).write(runs / name)
    return runs / name


def cell(run: str, method: str = "rectom", state: str = FINISHED, **changes: Any) -> Cell:
    """A cell of a sweep."""
    return Cell(
        **{"model": "gpt-5.4", "method": method, "benchmark": "hitom/400", "run": run, "state": state, **changes}
    )
