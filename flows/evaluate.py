"""One run from settings to a finished run folder."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cache import Store
from flows.accounts import calls_of, cost_of, money_of, outcome_of, steps_of, trace_of
from flows.commandline import CommandLine
from flows.keys import without_keys
from flows.model import idle_client, method_of, open_client, reader_of, stats_of
from flows.oracle import Told, told
from flows.pipeline import STAGES, RunStage, pipeline, run_plainly, shards
from flows.progress import Meter, Showing
from flows.session import Session, session
from flows.settings import LIVE, Settings
from flows.shared import Shared
from flows.tolerance import Tolerance
from rectom import prompts
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.permute import permute
from rectom.benchmarks.registry import adapter
from rectom.errors import SettingsError
from rectom.llm import ChatClient
from rectom.llm.stats import Stats
from rectom.methods.registry import chosen
from rectom.results import report, tables
from rectom.results.attribution import fault_rows
from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome, Trace
from rectom.results.scoring import Measure, official
from rectom.results.summary import Cost, Money, summary_line
from rectom.results.writing import rows_csv, rows_latex, rows_markdown
from rectom.task import TASKS, in_view, task
from tasks.run import Failure, Run, running

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
    title: str

    @property
    def name(self) -> str:
        """What a person finds the run by, with the number of the sample if there are several."""
        return self.title + self.run.suffix

    @property
    def at_once(self) -> int | None:
        """How many shards are under way together; None for the usual number."""
        return None if self.settings.endpoint.transport == LIVE else len(self.run.benchmark.stories)

    async def through(self, run_stage: RunStage) -> None:
        """Bring the run's shards through the pipeline."""
        parts = shards(self.run, self.settings.shard)
        await pipeline(parts, run_stage, self.at_once, answers_only=self.run.method is not None)


@dataclass(frozen=True)
class Evaluated:
    """A run that ended: its JSON line, outcomes, cost, and where its report is.

    `measures` are the benchmark's official ones, where they are not the accuracy. `unpermuted` is the line of the same
    run over the benchmark as it is, if this one was over a permuted one and that is there.
    """

    line: dict[str, Any]
    outcomes: list[Outcome]
    cost: Cost
    money: Money
    failures: list[Failure]
    report: Path
    measures: list[Measure]
    warnings: tuple[str, ...] = ()
    unpermuted: Mapping[str, Any] | None = None


def benchmark_of(settings: Settings, shared: Shared | None) -> Benchmark:
    """The benchmark of a run; runs side by side read it once. Raises as `load_benchmark` does."""
    if shared is None:
        return load_benchmark(settings)
    asked = (settings.benchmark, settings.named_subset, settings.data, settings.seed, settings.limit)
    if asked not in shared.benchmarks:
        shared.benchmarks[asked] = load_benchmark(settings)
    return _readable(shared.benchmarks[asked], settings)


def load_benchmark(settings: Settings) -> Benchmark:
    """The benchmark of the settings, cut and permuted as they say. Raises DataError or SettingsError."""
    benchmark = _readable(adapter(settings.benchmark).open(settings.subset, settings.data), settings)
    # Before the cut, since all questions about a story say whom it is about.
    benchmark = in_view(permute(benchmark, settings.permuted, settings.seed))
    if settings.stories:
        if settings.stories > len(benchmark.stories):
            told = f"{settings.benchmark}/{settings.subset} has {len(benchmark.stories)} stories"
            raise SettingsError(f"--stories {settings.stories}: {told}; give fewer, or leave it out")
        benchmark = benchmark.drawn(settings.stories, settings.seed)
    return benchmark.first(settings.limit) if settings.limit else benchmark


def _readable(benchmark: Benchmark, settings: Settings) -> Benchmark:
    kind = TASKS.get(benchmark.task)
    if kind and not kind.grammar and not settings.asks_a_model():
        raise SettingsError(f"no rule reads {benchmark.name}, which follows no grammar: give --model NAME")
    return benchmark


async def conduct_plainly(evaluation: Evaluation) -> None:
    """Run the stage functions under plain asyncio."""
    await evaluation.through(run_plainly)


async def evaluate(
    settings: Settings,
    conduct: Conduct,
    showing: Showing,
    shared: Shared | None = None,
    title: str = "",
    command: CommandLine | None = None,
) -> Evaluated:
    """Run a benchmark and leave a run folder. Nothing that was paid for is lost, however it ends.

    `showing` gives the line that tells of the progress, by the `title`, which is the run's name unless it is given.
    `shared` is for runs side by side. `command` is kept in the run's folder: by it the run can be taken up by its name.
    """
    benchmark = benchmark_of(settings, shared)
    folder = RunFolder(settings.runs / settings.run_name(benchmark.digest))
    described = {**settings.fields(), "data": benchmark.digest}
    begun = time.monotonic()
    with folder.open(described), nullcontext(shared.store) if shared else Store(settings.cache) as store:
        if command:
            command.keep(folder.folder)
        with session(folder) as books:
            async with open_client(settings, store, shared=shared) as client:
                runs, stats = samples(settings, benchmark, store, client), stats_of(client)
                about = {
                    "run": folder.folder.name,
                    "state": "running",
                    "questions": len(benchmark.questions) * settings.samples,
                    "settings": described,
                    **_circumstances(settings, runs[0]),
                }
                books.begin(about, stats, runs)
                for run in runs:
                    await _conduct(settings, run, folder, client, conduct, showing, title or folder.folder.name)
                books.answered()
                known = await told(runs, verified=settings.verify) if client else {}
                return _finish(runs, settings, stats, folder, books, time.monotonic() - begun, known)


def samples(
    settings: Settings, benchmark: Benchmark, store: Store, client: ChatClient | None, *, dry: bool = False
) -> list[Run]:
    """The runs that answer every question once each."""
    return [_sample(settings, benchmark, store, client, number, dry) for number in range(settings.samples)]


def _sample(
    settings: Settings, benchmark: Benchmark, store: Store, client: ChatClient | None, number: int, dry: bool = False
) -> Run:
    suffix = f"#{number + 1}" if settings.samples > 1 else ""
    method = method_of(settings, client, benchmark, settings.draw + number)
    reader = None if method else reader_of(settings, client, benchmark, settings.draw + number)
    return Run(
        benchmark,
        reader,
        store,
        method,
        dry=dry,
        forced=settings.forced,
        retry_failed=settings.retry_failed,
        suffix=suffix,
    )


async def _conduct(
    settings: Settings,
    run: Run,
    folder: RunFolder,
    client: ChatClient | None,
    conduct: Conduct,
    showing: Showing,
    title: str,
) -> None:
    with showing(title) as line, running(run):
        meter = Meter(run, client, line, settings.budget)
        run.ended = _append(run, folder, meter, settings.tolerance)
        if client:
            run.broken = client.halt
        ticking = asyncio.create_task(meter.tick())
        try:
            await conduct(Evaluation(settings, run, folder, stats_of(client), meter, title))
        finally:
            ticking.cancel()


def _append(run: Run, folder: RunFolder, meter: Meter, tolerance: Tolerance) -> Callable[[str, str], None]:
    failures: list[Failure] = []

    def ended(stage: str, item: str) -> None:
        if stage == "answering":
            trace = trace_of(run, item)
            folder.append(outcome_of(run, item), trace)
            if trace.failure:
                failures.append(Failure(**trace.failure))
                meter.failed = len(failures)
                tolerance.check(failures, len(run.benchmark.questions))
        meter.refresh()

    return ended


def _finish(
    runs: Sequence[Run],
    settings: Settings,
    stats: Stats,
    folder: RunFolder,
    books: Session,
    wall_s: float,
    known: Mapping[str, Told],
) -> Evaluated:
    asked = [(run, question.id) for run in runs for question in run.benchmark.questions]
    outcomes = [_with_fault(outcome_of(run, question), known) for run, question in asked]
    traces = [_with_oracle(trace_of(run, question), known) for run, question in asked]
    cost, steps = cost_of(runs, stats), steps_of(runs)
    money = money_of(cost, stats, settings.budget)
    identity = {
        "run": books.manifest["run"],
        "benchmark": settings.benchmark,
        "subset": settings.named_subset,
        "method": settings.method,
        "model": settings.model,
    }
    line = summary_line(identity, outcomes, cost, wall_s, settings.samples)
    folder.finish(outcomes, traces)
    folder.write_calls(calls_of(runs))
    _write_tables(folder, "accuracy", tables.HEADER, tables.accuracy_rows(outcomes, settings.samples))
    _write_tables(folder, "steps", tables.STEPS_HEADER, tables.step_rows(steps))
    _write_tables(folder, "kinds", tables.GROUPS_HEADER, tables.group_rows(outcomes, settings.samples))
    _write_tables(folder, "faults", *fault_rows(outcomes) if known else ((), ()))
    measures = _official(outcomes, runs[0].benchmark)
    _write_tables(folder, "official", tables.OFFICIAL_HEADER, tables.official_rows(measures))
    calls = {call["key"]: call for call in folder.calls()}
    described = books.manifest["settings"]
    shown = report.Paged(line, described, outcomes, traces, calls, identity["run"])
    pages = report.pages([shown])
    for name, page in pages.items():
        folder.write(name, page)
    for left in folder.names("report*.html") - pages.keys():
        folder.remove(left)
    spent = {"money": money.to_json(), "steps": {name: step.to_json() for name, step in steps.items()}}
    books.finish({"summary": line, **spent})
    failures = [Failure(**trace.failure) for trace in traces if trace.failure]
    warnings, beside = runs[0].benchmark.warnings, _unpermuted(settings, described, runs[0].benchmark)
    return Evaluated(line, outcomes, cost, money, failures, folder.report, measures, warnings, beside)


def _with_fault(outcome: Outcome, known: Mapping[str, Told]) -> Outcome:
    told = known.get(outcome.id)
    return replace(outcome, fault=told.fault.step) if told and told.fault else outcome


def _with_oracle(trace: Trace, known: Mapping[str, Told]) -> Trace:
    told = known.get(trace.id)
    if told is None:
        return trace
    return replace(trace, fault=told.fault.to_json() if told.fault else None, oracle=told.oracle)


def _official(outcomes: Sequence[Outcome], benchmark: Benchmark) -> list[Measure]:
    return [] if benchmark.scoring == "accuracy" else official(outcomes, benchmark.scoring)


def _unpermuted(settings: Settings, described: Mapping[str, Any], benchmark: Benchmark) -> Mapping[str, Any] | None:
    """The line of a finished run that differs from this one in nothing but the permutation."""
    if not settings.permuted:
        return None
    subset = replace(settings, permuted=()).named_subset
    wanted = {**described, "benchmark": f"{settings.benchmark}/{subset}", "data": benchmark.plain}
    for file in sorted(settings.runs.glob(f"{settings.benchmark}-{subset}.*/manifest.json")):
        manifest = RunFolder(file.parent).before() or {}
        if manifest.get("settings") == wanted and manifest.get("summary"):
            summary: Mapping[str, Any] = manifest["summary"]
            return summary
    return None


def _write_tables(folder: RunFolder, name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table in every form; one without rows is not there, also where an earlier session left it."""
    for form, write in (("md", rows_markdown), ("csv", rows_csv), ("tex", rows_latex)):
        if rows:
            folder.write(f"tables/{name}.{form}", write(header, rows).encode())
        else:
            folder.remove(f"tables/{name}.{form}")


def is_done(run: Path, settings: Settings, benchmark: Benchmark, store: Store, *, retry: bool) -> bool:
    """Whether nothing is left to do of a run; what failed is to be asked again if the settings say so, or `retry`."""
    manifest = RunFolder(run).before()
    failed = (manifest or {}).get("summary", {}).get("failed", 0)
    again = settings.forced or ((retry or settings.retry_failed) and failed)
    return not again and manifest is not None and _up_to_date(manifest, settings, benchmark, store)


def _up_to_date(manifest: Mapping[str, Any], settings: Settings, benchmark: Benchmark, store: Store) -> bool:
    """Whether a manifest is of a run that is finished, and that this code would do in the same way."""
    run = _sample(settings, benchmark, store, idle_client(settings, store), 0)
    now = {"settings": {**settings.fields(), "data": benchmark.digest}, **_code(run)}
    return manifest.get("state") == "finished" and all(manifest.get(name) == value for name, value in now.items())


def _code(run: Run) -> dict[str, Any]:
    """What of the code a run depends on."""
    return {
        "reading": run.reading,
        "versions": {"rectom": _version(), "python": platform.python_version()},
        "stages": {name: stage.version for name, (stage, _) in STAGES.items()},
    }


def _circumstances(settings: Settings, run: Run) -> dict[str, Any]:
    return {
        **_code(run),
        "prompts": prompts.digests(_prompts(settings, run.benchmark)),
        "revision": _revision(),
    }


def _prompts(settings: Settings, benchmark: Benchmark) -> str:
    return task(benchmark.task).prompts if settings.is_rectom else chosen(settings.method)[0].prompts


@cache
def _version() -> str:
    return version("rectom")


@cache
def _revision() -> str | None:
    """The git revision of RecToM, if it runs from a checkout of its own."""
    here = Path(__file__)
    try:
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            found = subprocess.run(  # noqa: S603
                ["git", "-C", str(here.parent), *command],  # noqa: S607
                env=without_keys(os.environ),
                capture_output=True,
                text=True,
                timeout=5,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
