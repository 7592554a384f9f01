"""One HTTP exchange with the server: bytes out, bytes in. What they mean is told in `verdict`."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import aiohttp

from rectom.llm.address import Address
from rectom.llm.secret import Secret

# A reply of a hundred thousand tokens, with all that was thought, has less than one.
_LONGEST_BODY = 8 * 2**20
_SIGNS = 4
_NO_FILES = {errno.EMFILE, errno.ENFILE}


@dataclass(frozen=True)
class Timeouts:
    """Seconds from the moment a request leaves our queue.

    `connect` until there is a connection, `first_byte` more until the reply begins (a server that does not stream
    begins when the model has ended), `between_bytes` between two pieces of the reply, `total` for one attempt.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    between_bytes: float = 60.0
    total: float = 600.0


@dataclass(frozen=True, slots=True)
class Response:
    """What the server sent. `headers` finds names in any case; `latency_s` reaches to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_s: float


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No whole response came. `unreachable`: there was not even a connection; `timed_out`: it took too long, or found
    no room; `too_long`: there was more of it than is taken.
    """

    why: str
    unreachable: bool
    timed_out: bool = False
    too_long: bool = False


class Transport(Protocol):
    """Carries requests to a model and brings responses back: over HTTP, or as rows of a batch."""

    async def open(self) -> None:
        """Make ready, in the running loop."""

    async def close(self) -> None:
        """Let go of everything."""

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        """Carry one chat completion request; `key` is the request's. What goes wrong comes back as a value."""


class Wire:
    """A pool of `connections` connections to one server."""

    def __init__(self, address: Address, secret: Secret, timeouts: Timeouts, connections: int) -> None:
        self._url = address.chat
        self._secret = secret
        self._timeouts = timeouts
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the pool, in the running loop."""
        wait = self._timeouts.connect
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections,
                keepalive_timeout=30,
                ttl_dns_cache=300,
                socket_factory=partial(watched_socket, self._timeouts.between_bytes),
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=wait, sock_connect=wait),
            headers={"Content-Type": "application/json", **self._secret.headers()},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        """Ask for one chat completion. Failures come back as values: aiohttp's own errors hold the key's
        header.
        """
        if self._session is None:
            raise RuntimeError("the chat client is not open: use it inside 'async with'")
        watch = _Watch(self._timeouts.total)
        try:
            async with watch.clock:
                return await self._exchange(self._session, payload, watch)
        except (aiohttp.ClientError, OSError) as fault:  # TimeoutError is an OSError
            return _no_response(fault, watch)

    async def _exchange(self, session: aiohttp.ClientSession, payload: bytes, watch: _Watch) -> Response:
        began = time.monotonic()
        watch.allow(self._timeouts.connect + self._timeouts.first_byte, "no reply")
        # A redirect is not followed: it could carry the key to another server.
        async with session.post(self._url, data=payload, allow_redirects=False) as response:
            body = await self._read(response.content, watch)
        return Response(response.status, response.headers, body, time.monotonic() - began)

    async def _read(self, content: aiohttp.StreamReader, watch: _Watch) -> bytes:
        body = bytearray()
        while not content.at_eof():
            watch.allow(self._timeouts.between_bytes, "nothing more of the reply")
            body += await content.readany()
            if len(body) > _LONGEST_BODY:
                raise _TooLongError(f"a reply of more than {_LONGEST_BODY:,} bytes")
        return bytes(body)


class _TooLongError(aiohttp.ClientPayloadError):
    """There is more of the reply than is taken."""


class _Watch:
    """The clock of one attempt: set anew for each of its phases, never beyond its end."""

    def __init__(self, total: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + total
        self._total = self._waiting = total, "no whole reply"
        self.clock = asyncio.timeout_at(self._end)

    def allow(self, seconds: float, what: str) -> None:
        """Give the next phase so long; `what` is what to say when it takes longer."""
        at = self._now() + seconds
        self._waiting = (seconds, what) if at < self._end else self._total
        self.clock.reschedule(min(at, self._end))

    @property
    def words(self) -> str:
        """What did not come."""
        seconds, what = self._waiting
        return f"{what} within {seconds:g} s"


def watched_socket(silence: float, info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that asks a silent peer for a sign of life, so that one which vanished is noticed in about `silence`
    seconds: a model that thinks for minutes is as silent as a machine that is off.
    """
    family, kind, protocol, _, _ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = max(1, round(silence / _SIGNS))
    # Not every system has them all.
    for name, value in {"TCP_KEEPIDLE": every, "TCP_KEEPINTVL": every, "TCP_KEEPCNT": _SIGNS - 1}.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _no_response(fault: Exception, watch: _Watch) -> NoResponse:
    if watch.clock.expired():
        return NoResponse(watch.words, unreachable=False, timed_out=True)
    if isinstance(fault, OSError) and fault.errno in _NO_FILES:
        # Of this machine and not of the server: with fewer requests in flight there is one again.
        return NoResponse(f"{_words(fault)}: raise the limit (ulimit -n)", unreachable=False, timed_out=True)
    unreachable = isinstance(fault, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    too_long = isinstance(fault, _TooLongError)
    return NoResponse(_words(fault), unreachable, timed_out=isinstance(fault, TimeoutError), too_long=too_long)


def _words(fault: Exception) -> str:
    if isinstance(fault, aiohttp.ClientResponseError):
        return f"no HTTP: {fault.message}"
    cause = getattr(fault, "os_error", fault)
    return str(cause) or type(fault).__name__
