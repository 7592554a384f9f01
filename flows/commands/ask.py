"""`rectom ask STORY_FILE QUESTION`: any story, any question."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cache import Store
from flows import loop
from flows.accounts import trace_of
from flows.model import open_client, reader_of
from flows.options import reading_options, settings_from
from flows.pipeline import pipeline, run_plainly
from flows.settings import Settings
from rectom import grammar
from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError, StoryError
from rectom.results.outcome import Trace
from rectom.story import Question, Story
from tasks.run import Run, running

_ID = "asked"


@click.command(name="ask")
@click.argument("story_file", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("question")
@click.option("--choices", default="", help="The options: `box, basket` or `A. box, B. basket`.")
@reading_options
def command(story_file: Path, question: str, choices: str, **options: Any) -> int:
    """Ask QUESTION about the story in STORY_FILE (`-` for standard input): an event a line, numbered or not."""
    from rectom.results import show

    story = Story.parse(_read(story_file), _ID)
    asked = Question(_ID, _ID, question.strip(), _choices(choices, story))
    trace = loop.run(_ask(settings_from(options), story, asked))
    if trace.perspectives is not None:
        Console().print(show.table(trace.to_json()))
    if trace.failure:
        raise DataError(f"no answer: {trace.failure['step']}: {trace.failure['why']}")
    click.echo(trace.predicted)
    return 0


async def _ask(settings: Settings, story: Story, asked: Question) -> Trace:
    benchmark = Benchmark("ask", _ID, (story,), (asked,), hitom.note())
    with Store(settings.cache) as store:
        async with open_client(settings, store) as client:
            run = Run(benchmark, reader_of(settings, client, benchmark.note), store)
            with running(run):
                await pipeline([[story.id]], run_plainly)
    return trace_of(run, asked.id)


def _read(file: Path) -> str:
    try:
        return (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the story {file}: {error}") from None


def _choices(text: str, story: Story) -> tuple[str, ...]:
    """The options given; if none are, the containers of a story whose grammar tells them, else any place."""
    if not text.strip():
        try:
            return grammar.vocabulary(story.lines).containers
        except StoryError:
            return ()
    try:
        options = hitom.read_choices(text)
    except ValueError:
        options = tuple(part.strip() for part in re.split(r"[,;]", text) if part.strip())
    return tuple(dict.fromkeys(options))
