"""What the script of a page reads: questions, drawings and calls as JSON in which everything stands once, packed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from rectom.results.drawing import Column, Drawing
from rectom.results.outcome import Outcome, Trace
from rectom.results.paged import Asked, Paged

#: The most bytes that the packed questions of one page may have, so that a page stays under 5 MB.
LARGEST: Final = 4_500_000

_KEY: Final = 12
_FAULT: Final = ("step", "found", "expected", "line", "who", "by")


def kind_of(outcome: Outcome) -> str:
    """`right`, `wrong`, or `failed` where there is no answer."""
    if outcome.failed_step:
        return "failed"
    return "right" if outcome.correct else "wrong"


def pack(data: Any) -> str:
    """JSON as zlib makes it small and base64 makes it letters."""
    return base64.b64encode(zlib.compress(orjson.dumps(data), 9)).decode()


def parts_of(
    runs: Sequence[Paged], questions: Sequence[Asked], most: int, largest: int = LARGEST
) -> list[tuple[Sequence[Asked], str]]:
    """The questions in parts of at most `most`, each with its packed data of at most `largest` bytes.

    A question that is larger by itself is a part of its own. Raises DataError for a trace that cannot be read.
    """
    return [
        part
        for start in range(0, max(1, len(questions)), most)
        for part in _fitting(runs, questions[start : start + most], largest)
    ]


def _fitting(runs: Sequence[Paged], questions: Sequence[Asked], largest: int) -> list[tuple[Sequence[Asked], str]]:
    packed = pack(_data(runs, questions))
    if len(packed) <= largest or len(questions) < 2:
        return [(questions, packed)]
    half = len(questions) // 2
    return [*_fitting(runs, questions[:half], largest), *_fitting(runs, questions[half:], largest)]


def index_of(
    runs: Sequence[Paged], parts: Sequence[Sequence[Asked]], files: Sequence[str], here: int
) -> dict[str, Any]:
    """`{"here", "parts": [{"file", "rows"}]}`: of every question of every part what the filters look at.

    A row is `[id, order, group, answers]`, an answer `[kind, step that failed, step at fault]`, null where a run has
    none. What is not known, or not the case, is empty or null.
    """
    told = [
        {"file": file, "rows": [_row(asked, runs) for asked in part]} for file, part in zip(files, parts, strict=True)
    ]
    return {"here": here, "parts": told}


def _row(asked: Asked, runs: Sequence[Paged]) -> list[Any]:
    outcome, _ = asked.first
    answers = [
        answer and [kind_of(answer[0]), answer[0].failed_step, run.fault_of(answer[0])]
        for answer, run in zip(asked.answers, runs, strict=True)
    ]
    return [asked.id, outcome.order, outcome.group, answers]


class _Pool(list[Any]):
    """Values, each different one once; pages stay small because most cells and columns are alike."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[bytes, int] = {}

    def place(self, value: Any) -> int:
        """The place of a value, which is added if it is new."""
        place = self._places.setdefault(orjson.dumps(value), len(self))
        if place == len(self):
            self.append(value)
        return place


class _Pools:
    """What several questions may have in common, each kind in a pool of its own. Later pools name earlier by place.

    A cell is `[mark, where, holds, changes]`, a column `[chain, cells, final]`, a story its lines, `events` the
    changes of each, a reply `[key, messages, text, reasoning, model]`, a message `[role, text]`.
    """

    def __init__(self) -> None:
        self.stories, self.events, self.cells, self.columns = _Pool(), _Pool(), _Pool(), _Pool()
        self.texts, self.replies = _Pool(), _Pool()

    def column(self, column: Column) -> int:
        """The place of a perspective."""
        cells = [self.cells.place([cell.mark, cell.where, cell.holds, cell.changes]) for cell in column.cells]
        return self.columns.place([column.chain, cells, column.final])

    def reply(self, key: str, call: Mapping[str, Any] | None) -> int:
        """The place of a reply; without the call's line nothing but its key is known."""
        if call is None:
            return self.replies.place([key[:_KEY], [], None, None, None])
        messages = [[message["role"], self.texts.place(message["content"])] for message in call["messages"]]
        text, reasoning = (self.texts.place(call[name]) if call.get(name) else None for name in ("text", "reasoning"))
        return self.replies.place([key[:_KEY], messages, text, reasoning, call.get("model")])


def _data(runs: Sequence[Paged], questions: Iterable[Asked]) -> dict[str, Any]:
    """The runs, the questions in their order, and the pools."""
    pools = _Pools()
    told = [_question(asked, runs, pools) for asked in questions]
    return {"runs": [{"name": run.name, "method": run.line["method"]} for run in runs], "questions": told} | vars(pools)


def _question(asked: Asked, runs: Sequence[Paged], pools: _Pools) -> dict[str, Any]:
    _, trace = asked.first
    return {
        "id": asked.id,
        "text": trace.question,
        "choices": trace.choices,
        "gold": trace.gold,
        "story_id": trace.story_id,
        "story": pools.stories.place(trace.lines),
        "answers": [
            answer and _answer(*answer, run.calls, pools) for answer, run in zip(asked.answers, runs, strict=True)
        ],
    }


def _answer(outcome: Outcome, trace: Trace, calls: Mapping[str, Mapping[str, Any]], pools: _Pools) -> dict[str, Any]:
    told = trace.to_json()
    drawing = Drawing.of(told)
    return {
        "kind": kind_of(outcome),
        "failure": [trace.failure["step"], trace.failure["why"]] if trace.failure else None,
        "fault": _fault(trace.fault) if trace.fault else None,
        "missing": drawing.missing,
        "rules": _read(trace.oracle, drawing.rules, pools) if trace.oracle and drawing.rules else None,
        "calls": [_call(call, calls, pools) for call in trace.calls],
        **_read(told, drawing, pools),
    }


def _read(told: Mapping[str, Any], drawing: Drawing, pools: _Pools) -> dict[str, Any]:
    """What was made of a question, by the run or by the rules."""
    return {
        "chain": told.get("chain"),
        "reduced": told.get("reduced"),
        "predicted": told.get("predicted"),
        "histories": drawing.histories,
        "events": pools.events.place(drawing.events),
        "columns": [pools.column(column) for column in drawing.columns],
    }


def _fault(fault: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fault.get(name) for name in _FAULT}


def _call(call: Mapping[str, Any], calls: Mapping[str, Mapping[str, Any]], pools: _Pools) -> list[Any]:
    """The numbers of a call and the place of its reply."""
    names = ("step", "source", "prompt", "completion", "reasoning", "cached", "latency_s", "outcome")
    place = pools.reply(call["key"], calls.get(call["key"]))
    return [*(call[name] for name in names), bool(call.get("repair")), place]
