from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.results.outcome import Outcome
from rectom.results.statistics import wilson
from rectom.results.summary import Cost, Score, by_group, by_order, different_of, failures, summary_line

OUTCOME = Outcome("0", "s", 0, "box", "box", True, None, 3, 100)
WRONG = replace(OUTCOME, order=2, predicted="bag", correct=False)
FAILED = replace(OUTCOME, order=2, predicted=None, correct=False, failed_step="revise")


@pytest.mark.parametrize(
    ("correct", "questions", "low", "high"),
    [
        # Newcombe (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0000),
    ],
)
def test_the_interval_is_wilsons(correct: int, questions: int, low: float, high: float) -> None:
    assert Score(questions, correct).interval() == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_interval_holds_the_accuracy_and_stays_between_0_and_1(drawn: tuple[int, int]) -> None:
    score = Score(*drawn)
    low, high = score.interval()
    assert 0 <= low <= score.accuracy + 1e-12
    assert score.accuracy - 1e-12 <= high <= 1


@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_interval_is_the_same_seen_from_the_wrong_answers(drawn: tuple[int, int]) -> None:
    questions, correct = drawn
    low, high = Score(questions, correct).interval()
    assert Score(questions, questions - correct).interval() == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(1, 100).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_more_questions_of_the_same_accuracy_narrow_the_interval(drawn: tuple[int, int]) -> None:
    questions, correct = drawn
    (low, high), (less, more) = Score(questions, correct).interval(), Score(4 * questions, 4 * correct).interval()
    assert more - less < high - low


def test_no_questions_tell_nothing() -> None:
    assert Score(0, 0).accuracy == 0
    assert Score(0, 0).interval() == (0, 1)


def test_failed_questions_stay_in_the_denominator() -> None:
    outcomes = [OUTCOME, WRONG, FAILED]
    assert Score.of(outcomes) == Score(3, 1)
    assert failures(outcomes) == {"revise": 1}


def asked_again(samples: int, tries: int) -> list[Outcome]:
    """Two questions of different orders and groups, the second with a ballot of so many tries; so many samples each."""
    once = [replace(OUTCOME, order=1, group="a")]
    ballot = [replace(WRONG, group="b", ballot="1")] * tries
    return [
        replace(one, id=f"{number}#{sample}", ballot=one.ballot and f"{one.ballot}#{sample}")
        for sample in range(samples)
        for number, one in enumerate([*once, *ballot])
    ]


@pytest.mark.parametrize(("samples", "tries"), [(1, 1), (1, 5), (3, 1), (3, 5)])
def test_to_ask_a_question_again_does_not_narrow_the_interval(samples: int, tries: int) -> None:
    outcomes = asked_again(samples, tries)
    score = Score.of(outcomes, samples)
    assert (score.questions, score.different) == (samples * (1 + tries), 2)
    assert score.interval() == wilson(1 / (1 + tries), 2)
    orders, groups = by_order(outcomes, samples), by_group(outcomes, samples)
    assert [one.interval() for one in (*orders.values(), *groups.values())] == [wilson(1, 1), wilson(0, 1)] * 2
    assert different_of(summary_line({}, outcomes, Cost(), 1.0, samples)) == 2


def test_older_lines_tell_how_many_questions_there_are_by_the_samples() -> None:
    line = summary_line({}, asked_again(3, 1), Cost(), 1.0, 3)
    del line["different"]
    assert different_of(line, 3) == 2


def test_orders_come_lowest_first_and_unstated_ones_before_them() -> None:
    outcomes = [replace(OUTCOME, order=order) for order in (10, 2, None, 0, 2)]
    assert {order: score.questions for order, score in by_order(outcomes).items()} == {"-": 1, "0": 1, "2": 2, "10": 1}
    assert list(by_order(outcomes)) == ["-", "0", "2", "10"]


def test_the_commonest_failure_comes_first() -> None:
    steps = ["reduce", "revise", "revise"]
    assert list(failures([replace(FAILED, failed_step=step) for step in steps])) == ["revise", "reduce"]


def test_the_line_has_the_fields_that_scripts_read() -> None:
    identity = {"run": "night", "benchmark": "hitom", "subset": "400", "method": "rectom", "model": "m"}
    cost = Cost(sent=1, cached=2, shared=3, retried=4, prompt=5, completion=6, reasoning=7, provider_cached=8, billed=9)
    line = summary_line(identity, [OUTCOME, WRONG, FAILED], replace(cost, standalone=10), 1.23456)
    assert line == {
        **identity,
        "questions": 3,
        "different": 3,
        "correct": 1,
        "failed": 1,
        "accuracy": 0.333333,
        "by_order": {"0": {"questions": 1, "correct": 1}, "2": {"questions": 2, "correct": 0}},
        "calls": {"sent": 1, "cached": 2, "shared": 3, "retried": 4},
        "tokens": {"prompt": 5, "completion": 6, "reasoning": 7, "cached": 8, "billed": 9, "standalone": 10},
        "wall_s": 1.235,
    }


def test_a_run_without_questions_has_a_line_too() -> None:
    line = summary_line({"run": "r"}, [], Cost(), 0)
    assert (line["questions"], line["accuracy"], line["by_order"]) == (0, 0, {})
