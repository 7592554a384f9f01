"""The options of a run, shared by the commands that take them, and the settings that they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from flows.home import home
from flows.local import LOCAL, file_of, revision_of
from flows.pipeline import STAGES
from flows.serving import Serving
from flows.settings import BATCH, BATCH_FILE, LIVE, MODEL, OFF, ON, PERMUTABLE, RECTOM, RULES, Endpoint, Settings
from flows.tolerance import Tolerance
from rectom.benchmarks.registry import adapter
from rectom.errors import SettingsError
from rectom.llm.address import Address
from rectom.llm.budget import Budget
from rectom.llm.catalogue import DeclaredLimits, DeclaredSampling, Provider, catalogue, read_prices
from rectom.llm.request import Sampling
from rectom.methods.registry import BUILT_IN
from rectom.rules import PRESETS


class Finite(click.FloatRange):
    """A number in a range; neither NaN nor infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number that can be used.", param, ctx)
        return number


class Count(click.IntRange):
    """A whole number of at least something, which the store can hold."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        number: int = super().convert(value, param, ctx)
        if number >= 2**63:
            self.fail(f"{value} is too large.", param, ctx)
        return number


_READING = (
    click.option("--model", default="rules", show_default=True, help="Model name, or `rules` for no model at all."),
    click.option("--base-url", default="", help="The server's address [that of the model, OPENAI_BASE_URL]."),
    click.option("--model-identity", help="What the model is, if its name does not say so: replies are kept by it."),
    click.option("--model-revision", default="", help="Tells two states of a model apart that bear one name."),
    click.option(
        "--reader", "readers", multiple=True, metavar="STEP=KIND", help="Give a step to `rules`, `model` or `either`."
    ),
    click.option(
        "--update",
        type=click.Choice([RULES, MODEL]),
        default=RULES,
        show_default=True,
        help="Who applies Eq. 1 to states: code, or the model (the paper's w/o-det).",
    ),
    click.option(
        "--state",
        type=click.Choice([ON, OFF]),
        default=ON,
        show_default=True,
        help="Whether perspectives have states, or are histories of events (the paper's w/o-state).",
    ),
    click.option(
        "--verify", is_flag=True, help="Check each step of the model by rule, and ask again what is violated."
    ),
    click.option(
        "--rules",
        type=click.Choice(list(PRESETS)),
        show_default="those of the text",
        help="What is observed, believed.",
    ),
    click.option("--window", default="story", show_default=True, help="Lines an abstraction call gets: `story` or N."),
    click.option("--temperature", type=Finite(0), help="0 for a model that is not declared."),
    click.option("--default-sampling", is_flag=True, help="Send no temperature: the server's own sampling."),
    click.option("--top-p", type=Finite(0, 1, min_open=True)),
    click.option("--top-k", type=Count(1)),
    click.option("--max-tokens", type=Count(1), help="Most tokens a reply may have."),
    click.option("--repairs", type=Count(0), default=2, show_default=True, help="Times a bad reply is asked again."),
    click.option("--concurrency", type=Count(1), help="Most requests in flight; 64 unless declared."),
    click.option("--per-second", type=Count(1), help="Most requests a second."),
    click.option("--per-minute", type=Count(1), help="Most requests a minute."),
    click.option("--tokens-per-minute", type=Count(1), help="Most tokens a minute."),
    click.option("--timeout", type=Finite(0.1), default=600.0, show_default=True, help="Seconds a request may take."),
    click.option("--attempts", type=Count(1), default=6, show_default=True, help="Times a failing request is tried."),
    click.option(
        "--structured",
        type=click.Choice(["auto", "json_schema", "json_object", "text"]),
        default="auto",
        show_default=True,
        help="How the server takes reply schemas.",
    ),
    click.option(
        "--transport",
        default=LIVE,
        show_default=True,
        metavar="live|batch|batch-file DIR",
        help="How requests travel: as they come, over the Batch API, or through files.",
    ),
    click.option("--max-calls", type=Count(0), help="Stop when so many requests were sent."),
    click.option("--max-tokens-total", type=Count(0), help="Stop when so many tokens were used."),
    click.option("--max-cost", type=Finite(0), help="Stop when so much money was spent."),
    click.option("--prices", type=click.Path(path_type=Path), help="A TOML file of prices."),
    click.option(
        "--cache",
        type=click.Path(path_type=Path),
        envvar="RECTOM_CACHE",
        help="The store [RECTOM_CACHE, .rectom/cache].",
    ),
)

_RUNNING = (
    click.argument("target", default="hitom/400", metavar="[BENCHMARK[/SUBSET]]"),
    click.option("--data", type=click.Path(path_type=Path), help="The benchmark's file or folder [RECTOM_DATA]."),
    click.option(
        "--method",
        default=RECTOM,
        show_default=True,
        metavar="NAME[:OPTION=VALUE,…]",
        help=f"Who answers: rectom, rectom-lite, {', '.join(BUILT_IN)}, or an installed one.",
    ),
    click.option(
        "--permute",
        "permuted",
        multiple=True,
        type=click.Choice(PERMUTABLE),
        help="Exchange the order of options, names or containers; repeatable.",
    ),
    click.option("--stories", type=Count(1), help="Only N stories, drawn at random, with all their questions."),
    click.option("--seed", type=Count(0), default=0, show_default=True, help="Of what --permute and --stories draw."),
    click.option("--limit", type=Count(1), help="Only the first N questions."),
    click.option("--shard", type=Count(1), help="Stories a shard; chosen by their number by default."),
    click.option("--samples", type=Count(1), default=1, show_default=True, help="Answers to each question."),
    click.option("--draw", type=Count(0), default=0, show_default=True, help="Another number draws other replies."),
    click.option("--retry-failed", is_flag=True, help="Ask again what failed, and only that."),
    click.option("--max-failures", metavar="N|N%", help="Stop when more questions than that failed."),
    click.option("--force", "forced", multiple=True, type=click.Choice(list(STAGES)), help="Compute a stage again."),
    click.option(
        "--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go."
    ),
    click.option("--name", help="The run's name; by default one that the same settings always get."),
)

#: Requests at once to a model from a file, and the tokens of context that each may have.
_SLOTS = 2
_CONTEXT = 8192

#: The most tokens that a reply of such a model may have: small ones may go on for ever.
_MOST_TOKENS = 2048

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _all(options: tuple[Any, ...]) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


reading_options: Decorator = _all(_READING)
run_options: Decorator = _all((*_RUNNING, *_READING))


def settings_from(options: dict[str, Any]) -> Settings:
    """The settings that the options give, over those of a declared model. Raises UsageError or SettingsError."""
    benchmark, _, subset = options.get("target", "hitom/400").partition("/")
    provider = _provider(options["model"])
    return Settings(
        benchmark=benchmark,
        subset=subset or adapter(benchmark).default,
        permuted=tuple(kind for kind in PERMUTABLE if kind in options.get("permuted", ())),
        seed=options.get("seed", 0),
        stories=options.get("stories"),
        data=options.get("data"),
        method=options.get("method", RECTOM),
        # A file's place on this machine is nothing that a result tells of.
        model=provider.name if options["model"].startswith(LOCAL) else options["model"],
        served_as=provider.name,
        identity=options["model_identity"] or provider.identity,
        revision=options["model_revision"] or provider.revision,
        readers=dict(_pair(text) for text in options["readers"]),
        update=options["update"],
        state=options["state"],
        verify=options["verify"],
        rules=options["rules"] or "",
        window=_window(options["window"]),
        sampling=_sampling(options, provider),
        samples=options.get("samples", 1),
        draw=options.get("draw", 0),
        repairs=options["repairs"],
        limit=options.get("limit"),
        forced=options.get("forced", ()),
        retry_failed=options.get("retry_failed", False),
        tolerance=Tolerance.parse(text) if (text := options.get("max_failures")) else Tolerance(),
        budget=_budget(options, provider),
        shard=options.get("shard"),
        endpoint=_endpoint(options, provider),
        cache=options["cache"] or home() / "cache",
        runs=options.get("runs", Path("runs")),
        name=options.get("name"),
    )


def _provider(model: str) -> Provider:
    """The declared model of a name; one that is served from a file, or that only the server knows, is sampled at 0."""
    if not model.strip():
        raise click.UsageError("--model: give a name, or `rules` for no model at all")
    if model.startswith(LOCAL):
        name = Serving(file_of(model)).name
        return Provider(
            name=name,
            revision=revision_of(model),
            structured="json_schema",
            sampling=DeclaredSampling(temperature=0.0, max_tokens=_MOST_TOKENS),
            limits=DeclaredLimits(concurrency=_SLOTS),
        )
    return catalogue().get(model) or Provider(name=model, sampling=DeclaredSampling(temperature=0.0))


def _local(options: dict[str, Any]) -> Serving | None:
    """How the file of `--model local:FILE` is served."""
    model = options["model"]
    if not model.startswith(LOCAL):
        return None
    return Serving(file_of(model), options["concurrency"] or _SLOTS, _CONTEXT)


def _sampling(options: dict[str, Any], provider: Provider) -> Sampling:
    given = {
        name: options[name] for name in ("temperature", "top_p", "top_k", "max_tokens") if options[name] is not None
    }
    if options["default_sampling"]:
        given.setdefault("temperature", None)
    return replace(provider.sampling.sampling(), **given)


def _endpoint(options: dict[str, Any], provider: Provider) -> Endpoint:
    limits = provider.limits
    transport, folder = _transport(options["transport"])
    address = provider.address(options["base_url"])
    asked = options["model"] != RULES and not options["model"].startswith(LOCAL) and transport != BATCH_FILE
    if options["base_url"] or (address and asked):
        Address.parse(address)  # before it is kept anywhere: it may hold a password
    return Endpoint(
        address,
        provider.api_key(),
        options["concurrency"] or limits.concurrency or 64,
        options["per_second"] or limits.per_second,
        options["per_minute"] or limits.per_minute,
        options["tokens_per_minute"] or limits.tokens_per_minute,
        options["timeout"],
        options["attempts"],
        provider.structured if options["structured"] == "auto" else options["structured"],
        transport,
        folder,
        _local(options),
    )


def _budget(options: dict[str, Any], provider: Provider) -> Budget:
    identity = options["model_identity"] or provider.identity or provider.name
    prices = provider.prices
    if options["prices"]:
        prices = read_prices(options["prices"]).get(identity, prices)
    cost = None if options["max_cost"] is None else Decimal(str(options["max_cost"]))
    batch = options["transport"] == BATCH
    budget = Budget(options["max_calls"], options["max_tokens_total"], cost, prices, batch)
    if cost is not None and budget.currency is None:
        which = f"{identity} in batches (batch_input, batch_output)" if batch and prices else identity
        raise SettingsError(f"--max-cost: the price of {which} is not known; declare it, or give --prices FILE")
    return budget


def _transport(text: str) -> tuple[str, Path | None]:
    kind, _, folder = text.partition(":")
    if kind == BATCH_FILE and folder:
        return kind, Path(folder)
    if folder or kind not in {LIVE, BATCH}:
        raise click.UsageError(f"--transport {text}: give live, batch, or batch-file DIR")
    return kind, None


def _pair(text: str) -> tuple[str, str]:
    step, sign, kind = text.partition("=")
    if not sign:
        raise click.UsageError(f"--reader {text}: write it as STEP=KIND, such as observe=rules")
    return step, kind


def _window(text: str) -> int | None:
    if text == "story":
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**63:
        raise click.UsageError(f"--window {text}: give `story` or a number of lines")
    return int(text)
