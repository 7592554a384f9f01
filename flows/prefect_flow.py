"""The pipeline as a Prefect flow: a task a stage and shard, cached, named, with artifacts.

Prefect mirrors the run, our store holds it. A task is skipped by its cache key only if every result is in the
store, and a Prefect server that fails or dies does not take a run down. Only this module and `prefect_sweep` import
Prefect.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from prefect import flow
from prefect.artifacts import (
    acreate_link_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE
from prefect.tasks import Task

from cache import CacheError, digest
from flows.accounts import outcome_of
from flows.evaluate import Evaluation, conduct_plainly
from flows.keys import withheld
from flows.pipeline import STAGES, RunStage
from rectom.errors import RectomError
from rectom.results.tables import HEADER, accuracy_rows
from tasks.run import Run

_LOG = logging.getLogger(__name__)

# Prefect's background workers log outside its own loggers, so that its level does not quiet them.
for _worker in ("EventsWorker", "APILogWorker"):
    logging.getLogger(_worker).setLevel(logging.CRITICAL)

#: Seconds between two updates of the progress artifact.
_EVERY = 2.0

#: Seconds that Prefect gets to close a flow after the pipeline has ended, and then after each of some cancellations.
_PATIENCE = 10.0
_CANCELLING = (3.0, 1.0, 1.0)

#: Set once Prefect was left behind: nothing more is begun with it. Its threads go on for minutes, trying to reach a
#: server that is gone, and so would every flow and task.
left_behind = threading.Event()

StageTask = Task[[Sequence[str]], Any]

#: Is set when the work of a flow has ended, or to the error that ended it.
Ended: TypeAlias = asyncio.Future[None]


def stage_task(name: str, run: Run, part: Sequence[str], label: str) -> StageTask:
    """A stage's function as a Prefect task for one shard; `.fn` is the function itself.

    Its cache key is the digest of the keys of its results. Where our store lacks one of them the task runs, whatever
    Prefect remembers.
    """
    stage, function = STAGES[name]
    keys = stage.keys(run, part)
    key = None if keys is None else digest([stage.name, keys])
    words = name.replace("_", " ")
    return Task(
        function,
        name=words,
        description=function.__doc__,
        version=str(stage.version),
        task_run_name=f"{words} · shard {label}",
        cache_key_fn=lambda _context, _parameters: key,
        refresh_cache=keys is None or not stage.holds(run, keys),
        persist_result=True,
        result_serializer="json",
    )


async def conduct(evaluation: Evaluation) -> None:
    """Run the pipeline as a Prefect flow; if Prefect itself fails, or has failed in a cell before, do it without."""
    if left_behind.is_set():
        await conduct_plainly(evaluation)
    else:
        await guarded(lambda ended: _flow(evaluation, ended), lambda: conduct_plainly(evaluation))


async def guarded(
    make: Callable[[Ended], Callable[[], Awaitable[None]]], otherwise: Callable[[], Awaitable[None]]
) -> None:
    """Run a flow; if Prefect itself fails, do what it does `otherwise`, or the rest of it.

    `make` gives the flow. It sets the future that it is given as soon as its own work has ended, see `say`.
    """
    ended: Ended = asyncio.get_running_loop().create_future()
    work = asyncio.ensure_future(_begun(make(ended)))
    try:
        await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({work}, timeout=_PATIENCE)
        await _conclude(work, ended, otherwise)
    finally:
        await _let_go(work)


async def _begun(work: Callable[[], Awaitable[None]]) -> None:
    """Do the work with a server: Prefect would start its own with all that is in the environment, keys of models too.

    As Prefect does, this keeps everything else waiting, so that nobody misses a key.
    """
    if not PREFECT_API_URL.value() and PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value():
        from prefect.server.api.server import SubprocessASGIServer  # takes seconds, for nothing where a server runs

        with withheld():
            SubprocessASGIServer().start()
    await work()


async def _conclude(work: asyncio.Future[None], ended: Ended, otherwise: Callable[[], Awaitable[None]]) -> None:
    """What came of the work, and what is left to do where it was Prefect that failed."""
    error = ended.exception() if ended.done() else work.exception()
    if isinstance(error, RectomError | CacheError):
        raise error
    if error or not work.done() or work.exception():
        left_behind.set()
    if error:
        _LOG.warning("Prefect failed (%s); going on without it", type(error).__name__)
        await otherwise()
    elif left_behind.is_set():
        _LOG.warning("Prefect did not close the flow; the results are complete all the same")


async def _let_go(work: asyncio.Future[None]) -> None:
    """Cancel a flow, insistently: Prefect answers by telling its server, for minutes if that is gone."""
    for patience in _CANCELLING:
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=patience)
    if not work.done():
        left_behind.set()
    elif not work.cancelled():
        work.exception()  # looked at, or asyncio reports an error that nobody waits for any more


def _flow(evaluation: Evaluation, ended: Ended) -> Callable[[], Awaitable[None]]:
    settings = evaluation.settings

    @flow(
        name=f"rectom {settings.benchmark} {settings.subset}",
        flow_run_name=evaluation.name,
        description="Perspectives along the character chain of each question (Algorithm 1).",
        persist_result=False,
        validate_parameters=False,
    )
    async def rectom() -> None:
        closing = asyncio.Event()
        updating = asyncio.ensure_future(follow("rectom-progress", lambda: _standing(evaluation), closing))
        try:
            await say(ended, evaluation.through(_runner(evaluation.run)))
            closing.set()
            await _artifacts(evaluation)
            await updating
        finally:
            updating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await updating

    return rectom


async def say(ended: Ended, work: Awaitable[None]) -> None:
    """Do the work, and say at once how it ended: Prefect may take long to come back with it."""
    try:
        await work
    except Exception as error:
        ended.set_exception(error)
        ended.exception()  # looked at: whoever waits may have been cancelled
        raise
    ended.set_result(None)


def _runner(run: Run) -> RunStage:
    async def run_stage(name: str, part: Sequence[str], label: str) -> object:
        stage = STAGES[name][0]
        keys = {} if left_behind.is_set() else await _recorded(name, run, part, label)
        if not keys or not stage.adopt(run, keys):
            await stage.over(part)
        return keys

    return run_stage


async def _recorded(name: str, run: Run, part: Sequence[str], label: str) -> Any:
    """The keys of the results of a stage that ran as a task; none where Prefect failed."""
    try:
        return await stage_task(name, run, part, label)(part)
    except (RectomError, CacheError):
        raise
    except Exception as error:  # Prefect's own: its server is gone
        left_behind.set()
        _LOG.warning("Prefect failed (%s); %s of shard %s goes on without it", type(error).__name__, name, label)
        return {}


async def follow(key: str, standing: Callable[[], tuple[float, str]], closing: asyncio.Event) -> None:
    """Keep a progress artifact up to date until it is closing; a server that does not answer is no reason to stop.

    `standing` tells how much is done, 0 to 100, and what is to be said of it.
    """
    with contextlib.suppress(Exception):
        artifact = await acreate_progress_artifact(0.0, key=key, description="begun")
        while not closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), _EVERY)
            progress, words = standing()
            await aupdate_progress_artifact(artifact, progress=progress, description=words)


def _standing(evaluation: Evaluation) -> tuple[float, str]:
    run = evaluation.run
    words = f"{run.done['answering']} of {len(run.benchmark.questions)} questions answered"
    return 100.0 * evaluation.meter.share, words


async def _artifacts(evaluation: Evaluation) -> None:
    run = evaluation.run
    outcomes = [outcome_of(run, question.id) for question in run.benchmark.questions]
    table = [dict(zip(HEADER, row, strict=True)) for row in accuracy_rows(outcomes)]
    report = evaluation.folder.report.absolute()
    with contextlib.suppress(Exception):
        await acreate_table_artifact(table, key="rectom-accuracy", description=f"accuracy of {report.parent.name}")
        await acreate_link_artifact(report.as_uri(), key="rectom-report", link_text="report.html")
