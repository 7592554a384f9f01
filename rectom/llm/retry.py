"""How long to wait before a request is sent again, and when to give up. Every wait has a bound, whoever asks
for it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"\d{1,15}(\.\d{1,15})?")
_FIRST_EPOCH, _FIRST_EPOCH_MS = 1e9, 1e12


@dataclass(frozen=True)
class Retry:
    """When to send again. All waits are in seconds.

    A request is sent at most `attempts` times. Wait n is drawn evenly from 0 to `first` · 2ⁿ⁻¹, at most
    `cap`. A wait that the server names is kept, up to `named_cap`. All waits of a request together last at
    most `total`.
    """

    attempts: int = 6
    first: float = 1.0
    cap: float = 60.0
    named_cap: float = 600.0
    total: float = 1800.0


def backoff(retry: Retry, failures: int, draw: Callable[[], float] = random.random) -> float:
    """The wait in seconds after failure number `failures` (from 1), with full jitter: `draw` gives 0 to 1."""
    return draw() * min(retry.cap, math.ldexp(retry.first, min(failures - 1, 64)))


def named_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait in seconds that a server names, unbounded, or None.

    Reads `Retry-After` (seconds or an HTTP date), then `X-RateLimit-Reset` (seconds, or the epoch in seconds
    or milliseconds). `headers` must find names whatever their case.
    """
    asked = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(asked):
        return float(asked)
    return _until_date(asked, now) if asked else _until_reset(headers.get("X-RateLimit-Reset", "").strip(), now)


def _until_date(text: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def _until_reset(text: str, now: datetime) -> float | None:
    if not _SECONDS.fullmatch(text):
        return None
    reset = float(text)
    if reset >= _FIRST_EPOCH_MS:
        reset /= 1000
    return reset if reset < _FIRST_EPOCH else max(0.0, reset - now.timestamp())


@dataclass
class Patience:
    """What is left of the waits and attempts of one request."""

    retry: Retry
    attempts: int = 1
    waited: float = 0.0
    draw: Callable[[], float] = field(default=random.random, repr=False)

    def next_wait(self, named: float | None) -> float | None:
        """The seconds to wait before the next attempt, or None when the patience has run out."""
        wait = backoff(self.retry, self.attempts, self.draw) if named is None else self._granted(named)
        if self.attempts >= self.retry.attempts or self.waited + wait > self.retry.total:
            return None
        self.attempts += 1
        self.waited += wait
        return wait

    def _granted(self, named: float) -> float:
        # The jitter comes on top: the crowd that was sent away together must not come back together.
        return min(named + self.draw() * min(self.retry.first, named), self.retry.named_cap)
