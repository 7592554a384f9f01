"""Sending rows as batches, so that none goes out twice whenever the program or the connection dies."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rectom.errors import EndpointError
from rectom.llm.batch_api import BatchApi, Passing
from rectom.llm.batch_gathering import Asked
from rectom.llm.batch_journal import Job, Journal
from rectom.llm.batch_rows import RowId, model_of, request_line
from rectom.llm.retry import Patience, Retry

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_LONGEST_NAME = len(str(RowId("0" * 64, 999_999)))


@dataclass(frozen=True)
class Size:
    """The most rows, and bytes of input, that one batch may have: the API's own limits unless lower."""

    rows: int = 50_000
    bytes: int = 200_000_000

    @property
    def longest_payload(self) -> int:
        """The most bytes of a request that is a batch by itself."""
        return self.bytes - _LONGEST_NAME - len(request_line(RowId("", 0), b""))


class Sending:
    """Sends to one server, which the journal knows as `server`, within `size`."""

    def __init__(self, api: BatchApi, journal: Journal, server: str, size: Size, retry: Retry) -> None:
        self._api = api
        self._journal = journal
        self._server = server
        self._size = size
        self._most_rows = size.rows
        self._retry = retry

    def halve(self, rows: int) -> None:
        """Send smaller batches from now on: one of `rows` rows was too large for the server's queue."""
        self._most_rows = max(1, rows // 2)

    async def find_lost(self) -> None:
        """Look for the batches whose ids were not noted. Only under the lock: whoever was sending them died."""
        for job in self._journal.jobs:
            if job.server == self._server and not job.batch_id:
                if job.file_id:
                    job.batch_id = await patiently(partial(self._find, job), self._retry)
                if job.batch_id:
                    self._journal.note(job)
                else:
                    self._journal.drop(job)

    def parts(self, several: Iterable[Asked]) -> Iterator[dict[RowId, bytes]]:
        """The lines of each batch to be sent: all of one model, within the limits."""
        by_model: dict[str, list[Asked]] = {}
        for asked in several:
            by_model.setdefault(model_of(asked.payload), []).append(asked)
        for asking in by_model.values():
            part: dict[RowId, bytes] = {}
            size = 0
            for asked in asking:
                row = self._journal.next_row(asked.key)
                line = request_line(row, asked.payload)
                if part and (len(part) >= self._most_rows or size + len(line) > self._size.bytes):
                    yield part
                    part, size = {}, 0
                part[row] = line
                size += len(line)
            yield part

    async def send(self, part: dict[RowId, bytes]) -> Job:
        """Send the lines of one batch. At every moment the journal knows enough to find it again."""
        data = b"".join(part.values())
        job = self._journal.begin(part, hashlib.sha256(data).hexdigest(), self._server)
        try:
            upload = partial(self._api.upload, f"rectom-{job.name}.jsonl", data)
            job.file_id = await patiently(upload, self._retry)
        except EndpointError:
            self._journal.drop(job)
            raise
        self._journal.note(job)
        job.batch_id = await self._create(job)
        self._journal.note(job)
        _LOG.info("batch %s: %d rows, %d bytes", job.batch_id, job.size, len(data))
        return job

    async def _create(self, job: Job) -> str:
        unsure = False

        async def attempt() -> str:
            nonlocal unsure
            found = await self._find(job) if unsure else ""
            try:
                return found or await self._api.create(job.file_id, job.metadata())
            except Passing:
                # The server may have made it before the answer was lost.
                unsure = True
                raise
            except EndpointError:
                if not unsure:
                    self._journal.drop(job)
                raise

        return await patiently(attempt, self._retry)

    def _find(self, job: Job) -> Awaitable[str]:
        return self._api.find(job.file_id, job.metadata(), job.created)


async def patiently(act: Callable[[], Awaitable[T]], retry: Retry) -> T:
    """Do what may fail for a time, until it does not or `retry` has run out. Raises an `EndpointError`."""
    patience = Patience(retry)
    while True:
        try:
            return await act()
        except Passing as passing:
            wait = patience.next_wait(None if passing.wait is None else min(passing.wait, retry.named_cap))
            if wait is None:
                raise passing.error from None
            _LOG.info("%s; attempt %d in %.1f s", passing.error, patience.attempts, wait)
            await asyncio.sleep(wait)
