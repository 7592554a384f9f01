"""What the rules make of the questions that a model answered wrong, to find the step that went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from flows.accounts import outcome_of, trace_of
from flows.pipeline import pipeline, run_plainly, shards
from rectom.benchmarks.base import Benchmark
from rectom.errors import RectomError
from rectom.reader.base import STEPS
from rectom.results.attribution import attribute
from rectom.results.fault import Fault
from rectom.task import task
from tasks.run import Run, running

#: The kinds of text whose grammar the rules read as a whole.
READ: Final = frozenset({"hitom", "tomi"})

#: What of the rules' trace is kept beside the model's.
_KEPT: Final = ("chain", "reduced", "events", "world", "perspectives", "final", "predicted")

#: What cannot be read or compared is no reason for a run to fail at its end.
_UNREADABLE: Final = (LookupError, ValueError, TypeError, AttributeError, RectomError)


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a wrong answer: its fault, and what the rules make of the question; either may be None."""

    fault: Fault | None
    oracle: Mapping[str, Any] | None


async def told(runs: Sequence[Run], *, verified: bool = False) -> dict[str, Told]:
    """What is told of each wrong answer of the samples of a run, by the question's id with its suffix.

    Of RecToM alone, since other methods have no steps to be compared. `verified` tells whether the model's replies were
    checked. Nothing is sent or stored.
    """
    if runs[0].method:
        return {}
    wrong = [(run, question.id) for run in runs for question in run.benchmark.questions if _is_wrong(run, question.id)]
    right = await _by_rule(runs[0], {question for _, question in wrong})
    rules = [step for step in STEPS if runs[0].reader.fields(step).get("by") == "rules"]
    return {
        question + run.suffix: _told(run, question, right.get(question), rules, verified) for run, question in wrong
    }


def _is_wrong(run: Run, question: str) -> bool:
    return run.question(question).gold is not None and not outcome_of(run, question).correct


def _told(run: Run, question: str, oracle: Mapping[str, Any] | None, rules: Sequence[str], verified: bool) -> Told:
    try:
        fault = attribute(trace_of(run, question).to_json(), oracle, rules, verified=verified)
    except _UNREADABLE:
        fault = None
    return Told(fault, oracle)


async def _by_rule(run: Run, questions: set[str]) -> dict[str, Mapping[str, Any]]:
    """The rules' traces of the questions that they can read; the final state need not answer them."""
    if not questions or run.benchmark.task not in READ:
        return {}
    benchmark = _cut(run.benchmark, questions)
    oracle = Run(benchmark, task(benchmark.task).by_rule(run.reader.rules), run.store, dry=True)
    try:
        with running(oracle):
            await pipeline(shards(oracle), run_plainly)
    except _UNREADABLE:
        return {}
    traces = {question: trace_of(oracle, question) for question in questions}
    return {
        question: {name: getattr(trace, name) for name in _KEPT}
        for question, trace in traces.items()
        if not trace.failure or trace.failure["step"] == "answer"
    }


def _cut(benchmark: Benchmark, questions: set[str]) -> Benchmark:
    kept = tuple(question for question in benchmark.questions if question.id in questions)
    stories = {question.story_id for question in kept}
    return replace(benchmark, questions=kept, stories=tuple(s for s in benchmark.stories if s.id in stories))
