from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rectom.errors import DataError
from rectom.results.exported import Exported
from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome, Trace
from rectom.results.statistics import wilson
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Lab, serving, write_stories
from tests.test_finished import SETTINGS, answer, asked, write_run

#: A call as a trace names it.
CALL = {"step": "cot", "key": "k0", "source": "sent", "prompt": 9, "completion": 7, "reasoning": 5, "cached": 4}
CALL |= {"latency_s": 0.25, "outcome": "ok", "repair": False}
TIMES: dict[str, Any] = {
    "started": "2026-01-02T03:04:05+00:00",
    "ended": "2026-01-02T03:05:05+00:00",
    "versions": {"rectom": "9.9"},
}


def reply(key: str, text: str | None = "box", **changes: Any) -> dict[str, Any]:
    """A call as `calls.jsonl.gz` keeps it, in which `reasoning` are the words and not their number."""
    said = {"messages": [{"role": "user", "content": "Where?"}], "text": text, "reasoning": "Hm.", "model": "served"}
    return {**CALL, "key": key, **said, "at": 1767323050.5, **changes}


def write_asked_run(
    folder: Path,
    outcomes: Sequence[Outcome],
    traces: Sequence[Trace] | None = None,
    replies: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> Path:
    """The folder of a run whose model was asked, with times."""
    write_run(folder, outcomes, traces, {**SETTINGS, "model": "m/1", "method": "cot", **settings}, **TIMES)
    RunFolder(folder).write_calls(replies)
    return folder


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with serving(FakeOpenAI(wrong="observe_states")) as server:
        yield Lab(folder, write_stories(folder), server)


def test_a_real_run_comes_out_question_by_question_and_call_by_call(lab: Lab) -> None:
    done = lab.run()
    run = Exported.read(done.report.parent)
    results, traces = lab.results(done), lab.traces(done)
    answers = list(run.answers())
    assert len(answers) == SMALL_QUESTIONS
    for (row, keys), line in zip(answers, results, strict=True):
        trace = traces[line["id"]]
        assert {name: getattr(row, name) for name in line} == line
        assert (row.question, row.choices, row.story) == (trace["question"], trace["choices"], trace["lines"])
        assert (row.chain, row.reduced) == (trace["chain"], trace["reduced"])
        assert keys == [call["key"] for call in trace["calls"]]
        assert (row.run, row.model, row.method, row.benchmark) == (run.name, "fake", "rectom", "hitom/cotp")
    calls = list(run.calls())
    assert len({call.key for call in calls}) == len(calls) == done.line["calls"]["sent"]
    for call in calls:
        assert call.questions == [row.id for row, keys in answers if call.key in keys]
        assert json.loads(call.text or "")
        assert [said.role for said in call.messages] == ["system", "user"]
    assert sum(call.prompt_tokens for call in calls) == done.line["tokens"]["prompt"]
    assert {call.served_by for call in calls} == {"fake"}


def test_a_run_without_a_model_has_no_calls(lab: Lab) -> None:
    run = Exported.read(lab.run(model="rules", readers={}).report.parent)
    assert (run.model, list(run.calls())) == ("rules", [])
    assert len(list(run.answers())) == SMALL_QUESTIONS


def test_the_tokens_that_a_model_thought_stand_beside_what_it_thought(tmp_path: Path) -> None:
    traces = [asked(answer(0), calls=[CALL, CALL]), asked(answer(1), calls=[CALL])]
    run = Exported.read(write_asked_run(tmp_path / "run", [answer(0), answer(1)], traces, [reply("k0")]))
    [call] = run.calls()
    assert (call.reasoning, call.reasoning_tokens, call.prompt_tokens, call.completion_tokens) == ("Hm.", 5, 9, 7)
    assert (call.cached_tokens, call.model, call.served_by, call.questions) == (4, "m/1", "served", ["0", "1"])
    assert call.at == datetime(2026, 1, 2, 3, 4, 10, 500_000, UTC)


def test_faults_and_failures_are_told_in_columns(tmp_path: Path) -> None:
    outcomes = [answer(0, False, fault="revision"), answer(1, False, predicted=None, failed_step="chain")]
    fault = {"step": "revision", "found": "box", "expected": "bag", "line": 3, "who": "Anne", "by": "oracle"}
    traces = [asked(outcomes[0], fault=fault), asked(outcomes[1], failure={"step": "chain", "why": "no JSON"})]
    run = Exported.read(write_asked_run(tmp_path / "run", outcomes, traces))
    wrong, failed = (row for row, _ in run.answers())
    assert (wrong.fault, wrong.fault_line, wrong.fault_who, wrong.fault_by) == ("revision", 3, "Anne", "oracle")
    assert (wrong.fault_found, wrong.fault_expected, wrong.failed_why) == ("box", "bag", None)
    assert (failed.failed_step, failed.failed_why, failed.fault, failed.predicted) == ("chain", "no JSON", "", None)
    assert (run.questions, run.correct, run.failed) == (2, 0, 1)


def test_samples_do_not_narrow_the_interval(tmp_path: Path) -> None:
    outcomes = [answer(number, number < 3, id=f"{number}#{sample}") for number in range(4) for sample in (1, 2, 3)]
    run = Exported.read(write_asked_run(tmp_path / "run", outcomes, samples=3))
    assert (run.questions, run.accuracy, run.interval) == (12, 0.75, wilson(0.75, 4))


def test_the_tries_of_a_ballot_do_not_narrow_the_interval(tmp_path: Path) -> None:
    outcomes = [
        answer(number, number < 3, id=f"{number}/{place}#{sample}", ballot=f"{number}#{sample}")
        for sample in (1, 2)
        for number in range(4)
        for place in range(5)
    ]
    folder = write_asked_run(tmp_path / "run", outcomes, samples=2)
    run = Exported.read(folder)
    assert (run.questions, run.different, run.interval) == (40, 4, wilson(0.75, 4))
    manifest = run.folder.manifest()
    del manifest["summary"]["different"]  # as older runs wrote it
    run.folder.write_manifest(manifest)
    assert Exported.read(folder).different == 20


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_an_unfinished_run_is_refused(tmp_path: Path, state: str) -> None:
    folder = write_run(tmp_path / "run", [answer(0)], state=state)
    with pytest.raises(DataError, match=f"run is not finished but {state}: run its command to the end"):
        Exported.read(folder)


def test_a_manifest_without_times_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [answer(0)], settings={**SETTINGS, "model": "m"})
    with pytest.raises(DataError, match=r"manifest\.json: started: Field required; run the same command again"):
        Exported.read(folder)


def test_files_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    one, two = answer(0), answer(1)
    for number, (outcomes, traces) in enumerate(
        [([one, two], [asked(one)]), ([one], [asked(one), asked(two)]), ([one, two], [asked(two), asked(one)])]
    ):
        run = Exported.read(write_asked_run(tmp_path / str(number), outcomes, traces))
        with pytest.raises(DataError, match="is damaged: its files do not agree"):
            list(run.answers())
    run = replace(Exported.read(write_asked_run(tmp_path / "short", [one, two])), questions=3)
    with pytest.raises(DataError, match="is damaged"):
        list(run.answers())


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("results.jsonl", b'{"id": "0", "corr', "is not JSON"),
        ("results.jsonl", b"[]", "row 1: not a mapping"),
        ("results.jsonl", b'{"id": "0", "correct": 7}', "results.jsonl, row 1: "),
        ("traces.jsonl", b'{"id": "0", "calls": [{"key": 1}]}', "traces.jsonl, row 1: "),
    ],
    ids=["torn", "no mapping", "no outcome", "no trace"],
)
def test_a_damaged_line_is_named(tmp_path: Path, name: str, line: bytes, said: str) -> None:
    folder = write_asked_run(tmp_path / "run", [answer(0)])
    (folder / name).write_bytes(line)
    with pytest.raises(DataError, match=f"{said}.*run the same command again to mend it"):
        list(Exported.read(folder).answers())


def test_calls_that_are_missing_or_unknown_are_not_passed_over(tmp_path: Path) -> None:
    traces = [asked(answer(0), calls=[CALL, {**CALL, "key": "k1"}])]
    folder = write_asked_run(tmp_path / "run", [answer(0)], traces, [reply("k0")])
    with pytest.raises(DataError, match="does not keep 1 of its calls: run the same command again"):
        list(Exported.read(folder).calls())
    RunFolder(folder).write_calls([reply("k0"), reply("k1"), reply("k2")])
    with pytest.raises(DataError, match="is damaged"):
        list(Exported.read(folder).calls())
    (folder / "calls.jsonl.gz").unlink()
    with pytest.raises(DataError, match="does not keep 2 of its calls"):
        list(Exported.read(folder).calls())
