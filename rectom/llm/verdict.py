"""What one exchange with the server means: an answer, a fault worth another try, or one that no try will
cure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import orjson

from rectom.errors import (
    EndpointBusy,
    EndpointDown,
    EndpointError,
    EndpointFault,
    RequestRefused,
    UnknownModel,
    WrongKey,
)
from rectom.llm.address import Address
from rectom.llm.headers import named_wait, spent_wait
from rectom.llm.reply import Outcome, ParsedReply, Usage, parse_reply
from rectom.llm.request import ChatRequest, Structured
from rectom.llm.secret import Secret
from rectom.llm.wire import NoResponse, Response
from rectom.printable import printable

#: What a status means: too many requests, one that may go another time, a key that is not taken.
BUSY: Final = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
PASSING: Final = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}
KEY_TROUBLE: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}

_LONGEST_WORDS = 300
_OVERLOADED = 529  # as some servers say it
_CROWDED = {*BUSY, _OVERLOADED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_REJECTED = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
_NO_MODEL = re.compile(r"\bmodel\b.*(not found|not exist|unknown)|unknown model", re.IGNORECASE)
_NO_STRUCTURE = re.compile(
    r"response_format|json_schema|json_object|structured.?output|schema.*support|support.*schema|guided",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answered:
    """A chat completion came. The server takes nothing more for `wait` seconds, where it says so."""

    parsed: ParsedReply
    latency_s: float
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Try again, after `wait` seconds where the server named them; `error` is what to raise when patience
    runs out.

    `usage` is what the failed attempt cost; `crowded` says that there may be too many requests in flight, `paid` that
    the attempt was paid for like one that succeeds: more than one more of these is not worth it.
    """

    error: EndpointError
    wait: float | None = None
    usage: Usage = field(default_factory=Usage)
    crowded: bool = False
    paid: bool = False


@dataclass(frozen=True)
class Never:
    """No further try will help."""

    error: EndpointError


@dataclass(frozen=True)
class NoStructure:
    """The server does not take the response format."""

    words: str


Verdict = Answered | Again | Never | NoStructure


class Judge:
    """Reads the responses of one server. Its errors are single lines without the key."""

    def __init__(self, address: Address, secret: Secret) -> None:
        self._address = address
        self._secret = secret

    def judge(self, response: Response | NoResponse, request: ChatRequest, structured: Structured) -> Verdict:
        """Say what `response` to `request`, sent with its schema as `structured` says, means."""
        if isinstance(response, NoResponse):
            return self._unanswered(response)
        if response.status // 100 == 2:
            return self._answered(response)
        words = self.tidy(server_words(response.body))
        if _is_out_of_credit(response):
            said = f"{self._address} says HTTP {response.status} ({words})"
            return Never(WrongKey(f"{said}: the key's account has nothing left to spend; see to it and run again"))
        if response.status in BUSY | PASSING or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return self._passing(response, words)
        if response.status in _REJECTED and _offers_structure(request, structured) and _NO_STRUCTURE.search(words):
            return NoStructure(words)
        return Never(self._refusal(response, request, words))

    def _refusal(self, response: Response, request: ChatRequest, words: str) -> EndpointError:
        status = f"says HTTP {response.status} ({words})"
        said = f"{self._address} {status}"
        if response.status in KEY_TROUBLE:
            return WrongKey(f"{said}: it does not take the API key; set OPENAI_API_KEY")
        if _is_unknown_model(response, words):
            return UnknownModel(f"{said}: it does not serve {request.model.name!r}")
        return RequestRefused(f"the server {status}: it refuses the request; change what is sent")

    def _unanswered(self, response: NoResponse) -> Again:
        why = self.tidy(response.why)
        if not response.unreachable:
            return Again(self._fault(why), crowded=response.timed_out, paid=response.too_long)
        cure = "is the server running? --base-url gives another address"
        return Again(EndpointDown(f"cannot reach {self._address}: {why}; {cure}"), crowded=True)

    def _answered(self, response: Response) -> Verdict:
        kind = response.headers.get("Content-Type", "json")
        charset = _CHARSET.search(kind)
        parsed = parse_reply(response.body, charset[1] if charset else "")
        if parsed.outcome is Outcome.MALFORMED:
            # Only now: a completion was paid for, whatever it is called.
            fault = parsed.fault if "json" in kind.lower() else f"it sends {kind} instead of JSON"
            return Again(self._fault(self.tidy(fault)), usage=parsed.usage, paid=parsed.usage.total > 0)
        return Answered(self._masked(parsed), response.latency_s, spent_wait(response.headers, datetime.now(UTC)))

    def _masked(self, parsed: ParsedReply) -> ParsedReply:
        # What is kept is shown and published. A server may say again what it was sent.
        hide = self._secret.hide
        return replace(parsed, text=hide(parsed.text), reasoning=hide(parsed.reasoning), model=hide(parsed.model))

    def _passing(self, response: Response, words: str) -> Again:
        wait = named_wait(response.headers, datetime.now(UTC))
        said = f"HTTP {response.status} ({words})"
        crowded = response.status in _CROWDED
        if response.status not in BUSY:
            return Again(self._fault(said), wait, crowded=crowded)
        cure = "lower the concurrency or come back later"
        error = EndpointBusy(f"the server is still busy after all retries: {said}; {cure}")
        return Again(error, wait, crowded=crowded)

    def _fault(self, why: str) -> EndpointFault:
        # Of one question, whose failure is published with it: without the address.
        return EndpointFault(f"the server gives no reply after all retries: {why}; see the server's log")

    def tidy(self, words: str) -> str:
        """`words` of the server as one short printable line without the key."""
        # Masked before it is cut: half a key would slip through the mask.
        line = self._secret.mask(" ".join(printable(words).split()))
        return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 1] + "…"


def server_words(body: bytes) -> str:
    """What the server says in an error response, in whichever of the usual places."""
    error = _error(body)
    for words in (error.get("message"), error.get("detail"), error.get("error")):
        if words:
            return _said(words)
    text = body.decode("utf-8", "replace").strip()
    return "an HTML page" if text.startswith("<") else text or "no words"


def _said(words: object) -> str:
    try:
        return str(words)
    except RecursionError:  # lists in lists, deeper than Python follows
        return "no words"


def _error(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except ValueError:
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    inner = value.get("error") if isinstance(value, dict) else None
    value = inner if isinstance(inner, dict) else value
    return value if isinstance(value, dict) else {}


def _is_unknown_model(response: Response, words: str) -> bool:
    if response.status == HTTPStatus.NOT_FOUND:
        return True
    named = _error(response.body).get("code") == "model_not_found"
    return response.status in _REJECTED and (named or bool(_NO_MODEL.search(words)))


def _is_out_of_credit(response: Response) -> bool:
    # OpenAI says so with the status of a rate limit, which no waiting lifts.
    return response.status == HTTPStatus.TOO_MANY_REQUESTS and _error(response.body).get("code") == "insufficient_quota"


def _offers_structure(request: ChatRequest, structured: Structured) -> bool:
    return request.schema is not None and structured != "text"
