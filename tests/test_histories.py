"""Runs without states: histories along the chain, answers from the last of them (the ablation w/o-state)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cache import Reason
from rectom.codec import events_from_json
from rectom.events import NOTHING
from rectom.llm import Sampling
from rectom.results import show
from rectom.results.drawing import Drawing
from tests import cases
from tests.cases import KINDS
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL, SMALL_QUESTIONS, Lab, change_prompt, computed, serving, verdicts_of, write_stories
from tests.test_reader_rules import WRONG_LABELS
from tests.test_report import Page

OFF: dict[str, Any] = {"state": "off"}

#: The cases that cannot be answered from events: somebody sees what is in a room that he comes into.
UNSEEN = {"hitom: who comes back sees what is there", "hitom: a late joiner"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab in which the full method and the ablation ran once, in this order."""
    folder = tmp_path_factory.mktemp("ran")
    with serving(FakeOpenAI()) as server:
        lab = Lab(folder, write_stories(folder), server)
        lab.run()
        lab.run(**OFF)
        lab.first = Counter(server.asked)
        yield lab


@pytest.fixture
def lab(ran: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A lab with a store of its own in which everything is that ran once."""
    shutil.copytree(ran.store, tmp_path / "store")
    yield Lab(tmp_path, ran.data, ran.server, ran.seen, ran.first)
    ran.server.wrong = ran.server.broken = ""


def test_what_the_labels_need_is_in_the_prompts_but_for_who_comes_back_into_a_room(
    tmp_path: Path, hitom_file: Path
) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, hitom_file, server)
        # What rules read right is left to them, for speed.
        by_rule = dict.fromkeys(["abstract", "chain", "reduce"], "rules")
        done = lab.run(subset="400", readers=by_rule, **OFF)
        calls = done.line["calls"]
        assert server.asked.total() == calls["sent"]
    missed = {int(result["id"]) for result in lab.results(done) if not result["correct"]}
    # Two labels that the full method cannot reach are reached by chance.
    assert missed - set(WRONG_LABELS) == {127, 738}
    assert (done.line["correct"], done.line["failed"]) == (393, 0)
    assert calls["sent"] == 1017


def test_a_history_is_what_is_observed_of_the_one_before_it(lab: Lab) -> None:
    done = lab.run(**OFF)
    assert done.line["correct"] == SMALL_QUESTIONS
    for trace in lab.traces(done).values():
        told = [event != NOTHING for event in events_from_json(trace["events"])]
        assert trace["world"] == {"chain": [], "events": [True] * len(told)}
        before = told
        for history in trace["perspectives"]:
            assert set(history) == {"chain", "events"}
            assert all(outer or not inner for outer, inner in zip(before, history["events"], strict=True))
            before = history["events"]
        steps = [int(line.split(" ")[0]) for line in trace["final"]]
        assert steps == [number for number, observed in enumerate(before, 1) if observed]


def test_after_the_full_method_only_histories_are_asked_for(tmp_path: Path, lab: Lab) -> None:
    with serving(FakeOpenAI(keep_bodies=True)) as server:
        new = Lab(tmp_path / "new", lab.data, server)
        new.run()
        sent = new.asked_by(lambda: new.run(**OFF))
    assert set(sent) == {"observe_history", "answer_history"}
    assert set(Counter(str(body["messages"]) for body in server.bodies).values()) == {1}
    assert new.seen
    reason = {"changed: perspectives"}
    assert computed(new.seen) == {"global_state": reason, "completion": reason, "answering": reason}


def test_a_history_is_judged_once_for_each_character_who_follows_it(lab: Lab) -> None:
    traces = lab.traces(lab.run(**OFF)).values()
    prefixes = {(trace["story_id"], *trace["chain"][:n]) for trace in traces for n in range(1, len(trace["chain"]) + 1)}
    # Equal histories of two prefixes are one request.
    assert 0 < lab.first["observe_history"] <= len(prefixes)
    assert lab.first["answer_history"] <= len(traces)


def test_a_rerun_sends_nothing_and_the_full_method_finds_all_of_its_own(lab: Lab) -> None:
    assert not lab.asked_by(lambda: lab.run(**OFF))
    assert lab.seen
    assert computed(lab.seen) == {}
    assert not lab.asked_by(lab.run)
    assert computed(lab.seen) == {}


def test_there_are_no_states_to_observe(lab: Lab) -> None:
    lab.run(**OFF)
    assert lab.seen
    stages = Counter(stage for stage, _ in lab.seen.results)
    assert stages["observability"] == 0
    assert stages["completion"] == stages["answering"] == SMALL_QUESTIONS
    assert stages["global_state"] == SMALL.stories


@pytest.mark.parametrize("step", ["observe_history", "answer_history"])
def test_a_changed_prompt_asks_again_its_own_step_alone(lab: Lab, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change_prompt(monkeypatch, step)
    assert lab.asked_by(lambda: lab.run(**OFF)) == {step: lab.first[step]}
    assert lab.seen
    stage, field = {"observe_history": ("completion", "observe"), "answer_history": ("answering", "reader")}[step]
    assert computed(lab.seen) == {stage: {f"changed: {field}.prompts.{step}"}}


@pytest.mark.parametrize("step", ["observe_history", "answer_history"])
def test_nonsense_fails_the_questions_that_need_the_step(lab: Lab, step: str) -> None:
    lab.server.broken = step
    again: dict[str, Any] = {**OFF, "sampling": Sampling(temperature=0.5), "repairs": 1}
    done = lab.run(**again)
    failed = [result for result in lab.results(done) if result["failed_step"]]
    assert {result["failed_step"] for result in failed} == {step}
    assert {result["order"] for result in failed} == ({1, 2, 3} if step == "observe_history" else {0, 1, 2, 3})
    assert all(result["correct"] for result in lab.results(done) if not result["failed_step"])
    assert not lab.asked_by(lambda: lab.run(**again))


@pytest.mark.parametrize("step", ["observe_history", "answer_history"])
def test_a_step_answered_wrongly_loses_questions(lab: Lab, step: str) -> None:
    lab.server.wrong = step
    done = lab.run(**OFF, revision="wrong")
    assert done.line["failed"] == 0
    assert done.line["correct"] < SMALL_QUESTIONS


def test_other_rules_are_other_questions(lab: Lab) -> None:
    sent = lab.asked_by(lambda: lab.run(**OFF, rules="literal"))
    assert set(sent) == {"observe_history", "answer_history"}
    assert lab.seen
    fields = {name for verdict in lab.verdicts("completion") for name in verdict.fields}
    assert fields == {"observe.rules.scope", "observe.rules.waiting"}
    # Joint observation is no choice here: nobody can observe more of a history than is in it.
    assert not lab.asked_by(lambda: lab.run(**OFF, rules="second-order-claims"))


def test_the_plan_says_that_there_are_histories(tmp_path: Path, lab: Lab) -> None:
    new = Lab(tmp_path / "new", lab.data, lab.server)
    new.run()
    plan = new.plan(**OFF)
    reason = "changed: perspectives states -> histories"
    assert {str(verdict) for verdict in verdicts_of(plan, "global_state")} == {reason}
    assert {str(verdict) for verdict in verdicts_of(plan, "completion")} == {reason}
    assert not verdicts_of(plan, "observability")
    assert {verdict.reason for verdict in verdicts_of(plan, "questions")} == {Reason.HIT}


@pytest.mark.parametrize("step", ["abstract", "chain", "reduce"])
def test_what_is_no_matter_of_states_may_be_by_rule(lab: Lab, step: str) -> None:
    done = lab.run(**OFF, readers={step: "rules"})
    assert done.line["correct"] == SMALL_QUESTIONS
    assert done.line["calls"]["sent"] == 0


def test_the_run_and_its_page_say_it_and_draw_histories(lab: Lab) -> None:
    done = lab.run(**OFF)
    assert done.line["method"] == "rectom"
    assert ".rectom-state=off.fake." in done.line["run"]
    page = done.report.read_text()
    assert "<dt>state</dt><dd>off</dd>" in page
    assert "events 1-2" in str(Page(page).data["cells"])
    trace = next(trace for trace in lab.traces(done).values() if len(trace["chain"]) == 2)
    drawing = Drawing.of(trace)
    assert drawing.histories
    console = Console(width=160, color_system=None)
    with console.capture() as shown:
        console.print(show.table(trace))
    assert all(part in shown.get().replace("\n", " ") for part in ("Final history", "observe_history", "events 1-"))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_every_kind_are_read_without_states(
    tmp_path: Path, ran: Lab, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = cases.benchmark(kind)
    monkeypatch.setattr("flows.evaluate.load_benchmark", lambda _settings: benchmark)
    new = Lab(tmp_path, tmp_path, ran.server)
    done = new.run(**OFF)
    assert not done.failures
    wrong = {result["id"] for result in new.results(done) if not result["correct"]}
    assert wrong == (UNSEEN if kind == "hitom" else set())
    assert all(Drawing.of(trace).histories for trace in new.traces(done).values())
    assert not new.asked_by(lambda: new.run(**OFF))
