"""A model's reply: what the server's bytes turn out to be, what they cost, and the record that is kept of
them.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import orjson

from rectom.errors import DataError
from rectom.llm.request import ChatRequest

Source = Literal["sent", "cached", "shared"]
"""Where a reply came from: the server, the store, or an identical request that was in flight."""

_THINK, _THOUGHT = "<think>", "</think>"
_LARGEST_COUNT = 2**53
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
# Of the text encodings of Python some take quadratic time; nobody sends JSON in those.
_CHARSETS = ("iso8859", "cp", "koi8", "gb", "big5", "euc", "shift_jis")


class Outcome(StrEnum):
    """What became of a request that was answered. Only OK is an answer."""

    OK = "ok"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    REFUSED = "refused"
    EMPTY = "empty"
    REASONING_ONLY = "reasoning_only"
    TOOL_CALL = "tool_call"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens: of the prompt (`cached` of them read from the server's cache) and of the completion
    (`reasoning` of them thought). What the server does not say counts 0.
    """

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.reasoning + other.reasoning,
            self.cached + other.cached,
        )

    @classmethod
    def from_server(cls, usage: object) -> Usage:
        """Read the `usage` object of a chat completion, whatever it is.

        Some servers tell of the tokens that were thought only in the sum: they are paid as the completion's.
        """
        fields = _mapping(usage)
        prompt = _count(fields.get("prompt_tokens"))
        return cls(
            prompt=prompt,
            completion=max(_count(fields.get("completion_tokens")), _count(fields.get("total_tokens")) - prompt),
            reasoning=_count(_mapping(fields.get("completion_tokens_details")).get("reasoning_tokens")),
            cached=_count(_mapping(fields.get("prompt_tokens_details")).get("cached_tokens")),
        )

    def to_record(self) -> dict[str, int]:
        """As JSON."""
        return {
            "prompt": self.prompt,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "cached": self.cached,
        }

    @classmethod
    def from_record(cls, record: object) -> Usage:
        """Read back what `to_record` wrote."""
        get = _mapping(record).get
        return cls(_count(get("prompt")), _count(get("completion")), _count(get("reasoning")), _count(get("cached")))


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What the bytes of one response say.

    `text` is the answer without its thinking (for REFUSED the words of the refusal), `reasoning` the
    thinking, `model` the name of the model by its server, `fault` says in words why a MALFORMED body is none.
    """

    text: str
    outcome: Outcome
    usage: Usage = Usage()
    reasoning: str = ""
    model: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one request.

    `key` is the key it is kept under, `latency_s` the seconds from sending to the last byte of the attempt
    that succeeded (no queueing, no waiting between attempts), `attempts` how often it was sent, `at` when it came, in
    seconds since 1970 (0 if that is not known), `limit` the most tokens that it was allowed (None if there was no
    limit, or if that is not known).
    """

    key: str
    text: str
    outcome: Outcome
    usage: Usage
    latency_s: float
    attempts: int
    source: Source
    reasoning: str = ""
    model: str = ""
    at: float = 0.0
    limit: int | None = None

    def fits(self, limit: int | None) -> bool:
        """Whether a reply that ended by itself could be had under a limit.

        Some servers count more tokens than they let the reply have, such as those of thinking: what ended by itself
        under the same limit, or a smaller one, fits whatever they say.
        """
        if limit is None or self.usage.completion <= limit:
            return True
        return self.limit is not None and self.limit <= limit

    def to_record(self, request: ChatRequest) -> dict[str, object]:
        """The JSON-able record for the store, with the request's fields under "request"."""
        # The key is the digest of "request": that of a truncated reply holds the limit as well.
        limit = {"max_tokens": request.sampling.max_tokens} if self.outcome is Outcome.TRUNCATED else {}
        return {
            "key": self.key,
            "text": self.text,
            "outcome": str(self.outcome),
            "usage": self.usage.to_record(),
            "latency_s": self.latency_s,
            "attempts": self.attempts,
            "reasoning": self.reasoning,
            "model": self.model,
            "at": self.at,
            "limit": self.limit,
            "request": {**request.fields(), **limit},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reply:
        """Read a stored record back; its source is "cached". Raises `DataError` where it is damaged."""
        try:
            return cls(
                key=_text(record["key"]),
                text=_text(record["text"]),
                outcome=Outcome(record["outcome"]),
                usage=Usage.from_record(record.get("usage")),
                latency_s=_number(record["latency_s"]),
                attempts=int(_number(record["attempts"])),
                source="cached",
                reasoning=_text(record.get("reasoning", "")),
                model=_text(record.get("model", "")),
                at=_number(record.get("at", 0.0)),
                limit=_count(record.get("limit")) or None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
            raise DataError(f"a stored reply is damaged ({fault!r}); it counts as missing") from fault


def parse_reply(body: bytes, charset: str = "") -> ParsedReply:
    """Say what a response body is, whose header declares a `charset`. Any bytes will do; what is no chat completion is
    MALFORMED.
    """
    try:
        completion = orjson.loads(body)
    except ValueError as fault:
        # It was paid for: what can be understood of it is taken.
        completion = _leniently(body, charset)
        if completion is None:
            return ParsedReply("", Outcome.MALFORMED, fault=f"no JSON: {fault}")
    usage = Usage.from_server(_mapping(completion).get("usage"))
    choice = _first(_mapping(completion).get("choices"))
    message = _mapping(choice).get("message")
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return ParsedReply("", Outcome.MALFORMED, usage, fault=_complaint(completion))
    if choice.get("finish_reason") == "error":
        return ParsedReply("", Outcome.MALFORMED, usage, fault=_complaint(choice))
    return _classify(choice, message, usage, _string(_mapping(completion).get("model")))


def _leniently(body: bytes, charset: str) -> object:
    """The JSON of a body in UTF-8, -16 or -32 with or without its mark, or in the `charset`, with half characters and
    numbers that are none (as null) in it; None for what is none even so.
    """
    try:
        return json.loads(_decoded(body, charset), parse_constant=lambda _: None)
    except (ValueError, LookupError, RecursionError):
        return None


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(json.detect_encoding(body), "surrogatepass")
    except UnicodeDecodeError:
        # Only now: servers declare what they do not send.
        if not codecs.lookup(charset).name.startswith(_CHARSETS):
            raise
        return body.decode(charset)


def _classify(choice: dict[str, Any], message: dict[str, Any], usage: Usage, model: str) -> ParsedReply:
    text, thought = split_thinking(_content(message.get("content")))
    thought = _string(message.get("reasoning_content")) or _string(message.get("reasoning")) or thought
    refusal = _string(message.get("refusal"))
    outcome = _outcome(_string(choice.get("finish_reason")), message, text, thought, refusal)
    if outcome is Outcome.REFUSED:
        text = refusal
    return ParsedReply(text, outcome, usage, thought, model)


def _outcome(finish: str, message: dict[str, Any], text: str, thought: str, refusal: str) -> Outcome:
    called = bool(message.get("tool_calls") or message.get("function_call"))
    # The order matters: a reply cut off while it was thinking is cured by a larger limit, so it is TRUNCATED
    # first.
    signs = (
        (finish == "length", Outcome.TRUNCATED),
        (finish == "content_filter", Outcome.FILTERED),
        (bool(refusal), Outcome.REFUSED),
        (finish in {"tool_calls", "function_call"} or (called and not text), Outcome.TOOL_CALL),
        (bool(text), Outcome.OK),
        (bool(thought), Outcome.REASONING_ONLY),
    )
    return next((outcome for sign, outcome in signs if sign), Outcome.EMPTY)


def split_thinking(content: str) -> tuple[str, str]:
    """Part a model's text from its `<think>…</think>` blocks: (text, thinking), both stripped.

    A block whose opening tag was part of the prompt's template starts at the text's beginning; one that is
    never closed reaches to its end.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    place = 0
    closed = content.find(_THOUGHT)
    if closed >= 0 and content.find(_THINK, 0, closed) < 0:
        thought, place = _until(_THOUGHT, content, place)
        thoughts.append(thought)
    while place < len(content):
        text, place = _until(_THINK, content, place)
        thought, place = _until(_THOUGHT, content, place)
        texts.append(text)
        thoughts.append(thought)
    return "".join(texts).strip(), "\n".join(filter(None, map(str.strip, thoughts)))


def _until(tag: str, content: str, start: int) -> tuple[str, int]:
    """What stands from `start` up to a tag, or the end, and the place after it."""
    # By places: a rest that is cut off again and again is copied as often.
    end = content.find(tag, start)
    return (content[start:], len(content)) if end < 0 else (content[start:end], end + len(tag))


def _complaint(value: object) -> str:
    error = _mapping(value).get("error")
    words = _string(_mapping(error).get("message")) or _string(error)
    return words or "no chat completion: it has no choices with a message"


def _content(content: object) -> str:
    if isinstance(content, list):
        return "".join(_string(_mapping(part).get("text")) for part in content)
    return _string(content)


def _first(choices: object) -> object:
    return choices[0] if isinstance(choices, list) and choices else None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    # Half a character can be written in JSON, but nowhere else.
    return _HALF_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of text")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} instead of a number")
    return float(value)


def _count(value: object) -> int:
    # By exact type: a bool is no count, and this is done for every field of every stored reply.
    if (type(value) is int or type(value) is float) and 0 <= value <= _LARGEST_COUNT:
        return int(value)
    return 0
