"""The page of a run, or of several: HTML files that need no network and show how each answer came about."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import fsum
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rectom.results.fault import FAULTS, UNTOLD, UNTOLD_MEANS
from rectom.results.page_data import index_of, kind_of, pack, parts_of
from rectom.results.paged import Asked, Paged, questions_of
from rectom.results.readers import has_steps
from rectom.results.summary import Score, by_order, failures
from rectom.results.values import duration

__all__ = ["Paged", "pages"]

#: The scripts of the page, in their order; together they are one.
_SCRIPTS: Final = ("nodes", "data", "address", "filters", "list", "perspectives", "calls", "answer", "main")

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
    *("temperature", "top_p", "top_k", "max_tokens", "repairs", "samples", "window", "data")
}


def pages(runs: Sequence[Paged], name: str = "report", *, most: int = 400) -> dict[str, bytes]:
    """The page of one run, or of several that are shown beside each other: file names and what goes into them.

    There is one file, `report.html`, and as many more (`report-2.html`, …) as it takes that none holds more than `most`
    questions or is larger than 5 MB. Each stands by itself and leads to the others. What is chosen stands in the
    address: `q`, the id of a question; the filters `order` (`-` for none), `outcome` (`right`, `wrong`, `failed`,
    `failed:STEP`, `disagree`), `fault` (one of `FAULTS`), `group`, `method`, `run` and `text`; `show` and `beside`, the
    runs shown; `call`, the first 12 letters of a call's key. `report.html#fault=abstraction&order=3` is a table's link.

    Whatever comes from a story, a model or a file is escaped or reaches the page as text. Raises DataError for a
    trace that cannot be read.
    """
    runs = _told_apart(runs)
    questions = questions_of(runs)
    parts = parts_of(runs, questions, most)
    held = [part for part, _ in parts]
    names = [f"{name}{f'-{number}' if number > 1 else ''}.html" for number in range(1, len(parts) + 1)]
    common = _common(runs, questions) | {"parts": list(map(_Part, names, held)), "files": names}
    return {
        names[here]: _template()
        .render(**common, here=here, data=packed, index=pack(index_of(runs, held, names, here)))
        .encode()
        for here, (_, packed) in enumerate(parts)
    }


def _told_apart(runs: Sequence[Paged]) -> list[Paged]:
    """Runs whose names differ: the second of a name gets a number."""
    seen: Counter[str] = Counter()
    found = []
    for run in runs:
        seen[run.name] += 1
        found.append(replace(run, name=f"{run.name} ({seen[run.name]})") if seen[run.name] > 1 else run)
    return found


@dataclass(frozen=True)
class _Part:
    """A file of several, and the questions in it."""

    file: str
    questions: Sequence[Asked]

    @property
    def link(self) -> str:
        """The address of the file, for one beside it."""
        return quote(self.file)


@dataclass(frozen=True)
class _Told:
    """What the head of the page tells of a run."""

    run: Paged

    @property
    def title(self) -> str:
        line = self.run.line
        method = "RecToM" if has_steps(line["method"]) else line["method"]
        return f"{method} on {line['benchmark']}/{line['subset']} with {line['model']}"

    @property
    def scores(self) -> list[tuple[str, Score]]:
        return [*by_order(self.run.outcomes, self.run.samples).items(), ("all", self.overall)]

    @property
    def overall(self) -> Score:
        return Score.of(self.run.outcomes, self.run.samples)

    @property
    def failures(self) -> dict[str, int]:
        return failures(self.run.outcomes)

    @property
    def faults(self) -> dict[str, int]:
        return _in_order(Counter(fault for outcome in self.run.outcomes if (fault := self.run.fault_of(outcome))))

    @property
    def seconds(self) -> float:
        """What the replies of all calls took, each once, one after the other."""
        calls = {call["key"]: call["latency_s"] for trace in self.run.traces for call in trace.calls}
        return fsum(calls.values())

    @property
    def settings(self) -> list[tuple[str, str]]:
        return list(_in_words(self.run.settings))


def _in_order(faults: Counter[str]) -> dict[str, int]:
    """Steps with how many answers went wrong there; none where of no answer a step is told."""
    found = {step: faults[step] for step in [*FAULTS, *sorted(faults.keys() - {*FAULTS})] if faults[step]}
    return {} if [*found] == [UNTOLD] else found


def _common(runs: Sequence[Paged], questions: Sequence[Asked]) -> dict[str, Any]:
    """What all parts of a page say."""
    told = [_Told(run) for run in runs]
    benchmarks = dict.fromkeys(f"{run.line['benchmark']}/{run.line['subset']}" for run in runs)
    title = told[0].title if len(told) == 1 else f"{len(told)} runs on {', '.join(benchmarks)}"
    return {"title": title, "runs": told, "total": len(questions), "choices": _choices(runs, questions)} | {
        "calls": _CALLS,
        "tokens": _TOKENS,
    }


def _choices(runs: Sequence[Paged], questions: Sequence[Asked]) -> dict[str, dict[str, int]]:
    """The filters, each with its values and how many questions have them; in how many runs does not matter."""
    kinds, steps, faults, methods = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for asked in questions:
        answered = [(run, answer[0]) for run, answer in zip(runs, asked.answers, strict=True) if answer]
        outcomes = [outcome for _, outcome in answered]
        kinds.update({kind_of(outcome) for outcome in outcomes})
        steps.update({outcome.failed_step for outcome in outcomes if outcome.failed_step})
        faults.update({fault for run, outcome in answered if (fault := run.fault_of(outcome))})
        methods.update({run.line["method"] for run, _ in answered})
    first = [asked.first[0] for asked in questions]
    return {
        "order": {order: score.questions for order, score in by_order(first).items()},
        "outcome": {kind: kinds[kind] for kind in ("right", "wrong", "failed")}
        | {f"failed:{step}": count for step, count in steps.most_common()},
        "fault": _in_order(faults),
        "group": dict(sorted(Counter(outcome.group for outcome in first if outcome.group).items())),
        "method": {method: methods[method] for method in dict.fromkeys(run.line["method"] for run in runs)},
        "run": {run.name: len(run.outcomes) for run in runs},
    }


@cache
def _template() -> Template:
    loader = PackageLoader("rectom.results", "page")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"csp_hash": _csp_hash, "duration": _duration, "percent": lambda share: f"{100 * share:.1f}"}
    environment.globals |= {"untold": UNTOLD, "untold_means": UNTOLD_MEANS}
    environment.globals |= {"script": Markup(_script()), "style": Markup(_file("style.css"))}  # noqa: S704
    return environment.get_template("page.html.j2")


def _duration(seconds: float) -> str:
    """`1.5 s`, or hours, minutes and seconds where it is a minute and more."""
    return f"{seconds:.1f}\xa0s" if seconds < 60 else duration(seconds).text


def _script() -> str:
    """The whole script, in a scope of its own."""
    return "\n".join(['"use strict";', "(() => {", *(_file(f"{name}.js") for name in _SCRIPTS), "})();", ""])


def _file(name: str) -> str:
    return (files("rectom.results") / "page" / name).read_text("utf-8")


def _csp_hash(script: str) -> str:
    """The source expression that lets exactly this script run, and no other."""
    return f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"


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
    if settings.get("samples", 1) > 1:
        yield "Samples", f"{settings['samples']} answers to each question"
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
    names = {"temperature": "temperature", "top_p": "top-p", "top_k": "top-k", "max_tokens": "most tokens of a reply"}
    given = [f"{said} {settings[name]}" for name, said in names.items() if settings.get(name) is not None]
    return ", ".join(given) or "as the server does by default"
