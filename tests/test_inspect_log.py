from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from rectom.errors import DataError
from rectom.results.exported import Exported
from rectom.results.folder import RunFolder
from rectom.results.inspect_log import write_log
from tests import viewers
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Lab, serving, write_stories
from tests.test_exported import CALL, reply, write_asked_run
from tests.test_finished import answer, asked

#: Reads a log in every way that inspect has, and computes its metrics anew.
_READ = """
import json, sys
from inspect_ai.log import (
    list_eval_logs, read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries, read_eval_log_samples
)
from inspect_ai.scorer import SampleScore, accuracy, mean_score, stderr
path, folder = sys.argv[1:]
log, header = read_eval_log(path), read_eval_log(path, header_only=True)
samples = list(read_eval_log_samples(path))
samples.sort(key=lambda sample: (sample.epoch, sample.id))
assert samples == log.samples, "the two readers differ"
last = samples[-1]
assert read_eval_log_sample(path, last.id, last.epoch) == last
summaries = read_eval_log_sample_summaries(path)
tries = {}
for sample in samples:
    tries.setdefault(sample.id, []).append(sample.scores["rectom"])
scores = [SampleScore(score=mean_score()(some), sample_id=name) for name, some in tries.items()]
print(json.dumps({
    "status": header.status,
    "eval": header.eval.model_dump(mode="json"),
    "metrics": {name: metric.value for name, metric in log.results.scores[0].metrics.items()},
    "computed": {"accuracy": accuracy()(scores), "stderr": stderr()(scores)},
    "reductions": [[one.sample_id, one.value] for one in log.reductions[0].samples],
    "totals": [log.results.total_samples, log.results.completed_samples, log.results.scores[0].scored_samples],
    "usage": {name: usage.model_dump() for name, usage in log.stats.model_usage.items()},
    "samples": [sample.model_dump(mode="json") for sample in samples],
    "texts": [[message.text for message in sample.messages] for sample in samples],
    "completions": [sample.output.completion for sample in samples],
    "summaries": [[one.id, one.epoch, one.scores["rectom"].value, one.completed] for one in summaries],
    "listed": [info.task for info in list_eval_logs(folder)],
}))
"""


def opened(tmp_path: Path, run: Exported) -> dict[str, Any]:
    """A run's log as inspect's own readers tell it."""
    file = tmp_path / "logs" / f"{run.name}.eval"
    write_log(run, file)
    told: dict[str, Any] = viewers.ask(tmp_path, _READ, file, file.parent)
    return told


def content(file: Path, name: str) -> Any:
    with ZipFile(file) as archive:
        return json.loads(archive.read(name))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with serving(FakeOpenAI(wrong="observe_states")) as server:
        yield Lab(folder, write_stories(folder), server)


def test_inspect_reads_every_question_and_call_of_a_run(lab: Lab, tmp_path: Path) -> None:
    done = lab.run()
    run = Exported.read(done.report.parent)
    told = opened(tmp_path, run)
    answers, calls = list(run.answers()), {call.key: call for call in run.calls()}
    assert (told["status"], told["listed"]) == ("success", ["rectom/hitom/cotp"])
    assert (told["eval"]["task"], told["eval"]["model"]) == ("rectom/hitom/cotp", "fake")
    assert told["eval"]["solver_args"] == run.settings
    assert told["metrics"]["accuracy"] == pytest.approx(run.accuracy)
    assert told["metrics"] == pytest.approx(told["computed"])
    assert told["totals"] == [len(answers)] * 3
    samples = {sample["id"]: sample for sample in told["samples"]}
    for row, keys in answers:
        sample = samples[row.id]
        assert sample["input"].split("\n") == [row.question, *row.story]
        assert (sample["choices"], sample["target"]) == (row.choices, row.gold)
        score = sample["scores"]["rectom"]
        assert (score["value"], score["answer"]) == ("C" if row.correct else "I", row.predicted)
        asked_for = [event for event in sample["events"] if event["event"] == "model"]
        assert [event["metadata"]["step"] for event in asked_for] == [calls[key].step for key in keys]
        for event, key in zip(asked_for, keys, strict=True):
            assert event["output"]["choices"][0]["message"]["content"] == calls[key].text
            assert [said["content"] for said in event["input"]] == [said.content for said in calls[key].messages]
            assert event["output"]["usage"]["total_tokens"] == calls[key].prompt_tokens + calls[key].completion_tokens
        assert sample["model_usage"]["fake"]["total_tokens"] == row.tokens
        assert sample["metadata"]["chain"] == row.chain
    assert told["usage"]["fake"]["total_tokens"] == done.line["tokens"]["billed"]
    ordered = [next(pair for pair in answers if pair[0].id == sample["id"]) for sample in told["samples"]]
    assert told["completions"] == [calls[keys[-1]].text for _, keys in ordered]
    assert [texts[-1] for texts in told["texts"]] == told["completions"]
    assert {tuple(one) for one in told["summaries"]} == {
        (row.id, 1, "C" if row.correct else "I", True) for row, _ in answers
    }


def test_the_samples_of_a_question_are_its_epochs(tmp_path: Path) -> None:
    right = {"0#1": True, "1#1": True, "0#2": False, "1#2": True}
    outcomes = [answer(int(name[0]), good, id=name) for name, good in right.items()]
    run = Exported.read(write_asked_run(tmp_path / "run", outcomes, samples=2))
    told = opened(tmp_path, run)
    assert [(sample["id"], sample["epoch"]) for sample in told["samples"]] == [("0", 1), ("1", 1), ("0", 2), ("1", 2)]
    assert told["reductions"] == [["0", 0.5], ["1", 1.0]]
    assert told["metrics"] == pytest.approx(told["computed"])
    assert told["metrics"] == {"accuracy": 0.75, "stderr": 0.25}
    assert (told["eval"]["dataset"]["samples"], told["eval"]["config"]["epochs"]) == (2, 2)
    assert told["totals"] == [4, 4, 2]


def test_a_failed_question_is_a_wrong_one_and_tells_why(tmp_path: Path) -> None:
    outcomes = [answer(0), answer(1, False, predicted=None, failed_step="chain"), answer(2, False, fault="revision")]
    fault = {"step": "revision", "found": "box", "expected": "bag", "line": 3, "who": "Anne", "by": "oracle"}
    traces = [
        asked(outcomes[0], calls=[CALL]),
        asked(outcomes[1], failure={"step": "chain", "why": "no JSON"}, calls=[{**CALL, "key": "k1"}]),
        asked(outcomes[2], fault=fault),
    ]
    replies = [reply("k0"), reply("k1", "no", outcome="truncated", source="cached", at=None)]
    told = opened(tmp_path, Exported.read(write_asked_run(tmp_path / "run", outcomes, traces, replies)))
    right, failed, wrong = (sample["scores"]["rectom"] for sample in told["samples"])
    assert (right["value"], right["explanation"]) == ("C", "")
    assert (failed["value"], failed["answer"], failed["reason"]) == ("I", None, "failed: chain")
    assert failed["explanation"] == "No answer: chain failed. no JSON"
    assert wrong["explanation"] == "It went wrong at: revision, line 3, Anne. Found box; expected bag."
    assert (told["metrics"]["accuracy"], told["totals"]) == (pytest.approx(1 / 3), [3, 3, 3])
    first, cut = (next(one for one in sample["events"] if one["event"] == "model") for sample in told["samples"][:2])
    assert (cut["error"], cut["cache"], first["error"], first["cache"]) == (
        "the reply is truncated",
        "read",
        None,
        None,
    )
    assert cut["output"]["choices"][0]["stop_reason"] == "max_tokens"
    assert first["output"]["choices"][0]["message"]["content"][0]["reasoning"] == "Hm."
    assert first["output"]["usage"] == {
        "input_tokens": 5,
        "output_tokens": 7,
        "total_tokens": 16,
        "input_tokens_cache_write": None,
        "input_tokens_cache_read": 4,
        "reasoning_tokens": 5,
        "total_cost": None,
    }
    assert told["completions"] == ["box", "no", "bag"]


def test_a_run_without_a_model_says_so(tmp_path: Path) -> None:
    run = Exported.read(write_asked_run(tmp_path / "run", [answer(0), answer(1, False)], model="rules"))
    told = opened(tmp_path, run)
    assert (told["eval"]["model"], told["usage"]) == ("none/none", {})
    assert (told["completions"], told["texts"]) == (["box", "bag"], [[], []])


def test_the_same_run_becomes_the_same_bytes_as_inspect_lays_them_out(lab: Lab, tmp_path: Path) -> None:
    run = Exported.read(lab.run().report.parent)
    files = [tmp_path / "a.eval", tmp_path / "b.eval"]
    for file in files:
        write_log(run, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    with ZipFile(files[0]) as archive:
        names = archive.namelist()
    others = ["_journal/start.json", "_journal/summaries/1.json", "summaries.json", "reductions.json", "header.json"]
    assert names == [*(f"samples/{row.id}_epoch_1.json" for row, _ in run.answers()), *others]
    assert [content(files[0], name)["version"] for name in ("header.json", "_journal/start.json")] == [2, 2]


def test_the_calls_of_a_step_stand_in_its_span_and_time_goes_on(lab: Lab, tmp_path: Path) -> None:
    run = Exported.read(lab.run().report.parent)
    write_log(run, tmp_path / "a.eval")
    row, keys = max(run.answers(), key=lambda answer: len(answer[1]))
    events = content(tmp_path / "a.eval", f"samples/{row.id}_epoch_1.json")["events"]
    spans = {event["id"]: event["name"] for event in events if event["event"] == "span_begin"}
    inside = [event for event in events if event["event"] == "model"]
    assert len(inside) == len(keys) > len(spans) > 1
    assert all(spans[event["span_id"]] == event["metadata"]["step"] for event in inside)
    assert (events[0]["event"], events[-1]["event"]) == ("sample_init", "score")
    assert (events[0]["span_id"], events[-1]["span_id"]) == (None, None)
    assert len({event["uuid"] for event in events}) == len(events)
    working = [event["working_start"] for event in events]
    assert working == sorted(working)
    assert working[-1] == pytest.approx(sum(event["working_time"] for event in inside))


def test_a_damaged_run_leaves_no_log(tmp_path: Path) -> None:
    folder = write_asked_run(tmp_path / "run", [answer(0)], [asked(answer(0), calls=[CALL])])
    file = tmp_path / "logs" / "run.eval"
    with pytest.raises(DataError, match="does not keep 1 of its calls"):
        write_log(Exported.read(folder), file)
    RunFolder(folder).write_calls([reply("k0")])
    (folder / "traces.jsonl").write_text("")
    with pytest.raises(DataError, match="damaged"):
        write_log(Exported.read(folder), file)
    assert not list(file.parent.iterdir())
