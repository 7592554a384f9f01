"""How much may be in flight at once, and be sent in a second or a minute."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from rectom.errors import SettingsError
from rectom.llm.congestion import Congestion
from rectom.llm.flights import anew
from rectom.llm.rates import Charge, Rate, TokenGuess
from rectom.llm.reply import Usage

_SHORTEST_REST, _LONGEST_REST, _REST_SHARE = 0.25, 5.0, 0.1
_LATEST = 20.0

#: What sets the numbers of those that go ahead below all others.
_AHEAD = 1 << 60


@dataclass(eq=False, slots=True)
class Turn:
    """A request's position in the queue, over all its attempts: lower numbers go first.

    `owner` is who asks; `length` (characters of the prompt) and `max_tokens` serve to guess its tokens; `waited`
    tells whether there was a queue.
    """

    owner: object
    number: int
    length: int = 0
    max_tokens: int | None = None
    waited: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """The right of one attempt to be in flight, given in `era`, and what it took of the rates."""

    turn: Turn
    era: int
    charges: tuple[tuple[Rate, Charge], ...]


Waiter = tuple[int, asyncio.Future[Place], Turn]


class Limits:
    """One gate for all requests, first come, first served, but for those that go ahead. Clients that share it share all
    of it.

    `concurrency` is the largest number of requests in flight: where the gate starts and where it returns to.
    While a server is overloaded an `adaptive` gate lets fewer through, at least 1; see `Congestion`. Nothing is
    sent before a time that the server named (`pause`). Where it is overloaded again and again and names none, the
    gate rests for a tenth of the time that this has lasted, at most 5 s, or until a reply comes.

    The ceilings on what is sent in any second or minute are kept whatever happens. Tokens are guessed before
    a request is sent, from its length and from the replies so far, and put right by its reply.

    A request that waits to be sent again gives its place away, so that it holds up nobody; what keeps the queue from
    rushing into the gap are the fallen limit and the rest. It comes back to where it was in the queue, but to
    its end when the server had no room for it: so everyone tries in turn, and nobody uses up its attempts alone.
    """

    def __init__(
        self,
        concurrency: int = 64,
        per_second: int | None = None,
        per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        adaptive: bool = True,
    ) -> None:
        for what, least in {
            "concurrency": concurrency,
            "per_second": per_second,
            "per_minute": per_minute,
            "tokens_per_minute": tokens_per_minute,
        }.items():
            if least is not None and least < 1:
                raise SettingsError(f"a {what} of {least} lets nothing through; give 1 or more")
        self.concurrency = concurrency
        self.in_flight = 0
        self._congestion = Congestion(concurrency, 1 if adaptive else concurrency)
        self._requests = [Rate(most, span) for most, span in ((per_second, 1.0), (per_minute, 60.0)) if most]
        self._tokens = Rate(tokens_per_minute, 60.0) if tokens_per_minute else None
        self._guess = TokenGuess()
        self._numbers = count()
        self._waiters: list[Waiter] = []
        self._paused_until = self._resting_until = self._trouble_since = 0.0
        self._lateness = random.uniform(0, 0.02)  # noqa: S311  no secret
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many may be in flight at present."""
        return self._congestion.limit

    def turn(self, owner: object, length: int = 0, max_tokens: int | None = None, *, ahead: bool = False) -> Turn:
        """A new position at the end of the queue, or `ahead` of all that are not."""
        return Turn(owner, next(self._numbers) - (_AHEAD if ahead else 0), length, max_tokens)

    async def enter(self, turn: Turn) -> Place:
        """Wait for a place. The wait counts toward no time-out. Raises the error with which `dismiss` ends it."""
        loop = asyncio.get_running_loop()
        while True:
            place = self._place_at_once(turn, loop.time()) or await self._queue(turn, loop)
            # It may have closed between the giving of the place and this.
            if loop.time() >= self._paused_until:
                return place
            self.leave(place, unused=True)

    def _place_at_once(self, turn: Turn, now: float) -> Place | None:
        if self._waiters or self.in_flight >= self.limit:
            return None
        tokens = self._tokens_of(turn)
        return self._place(turn, now, tokens) if self._ready_at(now, tokens) <= now else None

    async def _queue(self, turn: Turn, loop: asyncio.AbstractEventLoop) -> Place:
        turn.waited = True
        coming: asyncio.Future[Place] = loop.create_future()
        heappush(self._waiters, (turn.number, coming, turn))
        self._admit()
        try:
            return await coming
        except asyncio.CancelledError:
            if coming.done() and not coming.cancelled() and coming.exception() is None:
                self.leave(coming.result(), unused=True)
            else:
                self._admit()  # it may have been the one that the alarm was set for
            raise

    def leave(self, place: Place, *, unused: bool = False) -> None:
        """Give a place to the next; where nothing was sent in it, it takes nothing of the rates."""
        self.in_flight -= 1
        if unused:
            for rate, charge in place.charges:
                rate.correct(charge, 0)
        self._admit()

    def dismiss(self, owner: object, error: Exception) -> None:
        """Let everyone in the queue who belongs to `owner` go with an error like this one."""
        for _, coming, turn in self._waiters:
            if turn.owner is owner and not coming.done():
                coming.set_exception(anew(error))
        self._admit()

    def replied(self, place: Place, usage: Usage) -> None:
        """A reply came that took `usage`."""
        self._congestion.replied(place.era)
        self._resting_until = 0.0
        if usage.prompt or usage.completion:
            self._guess.learn(place.turn.length, usage.prompt, usage.completion)
            for rate, charge in place.charges:
                if rate is self._tokens:
                    rate.correct(charge, usage.total)

    def overloaded(self, place: Place, *, named: bool = False) -> None:
        """The server had no room for the request; `named`: it said when it has, which `pause` is told."""
        if not self._congestion.overloaded(place.era, named=named):
            return
        now = asyncio.get_running_loop().time()
        if self._congestion.strikes == 1:
            # It was the number of requests that was wrong, and that has been put right: no rest yet.
            self._trouble_since = now
        elif not named:
            self._rest(now)

    def to_the_end(self, turn: Turn) -> None:
        """Let everyone who waits now go first."""
        turn.number = next(self._numbers)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long, and a little longer: programs sent away together must not return together."""
        seconds += self._lateness * min(seconds, _LATEST)
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    def _rest(self, now: float) -> None:
        rest = max(_SHORTEST_REST, _REST_SHARE * (now - self._trouble_since))
        self._resting_until = now + min(rest, _LONGEST_REST) * random.uniform(0.5, 1)  # noqa: S311  no secret

    def _admit(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._waiters:
            _, coming, turn = self._waiters[0]
            if coming.done():
                heappop(self._waiters)
                continue
            if self.in_flight >= self.limit:
                return
            loop = coming.get_loop()
            now = loop.time()
            tokens = self._tokens_of(turn)
            at = self._ready_at(now, tokens)
            if at > now:
                self._alarm = loop.call_at(at, self._admit)
                return
            heappop(self._waiters)
            coming.set_result(self._place(turn, now, tokens))

    def _place(self, turn: Turn, now: float, tokens: int) -> Place:
        self.in_flight += 1
        charges = tuple((rate, rate.take(now, 1)) for rate in self._requests)
        if self._tokens:
            charges += ((self._tokens, self._tokens.take(now, tokens)),)
        return Place(turn, self._congestion.era, charges)

    def _ready_at(self, now: float, tokens: int) -> float:
        at = max(now, self._paused_until, self._resting_until)
        for rate in self._requests:
            at = max(at, rate.ready_at(now, 1))
        return max(at, self._tokens.ready_at(now, tokens)) if self._tokens else at

    def _tokens_of(self, turn: Turn) -> int:
        return self._guess.of(turn.length, turn.max_tokens) if self._tokens else 0

    def __repr__(self) -> str:
        return f"Limits(concurrency={self.concurrency}, limit={self.limit}, in_flight={self.in_flight})"
