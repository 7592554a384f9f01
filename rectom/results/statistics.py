"""The statistics of paired comparisons, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
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
