"""Identical requests in flight are one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from rectom.errors import EndpointError, RectomError
from rectom.llm.reply import Reply


@dataclass(eq=False, slots=True)
class Flight:
    """One request on its way. `landed` is set when its reply is in hand: from then on nothing may drop it.

    `away` is set while the request is with the server.
    """

    waiters: set[asyncio.Future[None]] = field(default_factory=set)
    away: bool = False
    landed: bool = False
    task: asyncio.Task[Reply] = field(init=False)


Launch = Callable[[Flight], Coroutine[Any, Any, Reply]]


class Flights:
    """The requests in flight by key. A flight ends early only when the last one that waits for it leaves.

    Once they are `patient` none that is away ends early: what is asked will be paid for, and its reply is to be kept.
    """

    def __init__(self) -> None:
        self.patient = False
        self._open: dict[str, Flight] = {}
        self._all: set[Flight] = set()

    async def join(self, key: str, launch: Launch) -> tuple[Reply, bool]:
        """Wait for the flight under `key`, launching it where there is none: (its reply, whether it was
        another's).
        """
        flight = self._open.get(key)
        shared = flight is not None
        if flight is None:
            flight = self._launch(key, launch)
        await self._wait(key, flight)
        return _result(flight.task), shared

    async def close(self) -> None:
        """Call off what is in the air; let what has landed be kept."""
        flights = list(self._all)
        for flight in flights:
            if self._may_end(flight):
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in flights), return_exceptions=True)

    def _launch(self, key: str, launch: Launch) -> Flight:
        flight = Flight()
        flight.task = asyncio.create_task(launch(flight))
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        self._open[key] = flight
        self._all.add(flight)
        return flight

    async def _wait(self, key: str, flight: Flight) -> None:
        # Unlike an await of the task this neither cancels it with its waiter nor raises its error.
        waiter: asyncio.Future[None] = flight.task.get_loop().create_future()
        flight.waiters.add(waiter)
        try:
            if not flight.task.done():
                await waiter
        finally:
            flight.waiters.remove(waiter)
            if not flight.waiters and not flight.task.done() and self._may_end(flight):
                flight.task.cancel()
                self._close_door(key, flight)

    def _may_end(self, flight: Flight) -> bool:
        return not flight.landed and not (self.patient and flight.away)

    def _close_door(self, key: str, flight: Flight) -> None:
        # A flight called off may linger while another under its key is already in the air.
        if self._open.get(key) is flight:
            del self._open[key]

    def _forget(self, key: str, flight: Flight) -> None:
        for waiter in flight.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._close_door(key, flight)
        self._all.discard(flight)
        if not flight.task.cancelled():
            flight.task.exception()  # looked at, or asyncio reports an error that nobody waits for any more


def anew(error: Exception) -> Exception:
    """The same error for one more who waits: one instance raised in many tasks piles up their tracebacks."""
    try:
        return type(error)(*error.args)
    except TypeError:  # it is made of something else, as those of other packages may be
        return error


def _result(task: asyncio.Task[Reply]) -> Reply:
    if task.cancelled():
        raise EndpointError("the client was closed while the request was in flight; ask again with an open one")
    fault = task.exception()
    if isinstance(fault, RectomError):
        raise anew(fault)
    return task.result()
