"""A run in progress: what the stages read, where their results go, and what became of each item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cache import Reason, Store, Verdict, compare, digest
from rectom.benchmarks.base import Benchmark
from rectom.methods.base import Method
from rectom.reader.base import STEPS, Reader, SharedReader
from rectom.reader.histories import ANSWER, OBSERVE, Historian
from rectom.reader.updating import ModelUpdater
from rectom.story import Question, Story, Vocabulary
from rectom.task import task

if TYPE_CHECKING:
    from collections.abc import Iterator


#: What is noted of an item whose result is in the store.
WENT_WELL: Final = "ok"

#: What the keys of results hold that rest on histories in the place of states (see the ablation w/o-state).
WITHOUT_STATES: Final[Mapping[str, str]] = {"perspectives": "histories"}

#: The steps that there are without states.
_WITHOUT_STATES: Final = ("abstract", "chain", "reduce")


@dataclass(frozen=True, slots=True)
class Failure:
    """A semantic step that went wrong for good, and the fault in words."""

    step: str
    why: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a stage made of one item.

    `key` finds it in the store (empty if it failed). `calls` are the model calls that it rests on. `computed`
    tells whether that happened in this run or was found in the store.
    """

    output: Any = None
    key: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    failure: Failure | None = None
    computed: bool = False


class Blocked(Exception):
    """An item cannot be computed, since what it reads is not there: it failed, or (in a dry run) would be sent for."""

    def __init__(self, failure: Failure | None) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass
class Run:
    """Everything that the stages of one run share.

    `by` reads for RecToM's stages; where there is a `method`, it answers instead. `dry` plans without sending or
    storing anything. `forced` names stages whose results are computed again; `retry_failed` asks anew for what failed
    before. `suffix` tells samples of one benchmark apart. `ended` is told the stage and the item of everything that
    ends; `done` counts them by stage. `broken` is told the error that ends the run, before what runs beside it is
    called off.
    """

    benchmark: Benchmark
    by: Reader | None
    store: Store
    method: Method | None = None
    dry: bool = False
    forced: Collection[str] = ()
    retry_failed: bool = False
    suffix: str = ""
    ended: Callable[[str, str], None] = lambda _stage, _item: None
    broken: Callable[[Exception], None] = lambda _error: None
    done: Counter[str] = field(default_factory=Counter)
    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stories = {story.id: story for story in self.benchmark.stories}
        self._questions = {question.id: question for question in self.benchmark.questions}
        self._asked: dict[str, list[str]] = {}
        for question in self.benchmark.questions:
            self._asked.setdefault(question.story_id, []).append(question.id)
        self._words: dict[str, Vocabulary] = {}
        self._decoded: dict[tuple[str, str], Any] = {}

    @property
    def reader(self) -> Reader:
        """Who reads the semantic steps of Algorithm 1."""
        if self.by is None:
            raise RuntimeError("a run of another method has no reader")
        return self.by

    @property
    def updater(self) -> ModelUpdater | None:
        """The model that applies Eq. 1; None where code does (see the ablation w/o-det)."""
        return self.by.updater if isinstance(self.by, SharedReader) else None

    @property
    def historian(self) -> Historian | None:
        """Who reads histories in the place of states; None where there are states (see the ablation w/o-state)."""
        return self.by.historian if isinstance(self.by, SharedReader) else None

    @property
    def reading(self) -> str:
        """The digest of everything in the way of reading or answering that results depend on."""
        if self.method:
            return digest({"method": self.method.fields()})
        if self.historian:
            without = {step: self.historian.fields(step) for step in (OBSERVE, ANSWER)}
            return digest({"steps": {step: self.reader.fields(step) for step in _WITHOUT_STATES}, **without})
        steps = {step: self.reader.fields(step) for step in STEPS}
        return digest({"steps": steps, "update": self.updater and self.updater.fields()})

    def story(self, story_id: str) -> Story:
        """A story by id."""
        return self._stories[story_id]

    def question(self, question_id: str) -> Question:
        """A question by id."""
        return self._questions[question_id]

    def questions(self, story_ids: Iterable[str]) -> list[str]:
        """The ids of the questions about some stories."""
        return [question for story in story_ids for question in self._asked.get(story, ())]

    def words(self, story_id: str) -> Vocabulary:
        """The vocabulary of a story."""
        if story_id not in self._words:
            self._words[story_id] = task(self.benchmark.task).words(self.story(story_id).lines)
        return self._words[story_id]

    def output(self, stage: str, item: str) -> Any:
        """What a stage made of an item. Raises Blocked if it has nothing."""
        result = self.results.get((stage, item))
        if result is None or result.failure or not result.key:
            raise Blocked(result.failure if result else None)
        return result.output

    def decoded(self, stage: str, item: str, decode: Callable[[Any], Any]) -> Any:
        """The output of a stage for an item, decoded once."""
        output = self.output(stage, item)
        if (stage, item) not in self._decoded:
            self._decoded[stage, item] = decode(output)
        return self._decoded[stage, item]

    def stored(self, key: str) -> Result | None:
        """A result from the store."""
        found = self.store.get("stage", key)
        if found is None:
            return None
        return Result(found["output"], key, tuple(found["calls"]))

    def verdict(self, stage: str, item: str, fields: Mapping[str, Any]) -> Verdict:
        """Why an item is computed that has no result with these fields."""
        if stage in self.forced:
            return Verdict(Reason.FORCED)
        failed = self.store.get("latest", place_of_failure(fields))
        if failed and failed.get("outcome") != WENT_WELL:
            return Verdict(Reason.FAILED_BEFORE, details=(str(failed.get("outcome")),))
        latest = self.store.get("latest", self.place(stage, item))
        fields_then = latest.get("fields") if latest else None
        return compare(*_told_apart(fields_then, fields)) if fields_then else Verdict(Reason.FIRST_RUN)

    def place(self, stage: str, item: str) -> str:
        """Where the latest fields of an item are kept, whatever they were."""
        return digest({"stage": stage, "benchmark": self.benchmark.name, "item": item + self.suffix})


def place_of_failure(fields: Mapping[str, Any]) -> str:
    """Where it is kept that a result with these fields failed, whatever was computed of its item later on."""
    return digest({"failed": digest(fields)})


def _told_apart(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two sets of fields as far as they can be compared: of perspectives or readers of two kinds only the kinds."""
    before, now = ({"perspectives": "states", **fields} for fields in (old, new))
    if before["perspectives"] != now["perspectives"]:
        return {"perspectives": before["perspectives"]}, {"perspectives": now["perspectives"]}
    for name in {**old, **new}:
        kinds = _kind(old.get(name)), _kind(new.get(name))
        for fields, kind in zip((before, now), kinds, strict=True):
            if kind and kinds[0] != kinds[1]:
                fields[name] = {"by": kind}
    return before, now


def _kind(field_: object) -> str | None:
    return field_.get("by") if isinstance(field_, Mapping) else None


_current: ContextVar[Run] = ContextVar("run")


def current() -> Run:
    """The run that the calling stage belongs to."""
    return _current.get()


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """Make a run the current one."""
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)
