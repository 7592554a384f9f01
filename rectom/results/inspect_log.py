"""A run as a log of inspect_ai, version 2 of its format: a zip of JSON files, with a sample a question.

A sample holds the conversation of the question's last call as its messages, and an event for each of its calls. The
answers are the words of the options, not letters. What several questions share is told with each of them, but counted
once in the usage of the whole log. The same run always becomes the same bytes.

Source: `EvalLog` and `EvalSample` in `inspect_ai/log/_log.py`, and the files that its recorder writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import groupby
from math import fsum
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryFile
from typing import IO, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson

from rectom.results.export import whole
from rectom.results.exported import Answer, Asked, Exported

_VERSION: Final = 2

#: The name of the score, and of what gave it.
SCORER: Final = "rectom"

#: What inspect calls the model of an evaluation that asks none.
_NONE: Final = "none/none"

#: Characters of a sample's input in the summaries, from which a viewer makes its list.
_LONGEST: Final = 5120

_STOPPED: Final = {"ok": "stop", "truncated": "max_tokens", "filtered": "content_filter"}

#: What the manifest's settings are called among inspect's of a model.
_SAMPLING: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed")

Json = dict[str, Any]


def write_log(run: Exported, path: Path) -> None:
    """Write a run as one `.eval` file. Raises DataError if the run is damaged, SettingsError if there is no room."""
    with whole(path) as part, TemporaryFile() as spool, ZipFile(part, "w", ZIP_DEFLATED) as archive:
        log, replies = _Log(run, archive), _Replies(run.calls(), spool)
        summaries = []
        for answer, keys in run.answers():
            sample = _sample(run, answer, [replies[key] for key in keys])
            log.add(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary(sample))
        questions = _questions(summaries)
        start = {"eval": _spec(run, list(questions)), "plan": _plan(run)}
        log.add("_journal/start.json", {"version": _VERSION, **start})
        log.add("_journal/summaries/1.json", summaries)
        log.add("summaries.json", summaries)
        log.add("reductions.json", [{"scorer": SCORER, "samples": list(map(_reduced, questions, questions.values()))}])
        results = _results(len(summaries), [_mean(scores) for scores in questions.values()])
        ended = {"results": results, "stats": _stats(run, replies.usage)}
        log.add("header.json", {"version": _VERSION, "status": "success", **start, **ended})


class _Log:
    """The zip file that a run becomes; what is in it bears the time at which the run ended."""

    def __init__(self, run: Exported, archive: ZipFile) -> None:
        self._time = (*run.ended.timetuple()[:6],)
        self._archive = archive

    def add(self, name: str, value: object) -> None:
        info = ZipInfo(name, self._time)
        info.compress_type = ZIP_DEFLATED
        self._archive.writestr(info, orjson.dumps(value))


class _Replies:
    """The calls of a run by their keys, kept in a file while they are looked up; `usage` is that of all together."""

    def __init__(self, calls: Iterable[Asked], file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[str, tuple[int, int]] = {}
        self.usage: Json = {}
        for call in calls:
            data = call.model_dump_json().encode()
            self._places[call.key] = self._file.tell(), len(data)
            self._file.write(data)
            self.usage = _sum([self.usage, _usage(call)])

    def __getitem__(self, key: str) -> Asked:
        place, length = self._places[key]
        self._file.seek(place)
        return Asked.model_validate_json(self._file.read(length))


def _sample(run: Exported, answer: Answer, calls: Sequence[Asked]) -> Json:
    """`EvalSample`."""
    name, epoch = _epoch(run, answer.id)
    begun = min((_begun(run, call) for call in calls), default=run.started)
    seconds = round(fsum(call.latency_s for call in calls), 4)
    sample: Json = {
        "id": name,
        "epoch": epoch,
        # The viewer lists the first lines of a sample, and the questions about one story have theirs in common.
        "input": "\n".join([answer.question, *answer.story]),
        "choices": answer.choices or None,
        "target": answer.gold or "",
        "messages": [*_messages(calls[-1]), _reply(calls[-1])] if calls else [],
        "output": _output(run, calls[-1]) if calls else _said_by_rule(answer),
        "scores": {SCORER: _score(answer)},
        "metadata": _metadata(answer),
        "store": {},
        "model_usage": {_model(run): _sum(map(_usage, calls))} if calls else {},
        "role_usage": {},
        "started_at": _iso(begun),
        "completed_at": _iso(max((_ended(run, call) for call in calls), default=run.started)),
        "total_time": seconds,
        "working_time": seconds,
        "uuid": _identifier(run.name, answer.id),
        "error_retries": [],
        "attachments": {},
        "turn_count": len(calls),
    }
    return {**sample, "events": list(_events(run, sample, calls))}


def _epoch(run: Exported, question: str) -> tuple[str, int]:
    """The question's own id, and the number of its sample."""
    numbered = re.fullmatch(r"(.*)#(\d+)", question, re.DOTALL) if run.samples > 1 else None
    return (numbered[1], int(numbered[2])) if numbered else (question, 1)


def _metadata(answer: Answer) -> Json:
    shown = ("story_id", "order", "group", "chain", "reduced", "failed_step", "fault", "calls", "tokens")
    return answer.model_dump(include=set(shown))


def _score(answer: Answer) -> Json:
    """`Score`: a question that failed is wrong, as everywhere in RecToM."""
    return {
        "value": "C" if answer.correct else "I",
        "answer": answer.predicted,
        "explanation": _explanation(answer),
        "reason": f"failed: {answer.failed_step}" if answer.failed_step else None,
        "history": [],
    }


def _explanation(answer: Answer) -> str:
    """What is known of why the answer is as it is, in words."""
    if answer.failed_step:
        return f"No answer: {answer.failed_step} failed. {answer.failed_why or ''}".rstrip()
    if answer.correct or not answer.fault:
        return "" if answer.correct else "Wrong; nothing tells where it went wrong."
    line = f", line {answer.fault_line}" if answer.fault_line else ""
    who = f", {answer.fault_who}" if answer.fault_who else ""
    told = [f"It went wrong at: {answer.fault}{line}{who}."]
    if answer.fault_by:
        told.append(f"Found {answer.fault_found or 'nothing'}; expected {answer.fault_expected or 'nothing'}.")
    return " ".join(told)


def _events(run: Exported, sample: Json, calls: Sequence[Asked]) -> Iterator[Json]:
    """What happened, in spans as inspect's viewer nests them: the calls under their steps, and the score."""
    event = _Events(sample["uuid"])
    begun, ended = sample["started_at"], sample["completed_at"]
    shown = ("id", "input", "choices", "target", "metadata")
    with_words = [{"role": "user", "content": sample["input"], "source": "input"}]
    state: Json = {"messages": with_words, "tools": [], "tool_choice": None, "store": {}, "completed": False}
    state |= {"output": {"model": _model(run), "choices": [], "completion": ""}, "metadata": sample["metadata"]}
    yield event(begun, 0, "sample_init", sample={name: sample[name] for name in shown}, state=state)
    spent = 0.0
    for step, together in groupby(calls, key=lambda call: call.step):
        span = event.begin()
        asked = list(together)
        yield event(_iso(_begun(run, asked[0])), spent, "span_begin", id=span, type="solver", name=step)
        for call in asked:
            yield event(_iso(_begun(run, call)), spent, "model", **_call(run, call))
            spent = round(spent + call.latency_s, 4)
        yield event(_iso(_ended(run, asked[-1])), spent, "span_end", id=span)
        event.end()
    yield event(ended, spent, "score", score=sample["scores"][SCORER], target=sample["target"], scorer=SCORER)


class _Events:
    """`BaseEvent`s of one sample, numbered, each in the span that is open."""

    def __init__(self, sample: str) -> None:
        self._sample = sample
        self._count = 0
        self._span: str | None = None

    def __call__(self, at: str, spent: float, kind: str, **more: object) -> Json:
        self._count += 1
        name = f"{self._sample}-{self._count}"
        return {"uuid": name, "span_id": self._span, "timestamp": at, "working_start": spent, "event": kind, **more}

    def begin(self) -> str:
        self._span = f"{self._sample}-span-{self._count}"
        return self._span

    def end(self) -> None:
        self._span = None


def _call(run: Exported, call: Asked) -> Json:
    """The fields of `ModelEvent`."""
    return {
        "model": _model(run),
        "input": _messages(call),
        "tools": [],
        "tool_choice": "none",
        "config": _config(run),
        "output": _output(run, call),
        "error": None if call.outcome == "ok" else f"the reply is {call.outcome}",
        "cache": "read" if call.source == "cached" else None,
        "completed": _iso(_ended(run, call)),
        "working_time": call.latency_s,
        "metadata": {"step": call.step, "repair": call.repair, "key": call.key, "questions": len(call.questions)},
    }


def _messages(call: Asked) -> list[Json]:
    """`ChatMessage`s: what was said to the model."""
    return [
        {"id": f"{call.key[:22]}-{number}", "role": said.role, "content": said.content, "source": "input"}
        for number, said in enumerate(call.messages)
    ]


def _reply(call: Asked) -> Json:
    text = call.text or ""
    thought = [{"type": "reasoning", "reasoning": call.reasoning}, {"type": "text", "text": text}]
    return {
        "id": f"{call.key[:22]}-reply",
        "role": "assistant",
        "content": thought if call.reasoning else text,
        "source": "generate",
        "model": call.served_by or call.model,
    }


def _output(run: Exported, call: Asked) -> Json:
    """`ModelOutput`."""
    stopped = {"message": _reply(call), "stop_reason": _STOPPED.get(call.outcome, "unknown")}
    told = {"completion": call.text or "", "usage": _usage(call), "time": call.latency_s}
    return {"model": call.served_by or _model(run), "choices": [stopped], **told}


def _said_by_rule(answer: Answer) -> Json:
    """`ModelOutput` of a question for which no model was asked."""
    text = answer.predicted or ""
    message = {"role": "assistant", "content": text, "source": "generate"}
    return {"model": _NONE, "choices": [{"message": message, "stop_reason": "stop"}], "completion": text}


def _usage(call: Asked) -> Json:
    """`ModelUsage`, whose input tokens are those that were not read from the server's cache."""
    return {
        "input_tokens": max(call.prompt_tokens - call.cached_tokens, 0),
        "output_tokens": call.completion_tokens,
        "total_tokens": call.prompt_tokens + call.completion_tokens,
        "input_tokens_cache_read": call.cached_tokens,
        "reasoning_tokens": call.reasoning_tokens,
    }


def _sum(usages: Iterable[Mapping[str, int]]) -> Json:
    total: Json = {}
    for usage in usages:
        total = {name: total.get(name, 0) + tokens for name, tokens in usage.items()}
    return total


def _summary(sample: Json) -> Json:
    """`EvalSampleSummary`: a line of the viewer's list."""
    dropped = {"messages", "output", "store", "events", "attachments", "error_retries"}
    kept = {name: value for name, value in sample.items() if name not in dropped}
    more = {"completed": True, "retries": 0, "message_count": len(sample["messages"])}
    return {**kept, "input": sample["input"][:_LONGEST], **more}


def _questions(summaries: Iterable[Json]) -> dict[str, list[Json]]:
    """The scores of each question in its epochs."""
    found: dict[str, list[Json]] = {}
    for summary in summaries:
        found.setdefault(summary["id"], []).append(summary["scores"][SCORER])
    return found


def _mean(scores: Sequence[Json]) -> float:
    return [score["value"] for score in scores].count("C") / len(scores)


def _reduced(question: str, scores: Sequence[Json]) -> Json:
    """`EvalSampleScore`: the mean of a question's epochs."""
    return {**scores[0], "value": _mean(scores), "sample_id": question}


def _results(samples: int, values: Sequence[float]) -> Json:
    """`EvalResults`, with the mean and its standard error over the questions as inspect's own metrics compute them."""
    figures = {
        "accuracy": fsum(values) / len(values) if values else 0.0,
        "stderr": stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0,
    }
    score = {
        "name": SCORER,
        "scorer": SCORER,
        "reducer": "mean",
        "scored_samples": len(values),
        "unscored_samples": 0,
        "params": {},
        "metrics": {name: {"name": name, "value": value, "params": {}} for name, value in figures.items()},
    }
    headline = {"scorer": SCORER, "score": SCORER, "metric": "accuracy"}
    return {"total_samples": samples, "completed_samples": samples, "scores": [score], "headline": headline}


def _spec(run: Exported, questions: Sequence[str]) -> Json:
    """`EvalSpec`."""
    metrics = [{"name": f"inspect_ai/{name}", "options": {}} for name in ("accuracy", "stderr")]
    return {
        "eval_id": _identifier("eval", run.name, _iso(run.started)),
        "run_id": _identifier("run", run.name, _iso(run.started)),
        "created": _iso(run.started),
        "task": f"rectom/{run.benchmark}",
        "task_id": _identifier("task", run.benchmark, run.settings.get("data")),
        "task_version": 0,
        "task_display_name": run.benchmark,
        "task_attribs": {},
        "task_args": {},
        "task_args_passed": {},
        "solver": f"rectom/{run.method}",
        "solver_args": run.settings,
        "solver_args_passed": run.settings,
        "tags": [run.method],
        "dataset": {
            "name": run.benchmark,
            "samples": len(questions),
            "sample_ids": questions,
            "shuffled": False,
        },
        "model": _model(run),
        "model_generate_config": _config(run),
        "model_args": {},
        "config": {"epochs": run.samples, "epochs_reducer": ["mean"], "log_samples": True},
        "packages": {"rectom": run.version},
        "metadata": {"run": run.name, "revision": run.revision},
        "scorers": [{"name": SCORER, "options": {}, "metrics": metrics, "metadata": {}}],
    }


def _plan(run: Exported) -> Json:
    """`EvalPlan`."""
    step = {"solver": f"rectom/{run.method}", "params": run.settings, "params_passed": run.settings}
    return {"name": "plan", "steps": [step], "config": _config(run)}


def _stats(run: Exported, usage: Json) -> Json:
    """`EvalStats`."""
    return {
        "started_at": _iso(run.started),
        "completed_at": _iso(run.ended),
        "model_usage": {_model(run): usage} if usage else {},
        "role_usage": {},
    }


def _model(run: Exported) -> str:
    return _NONE if run.model == "rules" else run.model


def _config(run: Exported) -> Json:
    """`GenerateConfig`, as far as the settings say."""
    return {name: run.settings[name] for name in _SAMPLING if run.settings.get(name) is not None}


def _ended(run: Exported, call: Asked) -> datetime:
    return call.at or run.started


def _begun(run: Exported, call: Asked) -> datetime:
    return _ended(run, call) - timedelta(seconds=call.latency_s)


def _iso(time: datetime) -> str:
    return time.isoformat()


def _identifier(*parts: object) -> str:
    """An identifier like inspect's, which is the same whenever the same run is exported."""
    return sha256(orjson.dumps(list(map(str, parts)))).hexdigest()[:22]
