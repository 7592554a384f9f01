from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cache import Reason, Store, digest
from rectom.errors import EndpointDown, StepFailure, StoryError
from rectom.llm import ChatRequest, Message, ModelId, WouldSend
from rectom.reader.asking import Asker
from rectom.reader.rules import RuleReader
from rectom.schemas import chain as chain_reply
from tasks.run import Blocked, Failure, Result, Run, running
from tasks.stage import Stage, together
from tests.laboratory import Scripted, in_turn
from tests.test_run import BENCHMARK

SHARD = ["one", "two"]


class Double:
    """A stage that doubles a story's number, and what became of it."""

    def __init__(self) -> None:
        self.numbers = {"one": 1, "two": 2}
        self.computed: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.stage = Stage("double", 1, "abstract", self.items, self.fields, self.compute)

    def items(self, _run: Run, shard: Sequence[str]) -> Sequence[str]:
        return shard

    def fields(self, _run: Run, item: str) -> dict[str, Any]:
        return {"number": self.numbers[item]}

    async def compute(self, _run: Run, item: str) -> Any:
        self.computed.append(item)
        await asyncio.sleep(0)
        if item in self.errors:
            raise self.errors[item]
        return 2 * self.numbers[item]

    def over(self, run: Run, shard: Sequence[str] = SHARD) -> dict[str, str]:
        async def inside() -> dict[str, str]:
            with running(run):
                return await self.stage.over(shard)

        return asyncio.run(inside())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def make(store: Store) -> Callable[..., Run]:
    return lambda **options: Run(BENCHMARK, RuleReader(), store, **options)


@pytest.fixture
def double() -> Double:
    return Double()


Make = Callable[..., Run]


def reasons(run: Run) -> list[Reason]:
    return [run.verdicts["double", item].reason for item in SHARD]


def test_items_are_computed_kept_and_reported(make: Make, double: Double, store: Store) -> None:
    ended: list[tuple[str, str]] = []
    run = make(ended=lambda stage, item: ended.append((stage, item)))
    keys = double.over(run)
    assert [run.output("double", item) for item in SHARD] == [2, 4]
    assert sorted(ended) == [("double", "one"), ("double", "two")]
    assert run.done == {"double": 2}
    assert reasons(run) == [Reason.FIRST_RUN] * 2
    kept = store.get("stage", keys["two"])
    assert kept == {"fields": {"stage": "double", "version": 1, "number": 2}, "output": 4, "calls": []}
    assert digest(kept["fields"]) == keys["two"]


def test_a_rerun_finds_everything(make: Make, double: Double) -> None:
    keys = double.over(make())
    again = make()
    assert double.over(again) == keys
    assert double.computed == SHARD
    assert reasons(again) == [Reason.HIT] * 2
    assert not any(result.computed for result in again.results.values())


def test_equal_inputs_are_one_result_in_whichever_story(make: Make, double: Double) -> None:
    double.over(make(), ["one"])
    double.numbers["two"] = 1
    run = make()
    double.over(run)
    assert reasons(run) == [Reason.HIT] * 2
    assert run.output("double", "two") == 2


def test_a_change_computes_the_item_that_it_touches(make: Make, double: Double) -> None:
    double.over(make())
    double.numbers["two"] = 5
    run = make()
    double.over(run)
    assert double.computed == ["one", "two", "two"]
    assert str(run.verdicts["double", "two"]) == "changed: number 2 -> 5"
    assert run.output("double", "two") == 10


def test_another_version_of_a_stage_computes_all(make: Make, double: Double) -> None:
    double.over(make())
    double.stage = replace(double.stage, version=2)
    run = make()
    double.over(run)
    assert {str(verdict) for verdict in run.verdicts.values()} == {"changed: version 1 -> 2"}


def test_force_computes_again_what_is_there(make: Make, double: Double) -> None:
    double.over(make())
    run = make(forced=("double",))
    double.over(run)
    assert reasons(run) == [Reason.FORCED] * 2
    assert double.computed == SHARD * 2


def test_what_ends_the_run_is_told_before_the_rest_is_called_off(make: Make, double: Double) -> None:
    told: list[str] = []

    async def compute(_run: Run, item: str) -> int:
        try:
            await asyncio.sleep(0 if item == "one" else 100)
        except asyncio.CancelledError:
            told.append("called off")
            raise
        raise EndpointDown("gone")

    double.stage = replace(double.stage, compute=compute)
    with pytest.raises(EndpointDown):
        double.over(make(broken=lambda error: told.append(str(error))))
    assert told == ["gone", "called off"]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (StepFailure("revise", "nonsense"), Failure("revise", "nonsense")),
        (StoryError("no such line"), Failure("abstract", "no such line")),
    ],
)
def test_an_item_that_fails_is_noted_and_tried_again(
    make: Make, double: Double, store: Store, error: Exception, failure: Failure
) -> None:
    double.errors["one"] = error
    run = make()
    keys = double.over(run)
    assert keys["one"] == ""
    assert keys["two"]
    assert run.results["double", "one"].failure == failure
    with pytest.raises(Blocked) as blocked:
        run.output("double", "one")
    assert blocked.value.failure == failure
    assert store.count()["stage"] == 1
    del double.errors["one"]
    again = make()
    double.over(again)
    assert reasons(again) == [Reason.FAILED_BEFORE, Reason.HIT]
    assert again.output("double", "one") == 2


def test_that_an_item_failed_is_known_whatever_was_made_of_it_by_another_reader(make: Make, double: Double) -> None:
    double.errors["one"] = StepFailure("revise", "nonsense")
    double.over(make())
    double.errors.clear()
    usual, double.stage = double.stage, replace(double.stage, fields=lambda _run, item: {"other": item})
    double.over(make())
    double.stage = usual
    again = make()
    double.over(again)
    assert reasons(again) == [Reason.FAILED_BEFORE, Reason.HIT]


def test_what_failed_and_went_well_since_has_not_failed_before(make: Make, double: Double, store: Store) -> None:
    double.errors["one"] = StepFailure("revise", "nonsense")
    double.over(make())
    double.errors.clear()
    for dry in (True, False):
        run = make(retry_failed=True, dry=dry)
        double.over(run)
        assert reasons(run)[0] is Reason.FAILED_BEFORE
    store.delete("stage", [key for key, _ in store.iterate("stage")])
    again = make(retry_failed=True)
    double.over(again)
    assert reasons(again) == [Reason.MISSING, Reason.MISSING]


def test_an_item_whose_input_failed_fails_by_it_without_being_computed(make: Make, double: Double) -> None:
    failure = Failure("chain", "nonsense")

    def blocked(_run: Run, item: str) -> dict[str, Any]:
        if item == "one":
            raise Blocked(failure)
        return {}

    double.stage = replace(double.stage, fields=blocked)
    run = make()
    assert double.over(run)["one"] == ""
    assert double.computed == ["two"]
    assert run.results["double", "one"] == Result(failure=failure)
    assert reasons(run) == [Reason.UPSTREAM, Reason.FIRST_RUN]


def test_an_error_that_ends_the_run_ends_it_by_itself(make: Make, double: Double, store: Store) -> None:
    double.errors["one"] = EndpointDown("nobody there")
    with pytest.raises(EndpointDown):
        double.over(make())
    assert store.get("latest", make().place("double", "one")) is None


def test_a_dry_run_plans_and_keeps_nothing(make: Make, double: Double, store: Store) -> None:
    request = ChatRequest(ModelId("m"), (Message("user", "?"),))
    double.errors["one"] = WouldSend(request)
    run = make(dry=True)
    keys = double.over(run)
    assert keys["one"] == ""
    assert run.output("double", "two") == 4
    assert run.results["double", "one"] == Result()
    assert store.count() == {"reply": 0, "stage": 0, "latest": 0}


def test_a_dry_run_does_not_note_failures(make: Make, double: Double, store: Store) -> None:
    double.errors["one"] = StepFailure("chain", "nonsense")
    double.over(make(dry=True))
    assert store.count()["latest"] == 0


def test_the_calls_of_an_item_are_kept_with_its_result(make: Make, double: Double, store: Store) -> None:
    asker = Asker(Scripted(in_turn({"chain": ["Zoe"]}, {"chain": ["Anne"]})), ModelId("m"))

    async def compute(_run: Run, _item: str) -> Any:
        return await asker.ask("chain", chain_reply(["Anne"]), lambda r: r.chain, characters="Anne", question="?")

    double.stage = replace(double.stage, compute=compute)
    run = make()
    keys = double.over(run, ["one"])
    calls = run.results["double", "one"].calls
    assert [call["step"] for call in calls] == ["chain", "chain"]
    again = make()
    double.over(again, ["one"])
    assert again.results["double", "one"].calls == calls
    kept = store.get("stage", keys["one"])
    assert kept
    assert kept["calls"] == list(calls)


def test_the_keys_are_those_that_over_stores_under(make: Make, double: Double, store: Store) -> None:
    run = make()
    keys = double.stage.keys(run, SHARD)
    assert keys is not None
    assert not double.stage.holds(run, keys)
    assert double.over(run) == keys
    assert double.stage.holds(run, keys)
    assert not double.stage.holds(make(forced=("double",)), keys)
    store.delete("stage", [keys["one"]])
    assert not double.stage.holds(run, keys)
    assert double.stage.holds(run, {"two": keys["two"]})


def test_keys_are_unknown_while_an_input_is_missing(make: Make, double: Double) -> None:
    def blocked(_run: Run, _item: str) -> dict[str, Any]:
        raise Blocked(None)

    assert replace(double.stage, fields=blocked).keys(make(), SHARD) is None


def test_results_that_somebody_else_found_are_adopted(make: Make, double: Double) -> None:
    keys = double.over(make())
    run = make()
    assert double.stage.adopt(run, keys)
    assert [run.output("double", item) for item in SHARD] == [2, 4]
    assert reasons(run) == [Reason.HIT] * 2
    assert run.done == {"double": 2}
    assert double.stage.adopt(run, keys)
    assert run.done == {"double": 2}


@pytest.mark.parametrize("lost", ["pruned", "failed"])
def test_results_that_are_not_there_are_not_adopted_but_computed(
    make: Make, double: Double, store: Store, lost: str
) -> None:
    keys = double.over(make())
    if lost == "pruned":
        store.delete("stage", [keys["two"]])
    else:
        keys["two"] = ""
    run = make()
    assert not double.stage.adopt(run, keys)
    double.over(run)
    assert [run.output("double", item) for item in SHARD] == [2, 4]


async def test_together_gives_results_in_order() -> None:
    async def later(number: int) -> int:
        await asyncio.sleep(0.001 * (3 - number))
        return number

    assert await together(later(number) for number in range(3)) == [0, 1, 2]


async def test_together_ends_the_rest_and_raises_the_first_error_by_itself() -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("long")

    async def broken() -> None:
        await asyncio.sleep(0)
        raise StoryError("no")

    with pytest.raises(StoryError, match="no"):
        await together([long(), together([broken()])])
    assert ended == ["long"]
