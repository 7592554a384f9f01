"""What did not go right in runs: which steps failed how often, and at which steps answers went wrong; and the runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

from rectom.results.fault import FAULTS, UNTOLD, UNTOLD_MEANS
from rectom.results.finished import Answered, Finished
from rectom.results.grid import Filled, Grid, Tried
from rectom.results.readers import has_steps
from rectom.results.sheet import Column, Row, Sheet, Value
from rectom.results.values import accuracy, count, duration, many
from rectom.results.wording import line_name

_RUNS_NOTES = (
    "Calls and Tokens (prompts and replies) are those of different calls, whenever they were paid; Alone is what the "
    "tokens would be if questions shared nothing. Time is what the replies took, one after the other: with many in "
    "flight a run takes less.",
)

_FAULTS_NOTES = (
    "The step of the model's that differs from the rule reader's and that the wrong belief came of; or that failed, or "
    "is the first to violate a check. `label` where the rules give the same answer.",
    UNTOLD_MEANS,
    "Methods without these steps are not in the table, nor are runs without a wrong answer.",
)


def runs_sheet(grid: Grid, out: Path) -> Sheet:
    """Every run with its cell; `out` is the folder of the report, from which the links lead to the runs' pages."""
    named = ("Questions", "Accuracy", "Failed answers", "Calls", "Tokens", "Alone", "Time")
    rows = [_run_row(cell, one, out) for name in grid.benchmarks for cell in grid.of(name) for one in cell.tried]
    heads = ("Benchmark", "Model", "Method", "Run")
    return Sheet("runs", "The runs", heads, tuple(map(Column, named)), tuple(rows), _RUNS_NOTES)


def failures_sheet(grid: Grid) -> Sheet | None:
    """How many answers of each run failed, by the step that failed; None where none did."""
    rows = [
        Row((run.name, step), (count(failed), count(run.answers)))
        for run, _ in _runs(grid)
        for step, failed in Counter(step for one in run.questions for step in one.failed_steps).most_common()
    ]
    columns = (Column("Failed"), Column("Answers"))
    note = "A failed answer is a wrong one, and stays in every denominator."
    return Sheet("failures", "Failed answers by step", ("Run", "Step"), columns, tuple(rows), (note,)) if rows else None


def faults_sheet(grid: Grid, out: Path) -> Sheet | None:
    """Where wrong answers went wrong, step x order, for each run with steps; the counts lead to the cases."""
    told = [(run, folder) for run, folder in _runs(grid) if _is_told(run)]
    orders = sorted(
        {one.order for run, _ in told for one in run.questions}, key=lambda order: -1 if order is None else order
    )
    columns = (*(Column("-" if order is None else f"Order {order}") for order in orders), Column("All"))
    rows = tuple(row for run, folder in told for row in _fault_rows(run, _page(folder, out), orders))
    return (
        Sheet("faults", "Wrong answers by the step at fault", ("Run", "Step"), columns, rows, _FAULTS_NOTES)
        if rows
        else None
    )


def _is_told(run: Finished) -> bool:
    return has_steps(str(run.settings.get("method"))) or any(one.faults for one in run.questions)


def _fault_rows(run: Finished, page: str, orders: Sequence[int | None]) -> Iterator[Row]:
    steps = {fault for one in run.questions for fault in one.faults}
    for step in [*(step for step in FAULTS if step in steps), *sorted(steps - {*FAULTS})]:
        values = [_cases(run.questions, step, page, order) for order in orders]
        whole = sum(one.faults.count(step) for one in run.questions)
        yield Row((run.name, step), (*values, _linked(whole, page, {"fault": step})))
    untold = [sum(one.untold for one in run.questions if one.order == order) for order in orders]
    if any(untold):
        yield Row((run.name, UNTOLD), (*map(count, untold), count(sum(untold))))


def _cases(questions: Iterable[Answered], step: str, page: str, order: int | None) -> Value:
    found = sum(one.faults.count(step) for one in questions if one.order == order)
    return _linked(found, page, {"fault": step, "order": "-" if order is None else str(order)})


def _linked(cases: int, page: str, chosen: dict[str, str]) -> Value:
    return replace(count(cases), link=f"{page}#{urlencode(chosen, quote_via=quote)}" if cases else "")


def _run_row(cell: Filled, one: Tried, out: Path) -> Row:
    heads = (cell.labels.benchmark, cell.labels.model, line_name(cell.labels.line))
    if one.run is None:
        return Row((*heads, one.why), (Value(),) * 7)
    alone, paid = sum(question.tokens * question.tries for question in one.run.questions), one.run.paid
    values = (
        count(len(one.run.questions)),
        accuracy(one.run.questions),
        count(sum(question.failed for question in one.run.questions)),
        many(paid.calls),
        many(paid.tokens),
        many(alone),
        duration(paid.latency_s),
    )
    return Row((*heads, one.run.name), values, link=_page(one.folder, out))


def _runs(grid: Grid) -> Iterator[tuple[Finished, Path]]:
    for cell in grid.cells.values():
        yield from cell.finished


def _page(folder: Path, out: Path) -> str:
    """The address of a run's page from the report's folder."""
    return quote(os.path.relpath((folder / "report.html").resolve(), out.resolve()))
