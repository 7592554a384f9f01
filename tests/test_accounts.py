from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cache import Store, digest
from flows.accounts import calls_of, cost_of, outcome_of, results_of, trace_of
from rectom.llm import Usage
from rectom.llm.stats import Stats
from rectom.reader.rules import RuleReader
from tasks.run import Failure, Result, Run
from tests.test_run import BENCHMARK


def made(key: str, source: str = "sent", prompt: int = 10, completion: int = 1) -> dict[str, Any]:
    """A call as a result keeps it."""
    tokens = {"prompt": prompt, "completion": completion, "reasoning": 2, "cached": 3}
    return {"step": "s", "key": key, "source": source, **tokens, "latency_s": 0.0, "outcome": "ok"}


def result(output: Any, *calls: dict[str, Any], computed: bool = True) -> Result:
    return Result(output, digest(output), calls, computed=computed)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Both questions about the story `one` answered: the second about what Anne thinks."""
    with Store(tmp_path / "store") as store:
        run = Run(BENCHMARK, RuleReader(), store)
        run.results = {
            ("abstraction", "one"): result(["events"], made("a", prompt=100)),
            ("global_state", "one"): result("world"),
            ("questions", "1"): result({"chain": [], "reduced": "?"}, made("c1")),
            ("questions", "2"): result({"chain": ["Anne"], "reduced": "?"}, made("c2"), made("r2")),
            ("observability", "one/Anne"): result("able", made("s"), made("e")),
            ("completion", "1"): result({"perspectives": [], "final": ["in(ball,box)"]}),
            ("completion", "2"): result({"perspectives": ["p"], "final": []}),
            ("answering", "1"): result("box", made("n")),
            ("answering", "2"): result("bag", made("n", "shared")),
        }
        yield run


def test_an_answer_rests_on_the_results_along_its_chain_in_the_order_of_the_algorithm(run: Run) -> None:
    plain = ["abstraction", "global_state", "questions", "completion", "answering"]
    assert [stage for stage, _ in results_of(run, "1")] == plain
    assert [stage for stage, _ in results_of(run, "2")] == [*plain[:3], "observability", *plain[3:]]


def test_a_character_who_comes_twice_is_observed_once(run: Run) -> None:
    run.results["questions", "2"] = result({"chain": ["Anne", "Bob", "Anne"], "reduced": "?"})
    assert [stage for stage, _ in results_of(run, "2")].count("observability") == 1


def test_an_outcome_is_right_if_it_is_the_gold_answer(run: Run) -> None:
    right, wrong = outcome_of(run, "1"), outcome_of(run, "2")
    assert (right.predicted, right.correct, right.failed_step, right.calls) == ("box", True, None, 3)
    assert (wrong.predicted, wrong.correct, wrong.failed_step, wrong.calls) == ("bag", False, None, 6)
    assert (right.tokens, wrong.tokens) == (100 + 1 + 2 * 11, 100 + 1 + 5 * 11)


def test_a_question_that_failed_is_wrong_and_keeps_what_it_cost(run: Run) -> None:
    failure = Failure("observe_events", "nonsense")
    run.results["observability", "one/Anne"] = Result(calls=(made("s"), made("e")), failure=failure)
    for stage in ("completion", "answering"):
        run.results[stage, "2"] = Result(failure=failure)
    outcome = outcome_of(run, "2")
    assert (outcome.predicted, outcome.correct, outcome.failed_step) == (None, False, "observe_events")
    assert outcome.calls == 5
    trace = trace_of(run, "2")
    assert trace.failure == {"step": "observe_events", "why": "nonsense"}
    assert (trace.chain, trace.final, trace.predicted) == (["Anne"], None, None)
    assert outcome_of(run, "1").correct


def test_the_first_step_that_failed_is_the_one_named(run: Run) -> None:
    run.results["abstraction", "one"] = Result(failure=Failure("abstract", "first"))
    run.results["questions", "2"] = Result(failure=Failure("chain", "second"))
    assert outcome_of(run, "2").failed_step == "abstract"


def test_a_question_that_has_not_come_far_has_a_trace_as_far_as_it_came(run: Run) -> None:
    trace = trace_of(run, "0")
    assert (trace.question, trace.gold, trace.events, trace.chain, trace.calls) == (
        "Where is the kite really?",
        "bag",
        None,
        None,
        [],
    )
    assert outcome_of(run, "0").predicted is None


def test_a_trace_holds_every_part(run: Run) -> None:
    trace = trace_of(run, "2")
    parts: tuple[object, ...] = (trace.events, trace.world, trace.perspectives)
    assert parts == (["events"], "world", ["p"])
    assert [call["key"] for call in trace.calls] == ["a", "c2", "r2", "s", "e", "n"]
    assert trace.lines == list(run.story("one").lines)


@pytest.mark.parametrize("record", [{"text": "hm"}, {"text": "hm", "request": None}, {"text": "hm", "request": [1]}])
def test_a_reply_that_does_not_say_what_was_asked_is_listed_without(run: Run, record: dict[str, Any]) -> None:
    key = digest("n")
    run.results = {("answering", "1"): result("box", made(key))}
    run.store.put_now("reply", key, record)
    (call,) = calls_of([run])
    assert call["messages"] == []
    assert call["text"] == ("hm" if "request" not in record else None)


def test_a_first_run_pays_each_different_call_once(run: Run) -> None:
    stats = Stats(sent=7, retried=2, usage=Usage(160, 7, 14, 21))
    cost = cost_of([run], stats)
    assert cost.calls() == {"sent": 7, "cached": 0, "shared": 2, "retried": 2}
    assert cost.tokens() == {
        "prompt": 160,
        "completion": 7,
        "reasoning": 14,
        "cached": 21,
        "billed": 167,
        "standalone": 123 + 156,
    }
    assert sum(outcome_of(run, question).calls for question in "012") == cost.sent + cost.cached + cost.shared


def test_a_rerun_pays_nothing_for_the_same_calls(run: Run) -> None:
    run.results = {place: result(r.output, *r.calls, computed=False) for place, r in run.results.items()}  # type: ignore[arg-type]
    cost = cost_of([run], Stats())
    assert cost.calls() == {"sent": 0, "cached": 7, "shared": 2, "retried": 0}
    assert (cost.prompt, cost.billed, cost.standalone) == (160, 0, 279)


def test_results_judged_again_from_stored_replies_are_cached(run: Run) -> None:
    run.results["questions", "2"] = result({"chain": ["Anne"]}, made("c2", "cached"), made("r2", "cached"))
    cost = cost_of([run], Stats(sent=5, usage=Usage(140, 5)))
    assert cost.calls() == {"sent": 5, "cached": 2, "shared": 2, "retried": 0}
