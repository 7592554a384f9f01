"""What a page shows: runs as they are read back from their folders, and the questions that they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter

from rectom.benchmarks.rows import json_lines
from rectom.errors import DataError
from rectom.results.attribution import at_fault
from rectom.results.folder import RunFolder
from rectom.results.manifest import MEND, manifest, mending
from rectom.results.outcome import Outcome, Trace, digest_of_asked

T = TypeVar("T")


@dataclass(frozen=True)
class Paged:
    """One run as a page shows it.

    `line` is the summary line, `settings` are those of the manifest; a trace goes with each outcome. `calls` are the
    lines of `calls.jsonl.gz` by key, as far as there are any. `name` is what the page calls the run.
    """

    line: Mapping[str, Any]
    settings: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    traces: Sequence[Trace]
    calls: Mapping[str, Mapping[str, Any]]
    name: str

    @property
    def samples(self) -> int:
        """How often every question was answered."""
        samples = self.settings.get("samples")
        return samples if isinstance(samples, int) and samples > 0 else 1

    @cached_property
    def _tells_faults(self) -> bool:
        return any(outcome.fault for outcome in self.outcomes)

    def fault_of(self, outcome: Outcome) -> str:
        """The step at which an answer of this run went wrong; empty where the run tells it of none."""
        return at_fault(outcome) if self._tells_faults else ""

    @classmethod
    def read(cls, folder: Path) -> Paged:
        """Read the folder of a finished run. Raises DataError, naming the run, if it is none, or damaged."""
        run = RunFolder(folder)
        _, told = manifest(run, _Manifest, ", then look at it")
        outcomes = list(_lines(folder / "results.jsonl", _OUTCOME))
        traces = list(_lines(folder / "traces.jsonl", _TRACE))
        if [outcome.id for outcome in outcomes] != [trace.id for trace in traces]:
            raise DataError(f"{folder} is damaged: its files do not agree on the questions; {MEND}")
        lines = list(run.calls())
        with mending(folder / "calls.jsonl.gz"):
            said = list(map(_Said.model_validate, lines))
        calls = {call.key: call.model_dump() for call in said}
        return cls(told.summary.model_dump(), told.settings, outcomes, traces, calls, folder.name)


@dataclass(frozen=True)
class Asked:
    """A question, and what each run made of it: None for a run that did not ask it. `id` is unlike all others."""

    id: str
    answers: tuple[tuple[Outcome, Trace] | None, ...]

    @property
    def first(self) -> tuple[Outcome, Trace]:
        """What the first of the runs made of it, which also tells what was asked."""
        return next(answer for answer in self.answers if answer)


def questions_of(runs: Sequence[Paged]) -> list[Asked]:
    """The questions of all runs, each once, in the order in which they are first asked.

    Two are one if everything asked is the same. Where a run asks the same several times, as its samples do, the first
    goes with the first of another run, the second with the second, and so on.
    """
    found: dict[tuple[str, int], list[tuple[Outcome, Trace] | None]] = {}
    for place, run in enumerate(runs):
        seen: Counter[str] = Counter()
        for outcome, trace in zip(run.outcomes, run.traces, strict=True):
            asked = outcome.asked or digest_of_asked(trace.question, trace.choices, trace.lines, trace.gold)
            answers = found.setdefault((asked, seen[asked]), [None] * len(runs))
            answers[place] = (outcome, trace)
            seen[asked] += 1
    return list(_told_apart(map(tuple, found.values()), runs))


def _told_apart(groups: Iterator[tuple[tuple[Outcome, Trace] | None, ...]], runs: Sequence[Paged]) -> Iterator[Asked]:
    """Questions of different benchmarks may have the same id; all but the first are named after their run then."""
    taken: set[str] = set()
    for answers in groups:
        place, answer = next((place, answer) for place, answer in enumerate(answers) if answer)
        name = answer[0].id if answer[0].id not in taken else f"{answer[0].id} ({runs[place].name})"
        taken.add(name)
        yield Asked(name, answers)


class _Summary(BaseModel):
    benchmark: str
    subset: str
    method: str
    model: str
    failed: int
    calls: dict[str, int]
    tokens: dict[str, int]
    wall_s: float


class _Manifest(BaseModel):
    settings: dict[str, Any]
    summary: _Summary


class _Message(BaseModel):
    role: str
    content: str


class _Said(BaseModel):
    key: str
    messages: list[_Message] = []
    text: str | None = None
    reasoning: str | None = None
    model: str | None = None


_OUTCOME: Final = TypeAdapter(Outcome)
_TRACE: Final = TypeAdapter(Trace)


def _lines(path: Path, adapter: TypeAdapter[T]) -> Iterator[T]:
    with mending(path):
        for _, row in json_lines(path.read_bytes(), str(path)):
            yield adapter.validate_python(row)
