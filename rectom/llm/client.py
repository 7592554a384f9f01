"""The chat client: asks an OpenAI-compatible server, pays once for each question, and waits with manners."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

from rectom.errors import DataError, EndpointDown, EndpointError, RectomError, UnknownModel, WrongKey
from rectom.llm.address import Address
from rectom.llm.claims import Claims
from rectom.llm.flights import Flight, Flights, anew
from rectom.llm.limits import Limits, Place, Turn
from rectom.llm.listing import list_models
from rectom.llm.reply import Outcome, Reply
from rectom.llm.request import ChatRequest, Structured, to_bytes
from rectom.llm.retry import Contact, Patience, Retry
from rectom.llm.secret import Secret
from rectom.llm.stats import Stats
from rectom.llm.store import ReplyStore
from rectom.llm.verdict import Again, Answered, Judge, Never, NoStructure, Verdict
from rectom.llm.wire import NoResponse, Response, Timeouts, Transport, Wire

_LOG = logging.getLogger(__name__)
_SIMPLER: dict[Structured, Structured] = {"json_schema": "json_object", "json_object": "text", "text": "text"}
_NAMES_SHOWN = 12
_INTERRUPTS = asyncio.CancelledError, KeyboardInterrupt
# Between two looks for a reply that another program asks for.
_PEEK_S = 0.2


class WouldSend(RectomError):
    """An offline client would have to send `request`: its reply is not in the store."""

    def __init__(self, request: ChatRequest) -> None:
        super().__init__(request)
        self.request = request

    def __str__(self) -> str:
        asked = f"{self.request.model.declared} under {self.request.key[:12]}"
        return f"no stored reply of {asked}; go online to ask for it"


@dataclass(eq=False, slots=True)
class Trip:
    """What a request goes through until it has its reply: its turn, its patience, and how often it was sent."""

    flight: Flight
    turn: Turn
    patience: Patience
    fresh: bool
    sent: int = 0


class ChatClient:
    """Asks one OpenAI-compatible server. Use it inside `async with`.

    `replies` is where replies are kept before they are returned (None: nowhere); `limits` may be shared by
    clients. `structured` says how schemas are first sent; where the server refuses, the client steps down by
    itself and remembers. `offline` never sends: a miss raises `WouldSend`. `replay_failures` replays stored
    replies that are no answers, too. `transport` carries the requests some other way than over HTTP.

    `admit` is called each time before a request is sent. A `RectomError` that it raises is the end: nothing more is
    sent, and every request that is not with the server at that moment raises the error (made anew of its
    `args`); those that are end as usual, and `aclose` waits for them. So it is where the server is down or takes no
    key, and where the store fails (see `halt`); only an interrupt calls off what is with the server. `claims` keeps
    programs that share a store from sending the same request at once.
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
        admit: Callable[[], None] | None = None,
        claims: Claims | None = None,
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
        self._admit = admit
        self._claims = claims
        self._watching: asyncio.Task[None] | None = None
        self._judge = Judge(self._address, self._secret)
        self._flights = Flights()
        self._contact = Contact()
        self._fatal: Exception | None = None
        self._halted = asyncio.Event()
        self._unknown: dict[str, UnknownModel] = {}
        self._one_lister = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._wire.open()
        if self._claims is not None:
            self._watching = asyncio.create_task(self._claims.watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, _INTERRUPTS):
            self._flights.patient = False
        await self.aclose()

    async def aclose(self) -> None:
        """Call off what is in flight, let every reply that has come be kept, close the connections.

        After a `halt` what is with the server is not called off but waited for.
        """
        try:
            await self._flights.close()
        finally:
            await self._wire.close()
            if self._watching is not None:
                self._watching.cancel()

    def halt(self, error: Exception) -> None:
        """Send nothing more, since everything ends with `error`: who sleeps or queues ends with one like it.

        Tell it before what runs beside is called off: what is with the server by then is paid for, and kept. Only of a
        batch nothing is lost, whose replies the next client finds.
        """
        self._flights.patient |= not getattr(self._wire, "remembers", False)
        self._fatal = self._fatal or error
        self._halted.set()
        self._limits.dismiss(self, error)

    @property
    def under_way(self) -> str:
        """What the transport says of its progress, such as `2 jobs, 1,240 of 1,953 rows`; nothing over HTTP."""
        progress = getattr(self._wire, "progress", None)
        return str(progress()) if progress else ""

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
        reply, shared = await self._flights.join(request.limited_key, partial(self._fly, request, fresh))
        if not shared:
            return reply
        self.stats.shared += 1
        return replace(reply, source="shared") if reply.source == "sent" else reply

    def _stored(self, request: ChatRequest) -> Reply | None:
        reply = self._find(request.key)
        if reply is not None and reply.outcome is Outcome.OK:
            if reply.fits(request.sampling.max_tokens):
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

    async def _fly(self, request: ChatRequest, fresh: bool, flight: Flight) -> Reply:
        length = sum(len(message.content) for message in request.messages)
        # While the server still has the conversation so far at hand.
        turn = self._limits.turn(self, length, request.sampling.max_tokens, ahead=request.goes_on)
        try:
            return await self._fetch(request, Trip(flight, turn, Patience(self._retry), fresh))
        except RectomError as error:
            self.stats.failed += 1
            self.stats.errors[type(error).__name__] += 1
            raise
        finally:
            if self._claims is not None:
                self._claims.drop(request.limited_key, self)

    async def _fetch(self, request: ChatRequest, trip: Trip) -> Reply:
        while True:
            found = await self._go(request, trip)
            if isinstance(found, Reply):
                return found
            if isinstance(found, Never):
                raise await self._learnt(found.error, request)
            if isinstance(found, Again):
                wait = self._wait(found, trip.patience)
                if wait:
                    await self._sleep(wait)
            elif found is None:
                await self._sleep(_PEEK_S)

    async def _go(self, request: ChatRequest, trip: Trip) -> Reply | Verdict | None:
        """One go: the reply or why there is none; None while another program asks for it."""
        self._fail_fast(request)  # before the wait for a place, which may be long
        place = await self._limits.enter(trip.turn)
        was_sent = trip.sent
        try:
            self._fail_fast(request)
            # In this order: another program may have stored it until it gave up its claim.
            claimed = self._claimed(request, trip)
            stored = self._stored_by_now(request, trip)
            if stored is not None:
                self.stats.cached += 1
            if stored is not None or not claimed:
                return stored
            verdict = await self._attempt(request, trip)
            self._tell(place, verdict)
            # The place is kept until the reply is: a run that is killed has no more to pay again than were in flight.
            return await self._keep(request, verdict, trip) if isinstance(verdict, Answered) else verdict
        finally:
            self._limits.leave(place, unused=trip.sent == was_sent)

    async def _keep(self, request: ChatRequest, verdict: Answered, trip: Trip) -> Reply:
        trip.flight.landed = True
        reply = _reply(request, verdict, trip.sent)
        self.stats.usage += reply.usage
        self.stats.outcomes[str(reply.outcome)] += 1
        if self._replies is not None:
            await self._store(self._replies, reply, request)
        return reply

    async def _store(self, replies: ReplyStore, reply: Reply, request: ChatRequest) -> None:
        try:
            await replies.keep(reply.key, reply.to_record(request))
        except RectomError:  # of this reply alone
            raise
        except Exception as error:
            # The next reply would be paid for and lost, too.
            self.halt(error)
            raise

    def _stored_by_now(self, request: ChatRequest, trip: Trip) -> Reply | None:
        by_others = trip.turn.waited if self._claims is None else self._claims.contested
        return self._stored(request) if by_others and not trip.fresh else None

    def _claimed(self, request: ChatRequest, trip: Trip) -> bool:
        return self._claims is None or trip.fresh or self._claims.take(request.limited_key, self)

    async def _attempt(self, request: ChatRequest, trip: Trip) -> Verdict:
        structured = self.structured
        payload = to_bytes(request.body(structured))
        self._ask_leave()
        trip.sent += 1
        trip.flight.away = True
        try:
            response = await self._post(payload, request, first=trip.sent == 1)
        finally:
            trip.flight.away = False
        verdict = self._judge.judge(response, request, structured)
        if isinstance(verdict, NoStructure):
            self._step_down(structured, verdict.words)
        elif isinstance(verdict, Answered) and request.schema is not None:
            self.stats.schemas[structured] += 1
        return verdict

    async def _post(self, payload: bytes, request: ChatRequest, *, first: bool) -> Response | NoResponse:
        stats = self.stats
        stats.sent += first
        stats.retried += not first
        stats.in_flight += 1
        stats.limit = self._limits.limit
        try:
            response = await self._wire.post(payload, request.limited_key)
        finally:
            stats.in_flight -= 1
        if isinstance(response, Response):
            self._contact.made()
        elif response.unreachable:
            self._contact.missed(_now())
        return response

    def _ask_leave(self) -> None:
        if self._admit is None:
            return
        try:
            self._admit()
        except RectomError as error:
            self._flights.patient = True  # for a batch, too
            self.halt(error)
            raise

    def _tell(self, place: Place, verdict: Verdict) -> None:
        """Let the limits know of it before the place goes to the next."""
        if isinstance(verdict, Answered):
            self._limits.replied(place, verdict.parsed.usage)
        elif isinstance(verdict, Again) and verdict.crowded:
            self._limits.overloaded(place, named=verdict.wait is not None)
            if not isinstance(verdict.error, EndpointDown):
                self._limits.to_the_end(place.turn)
        if isinstance(verdict, Again | Answered) and verdict.wait is not None:
            self._limits.pause(min(verdict.wait, self._retry.named_cap))
        self.stats.limit = self._limits.limit

    def _wait(self, verdict: Again, patience: Patience) -> float:
        """The seconds to sleep before the next go. Raises the verdict's error when patience has run out."""
        self.stats.usage += verdict.usage
        if isinstance(verdict.error, EndpointDown):
            wait = patience.next_knock(self._contact.lost_for(_now()))
        else:
            wait = patience.next_wait(verdict.wait, paid=verdict.paid)
        if wait is None:
            raise self._latched(verdict.error)
        _LOG.info("%s; once more in %.1f s", verdict.error, wait)
        # What the server named the gate keeps: whoever waits there has its turn as soon as it opens.
        return wait if verdict.wait is None else 0.0

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halted.wait()

    def _step_down(self, structured: Structured, words: str) -> None:
        # Many requests find out at once; only those sent in the present mode may change it.
        if self.structured == structured:
            self.structured = _SIMPLER[structured]
            _LOG.warning("%s refuses %s (%s): now %s", self._address, structured, words, self.structured)

    def _fail_fast(self, request: ChatRequest) -> None:
        error = self._fatal or self._unknown.get(request.model.name)
        if error is not None:
            raise anew(error)

    def _latched(self, error: EndpointError) -> EndpointError:
        if isinstance(error, EndpointDown | WrongKey):
            self.halt(error)
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


def _now() -> float:
    return asyncio.get_running_loop().time()


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
        at=round(time.time(), 3),
        limit=request.sampling.max_tokens,
    )
