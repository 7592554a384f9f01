"""A chat request: what is asked of which model, and the key under which its reply is kept.

The key says what was asked and of what, never where: a server that moves to another port keeps its replies,
and two models behind one address never answer for each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import orjson

from rectom.errors import DataError

Structured = Literal["json_schema", "json_object", "text"]
"""How a reply schema reaches the server: as a strict JSON schema, as "some JSON object", or not at all."""

#: The fields in which servers take the limit on the tokens of a reply.
LimitField = Literal["max_tokens", "max_completion_tokens"]

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation."""

    role: Role
    content: str

    def fields(self) -> dict[str, str]:
        """The turn as the server and the key see it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class ModelId:
    """Which model answers.

    `name` is what the server is asked for, `identity` what the model is (default: the name) and `revision`
    which state of it. Only identity and revision enter the key: give both servers' names one identity where
    they serve one model.
    """

    name: str
    identity: str | None = None
    revision: str = ""

    @property
    def declared(self) -> str:
        """The identity, or the name where none was declared."""
        return self.name if self.identity is None else self.identity


@dataclass(frozen=True)
class Sampling:
    """How the reply is drawn. What is None is left to the server and is no part of the key.

    `max_tokens` is the limit on the reply's tokens, and `limit_as` the field in which the server takes it, which is no
    part of the key; `extra` holds further fields of the request's body, such as `reasoning_effort` or
    `chat_template_kwargs`.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    limit_as: LimitField = "max_tokens"
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    def fields(self) -> dict[str, object]:
        """The set parameters without the length limit (see `ChatRequest.key`); 0 and 0.0 are the same."""
        drawn = {
            "temperature": _real(self.temperature),
            "top_p": _real(self.top_p),
            "top_k": self.top_k,
            "seed": self.seed,
            "stop": list(self.stop) or None,
        }
        return {**self.extra, **{name: value for name, value in drawn.items() if value is not None}}


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model. `sample` numbers the independent draws of the same question."""

    model: ModelId
    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    sample: int = 0
    schema_name: str | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def goes_on(self) -> bool:
        """Whether it goes on with a conversation in which the model has spoken."""
        return any(message.role == "assistant" for message in self.messages)

    def fields(self) -> dict[str, object]:
        """Everything that the reply depends on, by name: what the key is made of and what a miss is explained
        by.
        """
        return {
            "identity": self.model.declared,
            "revision": self.model.revision,
            "sampling": self.sampling.fields(),
            "sample": self.sample,
            "messages": [message.fields() for message in self.messages],
            "schema_name": self.schema_name,
            "schema": self.schema,
        }

    @cached_property
    def key(self) -> str:
        """The SHA-256 (64 hex digits) of the canonical JSON of `fields`.

        The length limit is left out: a reply that ended by itself is the same under any larger limit, so
        raising `max_tokens` asks only the truncated ones again. Those are kept under `limited_key`.

        Raises `DataError` where a field cannot be written as JSON.
        """
        return _digest(self.fields())

    @cached_property
    def limited_key(self) -> str:
        """The key of a truncated reply, which belongs to this length limit alone."""
        return _digest({**self.fields(), "max_tokens": self.sampling.max_tokens})

    def body(self, structured: Structured) -> dict[str, object]:
        """The JSON that the server gets, with the schema (if any) as `structured` allows."""
        body: dict[str, object] = {
            **self.sampling.fields(),
            "model": self.model.name,
            "messages": [message.fields() for message in self.messages],
        }
        if self.sampling.max_tokens is not None:
            body[self.sampling.limit_as] = self.sampling.max_tokens
        if self.schema is not None and structured != "text":
            body["response_format"] = self._format(structured)
        return body

    def _format(self, structured: Structured) -> dict[str, object]:
        if structured == "json_object":
            return {"type": "json_object"}
        schema = {"name": self.schema_name or "reply", "strict": True, "schema": self.schema}
        return {"type": "json_schema", "json_schema": schema}


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def to_bytes(value: object) -> bytes:
    """JSON with its keys in their own order: constrained servers write a reply's fields in the schema's order.

    Raises `DataError` for what JSON cannot hold.
    """
    return _dumps(value, 0)


def canonical(value: object) -> bytes:
    """JSON with sorted keys, for digests. Raises `DataError` for what JSON cannot hold."""
    return _dumps(value, orjson.OPT_SORT_KEYS)


def _dumps(value: object, option: int) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except TypeError as fault:
        raise DataError(f"a request cannot be written as JSON ({fault}); look for half characters in it") from None


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()
