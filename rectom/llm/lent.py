"""A transport that several clients use: opened with the first of them, closed with the last."""

from __future__ import annotations

import asyncio

from rectom.llm.wire import NoResponse, Response, Transport


class Lent:
    """Lends a transport to clients."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._borrowers = 0
        self._door = asyncio.Lock()

    async def open(self) -> None:
        """Make ready, for the first; the others wait until it is."""
        async with self._door:
            if not self._borrowers:
                await self._transport.open()
            self._borrowers += 1

    async def close(self) -> None:
        """Let go, for the last."""
        async with self._door:
            self._borrowers -= 1
            if not self._borrowers:
                await self._transport.close()

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        """Carry a request."""
        return await self._transport.post(payload, key)

    @property
    def remembers(self) -> bool:
        """Whether nothing is lost of what is under way when it is closed."""
        return bool(getattr(self._transport, "remembers", False))

    def progress(self) -> str:
        """What the transport says of its progress."""
        progress = getattr(self._transport, "progress", None)
        return str(progress()) if progress else ""
