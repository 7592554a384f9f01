from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import sqrt
from random import Random
from statistics import quantiles

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.results import resampling
from rectom.results.finished import Answered
from rectom.results.resampling import Resampled, cluster_bootstrap, middle

# One comparison.


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


# Many runs.


def run(seed: int, questions: int = 40, stories: int = 9) -> list[Answered]:
    chance = Random(seed)
    return [
        Answered(f"k{n}", f"s{n % stories}", 0, 1, float(chance.random() < 0.6), 0, 1, chance.randrange(100, 900))
        for n in range(questions)
    ]


def plainly(
    columns: Sequence[Sequence[float]], sizes: Sequence[int], resamples: int, seed: int
) -> list[tuple[float, float]]:
    """The bootstrap in plain Python."""
    random = Random(seed).random
    means: list[list[float]] = [[] for _ in columns]
    for _ in range(resamples):
        drawn = [int(random() * len(sizes)) for _ in sizes]
        questions = sum(sizes[place] for place in drawn)
        for column, found in zip(columns, means, strict=True):
            found.append(sum(column[place] for place in drawn) / questions)
    fortieths = [quantiles(found, n=40, method="inclusive") for found in means]
    return [(found[0], found[-1]) for found in fortieths]


@pytest.mark.parametrize("seed", [0, 7, -3, 2**40])
def test_the_intervals_are_those_of_the_bootstrap_in_plain_python(seed: int) -> None:
    one, other = run(1), run(2)
    found = Resampled.of([one, other], 500, seed)
    stories = list(dict.fromkeys(question.story_id for question in one))

    def sums(questions: list[Answered], field: str) -> list[float]:
        return [sum(getattr(q, field) for q in questions if q.story_id == story) for story in stories]

    sizes = [sum(q.story_id == story for q in one) for story in stories]
    less = [b - a for a, b in zip(sums(one, "score"), sums(other, "score"), strict=True)]
    columns = [less, sums(one, "tokens")]
    expected = plainly(columns, sizes, 500, seed)
    assert middle(found.accuracy[1] - found.accuracy[0]) == pytest.approx(expected[0])
    assert middle(found.tokens[0]) == pytest.approx(expected[1])
    assert cluster_bootstrap(columns, sizes, 500, seed) == [pytest.approx(interval) for interval in expected]


def test_how_many_are_drawn_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Resampled.of([run(1)], 100)
    monkeypatch.setattr(resampling, "_AT_ONCE", 64)
    parts = Resampled.of([run(1)], 100)
    assert np.allclose(whole.accuracy, parts.accuracy)
    assert np.allclose(whole.tokens, parts.tokens)


def test_one_story_has_no_interval() -> None:
    found = Resampled.of([run(1, stories=1)])
    assert middle(found.accuracy[0]) is None
    assert middle(found.tokens[0]) is None


def test_values_that_are_none_have_no_interval() -> None:
    assert middle(np.array([1.0, np.inf, 2.0])) is None
