"""Asking a model for one step: the prompt, the schema, the bounded repair, and a note of what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from rectom import prompts, schemas
from rectom.errors import EndpointBusy, EndpointFault, RequestRefused, StepFailure
from rectom.llm import BadReply, ChatClient, ChatRequest, Message, ModelId, Outcome, Reply, Sampling, Tries, ask_json
from rectom.schemas import ReplyModel

T = TypeVar("T")

#: A fault in the note of a call is cut to so many characters.
_LONGEST_FAULT = 300


@dataclass(frozen=True, slots=True)
class Call:
    """One model call as a step's record keeps it. `key` leads to the reply in the store; tokens are the server's.

    `repair` tells that it answers a complaint about the reply before, `fault` what was wrong with its own.
    """

    step: str
    key: str
    source: str
    prompt: int
    completion: int
    reasoning: int
    cached: int
    latency_s: float
    outcome: str
    repair: bool = False
    fault: str = ""

    @classmethod
    def of(cls, step: str, reply: Reply, *, repair: bool = False, fault: str = "") -> Call:
        """The note of a reply."""
        usage = reply.usage
        return cls(
            step,
            reply.key,
            reply.source,
            usage.prompt,
            usage.completion,
            usage.reasoning,
            usage.cached,
            round(reply.latency_s, 4),
            str(reply.outcome),
            repair,
            fault[:_LONGEST_FAULT],
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


_calls: ContextVar[list[Call]] = ContextVar("calls")


@dataclass
class _Anew:
    """From which step on questions are sent, and whether that has been asked."""

    step: str
    begun: bool = False


_anew: ContextVar[_Anew | None] = ContextVar("anew", default=None)


@contextmanager
def asking_anew(step: str) -> Iterator[None]:
    """Within this, a step's questions and what is asked after them are sent, whatever the store holds.

    What is asked before them was good, and is taken from the store.
    """
    token = _anew.set(_Anew(step))
    try:
        yield
    finally:
        _anew.reset(token)


def _is_anew(step: str) -> bool:
    anew = _anew.get()
    if anew is None:
        return False
    anew.begun |= step == anew.step
    return anew.begun


@contextmanager
def recording() -> Iterator[list[Call]]:
    """Collect the calls that are made within, in the order in which they ended."""
    calls: list[Call] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def noted(calls: Iterable[Call]) -> None:
    """Put calls down to whoever records, if anyone does."""
    recorded = _calls.get(None)
    if recorded is not None:
        recorded.extend(calls)


class Asker:
    """Asks a model, with one way of sampling and a number of repairs, the prompts of a benchmark."""

    def __init__(
        self,
        client: ChatClient,
        model: ModelId,
        sampling: Sampling | None = None,
        *,
        benchmark: str = "hitom",
        repairs: int = 2,
        sample: int = 0,
    ) -> None:
        self._client = client
        self._model = model
        self._sampling = sampling or Sampling()
        self._benchmark = benchmark
        self._repairs = repairs
        self._sample = sample

    def drawing(self, sample: int) -> Asker:
        """The same, drawing another sample of the replies."""
        other = copy(self)
        other._sample = sample
        return other

    @property
    def sample(self) -> int:
        """The number of the sample that is drawn."""
        return self._sample

    def fields(self, *names: str) -> dict[str, object]:
        """What a reply to these prompts depends on besides their fields."""
        return {
            "by": "model",
            "identity": self._model.declared,
            "revision": self._model.revision,
            "sampling": {**self._sampling.fields(), "max_tokens": self._sampling.max_tokens},
            "sample": self._sample,
            "repairs": self._repairs,
            "schemas": schemas.VERSION,
            "prompts": {name: prompts.load(self._benchmark, name).digest for name in names},
        }

    def placeholders(self, name: str) -> frozenset[str]:
        """What must be filled into a prompt."""
        return prompts.load(self._benchmark, name).placeholders

    async def ask(self, name: str, reply: ReplyModel, read: Callable[[Any], T], **fields: str) -> T:
        """Fill a prompt, ask, validate against the reply's model, and read the value out of it.

        `read` raises ValueError if the reply breaks a rule of the step; the fault is named to the model then.
        Raises StepFailure when no reply was usable, and what the client raises for a server that is no use.
        """
        system, user = prompts.load(self._benchmark, name).fill(**fields)
        request = ChatRequest(
            self._model,
            (Message("system", system), Message("user", user)),
            self._sampling,
            self._sample,
            schema_name=name,
            schema=schemas.json_schema(reply),
        )
        tries = Tries()
        try:
            found = await ask_json(
                self._client,
                request,
                lambda data: read(reply.model_validate(data)),
                repairs=self._repairs,
                fresh=_is_anew(name),
                tries=tries,
            )
        except (BadReply, EndpointBusy, EndpointFault, RequestRefused) as error:
            raise StepFailure(name, str(error)) from None
        finally:
            self._note(name, tries.replies, tries.faults)
        return found.value

    async def say(self, name: str, **fields: str) -> str:
        """Fill a prompt and ask for a reply in words. Raises as `ask` does, also for a reply that is no answer."""
        return await self.tell(name, *prompts.load(self._benchmark, name).fill(**fields))

    async def tell(self, step: str, system: str, user: str) -> str:
        """Send these words and return the reply's; `step` is what the call is put down to. Raises as `say` does."""
        return _said(step, await self._send(step, Message("system", system), Message("user", user)))

    async def say_until(self, is_enough: Callable[[str], bool], name: str, last: str, **fields: str) -> str:
        """As `say`; what was cut off or is not enough is gone on with by the prompt `last`, whose reply counts then."""
        system, user = prompts.load(self._benchmark, name).fill(**fields)
        first = Message("system", system), Message("user", user)
        reply = await self._send(name, *first)
        if reply.outcome is not Outcome.TRUNCATED and is_enough(said := _said(name, reply)):
            return said
        _, further = prompts.load(self._benchmark, last).fill()
        return _said(last, await self._send(last, *first, Message("assistant", reply.text), Message("user", further)))

    async def _send(self, step: str, *messages: Message) -> Reply:
        request = ChatRequest(self._model, messages, self._sampling, self._sample)
        try:
            reply = await self._client.ask(request, fresh=_is_anew(step))
        except (EndpointBusy, EndpointFault, RequestRefused) as error:
            raise StepFailure(step, str(error)) from None
        self._note(step, [reply])
        return reply

    def _note(self, name: str, replies: Sequence[Reply], faults: Sequence[str] = ()) -> None:
        found = [*faults, *[""] * (len(replies) - len(faults))]
        pairs = enumerate(zip(replies, found, strict=True))
        noted(Call.of(name, reply, repair=number > 0, fault=fault) for number, (reply, fault) in pairs)


def _said(step: str, reply: Reply) -> str:
    if reply.outcome is not Outcome.OK:
        raise StepFailure(step, f"the reply is {reply.outcome}")
    return reply.text
