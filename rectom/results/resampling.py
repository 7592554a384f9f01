"""The bootstrap that draws stories: questions about one story are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import quantiles
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rectom.results.finished import Answered
from rectom.results.statistics import Interval

Means: TypeAlias = NDArray[np.floating[Any]]

#: About how many draws are in memory together.
_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Resampled:
    """Many runs over the same questions, resampled together: the same stories are drawn for all of them.

    The means of each run in each resample: `accuracy` (0 to 1) and `tokens` have a row a run, a column a resample. Both
    are empty where there is one story alone: then nothing tells how stories vary.
    """

    accuracy: Means
    tokens: Means

    @classmethod
    def of(cls, runs: Sequence[Sequence[Answered]], resamples: int = 2000, seed: int = 0) -> Self:
        """Draw the stories of runs over the same questions, in the same order in each.

        The draws are those of `cluster_bootstrap` with the same `resamples` and `seed`.
        """
        places = {story: place for place, story in enumerate(dict.fromkeys(one.story_id for one in runs[0]))}
        if len(places) < 2:
            return cls(np.empty((len(runs), 0)), np.empty((len(runs), 0)))
        story = np.array([places[one.story_id] for one in runs[0]])
        columns = [np.ones(len(story))]
        for measure in ("score", "tokens"):
            columns += [np.array([getattr(one, measure) for one in answered], dtype=float) for answered in runs]
        sums = np.stack(
            [np.bincount(story, weights=column, minlength=len(places)) for column in columns], axis=1
        ).astype(float)
        means = _means(sums, resamples, seed)
        return cls(means[: len(runs)], means[len(runs) :])


def cluster_bootstrap(
    columns: Sequence[Sequence[float]], sizes: Sequence[int], resamples: int = 2000, seed: int = 0
) -> list[Interval | None]:
    """The 95 % percentile interval of each column's mean over all questions, where stories are drawn, not questions.

    A column holds a sum for each story (of the differences between two runs, say), and `sizes` how many questions it
    is over, at least one. Each of the `resamples` (at least 2) draws as many stories as there are, with replacement,
    the same ones for every column. None where there is one story or none: then nothing tells how stories vary.

    Source: Davison and Hinkley 1997, Bootstrap Methods, section 3.8 (strategy 1); the percentile interval in Efron
    and Tibshirani 1993, chapter 13.
    """
    if len(sizes) < 2:
        return [None] * len(columns)
    return list(map(middle, _means(np.array([sizes, *columns], dtype=float).T, resamples, seed)))


def middle(values: Means) -> Interval | None:
    """What 95 % of the values lie between: the percentile interval. None of no values, or if one of them is none."""
    if not values.size or not np.isfinite(values).all():
        return None
    # Of values with the signs turned this is exactly the interval with its ends turned.
    fortieths = quantiles(values.tolist(), n=40, method="inclusive")
    return fortieths[0], fortieths[-1]


def _means(sums: Means, resamples: int, seed: int) -> Means:
    """The mean of each column but the first, which holds the sizes: a row a column, a column a resample."""
    drawn = _drawn(sums, resamples, seed)
    means: Means = (drawn[:, 1:] / drawn[:, :1]).T
    return means


def _drawn(sums: Means, resamples: int, seed: int) -> Means:
    """The sums of the columns over the stories that are drawn: a row a resample."""
    stories = len(sums)
    random = _random(seed)
    rows = []
    for begin in range(0, resamples, step := max(1, _AT_ONCE // stories)):
        count = min(step, resamples - begin)
        drawn = (random.random_sample((count, stories)) * stories).astype(np.int64)
        drawn += stories * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * stories).reshape(count, stories)
        rows.append(times @ sums)
    return np.concatenate(rows)


def _random(seed: int) -> np.random.RandomState:
    """A generator that goes on as `Random(seed).random` does, the only draw whose sequence Python keeps."""
    *words, place = Random(seed).getstate()[1]  # noqa: S311  no secret
    random = np.random.RandomState()
    random.set_state(("MT19937", np.array(words, dtype=np.uint32), place, 0, 0.0))
    return random
