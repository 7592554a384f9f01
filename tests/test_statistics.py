from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.results.statistics import cluster_bootstrap, holm, mcnemar, wilson
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


# The bootstrap.


def drawn(stories: int, seed: int = 1) -> list[float]:
    """A difference of -1, 0 or 1 for each story."""
    chance = Random(seed)
    return [float(chance.choice((-1, 0, 0, 1, 1))) for _ in range(stories)]


def interval(column: Sequence[float], sizes: Sequence[int] | None = None, **more: int) -> tuple[float, float]:
    (found,) = cluster_bootstrap([column], sizes or [1] * len(column), **more)
    assert found
    return found


def test_runs_that_do_not_differ_have_an_interval_of_nothing() -> None:
    assert interval([0.0] * 20) == (0, 0)


@given(st.lists(st.sampled_from((-1.0, 0.0, 0.5, 1.0)), min_size=2, max_size=30), st.integers(0, 9))
def test_the_other_run_as_baseline_mirrors_the_interval(column: list[float], seed: int) -> None:
    low, high = interval(column, resamples=100, seed=seed)
    assert interval([-value for value in column], resamples=100, seed=seed) == (-high, -low)
    assert min(column) <= low <= high <= max(column)


def test_the_interval_is_that_of_all_resamples_there_are() -> None:
    column, sizes = [2.0, -1.0, 0.0, 1.0], [3, 1, 2, 1]
    every = sorted(
        sum(column[place] for place in places) / sum(sizes[place] for place in places)
        for places in product(range(4), repeat=4)
    )
    # Of 256 equally likely resamples, 2.5 % are the outermost 6.4 on either side.
    low, high = interval(column, sizes, resamples=20_000)
    assert every[5] <= low <= every[7]
    assert every[-8] <= high <= every[-6]


def test_many_stories_come_near_the_normal_interval() -> None:
    column = drawn(400)
    mean = sum(column) / 400
    half = 1.96 * sqrt(sum((value - mean) ** 2 for value in column) / 400 / 400)
    assert interval(column, resamples=4000) == pytest.approx((mean - half, mean + half), abs=0.1 * half)


def test_questions_that_repeat_what_their_story_said_tell_nothing_more() -> None:
    column = drawn(60)
    assert interval([5 * value for value in column], [5] * 60) == pytest.approx(interval(column))
    low, high = interval(column)
    apart = interval([value for value in column for _ in range(5)])
    assert apart[1] - apart[0] < 0.6 * (high - low)


def test_the_same_seed_draws_the_same_and_another_others() -> None:
    column = drawn(50)
    assert interval(column, seed=3) == interval(column, seed=3)
    assert len({interval(column, seed=seed) for seed in range(8)}) > 1


def test_all_columns_are_resampled_alike() -> None:
    one, other = drawn(40, 1), drawn(40, 2)
    sizes = [1, 2] * 20
    assert cluster_bootstrap([one, other], sizes) == [interval(one, sizes), interval(other, sizes)]


def test_the_draws_are_those_that_are_published() -> None:
    # Figures that were printed once must come again, on every version of Python.
    column = [(-1.0, 0.0, 1.0)[place * place % 7 % 3] for place in range(80)]
    assert interval(column, seed=0) == pytest.approx((-0.0125, 0.2625), abs=1e-12)


@pytest.mark.parametrize("stories", [0, 1])
def test_one_story_tells_nothing_about_others(stories: int) -> None:
    assert cluster_bootstrap([[1.0] * stories, [0.0] * stories], [4] * stories) == [None, None]
