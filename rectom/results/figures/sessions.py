"""The time of a run as sessions of work, side by side on an axis, the pauses between them cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

#: What is a pause: so many seconds, such a share of the whole time, and so many usual waits for the next reply.
_LEAST, _SHARE, _WAITS = 60.0, 0.02, 10.0
#: The shares of the axis that a pause takes, and that all take at most.
_CUT, _CUTS = 0.045, 0.3
#: How many bins a run has at least and at most, about; between, one for so many replies as have percentiles.
_FEWEST, _MOST, _REPLIES = 10, 120, 20


@dataclass(frozen=True, slots=True)
class Session:
    """Replies without a pause between them: those from `first` to before `last`, by the time when they came.

    `start` is the first in seconds since that of the run, `end` the last. The session is drawn from `left` on, `width`
    seconds wide, of which each of the `bins` has its share.
    """

    first: int
    last: int
    start: float
    end: float
    left: float
    width: float
    bins: int

    @property
    def edges(self) -> Numbers:
        """The edges of the bins, on the axis."""
        return np.linspace(self.left, self.left + self.width, self.bins + 1)

    def place(self, times: Numbers) -> Numbers:
        """Times since the first reply of the run as places on the axis."""
        return times - (self.start - self.left)

    def cells(self, times: Numbers) -> list[tuple[int, int]]:
        """The replies of each bin, from the first to before the last; `times` are those of the whole run."""
        inner = self.start + np.arange(1, self.bins) * (self.width / self.bins)
        borders = np.searchsorted(times[self.first : self.last], inner) + self.first
        return list(pairwise([self.first, *borders.tolist(), self.last]))


def sessions(times: Numbers) -> list[Session]:
    """The sessions of sorted times, which are in seconds since the first of them; one at least."""
    waits = np.diff(times)
    pause = max(_LEAST, _SHARE * times[-1], _WAITS * float(np.median(waits)) if len(waits) else 0.0)
    borders = [0, *(np.flatnonzero(waits > pause) + 1).tolist(), len(times)]
    ends = [(float(times[first]), float(times[last - 1])) for first, last in pairwise(borders)]
    bin_width = sum(end - start for start, end in ends) / min(_MOST, max(_FEWEST, len(times) // _REPLIES)) or 1.0
    widths = [max(end - start, bin_width) for start, end in ends]
    lefts = _lefts(widths)
    return [
        Session(first, last, start, end, left, width, round(width / bin_width))
        for (first, last), (start, end), left, width in zip(pairwise(borders), ends, lefts, widths, strict=True)
    ]


def _lefts(widths: Sequence[float]) -> list[float]:
    """Where sessions of these widths begin, with room for a cut between each and the next."""
    cuts = len(widths) - 1
    cut = sum(widths) * min(_CUT, _CUTS / max(cuts, 1))
    return list(accumulate((width + cut for width in widths[:-1]), initial=0.0))
