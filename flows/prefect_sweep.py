"""A sweep as a Prefect flow, with a sub-flow a cell, and artifacts that say how it stands."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_link_artifact, acreate_table_artifact

from flows.prefect_flow import Ended, follow, guarded, say
from flows.sweep import Sweeper, figures
from rectom.results.sweep import FAILED, FINISHED, STOPPED, Cell, Sweep

Work = Callable[[], Coroutine[Any, Any, Sweep]]


async def within(sweeper: Sweeper, work: Work) -> Sweep:
    """Do the work of a sweep as a flow, whose sub-flows the cells are. Where Prefect fails, the sweep goes on."""
    done: list[Sweep] = []

    async def plainly() -> None:
        done.append(await work())

    await guarded(lambda ended: _flow(sweeper, plainly, ended), plainly)
    return done[-1]


def _flow(sweeper: Sweeper, work: Callable[[], Awaitable[None]], ended: Ended) -> Callable[[], Awaitable[None]]:
    @flow(
        name="rectom sweep",
        flow_run_name=f"sweep {sweeper.name}",
        description="Every cell of a matrix of models, methods and benchmarks, each a flow of its own.",
        persist_result=False,
        validate_parameters=False,
    )
    async def rectom_sweep() -> None:
        closing = asyncio.Event()
        updating = asyncio.ensure_future(follow("rectom-sweep-progress", lambda: _standing(sweeper.cells), closing))
        try:
            await say(ended, work())
            closing.set()
            await _artifacts(sweeper)
            await updating
        finally:
            updating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await updating

    return rectom_sweep


def _standing(cells: tuple[Cell, ...]) -> tuple[float, str]:
    """How many of a hundred parts of the cells have ended, and how many are in which state."""
    states = Counter(cell.state for cell in cells)
    ended = states[FINISHED] + states[STOPPED] + states[FAILED]
    return 100.0 * ended / max(1, len(cells)), ", ".join(f"{count} {state}" for state, count in states.items())


async def _artifacts(sweeper: Sweeper) -> None:
    rows = [_row(sweeper, cell) for cell in sweeper.cells]
    report = (sweeper.folder / "index.html").absolute()
    with contextlib.suppress(Exception):
        await acreate_table_artifact(rows, key="rectom-sweep", description=f"the cells of {sweeper.name}")
        await acreate_link_artifact(report.as_uri(), key="rectom-sweep-report", link_text="the report")


def _row(sweeper: Sweeper, cell: Cell) -> dict[str, Any]:
    line = figures(cell, sweeper.folder.parent)
    accuracy = f"{100 * line['accuracy']:.2f}" if line else ""
    named = {"benchmark": cell.benchmark, "model": cell.model, "method": cell.method, "setting": cell.setting}
    told = {"accuracy": accuracy, "failed": line.get("failed", ""), "run": cell.run, "why": cell.why}
    return {**named, "seed": cell.seed, "state": cell.state, **told}
