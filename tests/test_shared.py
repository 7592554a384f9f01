"""What runs side by side share: gates, batches, claims, the purse and the benchmarks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flows import model
from flows.evaluate import benchmark_of
from flows.model import open_client
from flows.purse import Purse
from flows.settings import BATCH, BATCH_FILE, Endpoint, Settings
from flows.shared import Shared, sharing
from rectom.benchmarks.adapter import Adapter
from rectom.benchmarks.base import Benchmark
from rectom.errors import BudgetReached, SettingsError
from rectom.llm import ChatClient
from rectom.llm.batch import BatchTransport
from rectom.llm.batch_file import BatchFileTransport
from tests.batch_server import BatchServer
from tests.fault_server import OK, FaultServer
from tests.test_llm_batch import QUICK, SOON, question
from tests.test_llm_claims import prompts


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    with sharing(tmp_path / "store", Purse(), []) as found:
        yield found


def asking(url: str, tmp_path: Path, model: str = "m", **more: object) -> Settings:
    """A run that asks a model there."""
    endpoint = replace(Endpoint(url, attempts=1), **more)  # type: ignore[arg-type]  # of any field
    return Settings("fresh", "small", method="cot", model=model, endpoint=endpoint, cache=tmp_path / "store")


async def clients(stack: AsyncExitStack, shared: Shared, *several: Settings) -> list[ChatClient]:
    """The clients of runs side by side."""
    opened = [await stack.enter_async_context(open_client(one, shared.store, shared=shared)) for one in several]
    return [client for client in opened if client is not None]


def test_endpoints_with_one_address_have_one_gate_with_the_lowest_limits(shared: Shared) -> None:
    here = "http://127.0.0.1:1/v1"
    shared.endpoints = [
        Endpoint(here, concurrency=64, per_minute=500),
        Endpoint(here, concurrency=8, per_second=3, per_minute=400, tokens_per_minute=10_000),
        Endpoint(f"{here}/chat/completions", concurrency=16, per_second=2),
        Endpoint("http://127.0.0.1:2/v1", concurrency=1),
        Endpoint("", concurrency=1),
    ]
    gate = shared.limits(shared.endpoints[0])
    assert [shared.limits(one) is gate for one in shared.endpoints] == [True, True, True, False, False]
    assert shared.limits(Endpoint("http://127.0.0.1:1")) is gate
    assert gate.concurrency == 8
    assert [rate._ceiling for rate in gate._requests] == [2, 400]
    assert gate._tokens
    assert gate._tokens._ceiling == 10_000


def test_an_endpoint_that_nobody_told_of_has_a_gate_of_its_own(shared: Shared) -> None:
    gate = shared.limits(Endpoint("http://127.0.0.1:1/v1", concurrency=5))
    assert gate.concurrency == 5
    assert gate is not shared.limits(Endpoint("http://127.0.0.1:2/v1", concurrency=5))


def test_batches_wait_at_no_gate_and_open_none(shared: Shared) -> None:
    live, batch = Endpoint("http://127.0.0.1:1/v1", concurrency=3), Endpoint("http://127.0.0.1:1/v1", transport=BATCH)
    shared.endpoints = [live, batch, Endpoint(transport=BATCH_FILE, folder=Path("rows"))]
    assert shared.limits(live).concurrency == 3
    assert all(shared.limits(one).concurrency > 10**6 for one in shared.endpoints[1:])


async def test_what_two_runs_ask_goes_through_one_gate(tmp_path: Path) -> None:
    async with FaultServer(usual=replace(OK, latency=0.02)) as server, AsyncExitStack() as stack:
        several = [asking(server.url, tmp_path, "a", concurrency=64), asking(server.url, tmp_path, "b", concurrency=2)]
        shared = stack.enter_context(sharing(tmp_path / "store", Purse(), [one.endpoint for one in several]))
        one, other = await clients(stack, shared, *several)
        asked = [client.ask(question(n, name)) for n in range(6) for client, name in ((one, "a"), (other, "b"))]
        await asyncio.gather(*asked)
        assert (len(server.requests), server.max_in_flight) == (12, 2)


async def test_two_runs_ask_the_same_once(tmp_path: Path) -> None:
    async with FaultServer(usual=replace(OK, latency=0.02)) as server, AsyncExitStack() as stack:
        shared = stack.enter_context(sharing(tmp_path / "store", Purse(), []))
        several = await clients(stack, shared, *[asking(server.url, tmp_path)] * 2)
        got = await asyncio.gather(*(client.ask(request) for request in prompts(30) for client in several))
        assert (len(server.requests), len(got)) == (30, 60)
        assert Counter(reply.source for reply in got) == {"sent": 30, "cached": 30}


async def test_the_purse_is_of_all_runs(tmp_path: Path) -> None:
    async with FaultServer() as server, AsyncExitStack() as stack:
        shared = stack.enter_context(sharing(tmp_path / "store", Purse(calls=3), []))
        one, other = await clients(stack, shared, *[asking(server.url, tmp_path)] * 2)
        await asyncio.gather(one.ask(question(1)), other.ask(question(2)), other.ask(question(3)))
        for client in (one, other):
            with pytest.raises(BudgetReached, match="the sweep's budget is spent"):
                await client.ask(question("too much"))
        assert shared.purse.sent == len(server.requests) == 3
        assert (await one.ask(question(3))).source == "cached"


async def test_what_two_runs_ask_goes_into_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "BatchTransport", partial(BatchTransport, pace=QUICK, retry=SOON))
    async with BatchServer() as server, AsyncExitStack() as stack:
        settings = asking(server.url, tmp_path, transport=BATCH, api_key="sk-1")
        shared = stack.enter_context(sharing(tmp_path / "store", Purse(), [settings.endpoint]))
        async with AsyncExitStack() as first:
            one, other = await clients(first, shared, settings, settings)
            asked = [one.ask(question(n)) for n in range(20)] + [other.ask(question(n)) for n in range(10, 30)]
            await asyncio.gather(*asked)
            assert server.sizes == [30]
        # Later ones, after all have closed theirs, and one that stays when another one goes.
        async with AsyncExitStack() as second:
            (one,) = await clients(second, shared, settings)
            async with AsyncExitStack() as third:
                (other,) = await clients(third, shared, settings)
                await other.ask(question("b"))
            assert (await one.ask(question("a"))).text == "echo: a"
        assert server.sizes == [30, 1, 1]


def test_batches_are_apart_where_the_key_or_the_folder_is_another(shared: Shared, tmp_path: Path) -> None:
    def lent(endpoint: Endpoint) -> object:
        return shared.transport(endpoint, BatchFileTransport(tmp_path))

    here = Endpoint("http://127.0.0.1:1/v1", "sk-1", transport=BATCH)
    assert lent(here) is lent(replace(here, concurrency=3, base_url="http://127.0.0.1:1/"))
    others = [
        replace(here, api_key="sk-2"),
        replace(here, base_url="http://127.0.0.1:2/v1"),
        Endpoint(transport=BATCH_FILE, folder=tmp_path / "a"),
        Endpoint(transport=BATCH_FILE, folder=tmp_path / "b"),
    ]
    assert len({id(lent(one)) for one in [here, *others]}) == 5
    assert shared.transport(Endpoint("http://127.0.0.1:1/v1"), None) is None


async def test_an_address_that_is_none_is_said_to_the_run_that_has_it(tmp_path: Path) -> None:
    async with FaultServer() as server, AsyncExitStack() as stack:
        wrong, good = asking("no address", tmp_path), asking(server.url, tmp_path)
        shared = stack.enter_context(sharing(tmp_path / "store", Purse(), [wrong.endpoint, good.endpoint]))
        with pytest.raises(SettingsError, match="the base URL must look like"):
            await clients(stack, shared, wrong)
        (client,) = await clients(stack, shared, good)
        assert (await client.ask(question(1))).text == "echo: 1"


def test_a_benchmark_is_read_once(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = Adapter.open

    def noted(self: Adapter, subset: str, where: Path | None = None) -> Benchmark:
        read.append(f"{self.name}/{subset}")
        return load(self, subset, where)

    monkeypatch.setattr(Adapter, "open", noted)
    run = asking("http://127.0.0.1:1/v1", tmp_path)
    first = benchmark_of(run, shared)
    assert benchmark_of(replace(run, model="other", method="direct", draw=3), shared) is first
    assert read == ["fresh/small"]
    assert len(benchmark_of(replace(run, limit=5), shared).questions) == 5
    assert benchmark_of(replace(run, permuted=("choices",), seed=1), shared).digest != first.digest
    assert benchmark_of(replace(run, permuted=("choices",), seed=2), shared).digest != first.digest
    assert benchmark_of(replace(run, subset="deep"), shared).subset == "deep"
    assert benchmark_of(run, None) is not first
    assert len(read) == 6
