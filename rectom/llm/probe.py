"""What an endpoint supports, found out by asking it one small question in different ways."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rectom.errors import EndpointError
from rectom.llm.client import ChatClient
from rectom.llm.reply import Outcome
from rectom.llm.request import ChatRequest, Message, ModelId, Sampling, Structured
from rectom.llm.structured import BadReply, ask_json

_SCHEMA = {
    "type": "object",
    "properties": {"capital": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["capital"],
    "additionalProperties": False,
}
_QUESTION = 'What is the capital of France? Reply with one JSON object: {"capital": "Paris"} or {"capital": "Rome"}.'


@dataclass(frozen=True)
class Probe:
    """What was found: the way in which reply schemas work, whether the reply was right, and whether usage is told."""

    structured: Structured
    right: bool
    tells_usage: bool
    latency_s: float


async def probe(client: ChatClient, model: ModelId, sampling: Sampling) -> Probe:
    """Ask an endpoint one question with a reply schema; the client steps down by itself where that is refused.

    Raises EndpointError if the server cannot be asked at all.
    """
    request = ChatRequest(model, (Message("user", _QUESTION),), sampling, schema_name="capital", schema=_SCHEMA)
    began = time.monotonic()
    try:
        answer = await ask_json(client, request, _capital, repairs=1, fresh=True)
    except BadReply as error:
        if not error.replies:
            raise EndpointError(str(error)) from None
        reply, right = error.replies[-1], False
    else:
        reply, right = answer.replies[-1], answer.value == "Paris"
    tells = reply.usage.prompt > 0 and reply.outcome is Outcome.OK
    return Probe(client.structured, right, tells, time.monotonic() - began)


def _capital(reply: object) -> str:
    if not isinstance(reply, dict) or reply.get("capital") not in {"Paris", "Rome"}:
        raise ValueError('give {"capital": "Paris"} or {"capital": "Rome"}')
    return str(reply["capital"])
