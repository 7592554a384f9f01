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
from rectom.printable import printable
from rectom.reader.utterances import utterance
from rectom.results.outcome import Trace
from rectom.story import Question, Story
from rectom.task import in_view
from tasks.run import Run, running

_ID = "asked"
_KINDS = ("hitom", "story", "dialogue")


@click.command(name="ask")
@click.argument("story_file", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("question")
@click.option("--choices", default="", help="The options: `box, basket` or `A. box, B. basket`.")
@click.option(
    "--text",
    "kind",
    type=click.Choice(["auto", *_KINDS]),
    default="auto",
    show_default=True,
    help="The kind of text: lines of Hi-ToM's grammar, a natural story, a dialogue (`Name: words` lines).",
)
@reading_options
def command(story_file: Path, question: str, choices: str, kind: str, **options: Any) -> int:
    """Ask QUESTION about the story in STORY_FILE (`-` for standard input): an event a line, numbered or not."""
    from rectom.results import show

    story = Story.parse(_read(story_file), _ID)
    asked = Question(_ID, _ID, question.strip(), _choices(choices, story))
    kind = _kind(story) if kind == "auto" else kind
    trace = loop.run(_ask(settings_from(options), story, asked, kind))
    if trace.perspectives is not None:
        Console().print(show.table(trace.to_json()))
    if trace.failure:
        raise DataError(f"no answer: {trace.failure['step']}: {trace.failure['why']}")
    click.echo(printable(trace.predicted or ""))
    return 0


def _kind(story: Story) -> str:
    """A dialogue if most lines are utterances, Hi-ToM if its grammar reads all of them, and otherwise a story."""
    if 2 * sum(utterance(line) is not None for line in story.lines) > len(story.lines):
        return "dialogue"
    try:
        grammar.vocabulary(story.lines)
    except StoryError:
        return "story"
    return "hitom"


async def _ask(settings: Settings, story: Story, asked: Question, kind: str) -> Trace:
    benchmark = Benchmark("ask", _ID, (story,), (asked,), hitom.note() if kind == "hitom" else "", task=kind)
    with Store(settings.cache) as store:
        async with open_client(settings, store) as client:
            run = Run(in_view(benchmark), reader_of(settings, client, benchmark), store)
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
