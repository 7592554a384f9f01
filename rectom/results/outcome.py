"""The outcome of one question, as a line of `results.jsonl`, and its trace, a line of `traces.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question and what came of it.

    `failed_step` names the semantic step that failed for good; such a question counts as wrong. `calls` and
    `tokens` (prompt and completion) are all that the answer rests on, as if no other question had shared them.
    `group` and `ballot` are the question's; `gold_class` and `predicted_class` what the official measure counts the
    two answers as, where that is not their words. `asked` is the digest of everything that was asked. `fault` is the
    step at which a wrong answer went wrong, as far as that can be told (see `rectom.results.attribution`).
    """

    id: str
    story_id: str
    order: int | None
    gold: str | None
    predicted: str | None
    correct: bool
    failed_step: str | None
    calls: int
    tokens: int
    group: str = ""
    ballot: str = ""
    gold_class: str = ""
    predicted_class: str = ""
    asked: str = ""
    fault: str = ""

    def to_json(self) -> dict[str, Any]:
        """A line of `results.jsonl`."""
        return _flat(self)


@dataclass(frozen=True, slots=True)
class Trace:
    """How the answer to a question came about.

    `events`, `world` and `perspectives` are JSON of `rectom.codec`; `failure` is `{"step", "why"}`; `calls` the
    model calls, each with its step, key and tokens. `fault` tells where a wrong answer went wrong, and `oracle` is what
    the rules make of the same question, where they read its text; both are None for right answers.
    """

    id: str
    story_id: str
    question: str
    choices: list[str]
    lines: list[str]
    chain: list[str] | None = None
    reduced: str | None = None
    events: list[dict[str, Any]] | None = None
    world: Mapping[str, Any] | None = None
    perspectives: list[dict[str, Any]] | None = None
    final: list[str] | None = None
    predicted: str | None = None
    gold: str | None = None
    failure: Mapping[str, str] | None = None
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    fault: Mapping[str, Any] | None = None
    oracle: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """A line of `traces.jsonl`. What is in it is the trace's own, not copied: that would take a sixth of a run."""
        return _flat(self)


def _flat(line: Outcome | Trace) -> dict[str, Any]:
    return {field.name: getattr(line, field.name) for field in fields(line)}


def digest_of_asked(question: str, choices: Sequence[str], lines: Sequence[str], gold: str | None) -> str:
    """The digest of everything that a question asks: two with the same one are the same question."""
    return sha256(orjson.dumps([question, list(choices), list(lines), gold])).hexdigest()
