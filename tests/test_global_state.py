"""The global perspective in a run, with Eq. 1 applied by code and by a model (the ablation w/o-det)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cache import Reason
from rectom.codec import states_from_json
from rectom.events import Kind
from rectom.results.drawing import Drawing
from tasks.global_state import events_of, global_perspective
from tests import cases
from tests.cases import KINDS
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL, SMALL_QUESTIONS, Lab, change_prompt, computed, serving, verdicts_of, write_stories

BY_MODEL: dict[str, Any] = {"update": "model"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab in which the full method and the ablation ran once, in this order."""
    folder = tmp_path_factory.mktemp("ran")
    with serving(FakeOpenAI()) as server:
        lab = Lab(folder, write_stories(folder), server)
        lab.run()
        lab.run(**BY_MODEL)
        lab.first = Counter(server.asked)
        yield lab


@pytest.fixture
def lab(ran: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A lab with a store of its own in which everything is that ran once."""
    shutil.copytree(ran.store, tmp_path / "store")
    yield Lab(tmp_path, ran.data, ran.server, ran.seen, ran.first)
    ran.server.wrong = ran.server.broken = ""


def untold(trace: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in trace.items() if name != "calls"}


def test_a_model_that_never_errs_leaves_the_same_traces_as_code(lab: Lab) -> None:
    full, ablated = lab.run(), lab.run(**BY_MODEL)
    assert ablated.line["correct"] == SMALL_QUESTIONS
    traces = lab.traces(ablated)
    assert {id_: untold(trace) for id_, trace in traces.items()} == {
        id_: untold(trace) for id_, trace in lab.traces(full).items()
    }
    # Every answer rests on the updates of its story.
    assert all("update" in {call["step"] for call in trace["calls"]} for trace in traces.values())


def test_after_the_full_method_updates_alone_are_sent_and_each_once(tmp_path: Path, lab: Lab) -> None:
    with serving(FakeOpenAI(keep_bodies=True)) as server:
        new = Lab(tmp_path / "new", lab.data, server)
        new.run()
        sent = new.asked_by(lambda: new.run(**BY_MODEL))
    assert set(sent) == {"update"}
    asked = Counter(str(body["messages"]) for body in server.bodies)
    assert set(asked.values()) == {1}
    assert new.seen
    # Presence is the same, so that nobody is judged again; the answers rest on the same final states.
    assert set(computed(new.seen)) == {"global_state", "completion"}


def test_a_rerun_sends_nothing_and_the_full_method_finds_all_of_its_own(lab: Lab) -> None:
    assert not lab.asked_by(lambda: lab.run(**BY_MODEL))
    assert lab.seen
    assert computed(lab.seen) == {}
    assert not lab.asked_by(lab.run)
    assert computed(lab.seen) == {}


def test_a_world_is_asked_for_a_change_after_the_other(lab: Lab) -> None:
    lab.run(**BY_MODEL)
    assert lab.seen
    for story in lab.seen.benchmark.stories:
        changes = [event for event in events_of(lab.seen, story.id) if event.delta]
        assert len(changes) < len(story.lines)
        assert len(lab.seen.results["global_state", story.id].calls) == len(changes)
        assert len(global_perspective(lab.seen, story.id).states) == len(story.lines)
        assert all(event.kind is Kind.PERSISTENT for event in changes)


def test_what_is_inherited_in_a_perspective_is_updated_by_the_model_too(lab: Lab) -> None:
    lab.run(**BY_MODEL)
    assert lab.seen
    questions = {question.id: question for question in lab.seen.benchmark.questions}
    for id_, question in questions.items():
        steps = [call["step"] for call in lab.seen.results["completion", id_].calls]
        assert ("update" in steps) is bool(question.order)


def test_wrong_updates_go_into_worlds_and_perspectives_and_from_there_into_answers(lab: Lab) -> None:
    lab.server.wrong = "update"
    done = lab.run(**BY_MODEL, revision="wrong")
    assert done.line["failed"] == 0
    assert done.line["correct"] < SMALL_QUESTIONS
    right = lab.traces(lab.run(**BY_MODEL))
    for id_, trace in lab.traces(done).items():
        assert trace["events"] == right[id_]["events"]
        assert states_from_json(trace["world"]) != states_from_json(right[id_]["world"])
        assert Drawing.of(trace).columns


def test_nonsense_fails_every_question_at_the_update(lab: Lab) -> None:
    lab.server.broken = "update"
    done = lab.run(**BY_MODEL, revision="broken", repairs=1)
    assert {result["failed_step"] for result in lab.results(done)} == {"update"}
    assert done.line["failed"] == SMALL_QUESTIONS
    assert lab.seen
    assert computed(lab.seen)["answering"] == {"upstream is recomputed"}
    assert not lab.asked_by(lambda: lab.run(**BY_MODEL, revision="broken", repairs=1))


def test_a_changed_prompt_asks_for_the_updates_again_and_for_nothing_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_prompt(monkeypatch, "update")
    assert not lab.asked_by(lab.run)
    assert lab.asked_by(lambda: lab.run(**BY_MODEL)) == {"update": lab.first["update"]}
    assert lab.seen
    reasons = {"changed: update.prompts.update"}
    assert computed(lab.seen) == {"global_state": reasons, "completion": reasons}


def test_the_plan_says_that_a_model_updates(tmp_path: Path, lab: Lab) -> None:
    new = Lab(tmp_path / "new", lab.data, lab.server)
    new.run()
    plan = new.plan(**BY_MODEL)
    assert {str(verdict) for verdict in verdicts_of(plan, "global_state")} == {"changed: update.by (none) -> model"}
    assert {verdict.reason for verdict in verdicts_of(plan, "completion")} == {Reason.UPSTREAM}
    assert {verdict.reason for verdict in verdicts_of(plan, "abstraction")} == {Reason.HIT}
    assert len(verdicts_of(plan, "answering")) == SMALL.stories * (SMALL.max_order + 1)


def test_every_other_step_may_be_by_rule(tmp_path: Path, lab: Lab) -> None:
    by_rule = dict.fromkeys(["abstract", "chain", "observe", "revise", "reduce", "answer"], "rules")
    new = Lab(tmp_path / "new", lab.data, lab.server)
    sent = new.asked_by(lambda: new.run(**BY_MODEL, readers=by_rule))
    assert set(sent) == {"update"}
    assert new.run(**BY_MODEL, readers=by_rule).line["correct"] == SMALL_QUESTIONS


def test_settings_and_steps_of_the_run_say_it(lab: Lab) -> None:
    full, ablated = lab.run(), lab.run(**BY_MODEL)
    assert ablated.line["method"] == full.line["method"] == "rectom"
    assert ".rectom-update=model.fake." in ablated.line["run"]
    page, steps = (ablated.report.parent / name for name in ("report.html", "tables/steps.md"))
    assert "<dt>update</dt><dd>model</dd>" in page.read_text()
    assert "update" in steps.read_text()
    assert "update" not in (full.report.parent / "tables/steps.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_every_kind_are_updated(tmp_path: Path, ran: Lab, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = cases.benchmark(kind)
    monkeypatch.setattr("flows.evaluate.load_benchmark", lambda _settings: benchmark)
    new = Lab(tmp_path, tmp_path, ran.server)
    full, ablated = new.run(), new.run(**BY_MODEL)
    assert ablated.line["correct"] == len(benchmark.questions)
    right = new.traces(full)
    assert all(untold(trace) == untold(right[id_]) for id_, trace in new.traces(ablated).items())
