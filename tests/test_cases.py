"""The hand-made cases, read by rule, through the model readers, and through the whole pipeline."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flows.evaluate import Evaluated
from rectom.benchmarks.base import Benchmark
from rectom.codec import states_from_json
from rectom.errors import StoryError
from rectom.llm import ModelId
from rectom.perspective import Perspective, build_global, recurse
from rectom.reader.asking import Asker
from rectom.reader.base import Reader
from rectom.reader.rules import RuleReader
from rectom.reader.silences import acts
from rectom.results.drawing import Drawing
from rectom.task import TASKS, in_view
from tests import cases
from tests.cases import KINDS, Case, shown
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Lab, Scripted, by_rule, change_prompt, computed, serving

#: What the cases must tell of, whatever else they do.
TOPICS = """late joiner, re-joiner, overheard talk, private tell, mirror or window sight, false claim, unobserved swap,
observed swap, noise lines, two objects, two rooms, leaves silently, summary, caught only the tail end,
the inner one was absent, the outer one was absent, zero order, first order, second order""".replace("\n", " ")

every_case = pytest.mark.parametrize("case", cases.every(), ids=lambda case: case.id)


def by_rules(case: Case) -> Reader:
    kind = TASKS[case.kind]
    return kind.by_rule(kind.rules)


def by_model(case: Case, client: Scripted, window: int | None = None) -> Reader:
    kind = TASKS[case.kind]
    return kind.by_model(Asker(client, ModelId("m"), benchmark=kind.prompts, repairs=0), kind.rules, window)


def of(kind: str) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases.of_kind(kind)]


# The cases themselves.


def test_there_are_enough_cases_of_every_kind_and_of_every_topic() -> None:
    assert {kind: len(cases.of_kind(kind)) for kind in KINDS} == {"hitom": 11, "story": 13, "dialogue": 12}
    told = {topic for case in cases.every() for topic in case.topics}
    assert set(TOPICS.split(", ")) <= told


def test_names_tell_cases_apart() -> None:
    assert not [name for name, times in Counter(case.id for case in cases.every()).items() if times > 1]


@every_case
def test_a_case_is_whole(case: Case) -> None:
    assert len(case.events) == len(case.lines)
    assert set(case.matter) == {case.chain[:order] for order in range(len(case.chain) + 1)}
    assert {len(steps) for steps in case.matter.values()} == {len(case.lines)}
    assert f"{('zero', 'first', 'second', 'third')[len(case.chain)]} order" in case.topics


@every_case
def test_the_final_perspective_and_no_other_option_answers_the_question(case: Case) -> None:
    final = case.matter[case.chain][-1]
    if case.kind == "hitom":
        thing = case.question.split()[-1 - (case.question.split()[-1] in {"is?", "really?"})]
        assert [option for option in case.choices if f"in({thing},{option})" in final] == [case.gold]
    else:
        assert case.answers(final) == [case.gold]


def test_most_cases_are_answered_wrongly_from_the_world() -> None:
    """Otherwise a reader who sees everything would pass them."""
    told = [case for case in cases.every() if case.kind != "hitom" and case.chain]
    misled = [case for case in told if case.answers(case.matter[()][-1]) != [case.gold]]
    assert (len(misled), len(told)) == (17, 23)


# By rule.


async def built(reader: Reader, case: Case, world: Perspective) -> dict[tuple[str, ...], tuple[cases.Matter, ...]]:
    return shown(await recurse(world, case.chain, reader))


@every_case
async def test_rules_build_the_right_perspectives(case: Case) -> None:
    assert await built(by_rules(case), case, build_global(case.events)) == case.matter


@every_case
async def test_rules_find_the_chain(case: Case) -> None:
    assert await by_rules(case).chain(case.question, TASKS[case.kind].words(case.lines)) == case.chain


@pytest.mark.parametrize("case", of("hitom"))
async def test_the_rule_reader_takes_a_narrative_wholly(case: Case) -> None:
    reader = RuleReader()
    assert await reader.abstract(case.story) == case.events
    final = (await recurse(reader.world(case.story), case.chain, reader))[-1].final
    reduced = await reader.reduce(case.question, case.chain)
    assert await reader.answer(reduced, final, case.choices) == case.gold


@pytest.mark.parametrize("case", of("dialogue"))
async def test_stage_directions_are_read_by_rule_and_nothing_else_is(case: Case) -> None:
    if any(line.startswith("[") for line in case.lines):
        assert await by_rules(case).abstract(case.story) == case.events
    else:
        with pytest.raises(StoryError, match="no stage directions say who joins and leaves"):
            await by_rules(case).abstract(case.story)


# Through the model readers.


@every_case
async def test_a_right_model_reads_every_case(case: Case) -> None:
    reader = by_model(case, Scripted(by_rule))
    world = build_global(await reader.abstract(case.story))
    assert world == build_global(case.events)
    chain = await reader.chain(case.question, TASKS[case.kind].words(case.lines))
    assert chain == case.chain
    perspectives = await recurse(world, chain, reader)
    assert shown(perspectives) == case.matter
    assert perspectives == await recurse(world, chain, by_rules(case))
    reduced = await reader.reduce(case.question, chain)
    assert await reader.answer(reduced, perspectives[-1].final, case.choices) == case.gold


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("case", of("dialogue"))
async def test_a_conversation_is_read_in_windows_without_loss(case: Case, window: int) -> None:
    client = Scripted(by_rule)
    assert await by_model(case, client, window).abstract(case.story) == case.events
    assert len(client.requests) == len({(number - 1) // window for number in acts(case.lines)})


@every_case
async def test_a_case_costs_no_more_calls_than_it_needs(case: Case) -> None:
    """A call for the abstraction, the chain, the reduction and the answer; for each character one or two."""
    client = Scripted(by_rule)
    reader = by_model(case, client)
    world = build_global(await reader.abstract(case.story))
    chain = await reader.chain(case.question, TASKS[case.kind].words(case.lines))
    perspectives = await recurse(world, chain, reader)
    await reader.answer(await reader.reduce(case.question, chain), perspectives[-1].final, case.choices)
    steps = Counter(request.schema_name for request in client.requests)
    assert steps["abstract"] == steps["answer"] == 1
    assert steps["reduce"] == bool(chain)
    assert steps["chain"] <= 1
    assert steps["observe_states"] <= len(chain)
    assert steps["observe_events"] <= len(chain)
    assert steps["observe_events"] == 0 or case.kind != "dialogue"


# Through the pipeline, over HTTP.


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI()) as serving_now:
        yield serving_now


@pytest.fixture
def lab(server: FakeOpenAI, tmp_path: Path) -> Lab:
    return Lab(tmp_path, tmp_path, server)


def take(kind: str, patch: pytest.MonkeyPatch) -> Benchmark:
    """Let runs take the cases of a kind for their benchmark."""
    benchmark = cases.benchmark(kind)
    patch.setattr("flows.evaluate.load_benchmark", lambda _settings: benchmark)
    return benchmark


def told(trace: Mapping[str, Any]) -> dict[tuple[str, ...], tuple[cases.Matter, ...]]:
    """The perspectives of a trace as cases show them."""
    built = [trace["world"], *trace["perspectives"]]
    return {tuple(one["chain"]): tuple(map(cases.matter, states_from_json(one))) for one in built}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_over_the_cases_builds_and_answers_them_all(lab: Lab, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(kind, monkeypatch)
    done = lab.run()
    assert not done.failures
    traces = lab.traces(done)
    for case in cases.of_kind(kind):
        trace = traces[case.id]
        assert trace["predicted"] == case.gold, case.id
        assert tuple(trace["chain"]) == case.chain, case.id
        assert told(trace) == case.matter, case.id
        assert [column.chain for column in Drawing.of(trace).columns] == list(case.matter)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rerun_sends_nothing(lab: Lab, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = take(kind, monkeypatch)
    assert lab.asked_by(lab.run).total() > len(benchmark.questions)
    assert not lab.asked_by(lab.run)
    assert lab.seen
    assert computed(lab.seen) == {}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lab]:
    """A lab in which the cases of a kind were run once."""

    @cache
    def once(kind: str) -> Lab:
        folder = tmp_path_factory.mktemp(kind)
        with serving(FakeOpenAI()) as server, pytest.MonkeyPatch.context() as patch:
            take(kind, patch)
            lab = Lab(folder, folder, server)
            lab.run()
        return lab

    return once


@pytest.mark.parametrize("kind", ["story", "dialogue"])
@pytest.mark.parametrize("step", ["abstract", "chain", "observe_states", "reduce", "answer"])
def test_a_changed_prompt_asks_again_its_own_step_alone(
    lab: Lab, ran: Callable[[str], Lab], kind: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ran(kind)
    shutil.copytree(first.store, lab.store)
    take(kind, monkeypatch)
    change_prompt(monkeypatch, step)
    assert lab.asked_by(lab.run) == {step: first.server.asked[step]}


def test_a_story_of_which_something_else_is_asked_is_read_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = in_view(take("story", monkeypatch))
    lab.run()
    monkeypatch.setattr("flows.evaluate.load_benchmark", lambda _settings: benchmark)
    assert lab.asked_by(lab.run) == {"abstract": len(benchmark.stories)}
    first, *others = benchmark.stories
    changed = replace(benchmark, stories=(replace(first, asked=("What for?",)), *others))
    monkeypatch.setattr("flows.evaluate.load_benchmark", lambda _settings: changed)
    assert lab.asked_by(lab.run) == {"abstract": 1}
    assert lab.seen
    assert lab.seen.verdicts["abstraction", first.id].fields == ("asked",)


@pytest.mark.parametrize("kind", ["story", "dialogue"])
def test_rules_and_model_may_share_the_steps(lab: Lab, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(kind, monkeypatch)
    done: list[Evaluated] = []
    sent = lab.asked_by(lambda: done.append(lab.run(readers=dict.fromkeys(["chain", "observe", "revise"], "rules"))))
    assert [outcome.correct for outcome in done[0].outcomes] == [True] * len(cases.of_kind(kind))
    assert set(sent) == {"abstract", "reduce", "answer"}


@pytest.mark.parametrize("wrong", ["abstract", "observe_states", "answer"])
def test_a_model_that_errs_is_not_right_by_chance(lab: Lab, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take("dialogue", monkeypatch)
    lab.server.wrong = wrong
    try:
        done = lab.run()
    finally:
        lab.server.wrong = ""
    assert not all(outcome.correct for outcome in done.outcomes)
