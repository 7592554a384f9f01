"""Whole runs in which a step is answered wrongly: every wrong answer is put down to that step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cache import Store
from flows import oracle
from flows.evaluate import Evaluated
from flows.pipeline import pipeline, run_plainly, shards
from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError
from rectom.events import Event
from rectom.reader.base import STEPS, SharedReader
from rectom.reader.tomi import TomiReader
from rectom.results.folder import RunFolder
from rectom.story import Story
from tasks.run import Run, running
from tests import cases
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Lab, serving, write_stories
from tests.method_cases import TOMI

#: The step that is answered wrongly, the settings in which it is asked, and what it is called where it is at fault.
PLANTED = {
    "abstract": ({}, "abstraction"),
    "chain": ({}, "chain"),
    "observe_states": ({}, "state observability"),
    "observe_events": ({}, "event observability"),
    "revise": ({}, "revision"),
    "reduce": ({}, "reduction"),
    "answer": ({}, "answer"),
    "update": ({"update": "model"}, "update"),
    "observe_history": ({"state": "off"}, "event observability"),
    "answer_history": ({"state": "off"}, "answer"),
}

FRESH: dict[str, Any] = {"benchmark": "fresh", "subset": "small", "data": None}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI()) as server:
        yield Lab(tmp_path, write_stories(tmp_path), server)


def faults(lab: Lab, **settings: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The wrong lines of a run's results, and their traces."""
    return faults_of(lab, lab.run(**settings))


def faults_of(lab: Lab, done: Evaluated) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same of a run that was done."""
    wrong = [line for line in lab.results(done) if not line["correct"]]
    traces = lab.traces(done)
    return wrong, [traces[line["id"]] for line in wrong]


@pytest.mark.parametrize("step", list(PLANTED))
def test_a_wrong_answer_is_put_down_to_the_step_that_was_planted(lab: Lab, step: str) -> None:
    settings, name = PLANTED[step]
    lab.server.wrong = step
    done = lab.run(**FRESH, **settings)
    wrong, traces = faults_of(lab, done)
    assert wrong
    assert {line["fault"] for line in wrong} == {name}
    rows = (done.report.parent / "tables" / "faults.csv").read_text().splitlines()
    assert rows[0].split(",")[0] == "went wrong at"
    assert [(row.split(",")[0], row.split(",")[-1]) for row in rows[1:]] == [(name, str(len(wrong)))]
    assert {trace["fault"]["step"] for trace in traces} == {name}
    assert all(trace["oracle"]["predicted"] == trace["gold"] for trace in traces)
    if name in {"state observability", "event observability", "revision"}:
        assert all(trace["fault"]["who"] in trace["chain"] for trace in traces)
        assert all(1 <= trace["fault"]["line"] <= len(trace["lines"]) for trace in traces)


@pytest.mark.parametrize("step", ["abstract", "chain", "revise", "answer"])
def test_a_step_that_failed_is_at_fault_itself(lab: Lab, step: str) -> None:
    lab.server.broken = step
    wrong, traces = faults(lab, **FRESH, repairs=0)
    failed = [trace["fault"] for line, trace in zip(wrong, traces, strict=True) if line["failed_step"]]
    assert failed
    assert {(fault["step"], fault["by"]) for fault in failed} == {(PLANTED[step][1], "failure")}
    assert all("no usable reply in 1 tries" in fault["found"] for fault in failed)


def test_a_run_that_is_right_has_no_table_and_no_oracles(lab: Lab) -> None:
    done = lab.run(**FRESH)
    assert not (done.report.parent / "tables" / "faults.csv").exists()
    assert {line["fault"] for line in lab.results(done)} == {""}
    assert all(trace["oracle"] is trace["fault"] is None for trace in lab.traces(done).values())


def test_nothing_is_stored_or_sent_and_a_rerun_says_the_same(lab: Lab) -> None:
    lab.server.wrong = "answer"
    done = lab.run(**FRESH)
    sent = lab.server.asked.total()
    with Store(lab.store) as store:
        counted = store.count()
    before = {name: (trace["fault"], trace["oracle"]) for name, trace in lab.traces(done).items()}
    again = lab.run(**FRESH)
    assert {name: (trace["fault"], trace["oracle"]) for name, trace in lab.traces(again).items()} == before
    assert lab.server.asked.total() == sent
    with Store(lab.store) as store:
        assert store.count() == counted


def test_samples_have_theirs_each(lab: Lab) -> None:
    lab.server.wrong = "reduce"
    wrong, _ = faults(lab, **FRESH, samples=2)
    assert {line["id"].partition("#")[2] for line in wrong} == {"1", "2"}
    assert {line["fault"] for line in wrong} == {"reduction"}


def test_other_methods_and_rules_alone_have_none(lab: Lab) -> None:
    for settings in ({"method": "cot"}, {"model": "rules", "rules": "literal"}):
        wrong, traces = faults(lab, **FRESH, **settings)
        assert wrong
        assert {line["fault"] for line in wrong} == {""}
        assert all(trace["fault"] is None for trace in traces)


def test_a_permuted_story_is_read_by_rule_as_well(lab: Lab) -> None:
    lab.server.wrong = "chain"
    wrong, _ = faults(lab, **FRESH, permuted=("choices",), seed=3)
    assert {line["fault"] for line in wrong} == {"chain"}


@pytest.mark.parametrize("place", ["pipeline", "attribute"])
def test_where_nothing_can_be_told_the_run_ends_all_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("no")

    lab.server.wrong = "answer"
    monkeypatch.setattr(oracle, place, fail)
    wrong, _ = faults(lab, **FRESH)
    assert len(wrong) == 40
    assert {line["fault"] for line in wrong} == {""}


def test_a_page_knows_what_went_wrong(lab: Lab) -> None:
    lab.server.wrong = "chain"
    done = lab.run(**FRESH)
    folder = RunFolder(done.report.parent)
    (first, *_) = [trace for trace in lab.traces(done).values() if trace["fault"]]
    assert json.loads(json.dumps(first["fault"]))["expected"].startswith("World → ")
    assert folder.trace(first["id"])["oracle"]["chain"] != first["chain"]


def wrong_of(lab: Lab, done: Evaluated) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The lines of the wrong answers of a run, each with its trace."""
    traces = lab.traces(done)
    return [(line, traces[line["id"]]) for line in lab.results(done) if not line["correct"]]


def relabelled(data: Path, folder: Path) -> Path:
    """The same stories, the first question with a wrong label."""
    rows = json.loads(data.read_text())
    first = rows["data"][0]
    options = [option.partition(". ")[2] for option in first["choices"].split(", ")]
    first["answer"] = next(option for option in options if option != first["answer"])
    file = folder / "relabelled.json"
    file.write_text(json.dumps(rows))
    return file


class Forgetful(FakeOpenAI):
    """Reads nothing of where things are."""

    def _reply(self, step: str, body: dict[str, Any]) -> Any:
        reply = super()._reply(step, body)
        if step != "abstract":
            return reply
        return {line: [fact for fact in entry if not fact.startswith("+in(")] for line, entry in reply.items()}


def test_a_step_by_rule_that_fails_is_put_down_to_what_it_was_given(tmp_path: Path) -> None:
    with serving(Forgetful()) as server:
        lab = Lab(tmp_path, write_stories(tmp_path), server)
        done = lab.run(readers={"answer": "rules"})
    found = wrong_of(lab, done)
    assert "answer" in {line["failed_step"] for line, _ in found}
    assert {(line["fault"], trace["fault"]["by"]) for line, trace in found} == {("abstraction", "oracle")}


def test_where_the_rules_give_the_same_answer_the_label_is_told(tmp_path: Path, lab: Lab) -> None:
    lab.data = relabelled(lab.data, tmp_path)
    done = lab.run()
    ((line, trace),) = wrong_of(lab, done)
    assert line["fault"] == "label"
    assert (trace["fault"]["found"], trace["fault"]["expected"]) == (line["predicted"], line["gold"])


# Texts that no rule reads.


class Careless(FakeOpenAI):
    """Reads a zebra into every other story at first; told what is wrong with that, reads right."""

    def _reply(self, step: str, body: dict[str, Any]) -> Any:
        reply = super()._reply(step, body)
        if step == "abstract" and len(body["messages"]) == 2 and len(reply) % 2:
            reply[next(iter(reply))] = ["+is(zebra,loose)"]
        return reply


@pytest.mark.parametrize("verify", [False, True])
def test_without_an_oracle_the_first_violation_serves(
    verify: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = cases.benchmark("story")
    monkeypatch.setattr("flows.evaluate.load_benchmark", lambda _settings: benchmark)
    with serving(Careless(wrong="answer")) as server:
        lab = Lab(tmp_path, tmp_path, server)
        done = lab.run(verify=verify)
    found = [(line, trace) for line, trace in wrong_of(lab, done) if not line["failed_step"]]
    assert all(trace["oracle"] is None for _, trace in found)
    assert {line["fault"] for line, _ in found} == ({"abstraction", ""} if verify else {""})
    for _, trace in found:
        violated = [call["fault"] for call in trace["calls"] if call["fault"]]
        fault = trace["fault"]
        assert (fault is not None) == (verify and bool(violated))
        if fault:
            assert (fault["by"], fault["found"]) == ("verify", violated[0])
            assert (fault["line"], fault["who"]) == (1, None)
            assert "is(zebra,loose) names 'zebra', which the text up to there does not" in fault["found"]


# ToMi.


class Unread(TomiReader):
    """Cannot tell one line from another."""

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        events = await super().abstract(story)
        return (*events[:5], events[0], *events[6:])


def of_tomi() -> Benchmark:
    questions = tuple(replace(question, id=f"q{number}") for number, (_, question, _) in enumerate(TOMI))
    golds = ("drawer", "cup", "cup", "cup")
    told = tuple(replace(question, gold=gold) for question, gold in zip(questions, golds, strict=True))
    return Benchmark("tomi", "test", (TOMI[0][0],), told, task="tomi")


@pytest.mark.parametrize(
    ("reader", "faults"),
    [(TomiReader(), {}), (Unread(), {"q0": ("abstraction", 6, None)})],
)
def test_the_rules_read_tomi(reader: TomiReader, faults: dict[str, Any], tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = Run(of_tomi(), SharedReader(dict.fromkeys(STEPS, reader)), store, dry=True)

        async def read() -> dict[str, Any]:
            with running(run):
                await pipeline(shards(run), run_plainly)
            return dict(await oracle.told([run]))

        found = asyncio.run(read())
    assert {name: (one.fault.step, one.fault.line, one.fault.who) for name, one in found.items()} == faults
