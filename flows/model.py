"""The model client and the readers that the settings of a run describe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from cache import Store, digest
from flows.replies import StoredReplies
from flows.settings import BATCH, BATCH_FILE, EITHER, LIVE, MODEL, OFF, RULES, Endpoint, Settings
from rectom.benchmarks.base import Benchmark
from rectom.errors import SettingsError
from rectom.llm import ChatClient, Limits, Retry, Structured, Timeouts
from rectom.llm.address import Address
from rectom.llm.batch import BatchTransport
from rectom.llm.batch_file import BatchFileTransport
from rectom.llm.claims import Claims
from rectom.llm.secret import Secret
from rectom.llm.stats import Stats
from rectom.llm.wire import Transport
from rectom.methods.base import Method, Setup
from rectom.methods.registry import chosen
from rectom.reader.asking import Asker
from rectom.reader.base import Reader, SharedReader
from rectom.reader.either import EitherReader
from rectom.reader.histories import Historian
from rectom.reader.updating import ModelUpdater
from rectom.task import task

#: The address of a model that is asked through files, or not at all.
_NOWHERE = "http://localhost/v1"

#: More requests than any run has at once.
_NO_LIMIT = 10_000_000


@asynccontextmanager
async def open_client(settings: Settings, store: Store, *, offline: bool = False) -> AsyncIterator[ChatClient | None]:
    """The client of the settings' model; None if no step asks a model."""
    if not settings.asks_a_model():
        yield None
        return
    endpoint = settings.endpoint
    if not (endpoint.base_url or offline or endpoint.transport == BATCH_FILE):
        raise SettingsError("no server for the model: give --base-url URL or set OPENAI_BASE_URL")
    structured = endpoint.structured or _remembered(store, endpoint, settings.model)
    with _claims(store, needed=endpoint.transport == LIVE and not offline) as claims:
        async with _client(settings, store, structured, offline, claims) as client:
            yield client
            if client.structured != structured:
                await _remember(store, endpoint, settings.model, client.structured)


@contextmanager
def _claims(store: Store, *, needed: bool) -> Iterator[Claims | None]:
    """What keeps two runs over one store from sending the same request at once. Batches have their journal."""
    if not needed:
        yield None
        return
    with closing(Claims(store.folder / "claims")) as claims:
        yield claims


def _client(
    settings: Settings, store: Store, structured: Structured, offline: bool, claims: Claims | None
) -> ChatClient:
    endpoint = settings.endpoint
    client = ChatClient(
        endpoint.base_url or _NOWHERE,
        endpoint.api_key,
        replies=StoredReplies(store),
        limits=_limits(endpoint),
        transport=_transport(endpoint, store.folder),
        timeouts=Timeouts(total=endpoint.timeout_s),
        retry=_retry(endpoint),
        structured=structured,
        offline=offline,
        replay_failures=not settings.retry_failed,
        admit=lambda: settings.budget.check(client.stats),
        claims=claims,
    )
    return client


def _limits(endpoint: Endpoint) -> Limits:
    if endpoint.transport != LIVE:
        # A request that waits for a place cannot join the batch.
        return Limits(_NO_LIMIT, adaptive=False)
    return Limits(
        endpoint.concurrency,
        per_second=endpoint.per_second,
        per_minute=endpoint.per_minute,
        tokens_per_minute=endpoint.tokens_per_minute,
    )


def _retry(endpoint: Endpoint) -> Retry:
    if endpoint.transport == LIVE:
        return Retry(attempts=endpoint.attempts)
    # Rows that failed should come back together, for one batch.
    return Retry(attempts=endpoint.attempts, first=0.1, cap=0.5)


def _transport(endpoint: Endpoint, store: Path) -> Transport | None:
    """How requests travel, where it is not over HTTP as they come. Jobs are noted beside the store."""
    if endpoint.transport == BATCH:
        return BatchTransport(Address.parse(endpoint.base_url), Secret(endpoint.api_key), store / "batches")
    if endpoint.transport == BATCH_FILE and endpoint.folder:
        return BatchFileTransport(endpoint.folder)
    return None


def stats_of(client: ChatClient | None) -> Stats:
    """What a client has done; nothing, if there is none."""
    return client.stats if client else Stats()


def reader_of(settings: Settings, client: ChatClient | None, benchmark: Benchmark, sample: int = 0) -> Reader:
    """The reader of the settings for a benchmark, for one sample of the model's replies."""
    kind = task(benchmark.task)
    rules = settings.rule_set() or kind.rules
    if client is None:
        return kind.by_rule(rules)
    asker = _asker(settings, client, kind.prompts, sample)
    by_rule = kind.by_rule(rules)
    by_model = kind.by_model(asker, rules, benchmark.note, settings.window, settings.verify)
    kinds = {RULES: by_rule, MODEL: by_model, EITHER: EitherReader(by_rule, by_model)}
    return SharedReader(
        {step: kinds[kind] for step, kind in settings.by_step().items()},
        ModelUpdater(asker) if settings.update == MODEL else None,
        Historian(asker, rules, benchmark.note) if settings.state == OFF else None,
    )


def method_of(settings: Settings, client: ChatClient | None, benchmark: Benchmark, sample: int = 0) -> Method | None:
    """The method of the settings; None for RecToM itself."""
    if settings.is_rectom or client is None:
        return None
    kind, options = chosen(settings.method)
    return kind.make(Setup(_asker(settings, client, kind.prompts, sample), benchmark.note, benchmark.task, options))


def _asker(settings: Settings, client: ChatClient, prompts: str, sample: int) -> Asker:
    model, sampling = settings.model_id(), settings.sampling
    return Asker(client, model, sampling, benchmark=prompts, repairs=settings.repairs, sample=sample)


def _place(endpoint: Endpoint, model: str) -> str:
    return digest({"structured replies of": endpoint.base_url, "model": model})


def _remembered(store: Store, endpoint: Endpoint, model: str) -> Structured:
    """How the endpoint takes reply schemas, as far as an earlier run found out."""
    found = store.get("latest", _place(endpoint, model))
    modes: dict[str, Structured] = {"json_schema": "json_schema", "json_object": "json_object", "text": "text"}
    return modes.get(found["structured"], "json_schema") if found else "json_schema"


async def _remember(store: Store, endpoint: Endpoint, model: str, structured: Structured) -> None:
    await store.put("latest", _place(endpoint, model), {"structured": structured})
