"""How much may be sent in a span of time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

# Requests that leave evenly do not arrive evenly: what left late and came early must still fall into another span.
_SLACK_S = 0.05
_UNHEARD = 500


@dataclass(eq=False)
class Charge:
    """What one request took of a rate, and when (seconds of the loop's clock)."""

    at: float
    amount: int
    gone: bool = False


class Rate:
    """At most `ceiling` units within any `span` seconds, wherever the span begins.

    What alone is more than the ceiling passes when nothing else is within the span. It has no clock: `now` never
    goes back.
    """

    def __init__(self, ceiling: int, span: float) -> None:
        self._ceiling = ceiling
        self._span = span + _SLACK_S
        self._charges: deque[Charge] = deque()
        self._used = 0

    def ready_at(self, now: float, amount: int) -> float:
        """The first time from `now` on at which `amount` may be taken, if nothing else is taken before."""
        self._forget(now)
        over = self._used + min(amount, self._ceiling) - self._ceiling
        at = now
        for charge in self._charges:
            if over <= 0:
                break
            over -= charge.amount
            at = charge.at + self._span
        return at

    def take(self, now: float, amount: int) -> Charge:
        """Take `amount`; ask `ready_at` first."""
        charge = Charge(now, amount)
        self._charges.append(charge)
        self._used += amount
        return charge

    def correct(self, charge: Charge, amount: int) -> None:
        """Say what was really taken."""
        if not charge.gone:
            self._used += amount - charge.amount
        charge.amount = amount

    def _forget(self, now: float) -> None:
        while self._charges and self._charges[0].at + self._span <= now:
            charge = self._charges.popleft()
            charge.gone = True
            self._used -= charge.amount


class TokenGuess:
    """How many tokens a request will take: learnt from those that came back."""

    def __init__(self) -> None:
        # Three characters a token is dear for English, so that the first guesses err on the safe side.
        self._length, self._prompt = 3, 1
        self._completion = self._replies = 0

    def of(self, length: int, max_tokens: int | None) -> int:
        """The tokens of a prompt of `length` characters and its completion: of as many as completions have on the
        average, and before there is one of the longest that is allowed.
        """
        prompt = -(-length * self._prompt // self._length)
        mean = -(-self._completion // self._replies) if self._replies else max_tokens or _UNHEARD
        return prompt + min(mean, max_tokens or mean)

    def learn(self, length: int, prompt: int, completion: int) -> None:
        """Take a reply's tokens into account."""
        if not self._replies:
            self._length = self._prompt = 0
        self._length += length or 1
        self._prompt += prompt or 1
        self._completion += completion
        self._replies += 1
