"""How much may be in flight at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rectom.errors import SettingsError


class Limits:
    """One gate for all requests, first come, first served. Clients that share it share its places.

    `concurrency` is the largest number of requests in flight.
    """

    def __init__(self, concurrency: int = 64) -> None:
        if concurrency < 1:
            raise SettingsError(f"a concurrency of {concurrency} lets nothing through; give 1 or more")
        self.concurrency = concurrency
        self._gate = asyncio.Semaphore(concurrency)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it. The wait counts toward no time-out."""
        async with self._gate:
            yield

    def __repr__(self) -> str:
        return f"Limits(concurrency={self.concurrency})"
