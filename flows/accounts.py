"""What each question came to and cost, from the results of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rectom.llm.stats import Stats
from rectom.results.outcome import Outcome, Trace
from rectom.results.summary import Cost
from tasks.observability import item
from tasks.run import Failure, Result, Run

Calls = list[Mapping[str, Any]]


def results_of(run: Run, question: str) -> list[tuple[str, Result]]:
    """The results that a question's answer rests on, in the order of Algorithm 1, each with its stage."""
    story = run.question(question).story_id
    places = [("abstraction", story), ("global_state", story), ("questions", question)]
    read = run.results.get(("questions", question))
    if read and read.output:
        places += [("observability", item(story, name)) for name in dict.fromkeys(read.output["chain"])]
    places += [("completion", question), ("answering", question)]
    return [(place[0], run.results[place]) for place in places if place in run.results]


def outcome_of(run: Run, question: str) -> Outcome:
    """The outcome of a question."""
    asked = run.question(question)
    results = results_of(run, question)
    failure, calls = _failure(results), _calls(results)
    answered = run.results.get(("answering", question))
    predicted = answered.output if answered and not failure else None
    return Outcome(
        question,
        asked.story_id,
        asked.order,
        asked.gold,
        predicted,
        predicted is not None and predicted == asked.gold,
        failure.step if failure else None,
        len(calls),
        sum(map(_tokens, calls)),
    )


def trace_of(run: Run, question: str) -> Trace:
    """The trace of a question: as far as it came."""
    asked = run.question(question)
    results = results_of(run, question)
    made = {stage: result.output for stage, result in results if result.output is not None}
    read, completed = made.get("questions") or {}, made.get("completion") or {}
    failure = _failure(results)
    return Trace(
        id=question,
        story_id=asked.story_id,
        question=asked.text,
        choices=list(asked.choices),
        lines=list(run.story(asked.story_id).lines),
        chain=read.get("chain"),
        reduced=read.get("reduced"),
        events=made.get("abstraction"),
        world=made.get("global_state"),
        perspectives=completed.get("perspectives"),
        final=completed.get("final"),
        predicted=made.get("answering"),
        gold=asked.gold,
        failure={"step": failure.step, "why": failure.why} if failure else None,
        calls=_calls(results),
    )


def cost_of(run: Run, stats: Stats) -> Cost:
    """Calls and tokens of a run; `stats` are the client's."""
    asked = [call for question in run.benchmark.questions for call in _calls(results_of(run, question.id))]
    different = {call["key"]: call for call in asked}
    computed = [result for result in run.results.values() if result.computed]
    sent = {call["key"] for result in computed for call in result.calls if call["source"] != "cached"}
    return Cost(
        sent=stats.sent,
        cached=len(different.keys() - sent),
        shared=len(asked) - len(different),
        retried=stats.retried,
        prompt=_sum(different.values(), "prompt"),
        completion=_sum(different.values(), "completion"),
        reasoning=_sum(different.values(), "reasoning"),
        provider_cached=_sum(different.values(), "cached"),
        billed=stats.usage.prompt + stats.usage.completion,
        standalone=sum(map(_tokens, asked)),
    )


def _failure(results: Iterable[tuple[str, Result]]) -> Failure | None:
    return next((result.failure for _, result in results if result.failure), None)


def _calls(results: Iterable[tuple[str, Result]]) -> Calls:
    return [call for _, result in results for call in result.calls]


def _tokens(call: Mapping[str, Any]) -> int:
    return int(call["prompt"]) + int(call["completion"])


def _sum(calls: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(int(call[name]) for call in calls)
