"""Requests that gather until nobody asks for more: then they go out together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from rectom.errors import RectomError
from rectom.llm.flights import anew
from rectom.llm.wire import NoResponse, Response

Outcome = Response | NoResponse
Send = Callable[[list["Asked"]], Awaitable[None]]

_LATE_S = 0.05


@dataclass(eq=False)
class Asked:
    """A request that somebody waits for. `ended` is set to its outcome, or to the error that everyone gets."""

    key: str
    payload: bytes
    ended: asyncio.Future[Outcome | Exception] = field(init=False)
    waiters: int = 0

    def __post_init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()


class Gathering:
    """Hands what is pending to `send`, once nothing has stirred for `quiet_s` seconds.

    What `send` raises is raised for every request that it was given and did not end. `send` may give back
    requests with `hold`.
    """

    def __init__(self, quiet_s: float, send: Send) -> None:
        self._quiet_s = quiet_s
        self._send = send
        self._asked: dict[str, Asked] = {}
        self._pending: dict[str, Asked] = {}
        self._stirs = 0
        self._sender: asyncio.Task[None] | None = None

    @property
    def pending(self) -> int:
        """How many requests wait to go out."""
        return len(self._pending)

    async def outcome(self, payload: bytes, key: str) -> Outcome:
        """Ask, together with the others, and wait. Raises what `send` raised, or what `end` was given."""
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = Asked(key, payload)
            self.hold([asked])
        self.stir()
        await self._wait(asked)
        found = asked.ended.result()
        if isinstance(found, Exception):
            raise anew(found) if isinstance(found, RectomError) else found
        return found

    def stir(self) -> None:
        """Something happened that may lead to further requests."""
        self._stirs += 1

    def hold(self, several: Iterable[Asked]) -> None:
        """Let requests wait for the next sending."""
        self._pending.update((asked.key, asked) for asked in several if self._asked.get(asked.key) is asked)
        if self._pending and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send_all())

    def waiting(self, keys: Iterable[str]) -> list[Asked]:
        """Those of `keys` that somebody waits for and that were sent."""
        return [self._asked[key] for key in keys if key in self._asked and key not in self._pending]

    def end(self, asked: Asked, outcome: Outcome | Exception) -> None:
        """Give everyone who waits for a request its outcome."""
        self._forget(asked)
        self.stir()
        if not asked.ended.done():
            asked.ended.set_result(outcome)

    async def close(self) -> None:
        """Send nothing more."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])

    async def _wait(self, asked: Asked) -> None:
        asked.waiters += 1
        try:
            await asyncio.wait([asked.ended])
        finally:
            asked.waiters -= 1
            if not asked.waiters:
                self._forget(asked)

    def _forget(self, asked: Asked) -> None:
        for requests in (self._asked, self._pending):
            if requests.get(asked.key) is asked:
                del requests[asked.key]

    async def _send_all(self) -> None:
        while self._pending:
            await self._quiet()
            several = list(self._pending.values())
            self._pending.clear()
            try:
                await self._send(several)
            except Exception as fault:  # whatever it is: nobody may wait for ever
                for asked in several:
                    self.end(asked, fault)

    async def _quiet(self) -> None:
        while True:
            seen, began = self._stirs, time.monotonic()
            await asyncio.sleep(self._quiet_s)
            # A sleep that lasted too long means that the loop was busy, with what may ask for more.
            late = time.monotonic() - began > 2 * self._quiet_s + _LATE_S
            if seen == self._stirs and not late:
                return
