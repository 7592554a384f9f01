"""The statistics of paired comparisons, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from operator import itemgetter
from random import Random
from statistics import quantiles
from typing import TypeAlias

#: The lower and the upper end.
Interval: TypeAlias = tuple[float, float]


def wilson(share: float, questions: int, z: float = 1.96) -> Interval:
    """Wilson's score interval for a share (0 to 1) of so many independent questions; 95 % by default.

    Source: Wilson 1927, JASA 22; method 3 in Newcombe 1998, Statistics in Medicine 17.
    """
    if not questions:
        return 0.0, 1.0
    widening = z * z / questions
    centre = share + widening / 2
    half = z * sqrt(share * (1 - share) / questions + widening / (4 * questions))
    return max(0.0, (centre - half) / (1 + widening)), min(1.0, (centre + half) / (1 + widening))


def mcnemar(b: int, c: int) -> float:
    """The two-sided p of McNemar's exact test, where `b` questions speak for one run and `c` for the other.

    If neither run is better, `b` is binomial with `b + c` tries of one half. The p is twice the lower tail, at most 1,
    without the mid-p correction: it never rejects more often than it says, and somewhat more rarely.

    Source: McNemar 1947, Psychometrika 12; the exact conditional test in Fagerland, Lydersen and Laake 2013, BMC
    Medical Research Methodology 13:91.
    """
    tries = b + c
    ways, tail = 1, 0  # how many ways there are to have k of the tries, and at most k of them
    for k in range(min(b, c) + 1):
        tail += ways
        ways = ways * (tries - k) // (k + 1)
    return min(1.0, 2 * tail / (1 << tries))


def holm(ps: Sequence[float]) -> list[float]:
    """The p of each of several tests, adjusted so that all of them together err as rarely as one would; same order.

    Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    adjusted, least = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = least
    return adjusted


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
    stories = len(sizes)
    if stories < 2:
        return [None] * len(columns)
    # `Random.random` is the only draw whose sequence Python keeps between versions.
    random = Random(seed).random  # noqa: S311  no secret
    means: list[list[float]] = [[] for _ in columns]
    for _ in range(resamples):
        drawn = itemgetter(*[int(random() * stories) for _ in range(stories)])
        questions = sum(drawn(sizes))
        for column, found in zip(columns, means, strict=True):
            found.append(sum(drawn(column)) / questions)
    return [_middle(found) for found in means]


def _middle(values: Sequence[float]) -> Interval:
    """What 95 % of the values lie between."""
    fortieths = quantiles(values, n=40, method="inclusive")
    return fortieths[0], fortieths[-1]
