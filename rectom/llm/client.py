"""The chat client: asks an OpenAI-compatible server, pays once for each question, and waits with manners."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from itertools import count
from types import TracebackType
from typing import Self

from rectom.errors import DataError, EndpointDown, EndpointError, RectomError, UnknownModel, WrongKey
from rectom.llm.address import Address
from rectom.llm.flights import Flight, Flights
from rectom.llm.limits import Limits
from rectom.llm.listing import list_models
from rectom.llm.reply import Outcome, Reply
from rectom.llm.request import ChatRequest, Structured, to_bytes
from rectom.llm.retry import Patience, Retry
from rectom.llm.secret import Secret
from rectom.llm.stats import Stats
from rectom.llm.store import ReplyStore
from rectom.llm.verdict import Again, Answered, Judge, NoStructure, Verdict
from rectom.llm.wire import Timeouts, Transport, Wire

_LOG = logging.getLogger(__name__)
_SIMPLER: dict[Structured, Structured] = {"json_schema": "json_object", "json_object": "text", "text": "text"}
_NAMES_SHOWN = 12


class WouldSend(RectomError):
    """An offline client would have to send `request`: its reply is not in the store."""

    def __init__(self, request: ChatRequest) -> None:
        super().__init__(request)
        self.request = request

    def __str__(self) -> str:
        asked = f"{self.request.model.declared} under {self.request.key[:12]}"
        return f"no stored reply of {asked}; go online to ask for it"


class ChatClient:
    """Asks one OpenAI-compatible server. Use it inside `async with`.

    `replies` is where replies are kept before they are returned (None: nowhere); `limits` may be shared by
    clients. `structured` says how schemas are first sent; where the server refuses, the client steps down by
    itself and remembers. `offline` never sends: a miss raises `WouldSend`. `replay_failures` replays stored
    replies that are no answers, too. `transport` carries the requests some other way than over HTTP.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        replies: ReplyStore | None = None,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        structured: Structured = "json_schema",
        offline: bool = False,
        replay_failures: bool = False,
        transport: Transport | None = None,
    ) -> None:
        self.stats = Stats()
        self.structured = structured
        self._address = Address.parse(base_url)
        self._secret = Secret(api_key)
        self._replies = replies
        self._limits = limits or Limits()
        self._retry = retry or Retry()
        self._offline = offline
        self._replay_failures = replay_failures
        self._wire: Transport = transport or Wire(
            self._address, self._secret, timeouts or Timeouts(), self._limits.concurrency
        )
        self._judge = Judge(self._address, self._secret)
        self._flights = Flights()
        self._fatal: EndpointError | None = None
        self._unknown: dict[str, UnknownModel] = {}
        self._one_lister = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._wire.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Call off what is in flight, let every reply that has come be kept, close the connections."""
        await self._flights.close()
        await self._wire.close()

    def __repr__(self) -> str:
        return f"ChatClient({self._address.root!r})"

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        """The reply to `request`: stored, shared with an identical request in flight, or sent for.

        A stored reply that is no answer (truncated, refused, empty, …) is asked for again. `fresh` asks even
        where an answer is stored. Look at the reply's outcome: only OK is an answer.

        Raises an `EndpointError` where the server gives no reply, `WouldSend` where the client is offline. A
        server that is down, refuses the key or does not know the model is not asked again by this client.
        """
        stored = None if fresh else self._stored(request)
        if stored is not None:
            self.stats.cached += 1
            return stored
        if self._offline:
            raise WouldSend(request)
        reply, shared = await self._flights.join(request.limited_key, partial(self._fly, request))
        if not shared:
            return reply
        self.stats.shared += 1
        return replace(reply, source="shared")

    def _stored(self, request: ChatRequest) -> Reply | None:
        reply = self._find(request.key)
        if reply is not None and reply.outcome is Outcome.OK:
            if _fits(reply, request):
                return reply
            reply = None
        return self._find(request.limited_key) or reply if self._replay_failures else None

    def _find(self, key: str) -> Reply | None:
        record = self._replies.find(key) if self._replies is not None else None
        if record is None:
            return None
        try:
            reply = Reply.from_record(record)
        except DataError as fault:
            _LOG.warning("%s: %s", key[:12], fault)
            return None
        return reply if reply.key == key else None

    async def _fly(self, request: ChatRequest, flight: Flight) -> Reply:
        try:
            async with self._limits.place():
                reply = await self._send(request)
        except RectomError:
            self.stats.failed += 1
            raise
        flight.landed = True
        self.stats.usage += reply.usage
        if self._replies is not None:
            await self._replies.keep(reply.key, reply.to_record(request))
        return reply

    async def _send(self, request: ChatRequest) -> Reply:
        patience = Patience(self._retry)
        for attempt in count(1):
            self._fail_fast(request)
            verdict = await self._attempt(request, first=attempt == 1)
            if isinstance(verdict, Answered):
                return _reply(request, verdict, attempt)
            if isinstance(verdict, Again):
                # The place is kept while waiting: otherwise a busy server would meet the whole queue, one by
                # one.
                await self._wait(verdict, patience)
            elif not isinstance(verdict, NoStructure):
                raise await self._learnt(verdict.error, request)
        raise AssertionError("counting never ends")

    async def _attempt(self, request: ChatRequest, *, first: bool) -> Verdict:
        structured = self.structured
        payload = to_bytes(request.body(structured))
        self._count(first)
        verdict = self._judge.judge(await self._wire.post(payload, request.limited_key), request, structured)
        if isinstance(verdict, NoStructure):
            self._step_down(structured, verdict.words)
        return verdict

    def _count(self, first: bool) -> None:
        if first:
            self.stats.sent += 1
        else:
            self.stats.retried += 1

    async def _wait(self, verdict: Again, patience: Patience) -> None:
        self.stats.usage += verdict.usage
        wait = patience.next_wait(verdict.wait)
        if wait is None:
            raise self._latched(verdict.error)
        _LOG.info("%s; attempt %d in %.1f s", verdict.error, patience.attempts, wait)
        await asyncio.sleep(wait)

    def _step_down(self, structured: Structured, words: str) -> None:
        # Many requests find out at once; only those sent in the present mode may change it.
        if self.structured == structured:
            self.structured = _SIMPLER[structured]
            _LOG.warning("%s refuses %s (%s): now %s", self._address, structured, words, self.structured)

    def _fail_fast(self, request: ChatRequest) -> None:
        error = self._fatal or self._unknown.get(request.model.name)
        if error is not None:
            raise type(error)(*error.args)

    def _latched(self, error: EndpointError) -> EndpointError:
        if isinstance(error, EndpointDown | WrongKey):
            self._fatal = error
        return error

    async def _learnt(self, error: EndpointError, request: ChatRequest) -> EndpointError:
        if not isinstance(error, UnknownModel):
            return self._latched(error)
        name = request.model.name
        async with self._one_lister:
            if name not in self._unknown:
                self._unknown[name] = UnknownModel(f"{error}; {await self._known_names()}")
            return self._unknown[name]

    async def _known_names(self) -> str:
        names = await list_models(self._address.root, self._secret.reveal())
        if not names:
            return "check --model and --base-url"
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return f"the server knows: {self._judge.tidy(', '.join(names[:_NAMES_SHOWN]))}{more}"


def _fits(reply: Reply, request: ChatRequest) -> bool:
    limit = request.sampling.max_tokens
    return limit is None or reply.usage.completion <= limit


def _reply(request: ChatRequest, verdict: Answered, attempts: int) -> Reply:
    parsed = verdict.parsed
    return Reply(
        key=request.limited_key if parsed.outcome is Outcome.TRUNCATED else request.key,
        text=parsed.text,
        outcome=parsed.outcome,
        usage=parsed.usage,
        latency_s=verdict.latency_s,
        attempts=attempts,
        source="sent",
        reasoning=parsed.reasoning,
        model=parsed.model,
    )
