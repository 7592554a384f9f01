from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.results.statistics import holm, mcnemar, wilson
from rectom.results.summary import Score

COUNTS = st.integers(0, 400)
PS = st.lists(st.floats(0, 1), min_size=1, max_size=6)


# Wilson.


@given(st.integers(0, 1000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_wilsons_interval_is_the_one_of_a_score(drawn: tuple[int, int]) -> None:
    questions, correct = drawn
    score = Score(questions, correct)
    assert wilson(score.accuracy, questions) == pytest.approx(score.interval(), abs=1e-12)


@given(st.integers(2, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_the_ends_are_where_the_share_is_just_not_rejected(drawn: tuple[int, int]) -> None:
    questions, share = drawn[0], drawn[1] / drawn[0]
    for end in wilson(share, questions):
        assert abs(share - end) / sqrt(end * (1 - end) / questions) == pytest.approx(1.96, rel=1e-6)


# McNemar.


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        # Fagerland, Lydersen and Laake (2013): airway hyper-responsiveness, and complete response; by hand 18/256.
        (1, 7, 18 / 256),
        (6, 16, 0.052479),
        # Agresti, Categorical Data Analysis: approval of the prime minister.
        (86, 150, 3.7159e-5),
        (0, 5, 2 / 32),
        (0, 6, 2 / 64),
        (3, 3, 1.0),
        (0, 1, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemars_p_is_that_of_the_books(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c) == pytest.approx(p, rel=1e-4)


@given(st.integers(0, 6), st.integers(0, 6))
def test_mcnemars_p_is_the_share_of_all_outcomes_that_are_as_uneven(b: int, c: int) -> None:
    outcomes = [abs(sum(signs)) for signs in product((-1, 1), repeat=b + c)]
    assert mcnemar(b, c) == Fraction(sum(uneven >= abs(b - c) for uneven in outcomes), len(outcomes))


@given(COUNTS, COUNTS)
def test_mcnemar_does_not_mind_which_run_is_the_baseline(b: int, c: int) -> None:
    assert mcnemar(b, c) == mcnemar(c, b)
    assert 0 < mcnemar(b, c) <= 1


@given(COUNTS, COUNTS)
def test_one_question_more_for_the_better_run_lowers_p(b: int, c: int) -> None:
    worse, better = sorted((b, c))
    assert mcnemar(worse, better + 1) <= mcnemar(worse, better)


def test_thousands_of_questions_are_counted_exactly() -> None:
    assert mcnemar(5000, 5000) == 1
    assert 0 < mcnemar(6000, 7000) < 1e-15
    assert mcnemar(0, 13_708) == 0  # less than a float can say


# Holm.


def test_holms_values_are_those_of_his_procedure() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []
    assert holm([1.0, 0.9]) == [1.0, 1.0]


@given(PS)
def test_holm_is_bonferroni_closed_over_all_sets_of_tests(ps: list[float]) -> None:
    places = range(len(ps))
    sets = [some for size in range(1, len(ps) + 1) for some in combinations(places, size)]
    closed = [max(min(1.0, len(some) * min(ps[i] for i in some)) for some in sets if place in some) for place in places]
    assert holm(ps) == pytest.approx(closed)


@given(PS, st.randoms(use_true_random=False))
def test_holm_does_not_mind_the_order_of_the_tests(ps: list[float], chance: Random) -> None:
    places = list(range(len(ps)))
    chance.shuffle(places)
    adjusted = holm(ps)
    assert holm([ps[place] for place in places]) == [adjusted[place] for place in places]
