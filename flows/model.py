"""The model client and the readers that the settings of a run describe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cache import Store, digest
from flows.replies import StoredReplies
from flows.settings import MODEL, RULES, Endpoint, Settings
from rectom.errors import SettingsError
from rectom.llm import ChatClient, Limits, Retry, Structured, Timeouts
from rectom.llm.stats import Stats
from rectom.reader.asking import Asker
from rectom.reader.base import Reader, SharedReader
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader


@asynccontextmanager
async def open_client(settings: Settings, store: Store, *, offline: bool = False) -> AsyncIterator[ChatClient | None]:
    """The client of the settings' model; None if no step asks a model."""
    if not settings.asks_a_model():
        yield None
        return
    endpoint = settings.endpoint
    if not endpoint.base_url:
        raise SettingsError("no server for the model: give --base-url URL or set OPENAI_BASE_URL")
    structured = endpoint.structured or _remembered(store, endpoint, settings.model)
    async with _client(settings, store, structured, offline) as client:
        yield client
        if client.structured != structured:
            await _remember(store, endpoint, settings.model, client.structured)


def _client(settings: Settings, store: Store, structured: Structured, offline: bool) -> ChatClient:
    endpoint = settings.endpoint
    client = ChatClient(
        endpoint.base_url,
        endpoint.api_key,
        replies=StoredReplies(store),
        limits=Limits(
            endpoint.concurrency,
            per_second=endpoint.per_second,
            per_minute=endpoint.per_minute,
            tokens_per_minute=endpoint.tokens_per_minute,
        ),
        timeouts=Timeouts(total=endpoint.timeout_s),
        retry=Retry(attempts=endpoint.attempts),
        structured=structured,
        offline=offline,
        replay_failures=not settings.retry_failed,
        admit=lambda: settings.budget.check(client.stats),
    )
    return client


def stats_of(client: ChatClient | None) -> Stats:
    """What a client has done; nothing, if there is none."""
    return client.stats if client else Stats()


def reader_of(settings: Settings, client: ChatClient | None, note: str, sample: int = 0) -> Reader:
    """The reader of the settings, for one sample of the model's replies."""
    rules = settings.rule_set()
    if client is None:
        return RuleReader(rules)
    asker = Asker(client, settings.model_id(), settings.sampling, repairs=settings.repairs, sample=sample)
    kinds: dict[str, Reader] = {
        RULES: RuleReader(rules),
        MODEL: ModelReader(asker, rules, note=note, window=settings.window),
    }
    return SharedReader({step: kinds[kind] for step, kind in settings.by_step().items()})


def _place(endpoint: Endpoint, model: str) -> str:
    return digest({"structured replies of": endpoint.base_url, "model": model})


def _remembered(store: Store, endpoint: Endpoint, model: str) -> Structured:
    """How the endpoint takes reply schemas, as far as an earlier run found out."""
    found = store.get("latest", _place(endpoint, model))
    modes: dict[str, Structured] = {"json_schema": "json_schema", "json_object": "json_object", "text": "text"}
    return modes.get(found["structured"], "json_schema") if found else "json_schema"


async def _remember(store: Store, endpoint: Endpoint, model: str, structured: Structured) -> None:
    await store.put("latest", _place(endpoint, model), {"structured": structured})
