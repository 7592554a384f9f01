"""One run from settings to a finished run folder."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from cache import Store
from flows.accounts import cost_of, outcome_of, trace_of
from flows.pipeline import STAGES, pipeline, run_plainly, shards
from flows.progress import Meter
from flows.replies import StoredReplies
from flows.settings import MODEL, RULES, Settings
from rectom import prompts
from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.fetch import find
from rectom.errors import RectomError, SettingsError
from rectom.llm import ChatClient, Limits, ModelId, Retry, Sampling, Timeouts
from rectom.llm.stats import Stats
from rectom.reader.asking import Asker
from rectom.reader.base import Reader, SharedReader
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader
from rectom.results import report, tables
from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome
from rectom.results.summary import Cost, summary_line
from tasks.run import Run, running

#: Brings a run's shards through the pipeline: plainly or under Prefect.
Conduct = Callable[["Evaluation"], Awaitable[None]]


@dataclass
class Evaluation:
    """A run while it goes on: what conducts it may look at."""

    settings: Settings
    run: Run
    folder: RunFolder
    stats: Stats
    meter: Meter

    def parts(self) -> list[list[str]]:
        """The shards."""
        return shards(self.run, self.settings.shard)


@dataclass(frozen=True)
class Evaluated:
    """A run that ended: its JSON line, outcomes, cost, and where its report is."""

    line: dict[str, Any]
    outcomes: list[Outcome]
    cost: Cost
    report: Path
    warnings: tuple[str, ...] = ()


def load_benchmark(settings: Settings) -> Benchmark:
    """The benchmark of the settings. Raises DataError or SettingsError."""
    if settings.benchmark != "hitom":
        raise SettingsError(f"there is no benchmark {settings.benchmark!r}; there is hitom")
    benchmark = hitom.load(find("hitom", settings.data), settings.subset)
    return benchmark.first(settings.limit) if settings.limit else benchmark


async def conduct_plainly(evaluation: Evaluation) -> None:
    """Run the stage functions under plain asyncio."""
    await pipeline(evaluation.parts(), run_plainly)


async def evaluate(settings: Settings, conduct: Conduct, console: Console) -> Evaluated:
    """Run a benchmark and leave a run folder. Nothing that was paid for is lost, however it ends."""
    benchmark = load_benchmark(settings)
    folder = RunFolder(settings.runs / settings.run_name(benchmark.digest))
    started, begun = datetime.now(UTC), time.monotonic()
    described = {**settings.fields(), "data": benchmark.digest}
    with folder.open(described), Store(settings.cache) as store:
        async with open_reader(settings, benchmark, store) as (reader, stats):
            manifest = {"run": folder.folder.name, "state": "running", "settings": described, **_circumstances(started)}
            folder.write_manifest(manifest)
            run = Run(benchmark, reader, store, forced=settings.forced)
            with Meter(run, stats, console) as meter, running(run):
                run.ended = _append(run, folder, meter)
                try:
                    await conduct(Evaluation(settings, run, folder, stats, meter))
                except BaseException as error:
                    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
                    with suppress(RectomError):  # a full disk must not hide what happened
                        folder.write_manifest({**manifest, "state": "interrupted" if stopped else "failed"})
                    raise
        return _finish(run, folder, stats, manifest, time.monotonic() - begun)


def _append(run: Run, folder: RunFolder, meter: Meter) -> Callable[[str, str], None]:
    def ended(stage: str, item: str) -> None:
        if stage == "answering":
            folder.append(outcome_of(run, item), trace_of(run, item))
        meter.refresh()

    return ended


def _finish(run: Run, folder: RunFolder, stats: Stats, manifest: dict[str, Any], wall_s: float) -> Evaluated:
    questions = [question.id for question in run.benchmark.questions]
    outcomes = [outcome_of(run, question) for question in questions]
    traces = [trace_of(run, question) for question in questions]
    cost = cost_of(run, stats)
    settings = manifest["settings"]
    identity = {
        "run": manifest["run"],
        "benchmark": run.benchmark.name,
        "subset": run.benchmark.subset,
        "method": "rectom",
        "model": settings["model"],
    }
    line = summary_line(identity, outcomes, cost, wall_s)
    folder.finish(outcomes, traces)
    _write_tables(folder, outcomes)
    folder.write("report.html", report.page(line, settings, outcomes, traces).encode())
    folder.write_manifest({**manifest, "state": "finished", "ended": _now(), "summary": line})
    return Evaluated(line, outcomes, cost, folder.report, run.benchmark.warnings)


def _write_tables(folder: RunFolder, outcomes: list[Outcome]) -> None:
    rows = tables.accuracy_rows(outcomes)
    for name, text in (("md", tables.markdown(rows)), ("csv", tables.as_csv(rows)), ("tex", tables.latex(rows))):
        folder.write(f"tables/accuracy.{name}", text.encode())


@asynccontextmanager
async def open_reader(
    settings: Settings, benchmark: Benchmark, store: Store, *, offline: bool = False
) -> AsyncIterator[tuple[Reader, Stats]]:
    """The reader that the settings describe, and the statistics of its client."""
    rules = settings.rule_set()
    by_step = settings.by_step()
    if not settings.asks_a_model():
        yield RuleReader(rules), Stats()
        return
    async with _client(settings, store, offline) as client:
        sampling = Sampling(settings.temperature, settings.top_p, settings.top_k, settings.max_tokens)
        model = ModelId(settings.model, settings.identity, settings.revision)
        asker = Asker(client, model, sampling, repairs=settings.repairs)
        kinds: dict[str, Reader] = {
            RULES: RuleReader(rules),
            MODEL: ModelReader(asker, rules, note=benchmark.note, window=settings.window),
        }
        yield SharedReader({step: kinds[kind] for step, kind in by_step.items()}), client.stats


def _client(settings: Settings, store: Store, offline: bool) -> ChatClient:
    endpoint = settings.endpoint
    if not endpoint.base_url:
        raise SettingsError("no server for the model: give --base-url URL or set OPENAI_BASE_URL")
    return ChatClient(
        endpoint.base_url,
        endpoint.api_key,
        replies=StoredReplies(store),
        limits=Limits(endpoint.concurrency),
        timeouts=Timeouts(total=endpoint.timeout_s),
        retry=Retry(attempts=endpoint.attempts),
        offline=offline,
    )


def _circumstances(started: datetime) -> dict[str, Any]:
    return {
        "started": started.isoformat(timespec="seconds"),
        "versions": {"rectom": version("rectom"), "python": platform.python_version()},
        "stages": {name: stage.version for name, (stage, _) in STAGES.items()},
        "prompts": prompts.digests("hitom"),
        "revision": _revision(),
    }


def _revision() -> str | None:
    """The git revision of the working folder, if it is a checkout."""
    try:
        command = ["git", "rev-parse", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
