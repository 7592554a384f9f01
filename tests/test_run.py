from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cache import Reason, Store, digest
from rectom.benchmarks.base import Benchmark
from rectom.llm import ModelId
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS, SharedReader
from rectom.reader.histories import Historian
from rectom.reader.rules import RuleReader
from rectom.reader.updating import ModelUpdater
from rectom.story import Question, Story
from rectom.words import words_of
from tasks.run import WITHOUT_STATES, Blocked, Failure, Result, Run, current, place_of_failure, running
from tests.laboratory import Scripted

STORIES = (
    Story("one", ("Anne entered the hall.", "The ball is in the box.")),
    Story("two", ("Bob entered the den.", "The kite is in the bag.")),
)
QUESTIONS = (
    Question("0", "two", "Where is the kite really?", ("bag", "box"), "bag", 0),
    Question("1", "one", "Where is the ball really?", ("bag", "box"), "box", 0),
    Question("2", "one", "Where does Anne really think the ball is?", ("bag", "box"), "box", 1),
)
BENCHMARK = Benchmark("toy", "all", STORIES, QUESTIONS)
FIELDS = {"stage": "s", "version": 1, "reader": {"by": "model", "identity": "m", "prompts": {"chain": "a"}}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> Run:
    return Run(BENCHMARK, RuleReader(), store)


def test_stories_and_questions_are_found_by_id_and_asked_by_story(run: Run) -> None:
    assert run.story("two") is STORIES[1]
    assert run.question("2") is QUESTIONS[2]
    assert run.questions(["one"]) == ["1", "2"]
    assert run.questions(["two", "one"]) == ["0", "1", "2"]
    assert run.questions(["three"]) == []


def test_the_words_of_a_story_are_read_once(run: Run) -> None:
    assert run.words("one") == words_of(STORIES[0].lines)
    assert run.words("one") is run.words("one")


FAILURE = Failure("chain", "it was nonsense")


@pytest.mark.parametrize(
    ("result", "why"), [(None, None), (Result(failure=FAILURE), FAILURE), (Result(output="planned only"), None)]
)
def test_what_is_not_there_blocks_and_says_what_failed(run: Run, result: Result | None, why: Failure | None) -> None:
    if result:
        run.results["s", "one"] = result
    with pytest.raises(Blocked) as blocked:
        run.output("s", "one")
    assert blocked.value.failure is why


def test_an_output_is_decoded_once(run: Run) -> None:
    run.results["s", "one"] = Result([1, 2], "a" * 64)
    decoded: list[Any] = []

    def decode(output: Any) -> tuple[int, ...]:
        decoded.append(output)
        return tuple(output)

    assert run.output("s", "one") == [1, 2]
    assert run.decoded("s", "one", decode) == run.decoded("s", "one", decode) == (1, 2)
    assert decoded == [[1, 2]]


def test_a_stored_result_comes_back_with_its_calls(run: Run, store: Store) -> None:
    key = digest("key")
    assert run.stored(key) is None
    store.put_now("stage", key, {"fields": {}, "output": [1], "calls": [{"step": "chain"}]})
    assert run.stored(key) == Result([1], key, ({"step": "chain"},))


def test_a_stored_result_that_is_none_counts_as_missing(run: Run, store: Store) -> None:
    store.put_now("stage", digest("key"), {})
    store.put_now("latest", run.place("s", "one"), {})
    assert run.stored(digest("key")) is None
    assert run.verdict("s", "one", FIELDS).reason is Reason.FIRST_RUN


def note(run: Run, fields: dict[str, Any], outcome: str = "ok") -> None:
    """What a stage keeps of an item."""
    for place in (run.place("s", "one"), *([] if outcome == "ok" else [place_of_failure(fields)])):
        run.store.put_now("latest", place, {"fields": fields, "key": "", "outcome": outcome})


def test_an_item_never_seen_is_a_first_run(run: Run) -> None:
    assert run.verdict("s", "one", FIELDS).reason is Reason.FIRST_RUN


def test_the_same_fields_without_a_result_are_missing(run: Run) -> None:
    note(run, FIELDS)
    assert run.verdict("s", "one", FIELDS).reason is Reason.MISSING
    assert run.verdict("s", "two", FIELDS).reason is Reason.FIRST_RUN


def test_a_change_names_its_field(run: Run) -> None:
    note(run, FIELDS)
    reader = {**FIELDS["reader"], "identity": "other"}  # type: ignore[dict-item]
    verdict = run.verdict("s", "one", {**FIELDS, "reader": reader})
    assert (verdict.reason, verdict.fields) == (Reason.CHANGED, ("reader.identity",))
    assert str(verdict) == "changed: reader.identity m -> other"


def test_of_another_kind_of_reader_only_the_kind_is_named(run: Run) -> None:
    note(run, FIELDS)
    verdict = run.verdict("s", "one", {**FIELDS, "reader": {"by": "rules", "version": 1}})
    assert str(verdict) == "changed: reader.by model -> rules"


def test_of_perspectives_of_another_kind_only_the_kind_is_named(run: Run) -> None:
    note(run, FIELDS)
    histories = {"stage": "s", "version": 1, "observe": FIELDS["reader"], **WITHOUT_STATES}
    assert str(run.verdict("s", "one", histories)) == "changed: perspectives states -> histories"
    note(run, histories)
    assert run.verdict("s", "one", histories).reason is Reason.MISSING
    assert str(run.verdict("s", "one", FIELDS)) == "changed: perspectives histories -> states"


def test_of_a_reader_that_was_not_there_only_the_kind_is_named(run: Run) -> None:
    note(run, FIELDS)
    with_updates = {**FIELDS, "update": FIELDS["reader"]}
    assert str(run.verdict("s", "one", with_updates)) == "changed: update.by (none) -> model"
    note(run, with_updates)
    assert str(run.verdict("s", "one", FIELDS)) == "changed: update.by model -> (none)"


def test_a_reader_by_itself_has_neither_ablation(run: Run, store: Store) -> None:
    assert (run.updater, run.historian) == (None, None)
    asker = Asker(Scripted(lambda _step, _request: ""), ModelId("m"))
    updater, historian = ModelUpdater(asker), Historian(asker, RuleReader().rules)
    shared = Run(BENCHMARK, SharedReader(dict.fromkeys(STEPS, RuleReader()), updater, historian), store)
    assert (shared.updater, shared.historian) == (updater, historian)


def test_what_failed_before_says_with_what(run: Run) -> None:
    note(run, FIELDS, "chain: it was nonsense")
    verdict = run.verdict("s", "one", FIELDS)
    assert str(verdict) == "failed before: chain: it was nonsense"
    assert run.verdict("s", "one", {**FIELDS, "version": 2}).reason is Reason.CHANGED


def test_force_goes_before_all_else(store: Store) -> None:
    run = Run(BENCHMARK, RuleReader(), store, forced=("s",))
    note(run, FIELDS, "failed")
    assert run.verdict("s", "one", FIELDS).reason is Reason.FORCED
    assert run.verdict("t", "one", {**FIELDS, "stage": "t"}).reason is Reason.FIRST_RUN


def test_places_differ_by_stage_item_and_benchmark(run: Run, store: Store) -> None:
    other = Run(Benchmark("other", "all", STORIES, QUESTIONS), RuleReader(), store)
    places = {run.place("s", "one"), run.place("s", "two"), run.place("t", "one"), other.place("s", "one")}
    assert len(places) == 4


async def test_the_current_run_is_that_of_the_task(run: Run, store: Store) -> None:
    other = Run(BENCHMARK, RuleReader(), store)

    async def within(one: Run) -> bool:
        with running(one):
            await asyncio.sleep(0)
            return current() is one

    assert all(await asyncio.gather(within(run), within(other)))
    with pytest.raises(LookupError):
        current()
