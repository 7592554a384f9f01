"""A client that sends nothing, to find out what would be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from rectom.llm.client import ChatClient, WouldSend
from rectom.llm.reply import Outcome, Reply, Usage
from rectom.llm.request import ChatRequest
from rectom.llm.store import ReplyStore

_NOWHERE: Final = "http://localhost/v1"

#: What an imagined reply in words says.
_WORDS: Final = "Answer: A"

#: What a request without a schema is put down to.
IN_WORDS: Final = "words"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that would be sent: for which step, with how many characters, and how long its reply may be."""

    step: str
    length: int
    max_tokens: int | None


class Rehearsal(ChatClient):
    """Answers from the store, and where it has nothing with an imagined reply, the shortest of its form.

    `wanted` are the requests that would be sent, by key. Asking again after an imagined reply is not one of them; after
    a stored one it is.
    """

    def __init__(self, replies: ReplyStore, *, replay_failures: bool = True) -> None:
        super().__init__(_NOWHERE, None, replies=replies, offline=True, replay_failures=replay_failures)
        self.wanted: dict[str, Wanted] = {}
        self._imagined: set[str] = set()

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        """The stored reply, or an imagined one, whose source is `sent`."""
        try:
            if not fresh:
                return await super().ask(request)
        except WouldSend:
            pass
        # A complaint about a reply follows the request that got it.
        if replace(request, messages=request.messages[:-2]).key not in self._imagined:
            length = sum(len(message.content) for message in request.messages)
            step = request.schema_name or IN_WORDS
            self.wanted[request.key] = Wanted(step, length, request.sampling.max_tokens)
        self._imagined.add(request.key)
        return Reply(request.key, imagined(request.schema), Outcome.OK, Usage(), 0.0, 1, "sent")


def imagined(schema: Mapping[str, Any] | None) -> str:
    """The text of a reply of a form: JSON that the schema takes, as short as it may be; words where there is none."""
    if schema is None:
        return _WORDS
    return orjson.dumps(_smallest(schema, schema)).decode()


def _smallest(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    """The shortest value of a schema as `rectom.schemas` writes them."""
    if "$ref" in schema:
        return _smallest(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return _smallest(several[0], whole)
    if "const" in schema or "enum" in schema:
        return schema.get("const", [*schema.get("enum", ()), None][0])
    properties, items = schema.get("properties", {}), schema.get("items", {})
    values: Mapping[str, Callable[[], Any]] = {
        "object": lambda: {name: _smallest(properties[name], whole) for name in schema.get("required", ())},
        "array": lambda: [_numbered(_smallest(items, whole), place) for place in range(_length(schema))],
        "integer": lambda: schema.get("minimum", 0),
        "boolean": lambda: False,
    }
    return values.get(schema.get("type", ""), lambda: "")()


def _length(schema: Mapping[str, Any]) -> int:
    """As few entries as an array may have; one at least where they are chosen from a list, since most replies do."""
    least: int = schema.get("minItems", 0)
    return max(least, int("enum" in schema.get("items", {})))


def _numbered(entry: Any, place: int) -> Any:
    """An entry of an array whose numbers count on from the first one's."""
    if not isinstance(entry, dict):
        return entry
    return {name: value + place if type(value) is int else value for name, value in entry.items()}
