"""A finished run as other programs read it: a row a question, and a row a different call.

Both are read line by line, and no more of the run is held than its calls' keys: a run of 100,000 questions fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from pydantic import BaseModel, Field

from rectom.benchmarks.rows import checked
from rectom.errors import DataError
from rectom.results import regular
from rectom.results.folder import RunFolder
from rectom.results.grid import role_of
from rectom.results.listing import setting_of
from rectom.results.manifest import MEND, manifest, mending
from rectom.results.statistics import Interval, wilson
from rectom.results.summary import different_of
from rectom.results.sweep import Cell

_CALLS: Final = "calls.jsonl.gz"


class Row(BaseModel):
    """What the rows of all tables begin with, so that those of several runs can stand in one.

    `benchmark` is as in `hitom/400`; `model` is `rules` where none was asked. `label`, `setting` and `seed` tell apart
    runs of one method: they are those of the sweep that the run was exported with. Of a run alone `label` is what its
    method is, `setting` what `rectom runs` says, and `seed` None.
    """

    run: str
    model: str
    method: str
    benchmark: str
    label: str
    setting: str
    seed: int | None


class Answer(Row):
    """A question and what came of it: `Outcome`, with what was asked and where it went wrong.

    `story` are the lines, `chain` the characters whose perspectives were built, `reduced` the question put to the last
    of them; both are None where the method has none or failed before. `fault_line` counts the story's lines from 1.
    """

    id: str
    story_id: str
    order: int | None
    group: str = ""
    ballot: str = ""
    question: str
    choices: list[str]
    story: list[str]
    gold: str | None
    predicted: str | None
    correct: bool
    gold_class: str = ""
    predicted_class: str = ""
    failed_step: str | None
    failed_why: str | None
    chain: list[str] | None
    reduced: str | None
    fault: str = ""
    fault_line: int | None
    fault_who: str | None
    fault_found: str | None
    fault_expected: str | None
    fault_by: str | None
    calls: int
    tokens: int
    asked: str = ""


class Said(BaseModel):
    """A message of a conversation."""

    role: str
    content: str


class Asked(Row):
    """A different call: what was said to the model, its reply, and the ids of all questions that rest on it.

    Tokens are as the server counted them; the prompt's hold the `cached` ones, the completion's the `reasoning`. `text`
    is None where the store had lost the reply. `served_by` is the model that the server names, `at` when the reply
    came, `source` whether it was sent for or found in the store.
    """

    key: str
    step: str
    repair: bool
    questions: list[str]
    messages: list[Said]
    text: str | None
    reasoning: str | None
    served_by: str | None
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    latency_s: float
    outcome: str
    source: str
    at: datetime | None


class _Settings(BaseModel):
    benchmark: str
    method: str
    model: str
    samples: int = Field(1, ge=1)


class _Summary(BaseModel):
    questions: int
    different: int = 0
    correct: int
    failed: int


class _Manifest(BaseModel):
    settings: _Settings
    summary: _Summary
    started: datetime
    ended: datetime
    versions: dict[str, str] = {}
    revision: str | None = None


class _Named(BaseModel):
    """A call as a trace names it."""

    key: str
    reasoning: int


class _Trace(BaseModel):
    """A line of `traces.jsonl`, as far as it is exported; see `Trace`."""

    id: str
    question: str
    choices: list[str]
    lines: list[str]
    chain: list[str] | None = None
    reduced: str | None = None
    failure: dict[str, str] | None = None
    fault: dict[str, Any] | None = None
    calls: list[_Named] = []

    def told(self) -> dict[str, Any]:
        """The fields of `Answer` that a trace tells."""
        fault = {f"fault_{name}": (self.fault or {}).get(name) for name in ("line", "who", "found", "expected", "by")}
        asked = {"question": self.question, "choices": self.choices, "story": self.lines}
        return {
            **asked,
            "chain": self.chain,
            "reduced": self.reduced,
            "failed_why": (self.failure or {}).get("why"),
            **fault,
        }


@dataclass(slots=True)
class _Use:
    """Which questions rest on a call, and how many tokens its model thought."""

    reasoning: int
    questions: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """The fields of `Asked` that the traces tell."""
        return {"questions": self.questions, "reasoning_tokens": self.reasoning}


R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished run that is read to be exported.

    `settings` are those of the manifest, which hold no addresses and no keys; `label`, `setting` and `seed` are as in
    `Row`; `different` is how many questions there
    are if those that were asked several times count once; `started` and `ended` are those of its last session;
    `revision` is the git revision of RecToM where it ran from a checkout.
    """

    folder: RunFolder
    name: str
    settings: Mapping[str, Any]
    model: str
    method: str
    benchmark: str
    label: str
    setting: str
    seed: int | None
    samples: int
    questions: int
    different: int
    correct: int
    failed: int
    started: datetime
    ended: datetime
    version: str
    revision: str | None

    @classmethod
    def read(cls, folder: Path, cell: Cell | None = None) -> Exported:
        """Read a run folder; `cell` is the cell of a sweep that the run is of.

        Raises DataError, naming the run, if it is missing, unfinished or damaged.
        """
        run = RunFolder(folder)
        raw, told = manifest(run, _Manifest, ", then export it")
        settings, summary = told.settings, told.summary
        return cls(
            run,
            folder.resolve().name,
            raw["settings"],
            settings.model,
            settings.method,
            settings.benchmark,
            cell.method if cell else role_of(raw["settings"]),
            cell.setting if cell else setting_of(raw["settings"]),
            cell.seed if cell else None,
            settings.samples,
            summary.questions,
            different_of(raw["summary"], settings.samples),
            summary.correct,
            summary.failed,
            told.started,
            told.ended,
            told.versions.get("rectom", "unknown"),
            told.revision,
        )

    @property
    def accuracy(self) -> float:
        """The share of right answers, 0 to 1; what failed is wrong."""
        return self.correct / self.questions if self.questions else 0.0

    @property
    def interval(self) -> Interval:
        """Wilson's 95 % interval for the accuracy. To ask a question again does not narrow it."""
        return wilson(self.accuracy, self.different)

    def answers(self) -> Iterator[tuple[Answer, list[str]]]:
        """The questions in the order of the benchmark, each with the keys of the calls that it rests on.

        Raises DataError if the files are damaged or do not agree.
        """
        count = 0
        for count, (line, trace) in enumerate(zip_longest(self._lines("results.jsonl"), self._traces()), 1):
            if not line or not trace or line.get("id") != trace.id:
                raise self._disagreement()
            row = self._checked(Answer, {**line, **trace.told(), **self._front}, "results.jsonl", count)
            yield row, [call.key for call in trace.calls]
        if count != self.questions:
            raise self._disagreement()

    def calls(self) -> Iterator[Asked]:
        """The different calls. Raises DataError if the run does not keep them all, or is damaged."""
        uses = self._uses()
        for count, call in enumerate(self.folder.calls(), 1):
            use = uses.pop(str(call.get("key")), None)
            if use is None:
                raise self._disagreement()
            yield self._checked(Asked, {**call, **use.told(), **_renamed(call), **self._front}, _CALLS, count)
        if uses:
            raise DataError(
                f"{self.folder.folder} does not keep {len(uses)} of its calls: run the same command again to write "
                "them; what is in the store is not paid for again"
            )

    @property
    def _front(self) -> dict[str, Any]:
        return {"run": self.name, **{name: getattr(self, name) for name in Row.model_fields if name != "run"}}

    def _uses(self) -> dict[str, _Use]:
        """The calls that the traces name, by their keys."""
        uses: dict[str, _Use] = {}
        for trace in self._traces():
            for key, call in {call.key: call for call in trace.calls}.items():
                uses.setdefault(key, _Use(call.reasoning)).questions.append(trace.id)
        return uses

    def _traces(self) -> Iterator[_Trace]:
        for number, line in enumerate(self._lines("traces.jsonl"), 1):
            yield self._checked(_Trace, line, "traces.jsonl", number)

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.folder.folder / name
        with mending(path), regular.opened(path) as file:
            for number, line in enumerate(regular.lines(file, name), 1):
                try:
                    found = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise DataError(f"{path} is not JSON, a line each ({error})") from None
                if not isinstance(found, dict):
                    raise DataError(f"{path}, row {number}: not a mapping")
                yield found

    def _checked(self, model: type[R], row: Mapping[str, Any], name: str, number: int) -> R:
        try:
            return checked(model, row, str(self.folder.folder / name), number)
        except DataError as error:
            raise DataError(f"{error}; {MEND}") from None

    def _disagreement(self) -> DataError:
        return DataError(f"{self.folder.folder} is damaged: its files do not agree on its questions and calls; {MEND}")


def _renamed(call: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a call whose names would say less, or something else, in a table."""
    tokens = {f"{name}_tokens": call.get(name) for name in ("prompt", "completion", "cached")}
    return {"served_by": call.get("model"), **tokens}
