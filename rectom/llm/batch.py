"""Chat completions as rows of batches: half the price, within a day.

Every request waits until nobody asks for more; then all go out together. What is sent is in the journal first, so that
a process that dies in the night takes up its jobs in the morning, and nothing is sent or paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from rectom.errors import EndpointDown, EndpointError, RectomError, WrongKey
from rectom.llm.address import Address
from rectom.llm.batch_api import BatchApi, BatchRefused, Passing, State, Unknown
from rectom.llm.batch_gathering import Asked, Gathering, Outcome
from rectom.llm.batch_journal import Job, Journal
from rectom.llm.batch_rows import Place
from rectom.llm.batch_sending import Sending, Size, patiently
from rectom.llm.flights import anew
from rectom.llm.retry import Retry
from rectom.llm.secret import Secret
from rectom.llm.wire import NoResponse, Response

__all__ = ["BatchRefused", "BatchTransport", "Pace", "Size"]

_LOG = logging.getLogger(__name__)
_SLOWER = 1.5


@dataclass(frozen=True)
class Pace:
    """Seconds.

    What is pending goes out after `quiet` without a new request. A job is looked at after `first`, then ever more
    rarely, at least every `longest`. A server that is out for `outage` while jobs run there is given up on.
    """

    quiet: float = 2.0
    first: float = 5.0
    longest: float = 60.0
    outage: float = 6 * 3600.0


class BatchTransport:
    """Carries chat completions in batches over the OpenAI Batch API.

    `journal` is a folder for what is under way. Give the client `Limits` that hold nothing back: a request that
    waits for a place cannot join the batch. Its time-outs do not apply. `retry` is for sending; a failed row comes
    back as no response, which the client asks again. `post` raises `WrongKey`, `BatchRefused` where the server
    takes no batches or not this one, and the other `EndpointError`s when patience with the server has run out.
    """

    def __init__(
        self,
        address: Address,
        secret: Secret,
        journal: Path,
        *,
        pace: Pace | None = None,
        size: Size | None = None,
        retry: Retry | None = None,
    ) -> None:
        self._address = address
        self._api = BatchApi(address, secret)
        self._journal = Journal(journal)
        self._pace = pace or Pace()
        self._size = size or Size()
        self._looking = Retry(10**6, self._pace.first, self._pace.longest, total=self._pace.outage)
        # A digest, because an address may hold what should not be written down.
        self._server = hashlib.sha256(address.root.encode()).hexdigest()[:16]
        self._sending = Sending(self._api, self._journal, self._server, self._size, retry or Retry())
        self._gathering = Gathering(self._pace.quiet, self._send)
        self._follows: dict[Job, asyncio.Task[None]] = {}
        self._states: dict[Job, State] = {}
        self._fatal: EndpointError | None = None

    #: The journal has what is under way when it is closed.
    remembers = True

    def __repr__(self) -> str:
        return f"BatchTransport({self._address.root!r}, {self._journal!r})"

    async def open(self) -> None:
        """Nothing: the server is first asked when there is something to ask."""

    async def close(self) -> None:
        """Stop waiting. What is under way stays under way, and is found by the next transport with this journal."""
        await self._gathering.close()
        for task in self._follows.values():
            task.cancel()
        await asyncio.gather(*self._follows.values(), return_exceptions=True)
        await self._api.close()

    def progress(self) -> str:
        """What is under way, such as `2 jobs, 1,240 of 1,953 rows`."""
        jobs = list(self._follows)
        done = sum(self._states[job].done for job in jobs if job in self._states)
        rows = sum(job.size for job in jobs)
        words = [f"{_count(len(jobs), 'job')}, {done:,} of {_count(rows, 'row')}"] if jobs else []
        pending = self._gathering.pending
        return ", ".join([*words, f"{pending:,} to send"] if pending else words) or "no jobs"

    async def post(self, payload: bytes, key: str) -> Response | NoResponse:
        """Carry one request as a row; returns when the batch that holds it has ended."""
        if self._fatal is not None:
            raise anew(self._fatal)
        if len(payload) > self._size.longest_payload:
            return _too_large(len(payload), self._size.longest_payload)
        outcome = await self._gathering.outcome(payload, key)
        self._take(key)
        return outcome

    def _take(self, key: str) -> None:
        """Give out a reply; it leaves the journal when the task that asked has ended well, and so has kept it."""
        job, task = self._journal.holding(key), asyncio.current_task()
        if job is not None and key in job.results and task is not None:
            job.taken.add(key)
            task.add_done_callback(partial(self._kept, job, key))

    def _kept(self, job: Job, key: str, task: asyncio.Task[Any]) -> None:
        self._gathering.stir()
        if not task.cancelled() and task.exception() is None:
            try:
                self._journal.settle(job, [key])
            except RectomError as fault:  # nobody is there to hear of it
                _LOG.warning("batch %s: %s", job.batch_id, fault)

    async def _send(self, several: list[Asked]) -> None:
        try:
            async with self._journal.lock():
                self._journal.load()
                await self._sending.find_lost()
                new = [asked for asked in several if asked.waiters and not self._join(asked)]
                for part in self._sending.parts(new):
                    self._follow(await self._sending.send(part))
        except (EndpointDown, WrongKey, BatchRefused) as error:
            self._fatal = error
            raise

    def _join(self, asked: Asked) -> bool:
        """Wait for a job that has the request already; False if there is none."""
        job = self._journal.holding(asked.key)
        if job is None or not (job.ended or job.server == self._server):
            return False
        if job.ended:
            self._gathering.end(asked, self._journal.outcome(job, asked.key))
        else:
            self._follow(job)
        return True

    def _follow(self, job: Job) -> None:
        if job not in self._follows:
            self._follows[job] = asyncio.create_task(self._to_its_end(job))

    async def _to_its_end(self, job: Job) -> None:
        try:
            state = await self._ended(job)
            if state.status == "failed":
                await self._failed(job, state)
            else:
                await self._collect(job, state)
        except Unknown:
            self._raise_in(job, self._unknown(job))
        except Exception as fault:  # whatever it is: nobody may wait for ever
            self._raise_in(job, fault)
        finally:
            self._follows.pop(job, None)
            self._states.pop(job, None)

    async def _ended(self, job: Job) -> State:
        wait = self._pace.first
        while True:
            state = await patiently(lambda: self._api.look(job.batch_id), self._looking)
            self._states[job] = state
            if state.ended:
                return state
            await asyncio.sleep(wait)
            wait = min(self._pace.longest, wait * _SLOWER)

    async def _collect(self, job: Job, state: State) -> None:
        await patiently(partial(self._fetch, job, state), self._looking)
        wanted = [asked.key for asked in self._gathering.waiting(job.rows)]
        self._journal.end(job, wanted)
        failed = job.failed
        outcomes = {key: self._outcome(job, key, state) for key in wanted}
        _LOG.info("batch %s: %s; %d of %d rows failed", job.batch_id, state.status, len(failed), job.size)
        # Before anybody gets them: those that ask again must not find the old row.
        self._journal.settle(job, failed)
        cancelled = state.status == "cancelled"
        for asked in self._gathering.waiting(outcomes):
            lost = cancelled and asked.key in failed
            self._gathering.end(asked, self._cancelled(job) if lost else outcomes[asked.key])

    async def _fetch(self, job: Job, state: State) -> None:
        """Bring what came of an ended batch. Raises `Passing` where its output is not it, but a web page."""
        files = ((state.output_id, self._journal.output(job)), (state.error_id, self._journal.errors(job)))
        for file_id, path in files:
            if file_id:
                await patiently(partial(self._api.download, file_id, path), self._looking)
        found = await asyncio.to_thread(self._journal.read_results, job)
        if state.output_id and not self._has_output(job, state, found):
            self._journal.forget_results(job)
            raise Passing(self._no_output(job))

    def _has_output(self, job: Job, state: State, found: list[Place]) -> bool:
        # Another process that ends the job meanwhile takes the file away.
        there = self._journal.output(job).exists()
        # One reply shows that it is the output: rows that such a file lacks are not to be had.
        return there and (len(found) >= state.done or any(place.good for place in found))

    def _outcome(self, job: Job, key: str, state: State) -> Outcome:
        if key in job.results:
            return self._journal.outcome(job, key)
        return NoResponse(f"the batch {job.batch_id} ended ({state.status}) without its row", unreachable=False)

    async def _failed(self, job: Job, state: State) -> None:
        """End a batch that was refused as a whole: none of its rows ran."""
        keys = list(job.rows)
        # One whose rows are gone only waits here itself.
        others = [task for other, task in self._follows.items() if other is not job and other.rows]
        self._journal.drop(job)
        if not state.full or (len(keys) == 1 and not others):
            words = f"{self._address} refuses the batch {job.batch_id} of {_count(len(keys), 'row')}"
            self._raise(keys, BatchRefused(f"{words} ({state.fault or 'it does not say why'}); change what is sent"))
            return
        _LOG.warning("%s takes no batch of %d rows now (%s)", self._address, len(keys), state.fault)
        if others:
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        else:
            self._sending.halve(len(keys))
        self._gathering.hold(self._gathering.waiting(keys))

    def _raise_in(self, job: Job, fault: Exception) -> None:
        if not self._gathering.waiting(job.rows):
            _LOG.warning("batch %s: %s", job.batch_id, fault)
        self._raise(job.rows, fault)

    def _raise(self, keys: Iterable[str], fault: Exception) -> None:
        for asked in self._gathering.waiting(list(keys)):
            self._gathering.end(asked, fault)

    def _unknown(self, job: Job) -> RectomError:
        said = f"{self._address} does not know the batch {job.batch_id}, or has lost its results"
        note = self._journal.note_of(job)
        return BatchRefused(f"{said}; use the key that sent it, or remove {note} and its rows are sent again")

    def _no_output(self, job: Job) -> BatchRefused:
        said = f"{self._address} sends something else for the results of the batch {job.batch_id}"
        cure = f"or remove {self._journal.note_of(job)} and its rows are sent, and paid, again"
        return BatchRefused(f"{said} (does the network ask for a login?); run again, {cure}")

    def _cancelled(self, job: Job) -> RectomError:
        said = f"the batch {job.batch_id} was cancelled at {self._address}"
        return BatchRefused(f"{said}; run again to send its rest anew")


def _too_large(size: int, room: int) -> Response:
    words = f"a request of {size:,} bytes does not fit into a batch of at most {room:,}"
    return Response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {}, orjson.dumps({"error": {"message": words}}), 0.0)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
