"""The options of a run, shared by the commands that take them, and the settings that they give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from flows.home import home
from flows.pipeline import STAGES
from flows.settings import Endpoint, Settings
from rectom.rules import DEFAULT, PRESETS

_READING = (
    click.option("--model", default="rules", show_default=True, help="Model name, or `rules` for no model at all."),
    click.option("--base-url", envvar="OPENAI_BASE_URL", default="", help="The server's address [OPENAI_BASE_URL]."),
    click.option("--model-identity", help="What the model is, if its name does not say so: replies are kept by it."),
    click.option("--model-revision", default="", help="Tells two states of a model apart that bear one name."),
    click.option(
        "--reader", "readers", multiple=True, metavar="STEP=KIND", help="Give a step to `rules` or `model`; repeatable."
    ),
    click.option(
        "--rules",
        type=click.Choice(list(PRESETS)),
        default=DEFAULT,
        show_default=True,
        help="What is observed, believed.",
    ),
    click.option("--window", default="story", show_default=True, help="Lines an abstraction call gets: `story` or N."),
    click.option("--temperature", type=click.FloatRange(0), default=0.0, show_default=True),
    click.option("--default-sampling", is_flag=True, help="Send no temperature: the server's own sampling."),
    click.option("--top-p", type=click.FloatRange(0, 1)),
    click.option("--top-k", type=click.IntRange(1)),
    click.option("--max-tokens", type=click.IntRange(1), help="Most tokens a reply may have."),
    click.option(
        "--repairs", type=click.IntRange(0), default=2, show_default=True, help="Times a bad reply is asked again."
    ),
    click.option(
        "--concurrency", type=click.IntRange(1), default=64, show_default=True, help="Most requests in flight."
    ),
    click.option(
        "--timeout", type=click.FloatRange(0.1), default=600.0, show_default=True, help="Seconds a request may take."
    ),
    click.option(
        "--attempts", type=click.IntRange(1), default=6, show_default=True, help="Times a failing request is tried."
    ),
    click.option(
        "--cache",
        type=click.Path(path_type=Path),
        envvar="RECTOM_CACHE",
        help="The store [RECTOM_CACHE, .rectom/cache].",
    ),
)

_RUNNING = (
    click.argument("target", default="hitom/400", metavar="[BENCHMARK[/SUBSET]]"),
    click.option("--data", type=click.Path(path_type=Path), help="The benchmark's file [RECTOM_DATA]."),
    click.option("--limit", type=click.IntRange(1), help="Only the first N questions."),
    click.option("--shard", type=click.IntRange(1), help="Stories a shard; chosen by their number by default."),
    click.option("--force", "forced", multiple=True, type=click.Choice(list(STAGES)), help="Compute a stage again."),
    click.option(
        "--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go."
    ),
    click.option("--name", help="The run's name; by default one that the same settings always get."),
)

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
    """The settings that the options give. Raises click.UsageError where they make no sense."""
    import os

    benchmark, _, subset = options.pop("target", "hitom/400").partition("/")
    return Settings(
        benchmark=benchmark,
        subset=subset or "400",
        data=options.get("data"),
        model=options["model"],
        identity=options["model_identity"],
        revision=options["model_revision"],
        readers=dict(_pair(text) for text in options["readers"]),
        rules=options["rules"],
        window=_window(options["window"]),
        temperature=None if options["default_sampling"] else options["temperature"],
        top_p=options["top_p"],
        top_k=options["top_k"],
        max_tokens=options["max_tokens"],
        repairs=options["repairs"],
        limit=options.get("limit"),
        forced=options.get("forced", ()),
        shard=options.get("shard"),
        endpoint=Endpoint(
            options["base_url"],
            os.environ.get("OPENAI_API_KEY") or None,
            options["concurrency"],
            options["timeout"],
            options["attempts"],
        ),
        cache=options["cache"] or home() / "cache",
        runs=options.get("runs", Path("runs")),
        name=options.get("name"),
    )


def _pair(text: str) -> tuple[str, str]:
    step, sign, kind = text.partition("=")
    if not sign:
        raise click.UsageError(f"--reader {text}: write it as STEP=KIND, such as observe=rules")
    return step, kind


def _window(text: str) -> int | None:
    if text == "story":
        return None
    if not text.isdigit() or int(text) < 1:
        raise click.UsageError(f"--window {text}: give `story` or a number of lines")
    return int(text)
