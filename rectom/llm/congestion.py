"""How many requests a server bears at once, found out as TCP finds out how much a network bears."""

from __future__ import annotations

_FALL = 0.7
_FALL_AGAIN = 0.5
_GROWTH = 1 / 16


class Congestion:
    """A limit between `floor` and `ceiling`, which it starts from.

    It falls when the server is overloaded: once for all requests that were sent before the fall, to 0.7, and to half
    with every further fall before a reply comes. It rises with every reply to a request sent after the last
    fall: by 1 (doubling in one round) up to the threshold, which is 0.7 of where the trouble began, and
    above by 1 or a sixteenth a round. A server that names the time when it wants more has nothing against their
    number: the threshold is then where it was, unless it says so again at once.

    It has no clock. An *era* is the time between two falls; a request is told by the era in which it was sent.
    """

    def __init__(self, ceiling: int, floor: int = 1) -> None:
        self.ceiling = ceiling
        self.era = 0
        self.strikes = 0
        self._floor = floor
        self._limit = self._threshold = float(ceiling)
        # As if all had gone well before the first request.
        self._replies = ceiling

    @property
    def limit(self) -> int:
        """How many may be in flight."""
        return int(self._limit)

    def replied(self, era: int) -> None:
        """Rise: a reply came to a request of `era`."""
        if era < self.era:
            return  # it says nothing about the present limit
        self.strikes = 0
        self._replies += 1
        step = 1.0 if self._limit < self._threshold else max(1 / self._limit, _GROWTH)
        self._limit = min(self._limit + step, float(self.ceiling))

    def overloaded(self, era: int, *, named: bool) -> bool:
        """Fall, and say whether it did: the server had no room for a request of `era`, and `named` a time for it."""
        if era < self.era:
            return False
        self.era += 1
        self.strikes += 1
        if self.strikes == 1:
            went_well = named and self._replies >= self._limit / 2
            self._threshold = self._limit * (1.0 if went_well else _FALL)
        self._limit = max(float(self._floor), self._limit * (_FALL if self.strikes == 1 else _FALL_AGAIN))
        self._replies = 0
        return True
