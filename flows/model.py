"""The model client and the readers that the settings of a run describe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from cache import Store, digest
from flows.local import started
from flows.replies import StoredReplies
from flows.serving import Serving
from flows.settings import BATCH, BATCH_FILE, EITHER, LIVE, MODEL, OFF, RULES, Endpoint, Settings
from flows.shared import Shared, limits_of
from rectom import prompts
from rectom.benchmarks.base import Benchmark
from rectom.errors import SettingsError
from rectom.llm import ChatClient, Retry, Structured, Timeouts, WouldSend
from rectom.llm.address import Address
from rectom.llm.batch import BatchTransport
from rectom.llm.batch_file import BatchFileTransport
from rectom.llm.catalogue import weights
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


@asynccontextmanager
async def open_client(
    settings: Settings, store: Store, *, offline: bool = False, shared: Shared | None = None
) -> AsyncIterator[ChatClient | None]:
    """The client of the settings' model; None if no step asks a model. `shared` is for runs side by side."""
    if not settings.asks_a_model():
        yield None
        return
    with _told_if_missing(settings.endpoint.local) as missing:
        offline = offline or missing
        async with (
            _served(settings, shared, offline=offline) as addressed,
            _opened(addressed, store, offline, shared) as client,
        ):
            yield client


@contextmanager
def _told_if_missing(serving: Serving | None) -> Iterator[bool]:
    """Whether the file of a model is not on this machine: then nothing can be sent, and that is an error."""
    if serving is None or serving.file.exists():
        yield False
        return
    try:
        yield True
    except WouldSend:
        name = next(name for name, found in weights().items() if found.file == serving.file.name)
        what = f"{serving.file} is not on this machine, and not every reply is in the store"
        raise SettingsError(f"{what}: rectom models get {name}") from None


@asynccontextmanager
async def _served(settings: Settings, shared: Shared | None, *, offline: bool) -> AsyncIterator[Settings]:
    """The settings with an address to ask at: where the model comes from a file, that of a server which is started."""
    serving = settings.endpoint.local
    if serving is None or offline:
        yield settings
        return
    with nullcontext(shared.server(serving)) if shared else started(serving) as server:
        # Weights take long to load, and who interrupts the program in the meantime is heard.
        try:
            address = await asyncio.to_thread(server.address)
        except asyncio.CancelledError:
            server.end()  # or the loop waits at its end for the thread, and that for the weights
            raise
        yield replace(settings, endpoint=replace(settings.endpoint, base_url=address))


@asynccontextmanager
async def _opened(settings: Settings, store: Store, offline: bool, shared: Shared | None) -> AsyncIterator[ChatClient]:
    endpoint = settings.endpoint
    if not (endpoint.base_url or offline or endpoint.transport == BATCH_FILE):
        raise SettingsError("no server for the model: give --base-url URL or set OPENAI_BASE_URL")
    structured = endpoint.structured or _remembered(store, endpoint, settings.model)
    with _claims(store, shared, needed=endpoint.transport == LIVE and not offline) as claims:
        async with _client(settings, store, structured, offline, claims, shared) as client:
            yield client
            if client.structured != structured:
                await _remember(store, endpoint, settings.model, client.structured)


def idle_client(settings: Settings, store: Store) -> ChatClient | None:
    """A client that is never opened, for readers that are asked nothing but their fields; None if none asks a model."""
    return _client(settings, store, "json_schema", True, None, None) if settings.asks_a_model() else None


@contextmanager
def _claims(store: Store, shared: Shared | None, *, needed: bool) -> Iterator[Claims | None]:
    """What keeps two runs over one store from sending the same request at once. Batches have their journal."""
    if shared or not needed:
        yield shared.claims if shared and needed else None
        return
    with closing(Claims(store.folder / "claims")) as claims:
        yield claims


def _client(
    settings: Settings,
    store: Store,
    structured: Structured,
    offline: bool,
    claims: Claims | None,
    shared: Shared | None,
) -> ChatClient:
    endpoint = settings.endpoint
    carrying = None if offline else _transport(endpoint, store.folder)  # nothing travels, and it may have no address
    client = ChatClient(
        endpoint.base_url or _NOWHERE,
        endpoint.api_key,
        replies=StoredReplies(store),
        limits=shared.limits(endpoint) if shared else limits_of([endpoint]),
        transport=shared.transport(endpoint, carrying) if shared else carrying,
        timeouts=Timeouts(first_byte=endpoint.timeout_s, total=endpoint.timeout_s),
        retry=_retry(endpoint),
        structured=structured,
        offline=offline,
        replay_failures=not settings.retry_failed,
        admit=lambda: _admit(settings, client, shared),
        claims=claims,
    )
    if shared:
        shared.purse.join(client.stats, settings.budget)
    return client


def _admit(settings: Settings, client: ChatClient, shared: Shared | None) -> None:
    """Raise BudgetReached if the run, or what it is a part of, has spent its budget."""
    settings.budget.check(client.stats)
    if shared:
        shared.purse.check()


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
    by_model = kind.by_model(asker, rules, settings.window, settings.verify)
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
    note = _note(settings, benchmark)
    return kind.make(Setup(_asker(settings, client, kind.prompts, sample), note, benchmark.task, options))


def _note(settings: Settings, benchmark: Benchmark) -> str:
    """The assumptions that come before every question: the benchmark's own, and the rules if some are named.

    RecToM's steps get what they need of the rules. Raises SettingsError where there are no words for them.
    """
    rules = settings.rule_set()
    if rules is None:
        return benchmark.note
    if benchmark.task != "hitom":
        raise SettingsError(f"the rules of {benchmark.name} have no words: leave --rules out for {settings.method}")
    return f"{benchmark.note}\nIn particular:\n{prompts.in_words(rules)}"


def _asker(settings: Settings, client: ChatClient, folder: str, sample: int) -> Asker:
    model, sampling = settings.model_id(), settings.sampling
    return Asker(client, model, sampling, benchmark=folder, repairs=settings.repairs, sample=sample)


def _place(endpoint: Endpoint, model: str) -> str:
    return digest({"structured replies of": endpoint.base_url, "model": model})


def _remembered(store: Store, endpoint: Endpoint, model: str) -> Structured:
    """How the endpoint takes reply schemas, as far as an earlier run found out."""
    found = store.get("latest", _place(endpoint, model))
    modes: dict[str, Structured] = {"json_schema": "json_schema", "json_object": "json_object", "text": "text"}
    return modes.get(found.get("structured", ""), "json_schema") if found else "json_schema"


async def _remember(store: Store, endpoint: Endpoint, model: str, structured: Structured) -> None:
    await store.put("latest", _place(endpoint, model), {"structured": structured})
