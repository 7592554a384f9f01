"""The page of a run: one HTML file that needs no network and shows how each answer came about."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rectom.results.drawing import Drawing
from rectom.results.outcome import Outcome, Trace
from rectom.results.summary import Score, by_order, failures

#: What the counts of the summary line mean.
_CALLS: Final = {
    "sent": "requests that went to the server",
    "cached": "different replies that were in the store before",
    "shared": "further asks for a reply that another question of the run had asked for",
    "retried": "requests sent again after a fault",
}
_TOKENS: Final = {
    "prompt": "in the prompts of the different replies, whenever they were paid for",
    "completion": "in those replies",
    "reasoning": "of these, spent on reasoning",
    "cached": "of the prompts, those that the server's own cache held",
    "billed": "prompt and completion, what this run paid for",
    "standalone": "what the questions would have cost if none had shared anything (the paper's measure)",
}

#: Settings that are told in a sentence of their own; all others are listed as they are.
_TOLD: Final = frozenset({"benchmark", "limit", "method", "rules", "readers", "model", "identity", "revision"}) | {
    *("temperature", "top_p", "top_k", "max_tokens", "repairs", "window", "data")
}


def page(
    line: Mapping[str, Any], settings: Mapping[str, Any], outcomes: Sequence[Outcome], traces: Sequence[Trace]
) -> str:
    """The page. `line` is the summary line, `settings` those of the manifest, a trace goes with each outcome.

    Whatever comes from a story, a model or a file is escaped or reaches the page as text. Raises DataError for a
    trace that cannot be read.
    """
    return _template().render(
        title="RecToM" if line["method"].startswith("rectom") else line["method"],
        line=line,
        settings=list(_in_words(settings)),
        scores=[*by_order(outcomes).items(), ("all", Score.of(outcomes))],
        overall=Score.of(outcomes),
        failures=failures(outcomes),
        kinds={kind: sum(_kind(outcome) == kind for outcome in outcomes) for kind in ("right", "wrong", "failed")},
        calls=_CALLS,
        tokens=_TOKENS,
        data=_embedded(_data(outcomes, traces)),
    )


@cache
def _template() -> Template:
    loader = PackageLoader("rectom.results", "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"csp_hash": _csp_hash, "percent": lambda share: f"{100 * share:.1f}"}
    return environment.get_template("report.html.j2")


def _csp_hash(script: str) -> str:
    """The source expression that lets exactly this script run, and no other."""
    return f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"


def _embedded(data: Mapping[str, Any]) -> Markup:
    """JSON that can stand in a script element: nothing in it can end the element or begin a comment."""
    return Markup(orjson.dumps(data).decode().replace("<", "\\u003c"))  # noqa: S704


def _in_words(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a run was asked to do, as label and sentence."""
    limit = settings.get("limit")
    yield (
        "Benchmark",
        f"{settings.get('benchmark')}, {f'the first {limit} questions' if limit else 'all its questions'}",
    )
    yield "Method", str(settings.get("method"))
    yield from _readers(settings.get("readers") or {})
    if "rules" in settings:
        yield "Rules", f"{settings['rules']}: what characters observe and whom they believe"
    if "identity" in settings:
        yield "Model", _identity(settings)
        yield "Sampling", _sampling(settings)
    if "identity" in settings and "readers" in settings:
        window = settings.get("window")
        yield "Abstraction", f"{window} lines at a time" if window else "the whole story at once"
        yield (
            "Repairs",
            f"a reply that breaks a rule of its step is asked for again, {settings.get('repairs')} times at most",
        )
    yield "Data", f"sha256 {str(settings.get('data'))[:16]}…"
    for name in sorted(settings.keys() - _TOLD):
        yield name, str(settings[name])


def _readers(readers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    labels = {"model": "By the model", "rules": "By rule", "either": "By rule, else by the model"}
    for kind in dict.fromkeys(readers.values()):
        steps = [step for step, reader in readers.items() if reader == kind]
        yield labels.get(kind, f"By {kind}"), "every step" if len(steps) == len(readers) else ", ".join(steps)


def _identity(settings: Mapping[str, Any]) -> str:
    name, identity, revision = (settings.get(field) for field in ("model", "identity", "revision"))
    told = [str(name)]
    if identity != name:
        told.append(f"declared to be {identity}")
    if revision:
        told.append(f"revision {revision}")
    return ", ".join(told)


def _sampling(settings: Mapping[str, Any]) -> str:
    names = {"temperature": "temperature", "top_p": "top-p", "top_k": "top-k", "max_tokens": "at most tokens"}
    given = [f"{said} {settings[name]}" for name, said in names.items() if settings.get(name) is not None]
    return ", ".join(given) or "as the server does by default"


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


def _data(outcomes: Iterable[Outcome], traces: Iterable[Trace]) -> dict[str, Any]:
    """`{"cells", "columns", "stories", "questions"}`; questions name columns and stories by place, columns cells.

    A cell is `[mark, where, holds, changes]`, a column `[chain, cells, final]`, a story `[lines, events]`.
    """
    cells, columns, stories = _Pool(), _Pool(), _Pool()
    questions = []
    for outcome, trace in zip(outcomes, traces, strict=True):
        drawing = Drawing.of(trace.to_json())
        placed = [
            columns.place(
                [
                    column.chain,
                    [cells.place([cell.mark, cell.where, cell.holds, cell.changes]) for cell in column.cells],
                    column.final,
                ]
            )
            for column in drawing.columns
        ]
        questions.append(
            {
                "id": trace.id,
                "order": outcome.order,
                "kind": _kind(outcome),
                "text": trace.question,
                "choices": trace.choices,
                "gold": outcome.gold,
                "predicted": outcome.predicted,
                "failure": [trace.failure["step"], trace.failure["why"]] if trace.failure else None,
                "tokens": outcome.tokens,
                "chain": trace.chain,
                "reduced": trace.reduced,
                "thing": drawing.thing,
                "histories": drawing.histories,
                "missing": drawing.missing,
                "story_id": trace.story_id,
                "story": stories.place([drawing.lines, drawing.events]),
                "columns": placed,
                "calls": list(map(_call, trace.calls)),
            }
        )
    return {"cells": cells, "columns": columns, "stories": stories, "questions": questions}


def _kind(outcome: Outcome) -> str:
    if outcome.failed_step:
        return "failed"
    return "right" if outcome.correct else "wrong"


def _call(call: Mapping[str, Any]) -> list[Any]:
    names = ("step", "source", "prompt", "completion", "cached", "latency_s", "outcome")
    return [*(call[name] for name in names), call["key"][:12]]
