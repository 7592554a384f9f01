"""One HTTP exchange with the server: bytes out, bytes in. What they mean is told in `verdict`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from rectom.llm.address import Address
from rectom.llm.secret import Secret

_LONGEST_BODY = 64 * 2**20


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


@dataclass(frozen=True)
class Response:
    """What the server sent. `headers` finds names in any case; `latency_s` reaches to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_s: float


@dataclass(frozen=True)
class NoResponse:
    """No whole response came. `unreachable`: there was not even a connection."""

    why: str
    unreachable: bool


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
        self._address = address
        self._secret = secret
        self._timeouts = timeouts
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the pool, in the running loop."""
        wait = self._timeouts.connect
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=30, ttl_dns_cache=300),
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
        try:
            async with _within(self._timeouts.total, "no whole reply"):
                return await self._exchange(self._session, payload)
        except (aiohttp.ClientError, OSError) as fault:  # TimeoutError is an OSError
            return NoResponse(_words(fault), _is_unreachable(fault))

    async def _exchange(self, session: aiohttp.ClientSession, payload: bytes) -> Response:
        began = time.monotonic()
        async with _within(self._timeouts.connect + self._timeouts.first_byte, "no reply"):
            # A redirect is not followed: it could carry the key to another server.
            response = await session.post(self._address.chat, data=payload, allow_redirects=False)
        async with response:
            body = await self._read(response.content)
        return Response(response.status, response.headers, body, time.monotonic() - began)

    async def _read(self, content: aiohttp.StreamReader) -> bytes:
        body = bytearray()
        while len(body) <= _LONGEST_BODY:
            async with _within(self._timeouts.between_bytes, "nothing more of the reply"):
                piece = await content.readany()
            if not piece:
                return bytes(body)
            body += piece
        raise aiohttp.ClientPayloadError(f"a reply of more than {_LONGEST_BODY:,} bytes")


@asynccontextmanager
async def _within(seconds: float, what: str) -> AsyncIterator[None]:
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            yield
    except TimeoutError:
        if clock.expired():
            raise aiohttp.ServerTimeoutError(f"{what} within {seconds:g} s") from None
        raise


def _is_unreachable(fault: Exception) -> bool:
    return isinstance(fault, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _words(fault: Exception) -> str:
    if isinstance(fault, aiohttp.ClientResponseError):
        return f"no HTTP: {fault.message}"
    cause = getattr(fault, "os_error", fault)
    return str(cause) or type(fault).__name__
