"""BigToM (Gandhi et al. 2023): 200 situations, each told in 25 conditions, with a question about a belief or an action.

The conditions are made here from the authors' one file, byte for byte as their script makes them. The two options
stand in the official order: one generator with seed 0 a condition, one shuffle of [correct, wrong] a row. Their score
looks for the correct letter as a substring first, so that an answer that names both letters passes; we score it wrong.

`forward_belief_true/017` is the question of the file's 17th row, and the story that it is the first to ask about.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.bigtom_conditions import CONDITIONS, Condition, Item, Row, read_rows
from rectom.story import Question, Story

_FILE: Final = "bigtom.csv"

#: Subsets of more than one condition: what they are, and their conditions' names.
_UNIONS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "400": (
        "forward belief, true and false: 400 questions, as many as the paper has",
        ("forward_belief_true", "forward_belief_false"),
    ),
    "forward_action": (
        "forward action, true and false, 400",
        ("forward_action_true", "forward_action_false"),
    ),
    "backward_belief": (
        "backward belief, true and false, 400",
        ("backward_belief_true", "backward_belief_false"),
    ),
    "all": (
        "every condition, 5,000 (the two backward controls are the same questions)",
        tuple(condition.name for condition in CONDITIONS),
    ),
}

#: The subsets by name: the unions and each condition alone.
SUBSETS: Final[dict[str, tuple[Condition, ...]]] = {
    name: tuple(condition for condition in CONDITIONS if condition.name in names)
    for name, (_, names) in _UNIONS.items()
} | {condition.name: (condition,) for condition in CONDITIONS}


def options(items: Iterable[Item]) -> list[tuple[str, str]]:
    """The two answers of each item of one condition, all its items in file order, as the official script shows them."""
    chance = random.Random(0)  # noqa: S311
    shown = []
    for item in items:
        pair = [item.correct, item.wrong]
        chance.shuffle(pair)
        shown.append((pair[0], pair[1]))
    return shown


def _name_stories(rows: Sequence[Row]) -> dict[tuple[str, ...], str]:
    """An id for each story: that of the first question about it, whatever the subset."""
    names: dict[tuple[str, ...], str] = {}
    for condition in CONDITIONS:
        for number, row in enumerate(rows, 1):
            names.setdefault(condition.item(row).story, _id(condition, number))
    return names


def _id(condition: Condition, number: int) -> str:
    return f"{condition.name}/{number:03d}"


def _number(story: str) -> str:
    """The row of a story: in the order of these its conditions are side by side, and the first few have all of them."""
    return story.rpartition("/")[-1]


def _questions(condition: Condition, rows: Sequence[Row], stories: dict[tuple[str, ...], str]) -> list[Question]:
    items = [condition.item(row) for row in rows]
    return [
        Question(
            id=_id(condition, number),
            story_id=stories[item.story],
            text=item.question,
            choices=choices,
            gold=item.correct,
            # What somebody will do is no nested belief, though it follows from one.
            order=None if condition.variable == "forward_action" else 1,
            group=condition.name,
        )
        for number, (item, choices) in enumerate(zip(items, options(items), strict=True), 1)
    ]


def _warnings(conditions: Iterable[Condition]) -> tuple[str, ...]:
    if not any(condition.variable == "percept_to_belief" for condition in conditions):
        return ()
    return (
        "the official answers of percept_to_belief are the beliefs after a change that its stories leave out, the "
        "opposite of what the controls call right: a perfect reader scores 0 there",
    )


def _load(files: Files, subset: str) -> Benchmark:
    file = str(files.path(_FILE))
    rows = read_rows(files.read(_FILE), file)
    names = _name_stories(rows)
    questions = [question for condition in SUBSETS[subset] for question in _questions(condition, rows, names)]
    asked = {question.story_id for question in questions}
    return Benchmark(
        name="bigtom",
        subset=subset,
        stories=tuple(
            Story(name, _lines(story))
            for story, name in sorted(names.items(), key=lambda item: _number(item[1]))
            if name in asked
        ),
        questions=tuple(questions),
        digest=files.digest,
        warnings=_warnings(SUBSETS[subset]),
        task="story",
    )


def _lines(pieces: tuple[str, ...]) -> tuple[str, ...]:
    """A story's pieces as its lines: each is one sentence, and a few end in a blank."""
    return tuple(piece.strip() for piece in pieces)


ADAPTER: Final = Adapter(
    name="bigtom",
    title="BigToM: what somebody believes or does after a change that they notice or miss (Gandhi et al. 2023)",
    load=_load,
    subsets={name: about for name, (about, _) in _UNIONS.items()}
    | {condition.name: f"the authors' {condition.folder}, 200" for condition in CONDITIONS},
    default="400",
    licence="MIT",
    sources=(
        Source(
            file=_FILE,
            addresses=(
                "https://raw.githubusercontent.com/cicl-stanford/procedural-evals-tom/main/data/bigtom/bigtom.csv",
            ),
            sha256="a14884fbff5b61d3fa194ab166764b553ab795fcb1359e69d1282eadf3011a46",
            size=273_557,
        ),
    ),
)
