"""A finished run, as it is read back to be compared: its questions, each with what came of it, and what was paid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import BaseModel, Field

from rectom.benchmarks.rows import checked, json_lines
from rectom.errors import DataError
from rectom.results import regular
from rectom.results.fault import UNTOLD
from rectom.results.folder import RunFolder
from rectom.results.manifest import MEND, manifest, mending
from rectom.results.outcome import digest_of_asked


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and what came of it. Its samples, and the tries of one ballot, are one question.

    `key` is a digest of everything asked: benchmark, permutation, ids, stories, questions, options and labels. `score`
    is the share of the `tries` that are right, 0 to 1; `failed` how many of them ended without an answer, which is
    wrong. `calls` and `tokens` are the mean of the tries, as if no question had shared anything. `name` is the
    question's in its benchmark, whatever is permuted in it, `group` its kind. `failed_steps` and `faults` are the steps
    at which tries failed, and went wrong as far as that is told: one entry each. A try that failed is in both.
    """

    key: str
    story_id: str
    order: int | None
    tries: int
    score: float
    failed: int
    calls: float
    tokens: float
    name: str = ""
    group: str = ""
    failed_steps: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def untold(self) -> int:
        """How many tries are wrong of which nothing tells at which step."""
        return max(0, self.tries - round(self.score * self.tries) - len(self.faults))

    def wrong_at(self, step: str) -> int:
        """How many tries are wrong at a step; at `UNTOLD`, those of which nothing tells the step."""
        return self.untold if step == UNTOLD else self.faults.count(step)


@dataclass(frozen=True, slots=True)
class Paid:
    """What a run as a whole came to, shared replies counted once.

    `calls` are the different calls. `billed` are the tokens that all sessions of the run paid for, None if one of them
    was killed before it could tell. `whole` is the price of all different replies, whenever they were paid, `money`
    that of the billed tokens; None is unknown, which is not 0. `tokens` are those of the different calls, and
    `latency_s` the seconds that their replies took, one after the other; None where an older run does not tell.
    """

    calls: int
    billed: int | None
    whole: Decimal | None = None
    money: Decimal | None = None
    currency: str = ""
    tokens: int = 0
    latency_s: float | None = None

    def to_json(self) -> dict[str, int | str | None]:
        """As JSON; amounts as text, so that no digit is lost."""
        amounts = {"money": self.whole, "money_billed": self.money}
        told = {name: None if amount is None else f"{amount:.6f}" for name, amount in amounts.items()}
        return {"calls_different": self.calls, "tokens_billed": self.billed, **told, "currency": self.currency or None}


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended.

    `benchmark` is as in `hitom/400`, `data` the digest of the benchmark's files; `settings` are those of the manifest.
    """

    name: str
    benchmark: str
    data: str
    settings: Mapping[str, object]
    questions: tuple[Answered, ...]
    paid: Paid

    @property
    def answers(self) -> int:
        """How many answers there are: samples and tries counted each."""
        return sum(question.tries for question in self.questions)

    @classmethod
    def read(cls, folder: Path) -> Finished:
        """Read a run folder. Raises DataError, naming the run, if it is missing, unfinished or damaged.

        The traces, which are large, are read only of runs whose results do not tell what was asked.
        """
        raw, told = manifest(RunFolder(folder), _Manifest, " first")
        lines = _read(folder / "results.jsonl", _Line)
        asked = _asked(folder, lines)
        right = sum(line.correct for line in lines.values())
        if lines.keys() != asked.keys() or (len(lines), right) != (told.summary.questions, told.summary.correct):
            raise DataError(f"{folder} is damaged: its files do not agree on the questions and answers; {MEND}")
        questions = tuple(_questions(told.settings, lines, asked))
        return cls(folder.name, told.settings.benchmark, told.settings.data, raw["settings"], questions, _paid(told))


class _Settings(BaseModel):
    benchmark: str
    data: str
    samples: int = 1


class _Calls(BaseModel):
    sent: int
    cached: int


class _Tokens(BaseModel):
    billed: int
    prompt: int = 0
    completion: int = 0


class _Summary(BaseModel):
    questions: int
    correct: int
    calls: _Calls
    tokens: _Tokens


class _Money(BaseModel):
    billed: Decimal | None = None
    whole: Decimal | None = None
    currency: str | None = None


class _Step(BaseModel):
    latency_s: float | None = None


class _Session(BaseModel):
    prompt: int | None = None
    completion: int | None = None


class _Manifest(BaseModel):
    settings: _Settings
    summary: _Summary
    money: _Money = Field(default_factory=_Money)
    sessions: list[_Session] = []
    steps: dict[str, _Step] = {}


class _Row(BaseModel):
    id: str


class _Line(_Row):
    """A line of `results.jsonl`; see `Outcome`."""

    story_id: str
    order: int | None
    correct: bool
    failed_step: str | None
    calls: int
    tokens: int
    group: str = ""
    ballot: str = ""
    asked: str = ""
    fault: str = ""


class _Asked(_Row):
    """What was asked, of a line of `traces.jsonl`."""

    question: str
    choices: list[str]
    lines: list[str]
    gold: str | None


R = TypeVar("R", bound=_Row)


def _read(path: Path, model: type[R]) -> dict[str, R]:
    """The lines of a file by their ids. A run that is finished has every line whole, and every question once."""
    with mending(path), regular.opened(path) as file:
        rows = [checked(model, row, str(path), number) for number, row in json_lines(file.read(), str(path))]
    found = {row.id: row for row in rows}
    if len(found) < len(rows):
        raise DataError(f"{path} holds a question more than once; {MEND}")
    return found


def _asked(folder: Path, lines: Mapping[str, _Line]) -> dict[str, str]:
    """The digest of what was asked, by id."""
    if all(line.asked for line in lines.values()):
        return {line.id: line.asked for line in lines.values()}
    traces = _read(folder / "traces.jsonl", _Asked)
    return {name: digest_of_asked(one.question, one.choices, one.lines, one.gold) for name, one in traces.items()}


def _questions(settings: _Settings, lines: Mapping[str, _Line], asked: Mapping[str, str]) -> Iterator[Answered]:
    """The questions in the order of the file."""
    groups: dict[str, list[_Line]] = {}
    for line in lines.values():
        groups.setdefault(_bare(line.ballot or line.id, settings), []).append(line)
    # Which stories were drawn does not make a question about one of them another.
    dress = [part for part in settings.benchmark.split("+")[1:] if not part.startswith("stories.")]
    benchmark = [settings.benchmark.partition("/")[0], *dress]
    for name, tries in groups.items():
        texts = {_bare(line.id, settings): asked[line.id] for line in tries}
        yield Answered(
            sha256(orjson.dumps([benchmark, texts], option=orjson.OPT_SORT_KEYS)).hexdigest(),
            tries[0].story_id,
            tries[0].order,
            len(tries),
            _mean(line.correct for line in tries),
            sum(line.failed_step is not None for line in tries),
            _mean(line.calls for line in tries),
            _mean(line.tokens for line in tries),
            name,
            tries[0].group,
            tuple(line.failed_step for line in tries if line.failed_step is not None),
            tuple(line.fault for line in tries if line.fault),
        )


def _bare(name: str, settings: _Settings) -> str:
    """An id without the number of its sample."""
    return re.sub(r"#\d+\Z", "", name) if settings.samples > 1 else name


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return fsum(found) / len(found)


def _paid(told: _Manifest) -> Paid:
    """What was paid. The summary knows the last session alone, so that its bill holds where no other paid anything."""
    summary, money, last = told.summary, told.money, told.summary.tokens.billed
    each = [
        None if one.prompt is None or one.completion is None else one.prompt + one.completion for one in told.sessions
    ]
    known = [tokens for tokens in each if tokens is not None]
    billed = (sum(known) if len(known) == len(each) else None) if each else last
    return Paid(
        summary.calls.sent + summary.calls.cached,
        billed,
        money.whole,
        money.billed if billed == last else None,
        money.currency or "",
        summary.tokens.prompt + summary.tokens.completion,
        _latency(told.steps.values()),
    )


def _latency(steps: Iterable[_Step]) -> float | None:
    told = [step.latency_s for step in steps if step.latency_s is not None]
    return fsum(told) if told else None
