"""What each question came to and cost, from the results of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any

from rectom.llm.budget import Budget
from rectom.llm.reply import Usage
from rectom.llm.stats import Stats
from rectom.results.outcome import Outcome, Trace, digest_of_asked
from rectom.results.summary import Cost, Money, StepCost
from tasks.observability import item
from tasks.run import Failure, Result, Run

Calls = list[Mapping[str, Any]]


def results_of(run: Run, question: str) -> list[tuple[str, Result]]:
    """The results that a question's answer rests on, in the order of Algorithm 1, each with its stage."""
    if run.method:
        answered = run.results.get(("answering", question))
        return [("answering", answered)] if answered else []
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
        question + run.suffix,
        asked.story_id,
        asked.order,
        asked.gold,
        predicted,
        predicted is not None and predicted == asked.gold,
        failure.step if failure else None,
        len(calls),
        sum(map(_tokens, calls)),
        asked.group,
        asked.ballot and asked.ballot + run.suffix,
        asked.class_of(asked.gold),
        asked.class_of(predicted),
        digest_of_asked(asked.text, asked.choices, run.story(asked.story_id).lines, asked.gold),
    )


def trace_of(run: Run, question: str) -> Trace:
    """The trace of a question: as far as it came."""
    asked = run.question(question)
    results = results_of(run, question)
    made = {stage: result.output for stage, result in results if result.output is not None}
    read, completed = made.get("questions") or {}, made.get("completion") or {}
    failure = _failure(results)
    return Trace(
        id=question + run.suffix,
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


def calls_of(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """The different calls of a run, each with its messages and its reply, as `calls.jsonl.gz` keeps them."""
    store = runs[0].store
    for key, call in _different(_asked(runs)).items():
        record = store.get("reply", key) or {}
        said = {name: record.get(name) for name in ("text", "reasoning", "model", "at")}
        yield {**call, **said, "messages": record.get("request", {}).get("messages", [])}


def cost_of(runs: Sequence[Run], stats: Stats) -> Cost:
    """Calls and tokens of all samples of a run; `stats` are the client's."""
    asked = _asked(runs)
    different = _different(asked)
    computed = [result for run in runs for result in run.results.values() if result.computed]
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
        billed=stats.usage.total,
        standalone=sum(map(_tokens, asked)),
    )


def steps_of(runs: Sequence[Run]) -> dict[str, StepCost]:
    """What each step came to, over the different replies, in the order in which steps are first asked."""
    groups: dict[str, Calls] = {}
    for call in _different(_asked(runs)).values():
        groups.setdefault(call["step"], []).append(call)
    tokens = ("prompt", "completion", "reasoning", "cached")
    return {
        step: StepCost(len(calls), _sum(calls, "repair"), **_sums(calls, tokens), latency_s=_seconds(calls))
        for step, calls in groups.items()
    }


def _sums(calls: Calls, names: Iterable[str]) -> dict[str, int]:
    return {name: _sum(calls, name) for name in names}


def _seconds(calls: Calls) -> float:
    return round(fsum(call["latency_s"] for call in calls), 3)


def money_of(cost: Cost, stats: Stats, budget: Budget) -> Money:
    """What a run cost, where the prices are known."""
    prices = budget.prices
    if prices is None:
        return Money()
    whole = Usage(cost.prompt, cost.completion, cost.reasoning, cost.provider_cached)
    billed, in_all = (prices.cost(usage, batch=budget.batch) for usage in (stats.usage, whole))
    return Money(billed, in_all, prices.currency, prices.date.isoformat())


def _asked(runs: Sequence[Run]) -> Calls:
    return [
        call for run in runs for question in run.benchmark.questions for call in _calls(results_of(run, question.id))
    ]


def _different(calls: Calls) -> dict[str, Mapping[str, Any]]:
    return {call["key"]: call for call in calls}


def _failure(results: Iterable[tuple[str, Result]]) -> Failure | None:
    return next((result.failure for _, result in results if result.failure), None)


def _calls(results: Iterable[tuple[str, Result]]) -> Calls:
    return [call for _, result in results for call in result.calls]


def _tokens(call: Mapping[str, Any]) -> int:
    return int(call["prompt"]) + int(call["completion"])


def _sum(calls: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(int(call[name]) for call in calls)
