"""How long to wait before a request is sent again, and when to give up. Every wait has a bound, whoever asks
for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

_KNOCKS = 3
_LONGEST_KNOCK = 10.0


@dataclass(frozen=True)
class Retry:
    """When to send again. All waits are in seconds.

    A request is sent at most `attempts` times, but twice where what comes is paid for and cannot be used. Wait n is
    drawn evenly from 0 to `first` · 2ⁿ⁻¹, at most `cap`. A wait that the server names is kept, up to `named_cap`. All
    waits of a request together last at most `total`.

    A server that has answered before and cannot be reached any more is waited for up to `down_s`, whatever
    `attempts` and `total` say (but with 1 attempt nothing is ever sent twice): it may only restart. One that
    never answered is given up after a few tries: its address is wrong.
    """

    attempts: int = 6
    first: float = 1.0
    cap: float = 60.0
    named_cap: float = 600.0
    total: float = 1800.0
    down_s: float = 600.0


def backoff(retry: Retry, failures: int, draw: Callable[[], float] = random.random) -> float:
    """The wait in seconds after failure number `failures` (from 1), with full jitter: `draw` gives 0 to 1."""
    return draw() * min(retry.cap, math.ldexp(retry.first, min(failures - 1, 64)))


@dataclass
class Contact:
    """Whether a server was ever there, and since when it is away, in seconds of one steady clock."""

    been: bool = False
    lost_at: float | None = None

    def made(self) -> None:
        """It answered, whatever it said."""
        self.been = True
        self.lost_at = None

    def missed(self, now: float) -> None:
        """It could not be reached."""
        if self.lost_at is None:
            self.lost_at = now

    def lost_for(self, now: float) -> float | None:
        """How long it has been away; None where it never was there."""
        return now - (now if self.lost_at is None else self.lost_at) if self.been else None


@dataclass
class Patience:
    """What is left of the waits and attempts of one request."""

    retry: Retry
    attempts: int = 1
    waited: float = 0.0
    knocks: int = 0
    paid: int = 0
    draw: Callable[[], float] = field(default=random.random, repr=False)

    def next_wait(self, named: float | None, *, paid: bool = False) -> float | None:
        """The seconds to wait before the next attempt, or None when the patience has run out.

        `paid`: the attempt that failed was paid for. After the second such it has.
        """
        self.paid += paid
        wait = backoff(self.retry, self.attempts, self.draw) if named is None else self._granted(named)
        spent = self.paid > 1 or self.attempts >= self.retry.attempts
        if spent or self.waited + wait > self.retry.total:
            return None
        self.attempts += 1
        self.waited += wait
        return wait

    def next_knock(self, lost_for: float | None) -> float | None:
        """The seconds to wait before a server is tried again that cannot be reached, or None to give up.

        `lost_for` says for how many seconds it has been away, None that it never was there.
        """
        self.knocks += 1
        if self.retry.attempts == 1:
            return None
        if self.knocks >= min(self.retry.attempts, _KNOCKS) if lost_for is None else lost_for >= self.retry.down_s:
            return None
        return min(backoff(self.retry, self.knocks, self.draw), _LONGEST_KNOCK)

    def _granted(self, named: float) -> float:
        # The jitter comes on top: the crowd that was sent away together must not come back together.
        return min(named + self.draw() * min(self.retry.first, named), self.retry.named_cap)
