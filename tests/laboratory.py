"""A place to run RecToM in: stories made on the spot, a model in a thread of its own, a store, a folder for runs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from unittest import mock

import pytest
from rich.console import Console

from cache import Reason, Store, Verdict
from flows.cli import main
from flows.commands import explain
from flows.evaluate import Evaluated, Evaluation, conduct_plainly, evaluate
from flows.progress import Bars
from flows.settings import Endpoint, Settings
from rectom import prompts
from rectom.benchmarks.generate import Recipe, generate
from rectom.llm import ChatClient, ChatRequest, Outcome, Reply, Usage
from rectom.prompts import Prompt
from tasks.run import Run
from tests.fake_openai import STEPS, FakeOpenAI, sections

S = TypeVar("S", bound=AbstractAsyncContextManager[Any])

#: Three stories with claims and questions of orders 0 to 3: every step is asked and matters.
SMALL = Recipe(stories=3, chapters=2, tell=True, max_order=3, seed=1)
SMALL_QUESTIONS = SMALL.stories * (SMALL.max_order + 1)


@contextmanager
def serving(server: S) -> Iterator[S]:
    """Serve from a thread, so that what is tested has the event loop for itself."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(30)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def undrawn() -> Iterator[None]:
    """Reports have no figures within: to draw them takes longer than all the rest of a test about something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rectom.results.paper_figures.drawn", lambda *_: iter(()))
        yield


def write_stories(folder: Path, recipe: Recipe = SMALL) -> Path:
    """A file of generated stories."""
    file = folder / "stories.json"
    file.write_bytes(_generated(recipe))
    return file


@cache
def _generated(recipe: Recipe) -> bytes:
    return generate(recipe)


@dataclass
class Lab:
    """Runs of one file with one store. `seen` is the run that went last; `first` what the first one asked."""

    folder: Path
    data: Path
    server: FakeOpenAI = field(default_factory=FakeOpenAI)
    seen: Run | None = None
    first: Counter[str] = field(default_factory=Counter)

    @property
    def store(self) -> Path:
        """Where the store is."""
        return self.folder / "store"

    @property
    def runs(self) -> Path:
        """Where the runs go."""
        return self.folder / "runs"

    def settings(self, **changes: Any) -> Settings:
        """Every step by the fake model, unless changed."""
        return replace(
            Settings(
                subset="cotp",
                data=self.data,
                model="fake",
                endpoint=Endpoint(self.server.base_url, attempts=1),
                cache=self.store,
                runs=self.runs,
            ),
            **changes,
        )

    def run(self, **changes: Any) -> Evaluated:
        """Evaluate, plainly."""

        async def conduct(evaluation: Evaluation) -> None:
            self.seen = evaluation.run
            await conduct_plainly(evaluation)

        return asyncio.run(evaluate(self.settings(**changes), conduct, Bars(Console(file=io.StringIO()))))

    def plan(self, **changes: Any) -> Run:
        """What `rectom explain run` plans."""
        (run,) = asyncio.run(explain._plan(self.settings(**changes)))
        return run

    def asked_by(self, act: Callable[[], object]) -> Counter[str]:
        """The requests, by prompt, that an act sends to the server."""
        before = Counter(self.server.asked)
        act()
        return self.server.asked - before

    def verdicts(self, stage: str) -> list[Verdict]:
        """Why the last run computed the items of a stage, or did not."""
        assert self.seen
        return verdicts_of(self.seen, stage)

    def results(self, done: Evaluated) -> list[dict[str, Any]]:
        """The lines of a run's `results.jsonl`."""
        return _lines(done.report.parent / "results.jsonl")

    def traces(self, done: Evaluated) -> dict[str, dict[str, Any]]:
        """The traces of a run by question."""
        return {trace["id"]: trace for trace in _lines(done.report.parent / "traces.jsonl")}


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def verdicts_of(run: Run, stage: str) -> list[Verdict]:
    """The verdicts on the items of a stage."""
    return [verdict for (name, _), verdict in run.verdicts.items() if name == stage]


def computed(run: Run) -> dict[str, set[str]]:
    """The stages that a run computed items of, each with the reasons in words without their values."""
    found: dict[str, set[str]] = {}
    for (stage, _), verdict in run.verdicts.items():
        if verdict.reason is not Reason.HIT:
            found.setdefault(stage, set()).add(": ".join([str(verdict.reason), *verdict.fields]))
    return found


def rounds(run: Run) -> int:
    """In how many rounds revisions and answers are asked for, if each round asks what every question wants next.

    A question takes revisions one after the other, and of those that it shares with others each is asked for once.
    """
    ended = [
        [call["key"] for stage in ("completion", "answering") for call in run.results[stage, question.id].calls]
        for question in run.benchmark.questions
    ]
    known: set[str] = set()
    taken = 0
    while wanted := {key for keys in ended for key in [key for key in keys if key not in known][:1]}:
        known |= wanted
        taken += 1
    return taken


def change_prompt(patch: pytest.MonkeyPatch, step: str) -> None:
    """Add a sentence to the prompt of a step."""
    load = prompts.load

    def changed(benchmark: str, name: str) -> Prompt:
        prompt = load(benchmark, name)
        if name != step:
            return prompt
        system = f"{prompt.system}\nTake your time."
        return replace(prompt, system=system, digest=sha256(system.encode()).hexdigest())

    patch.setattr(prompts, "load", changed)


class Scripted(ChatClient):
    """A client without a server: `answer` maps a step and a request to the reply's text. Keeps the requests."""

    def __init__(self, answer: Callable[[str, ChatRequest], str]) -> None:
        super().__init__("http://127.0.0.1:9", None)
        self.answer = answer
        self.requests: list[ChatRequest] = []

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        self.requests.append(request)
        text = self.answer(request.schema_name or "", request)
        return Reply(request.key, text, Outcome.OK, Usage(len(request.messages), 1), 0.0, 1, "sent")


def by_rule(step: str, request: ChatRequest) -> str:
    """The reply of the fake model."""
    system, user = (message.content for message in request.messages[:2])
    return json.dumps(STEPS[step](system, sections(user)))


def in_turn(*replies: object) -> Callable[[str, ChatRequest], str]:
    """Replies one after the other."""
    left = [json.dumps(reply) for reply in replies]
    return lambda _step, _request: left.pop(0)


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    status: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines on standard error that are not blank."""
        return [line for line in self.err.splitlines() if line.strip()]

    @property
    def line(self) -> dict[str, Any]:
        """The JSON line that a run ends with."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


_OURS = ("OPENAI_", "RECTOM_", "PREFECT_")


def environment(**ours: str) -> dict[str, str]:
    """The environment without what others may have set for RecToM in it."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(_OURS)}, **ours}


def call(*arguments: object, stdin: str = "", **ours: str) -> Ended:
    """The command line, called in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment(**ours), clear=True),
        mock.patch.object(sys, "argv", ["rectom", *map(str, arguments)]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            return Ended(int(ended.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("the command line did not exit")


def command(*arguments: object) -> list[str]:
    """The command line as a program of its own."""
    return [str(Path(sys.executable).with_name("rectom")), *map(str, arguments)]


def spawn(*arguments: object, **ours: str) -> subprocess.Popen[str]:
    """Start the command line as a process."""
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**ours)
    )


def finish(process: subprocess.Popen[str], timeout: float = 60) -> Ended:
    """Wait for a process, and have its output."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ended(process.returncode, out, err)


def execute(*arguments: object, timeout: float = 60, **ours: str) -> Ended:
    """The command line in a process of its own."""
    return finish(spawn(*arguments, **ours), timeout)


def run_options(lab: Lab, **more: object) -> list[object]:
    """The options of `rectom run` for a lab's file, store and model; `name=None` leaves one out."""
    options: dict[str, object] = {
        "data": lab.data,
        "model": "fake",
        "base-url": lab.server.base_url,
        "cache": lab.store,
        "runs": lab.runs,
        "attempts": 1,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return [
        "hitom/cotp",
        *(word for name, value in options.items() if value is not None for word in (f"--{name}", value)),
    ]


def mapping(value: object) -> Mapping[str, Any]:
    """A value that must be a mapping."""
    assert isinstance(value, Mapping)
    return value


def contents(store: Path) -> str:
    """Everything that a store holds, unpacked, as text."""
    with Store(store) as opened:
        kinds: tuple[Any, ...] = ("reply", "stage", "latest")
        return json.dumps({kind: dict(opened.iterate(kind)) for kind in kinds})


@dataclass(frozen=True)
class PrefectServer:
    """A Prefect server as `rectom server start` starts it: its address, and the RECTOM_HOME that knows it."""

    url: str
    home: Path

    def pid(self) -> int:
        """The server's process."""
        return int(json.loads((self.home / "prefect" / "server.json").read_text())["pid"])
