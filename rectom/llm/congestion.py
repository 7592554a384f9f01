"""How many requests a server bears at once, found out as TCP finds out how much a network bears."""

from __future__ import annotations

_FALL = 0.7
_FALL_NAMED = 0.5
_GROWTH = 1 / 16


class Congestion:
    """A limit between `floor` and `ceiling`, which it starts from.

    It falls to 0.7 when the server is overloaded, once for all requests that were sent before the fall. It rises with
    every reply to a request sent after the last fall: by 1 (doubling in one round) up to 0.7 of where the trouble
    began, and beyond by 1 or a sixteenth a round.

    A server that names the time when it takes more is taken at its word: after a round of replies it is the time
    that counts, and the limit stays; only when it refuses again sooner the limit falls, to half.

    It has no clock. An *era* is the time between two falls; a request is told by the era in which it was sent.
    """

    def __init__(self, ceiling: int, floor: int = 1) -> None:
        self.ceiling = ceiling
        self.era = 0
        self.strikes = 0
        self._floor = floor
        self._limit = self._threshold = float(ceiling)
        # As if a round of replies had come before the first request.
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
        """Fall, and say whether this was the first sign of it: the server had no room for a request of `era`.

        `named` tells whether it said when it has.
        """
        if era < self.era:
            return False
        self.era += 1
        self.strikes += 1
        if not (named and self._replies >= self._limit):
            if self.strikes == 1:
                self._threshold = self._limit * _FALL
            self._limit = max(self._limit * (_FALL_NAMED if named else _FALL), float(self._floor))
        self._replies = 0
        return True
