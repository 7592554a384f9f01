from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rectom.results import resampling
from rectom.results.finished import Answered
from rectom.results.resampling import Resampled, middle
from rectom.results.statistics import cluster_bootstrap


def run(seed: int, questions: int = 40, stories: int = 9) -> list[Answered]:
    chance = Random(seed)
    return [
        Answered(f"k{n}", f"s{n % stories}", 0, 1, float(chance.random() < 0.6), 0, 1, chance.randrange(100, 900))
        for n in range(questions)
    ]


@pytest.mark.parametrize("seed", [0, 7, -3, 2**40])
def test_the_intervals_are_those_of_the_bootstrap_in_plain_python(seed: int) -> None:
    one, other = run(1), run(2)
    found = Resampled.of([one, other], 500, seed)
    stories = list(dict.fromkeys(question.story_id for question in one))

    def sums(questions: list[Answered], field: str) -> list[float]:
        return [sum(getattr(q, field) for q in questions if q.story_id == story) for story in stories]

    sizes = [sum(q.story_id == story for q in one) for story in stories]
    less = [b - a for a, b in zip(sums(one, "score"), sums(other, "score"), strict=True)]
    expected = cluster_bootstrap([less, sums(one, "tokens")], sizes, 500, seed)
    assert middle(found.accuracy[1] - found.accuracy[0]) == pytest.approx(expected[0])
    assert middle(found.tokens[0]) == pytest.approx(expected[1])


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
