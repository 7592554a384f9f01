from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cache
from cache import Reason, Store, digest
from flows.pipeline import STAGES, pipeline, shards
from rectom import prompts
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import Recipe
from rectom.llm import Sampling
from rectom.reader.rules import RuleReader
from rectom.story import Story
from tasks.run import Run
from tests.fake_openai import ABLATED, STEPS, FakeOpenAI
from tests.laboratory import SMALL, SMALL_QUESTIONS, Lab, change_prompt, computed, serving, verdicts_of, write_stories


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stories(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[Lab]:
    """A lab in which everything ran once."""
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path_factory.mktemp("ran"), data, server)
        lab.run()
        lab.first = Counter(server.asked)
        yield lab


@pytest.fixture
def lab(ran: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A lab with a store of its own in which everything is that ran once."""
    shutil.copytree(ran.store, tmp_path / "store")
    yield Lab(tmp_path, ran.data, ran.server, ran.seen, ran.first)
    ran.server.wrong = ""


# Shards and order.


@pytest.mark.parametrize(
    ("stories", "size", "sizes"),
    [
        (0, None, []),
        (1, None, [1]),
        (3, None, [1, 1, 1]),
        (10, None, [3, 3, 3, 1]),
        (80, None, [20, 20, 20, 20]),
        (120, None, [25, 25, 25, 25, 20]),
        (5, 2, [2, 2, 1]),
        (5, 100, [5]),
    ],
)
def test_shards_are_small_enough_to_flow_and_few_enough_to_show(
    stories: int, size: int | None, sizes: list[int], tmp_path: Path
) -> None:
    told = tuple(Story(str(number), ("The ball is in the box.",)) for number in range(stories))
    with Store(tmp_path / "store") as store:
        parts = shards(Run(Benchmark("toy", "all", told, ()), RuleReader(), store), size)
    assert [len(part) for part in parts] == sizes
    assert [story for part in parts for story in part] == [story.id for story in told]


async def test_each_shard_goes_through_the_stages_by_itself_and_in_order() -> None:
    seen: list[tuple[str, str]] = []
    slow = asyncio.Event()

    async def run_stage(stage: str, part: Sequence[str], label: str) -> None:
        if (stage, part) == ("abstraction", ["slow"]):
            await slow.wait()
        await asyncio.sleep(0)
        seen.append((stage, label))
        if (stage, label) == ("answering", "2/2"):
            slow.set()

    await asyncio.wait_for(pipeline([["slow"], ["quick"]], run_stage), 5)
    for label in ("1/2", "2/2"):
        order = [stage for stage, at in seen if at == label]
        assert sorted(order) == sorted(STAGES)
        assert order.index("abstraction") < order.index("global_state")
        assert order[-3:] == ["observability", "completion", "answering"]
    assert seen.index(("answering", "2/2")) < seen.index(("abstraction", "1/2"))


async def test_a_bounded_number_of_shards_is_under_way() -> None:
    under_way: set[str] = set()
    most = 0

    async def run_stage(stage: str, _part: Sequence[str], label: str) -> None:
        nonlocal most
        under_way.add(label)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        if stage == "answering":
            under_way.discard(label)

    await pipeline([[str(number)] for number in range(40)], run_stage)
    assert 4 <= most <= 8


# What is computed again, and why.


def test_a_rerun_computes_nothing_and_sends_nothing(lab: Lab) -> None:
    assert not lab.asked_by(lab.run)
    assert lab.seen
    assert computed(lab.seen) == {}


def test_a_first_run_computes_everything_for_that_reason(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        lab.run()
    assert lab.seen
    assert computed(lab.seen) == {stage: {"first run"} for stage in STAGES}


#: Each prompt, the stage that it belongs to, and the field that differs when it changes.
PROMPT_STAGES = {
    "abstract": ("abstraction", "reader.prompts.abstract"),
    "chain": ("questions", "chain.prompts.chain"),
    "reduce": ("questions", "reduce.prompts.reduce"),
    "observe_states": ("observability", "reader.prompts.observe_states"),
    "observe_events": ("observability", "reader.prompts.observe_events"),
    "revise": ("completion", "revise.prompts.revise"),
    "answer": ("answering", "reader.prompts.answer"),
}


def test_every_prompt_is_tried() -> None:
    assert set(PROMPT_STAGES) == set(STEPS)


@pytest.mark.parametrize("step", PROMPT_STAGES)
def test_a_changed_prompt_asks_again_its_own_step_alone(lab: Lab, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change_prompt(monkeypatch, step)
    stage, field = PROMPT_STAGES[step]
    sent = lab.asked_by(lab.run)
    assert sent == {step: lab.first[step]}
    assert lab.seen
    # The output is the same as before: so that nothing that depends on it is computed again.
    assert computed(lab.seen) == {stage: {f"changed: {field}"}}


#: What a change of a step's output reaches.
REACHES = {
    "abstract": {"abstraction", "global_state", "observability", "completion", "answering"},
    "chain": {"questions", "completion", "answering"},
    "reduce": {"questions", "answering"},
    "observe_states": {"observability", "completion", "answering"},
    "observe_events": {"observability", "completion", "answering"},
    "revise": {"completion", "answering"},
    "answer": {"answering"},
}


@pytest.mark.parametrize("step", REACHES)
def test_a_changed_output_computes_again_what_depends_on_it_and_nothing_else(
    lab: Lab, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_prompt(monkeypatch, step)
    lab.server.wrong = step
    lab.run()
    assert lab.seen
    found = computed(lab.seen)
    # A wrong question about a state may be one that was answered before; all else must be computed.
    assert REACHES[step] - {"answering"} <= set(found) <= REACHES[step]
    assert PROMPT_STAGES[step][0] in found
    reasons = {reason for stage, words in found.items() if stage != PROMPT_STAGES[step][0] for reason in words}
    assert all(reason.startswith("changed: ") and "prompts" not in reason for reason in reasons)


def test_the_same_judgement_by_another_reader_stops_there(lab: Lab) -> None:
    def run() -> None:
        lab.run(readers={"observe": "rules"})

    assert not lab.asked_by(run)
    assert lab.seen
    assert computed(lab.seen) == {"observability": {"changed: reader.by"}}


MODEL_STAGES = {"abstraction", "questions", "observability", "completion", "answering"}


@pytest.mark.parametrize(("change", "field"), [({"identity": "other"}, "identity"), ({"revision": "2"}, "revision")])
def test_another_model_is_asked_everything(lab: Lab, change: dict[str, str], field: str) -> None:
    assert lab.asked_by(lambda: lab.run(**change)) == lab.first
    assert lab.seen
    found = computed(lab.seen)
    assert set(found) == MODEL_STAGES
    assert all(field in reason for reasons in found.values() for reason in reasons)


def test_another_temperature_is_another_question(lab: Lab) -> None:
    assert lab.asked_by(lambda: lab.run(sampling=Sampling(temperature=0.5))) == lab.first


def test_a_larger_limit_on_tokens_asks_nothing_again(lab: Lab) -> None:
    """Replies that ended by themselves are the same under any larger limit; the stages are judged again."""
    assert not lab.asked_by(lambda: lab.run(sampling=Sampling(max_tokens=100_000)))


def test_another_port_is_the_same_model(lab: Lab) -> None:
    with serving(FakeOpenAI()) as moved:
        assert moved.port != lab.server.port
        other = Lab(lab.folder, lab.data, moved)
        assert not other.asked_by(other.run)
    assert other.seen
    assert computed(other.seen) == {}


def test_another_name_for_the_same_model_asks_nothing(lab: Lab) -> None:
    assert not lab.asked_by(lambda: lab.run(model="scripted", identity="fake"))


@pytest.mark.parametrize("stage", STAGES)
def test_force_computes_a_stage_from_the_replies_that_are_there(lab: Lab, stage: str) -> None:
    assert not lab.asked_by(lambda: lab.run(forced=(stage,)))
    assert lab.seen
    assert computed(lab.seen) == {stage: {"forced"}}


@pytest.mark.parametrize(("kinds", "reason"), [(("stage",), "missing"), (("stage", "latest"), "first run")])
def test_stage_results_that_were_pruned_cost_nothing(lab: Lab, kinds: tuple[str, ...], reason: str) -> None:
    before = lab.results(lab.run())
    with Store(lab.store) as store:
        assert cache.prune(store, kinds)
    assert not lab.asked_by(lab.run)
    assert lab.seen
    assert computed(lab.seen) == {stage: {reason} for stage in STAGES}
    assert lab.results(lab.run()) == before


def test_one_result_that_was_pruned_is_computed_alone(lab: Lab) -> None:
    assert lab.seen
    (item, key), *_ = ((item, r.key) for (stage, item), r in lab.seen.results.items() if stage == "completion")
    with Store(lab.store) as store:
        store.delete("stage", [key])
    assert not lab.asked_by(lab.run)
    gone = [place for place, verdict in lab.seen.verdicts.items() if verdict.reason is not Reason.HIT]
    assert gone
    assert ("completion", item) in gone
    assert {stage for stage, _ in gone} == {"completion"}


def test_a_reply_that_was_lost_is_asked_alone(lab: Lab) -> None:
    with Store(lab.store) as store:
        cache.prune(store, ("stage",))
        store.delete("reply", [next(store.keys("reply"))])
    assert lab.asked_by(lab.run).total() == 1


def test_what_failed_before_is_judged_again_for_nothing(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(broken="revise")) as server:
        lab = Lab(tmp_path, data, server)
        lab.run()
        assert not lab.asked_by(lab.run)
    assert lab.seen
    found = computed(lab.seen)
    assert set(found) == {"completion", "answering"}
    assert {reason.partition(":")[0] for reason in found["completion"]} == {"failed before"}
    assert found["answering"] == {"upstream is recomputed"}


@pytest.mark.parametrize(
    ("rules", "stages", "steps"),
    [
        ("second-order-claims", {"completion", "answering"}, {"revise", "answer"}),
        ("first-order-claims", {"completion", "answering"}, {"revise", "answer"}),
        ("literal", {"observability", "completion", "answering"}, {"observe_states", "revise", "answer"}),
    ],
)
def test_other_rules_compute_only_what_follows_them(lab: Lab, rules: str, stages: set[str], steps: set[str]) -> None:
    sent = lab.asked_by(lambda: lab.run(rules=rules))
    assert set(sent) <= steps
    assert lab.seen
    assert set(computed(lab.seen)) <= stages
    assert "completion" in computed(lab.seen)


def test_rules_by_which_nobody_judges_are_named(lab: Lab) -> None:
    lab.run(rules="second-order-claims")
    assert {verdict.fields for verdict in lab.verdicts("completion")} == {("rules.joint",)}


def test_another_window_reads_the_stories_again_and_finds_the_rest(lab: Lab) -> None:
    sent = lab.asked_by(lambda: lab.run(window=2))
    assert set(sent) == {"abstract"}
    assert lab.seen
    assert computed(lab.seen) == {"abstraction": {"changed: reader.window"}}


def test_an_edited_story_is_read_alone(lab: Lab, tmp_path: Path) -> None:
    assert lab.seen
    line = lab.seen.benchmark.stories[0].lines[-1]
    edited = tmp_path / "edited.json"
    extra = "999 Nobody likes the box."
    text = lab.data.read_text()
    last = f"{len(lab.seen.benchmark.stories[0].lines)} {line}"
    assert last in text
    edited.write_text(text.replace(last, last + r"\n" + extra.replace("Nobody", line.split(" ")[0])))
    sent = lab.asked_by(lambda: lab.run(data=edited))
    assert sent["abstract"] == 1
    assert [verdict.reason for verdict in lab.verdicts("abstraction")].count(Reason.HIT) == SMALL.stories - 1


# The full method and its ablations.


@pytest.mark.parametrize(
    "order", [({}, {"update": "model"}, {"state": "off"}), ({"state": "off"}, {"update": "model"}, {})]
)
def test_the_ablations_share_every_stage_that_they_leave_as_it_is(
    tmp_path: Path, data: Path, order: Sequence[dict[str, str]]
) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        reports = {lab.run(**changes).report for changes in order}
        sent = Counter(server.asked)
        assert not [changes for changes in order if lab.asked_by(lambda changes=changes: lab.run(**changes))]  # type: ignore[misc]
        alone = Lab(tmp_path / "alone", data, server)
        full = alone.asked_by(alone.run)
    assert len(reports) == 3
    assert sent["abstract"] == SMALL.stories
    # The steps of the full method were asked as often as it asks them by itself.
    assert {step: sent[step] for step in STEPS} == full
    assert set(sent) == {*STEPS, *ABLATED}


#: What the keys of the full method's results come to, by reader: a stage's changes with its version, and only then.
KEYS = {
    "fake": {
        "abstraction": "3a62d0043db63881",
        "global_state": "135e47dc9fc4482c",
        "questions": "3c185892b339f248",
        "observability": "baec7ff99daede7a",
        "completion": "460b7145a0dbb405",
        "answering": "f2924f54889cb8b8",
    },
    "rules": {
        "abstraction": "2a673dd32121d91a",
        "global_state": "135e47dc9fc4482c",
        "questions": "698f2c4b64e85295",
        "observability": "ec0820ded39ec229",
        "completion": "6c97caa565ba2c63",
        "answering": "c47a8761cdc9d5ca",
    },
}


@pytest.mark.parametrize("model", KEYS)
def test_results_of_the_full_method_are_found_where_they_have_always_been(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A prompt may change: then its digest asks for its step anew. All else is pinned here.
    load = prompts.load
    monkeypatch.setattr(prompts, "load", lambda kind, name: replace(load(kind, name), digest=f"{kind}/{name}"))
    story = write_stories(tmp_path, Recipe(stories=1, chapters=2, tell=True, max_order=2, seed=1))
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, story, server)
        lab.run(model=model)
    assert lab.seen
    keys: dict[str, list[str]] = {}
    for (stage, _), result in lab.seen.results.items():
        keys.setdefault(stage, []).append(result.key)
    assert {stage: digest(sorted(found))[:16] for stage, found in keys.items()} == KEYS[model]


# What explain says before.


def agree(lab: Lab, **changes: Any) -> None:
    """What is planned is what is then computed, as far as it can be known; planning sends and stores nothing."""
    with Store(lab.store) as store:
        before = store.count()
    planned: list[Run] = []
    assert not lab.asked_by(lambda: planned.append(lab.plan(**changes)))
    with Store(lab.store) as store:
        assert store.count() == before
    lab.run(**changes)
    assert lab.seen
    for place, verdict in planned[0].verdicts.items():
        if verdict.reason is not Reason.UPSTREAM:
            assert verdict == lab.seen.verdicts[place]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"identity": "other"},
        {"rules": "literal"},
        {"readers": {"observe": "rules"}},
        {"forced": ("completion",)},
        {"window": 3},
        {"update": "model"},
        {"state": "off"},
    ],
)
def test_the_plan_is_what_happens(lab: Lab, changes: dict[str, Any]) -> None:
    agree(lab, **changes)


def test_the_plan_of_a_changed_prompt_names_it_and_what_waits_for_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    change_prompt(monkeypatch, "abstract")
    plan = lab.plan()
    assert {str(verdict.reason) for verdict in verdicts_of(plan, "abstraction")} == {"changed"}
    assert {verdict.fields for verdict in verdicts_of(plan, "abstraction")} == {("reader.prompts.abstract",)}
    for stage in ("global_state", "completion", "answering"):
        assert {verdict.reason for verdict in verdicts_of(plan, stage)} == {Reason.UPSTREAM}
    assert {verdict.reason for verdict in verdicts_of(plan, "questions")} == {Reason.HIT}
    assert len(verdicts_of(plan, "answering")) == SMALL_QUESTIONS


def test_the_plan_of_an_empty_store_is_a_first_run(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        plan = lab.plan()
        assert not server.asked
    for stage in ("abstraction", "questions"):
        assert {verdict.reason for verdict in verdicts_of(plan, stage)} == {Reason.FIRST_RUN}
