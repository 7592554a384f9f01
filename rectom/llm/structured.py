"""Replies of a given form: ask, parse, and where the form is wrong ask again and say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import orjson

from rectom.errors import RectomError
from rectom.llm.client import ChatClient
from rectom.llm.reply import Outcome, Reply
from rectom.llm.request import ChatRequest, Message

T = TypeVar("T")

_QUOTED = 4000
_LONGEST_FAULT = 1000
_NO_TEXT = "(no text)"
_FAULTS = {
    Outcome.TRUNCATED: "it was cut off at the length limit; answer more briefly",
    Outcome.FILTERED: "it was stopped by a content filter",
    Outcome.REFUSED: "it was a refusal",
    Outcome.EMPTY: "it was empty",
    Outcome.REASONING_ONLY: "it was all reasoning and no answer",
    Outcome.TOOL_CALL: "it was a tool call; answer in text",
    Outcome.MALFORMED: "it was damaged on the way",
}


@dataclass
class Tries:
    """The replies to a request and its repairs, as they come; `faults` tell what was wrong with those that were bad."""

    replies: list[Reply] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A parsed reply. `replies` are all that it took, the good one last; `faults` tell what was wrong with the rest."""

    value: T
    replies: list[Reply]
    faults: list[str]

    @property
    def repairs(self) -> int:
        """How many replies were bad."""
        return len(self.faults)


class BadReply(RectomError):
    """No reply could be parsed, after all repairs. `replies` are all that were paid for, `faults` what was wrong with
    each, and `why` the last of them.
    """

    def __init__(self, faults: Sequence[str], replies: Sequence[Reply]) -> None:
        super().__init__(faults, replies)
        self.faults = list(faults)
        self.replies = list(replies)

    @property
    def why(self) -> str:
        """The last fault."""
        return self.faults[-1]

    def __str__(self) -> str:
        return f"no usable reply in {len(self.replies)} tries: {self.why}"


async def ask_json(
    client: ChatClient,
    request: ChatRequest,
    parse: Callable[[object], T],
    *,
    repairs: int = 2,
    fresh: bool = False,
    tries: Tries | None = None,
) -> Answer[T]:
    """Ask for JSON and parse it; at most `repairs` times name the fault in the same conversation and ask
    again.

    `parse` takes the decoded JSON and raises `ValueError` with the fault in words. Raises `BadReply` when all
    tries are used up, and what `ask` raises. Every try is an ordinary request: a rerun replays the bad
    replies from the store too, unless it is to be `fresh`. What came is in `tries` also where the server then
    refuses a repair.
    """
    tries = tries or Tries()
    replies, faults = tries.replies, tries.faults
    while True:
        reply = await client.ask(request, fresh=fresh)
        replies.append(reply)
        try:
            return Answer(parse(_json(reply)), replies, faults)
        except ValueError as bad:
            faults.append(fault_words(bad))
        if len(replies) > repairs:
            raise BadReply(faults, replies)
        request = _repaired(request, reply, faults[-1])


def _json(reply: Reply) -> object:
    if reply.outcome is not Outcome.OK:
        raise ValueError(_FAULTS[reply.outcome])
    return find_json(reply.text)


def find_json(text: str) -> object:
    """The JSON in a reply: the whole text, or the last outermost object in it (models think aloud before they
    answer).

    Raises `ValueError` where there is none.
    """
    try:
        return orjson.loads(text)
    except ValueError as bad:
        fault = str(bad)
    found: object = None
    for piece in _objects(text):
        try:
            found = orjson.loads(piece)
        except ValueError as bad:
            fault = str(bad)
    if found is None:
        raise ValueError(f"no JSON object in it ({fault})")
    return found


def _objects(text: str) -> list[str]:
    """The pieces of `text` between balanced outermost braces, in one pass; braces in JSON strings do not
    count.
    """
    pieces: list[str] = []
    depth = start = 0
    in_string = escaped = False
    for place, sign in enumerate(text):
        if in_string:
            in_string = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == "{":
            start = start if depth else place
            depth += 1
        elif depth and sign == '"':
            in_string = True
        elif depth and sign == "}":
            depth -= 1
            if not depth:
                pieces.append(text[start : place + 1])
    return pieces


def fault_words(bad: ValueError) -> str:
    """The fault of a reply in one short line; pydantic's errors as `place: fault`, without its links and
    version.
    """
    errors = getattr(bad, "errors", None)
    if callable(errors):
        found = [f"{'.'.join(map(str, error['loc'])) or 'the reply'}: {error['msg']}" for error in errors()]
        words = "; ".join(found)
    else:
        words = str(bad)
    return " ".join(words.split())[:_LONGEST_FAULT] or type(bad).__name__


def _repaired(request: ChatRequest, reply: Reply, fault: str) -> ChatRequest:
    # Chat templates want the turns to alternate and not to be empty; a runaway reply is quoted by its
    # beginning.
    bad = Message("assistant", reply.text[:_QUOTED] or _NO_TEXT)
    ask = Message("user", f"That reply cannot be used: {fault}. Answer again, with one JSON object and nothing else.")
    return replace(request, messages=(*request.messages, bad, ask))
