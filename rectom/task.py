"""The kinds of text that RecToM reads, each with its task description: rules, prompts, and readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError
from rectom.grammars import tomi
from rectom.reader.asking import Asker
from rectom.reader.base import Reader
from rectom.reader.dialogue import DIALOGUE_RULES, DialogueReader, DialogueRules, in_dialogue
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader
from rectom.reader.story import STORY_RULES, StoryReader, StoryRules
from rectom.reader.tomi import TomiModelReader, TomiReader
from rectom.rules import PRESETS, Rules
from rectom.story import Vocabulary
from rectom.words import words_of


class MakeReader(Protocol):
    """Makes a reader that asks a model: given who asks, the rules, the size of a window, and whether to verify."""

    def __call__(self, asker: Asker, rules: Rules, window: int | None = None, verify: bool = False) -> Reader:
        """The reader."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of text.

    `prompts` is the folder of its prompts; `rules` what a character observes and believes unless other rules are
    asked for. `by_rule` makes the reader that needs no model, as far as there is a grammar; `by_model` the one
    that asks a model, given the asker, the rules and the size of a window.
    `words` gives the vocabulary of a story's lines. `asks_for_people` tells whether where people are may be asked
    for: otherwise the answer is given without that. `in_view` tells whether a story is read with the questions about it
    in view: of a text without a `grammar` more can be said than any question needs, and rules alone read none of it.
    """

    prompts: str
    rules: Rules
    by_rule: Callable[[Rules], Reader]
    by_model: MakeReader
    words: Callable[[Sequence[str]], Vocabulary] = words_of
    asks_for_people: bool = True
    in_view: bool = False
    grammar: bool = True


def _model(kind: type[ModelReader]) -> MakeReader:
    def make(asker: Asker, rules: Rules, window: int | None = None, verify: bool = False) -> Reader:
        return kind(asker, rules, window=window, verify=verify)

    return make


TASKS: Final[Mapping[str, Task]] = {
    "hitom": Task("hitom", PRESETS["hitom"], RuleReader, _model(ModelReader), asks_for_people=False),
    "tomi": Task(
        "tomi", PRESETS["hitom"], TomiReader, _model(TomiModelReader), partial(words_of, read=tomi.vocabulary), False
    ),
    "story": Task("story", STORY_RULES, StoryRules, _model(StoryReader), in_view=True, grammar=False),
    "dialogue": Task("dialogue", DIALOGUE_RULES, DialogueRules, _model(DialogueReader), in_dialogue, grammar=False),
}


def in_view(benchmark: Benchmark) -> Benchmark:
    """The benchmark as its kind of text is read: with the questions about a story in view, or without."""
    kind = TASKS.get(benchmark.task)
    return benchmark.in_view() if kind and kind.in_view else benchmark


def task(name: str) -> Task:
    """The kind of text that a benchmark names. Raises DataError if RecToM cannot read it."""
    if not name:
        raise DataError("these questions ask for no belief that RecToM could build: choose a --method such as cot")
    if name not in TASKS:
        raise DataError(f"RecToM reads texts of the kinds {', '.join(TASKS)}, not {name!r}: choose another --method")
    return TASKS[name]
