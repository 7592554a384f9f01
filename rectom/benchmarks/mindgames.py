"""MindGames (Sileo and Lernould 2023): what can be known after public announcements, by dynamic epistemic logic.

A row of the test file has a premise, a hypothesis and a label, which a model checker found. The options are the two
labels as published. The hypothesis says what somebody can know (depth 0), or can know that another can know (depth
1): an order of 1 and 2. Here everything follows from what is announced about knowledge, and nothing from who observed
which event, so that other methods than RecToM answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import checked, records
from rectom.errors import DataError
from rectom.story import Question, Story, sentences

_FILE: Final = "test.csv"

Setup: TypeAlias = Literal["forehead", "forehead_mirror", "internal", "explicit"]
Label: TypeAlias = Literal["entailment", "not_entailment"]


class Row(BaseModel):
    """A row of the file; `index` is the authors' number of the problem."""

    model_config = ConfigDict(frozen=True)

    index: str = Field(pattern=r"^\d+$")
    premise: str = Field(pattern=r"\S")
    hypothesis: str = Field(pattern=r"\S")
    setup: Setup
    hypothesis_depth: Literal["0", "1"]
    label: Label

    def belongs(self, subset: str) -> bool:
        """Whether the row is in a subset."""
        return subset in {"test", self.setup, f"depth-{self.hypothesis_depth}"}

    def ask(self, story_id: str) -> Question:
        """The row as a question about a story."""
        return Question(
            id=self.index,
            story_id=story_id,
            text=f"Does this hypothesis follow from what is told? {self.hypothesis}",
            choices=("entailment", "not_entailment"),
            gold=self.label,
            order=int(self.hypothesis_depth) + 1,
            group=self.setup,
        )


def read_rows(data: bytes, file: str) -> Iterator[Row]:
    """The checked rows of a file's bytes. Raises DataError with the first wrong row."""
    numbers: dict[str, int] = {}
    for number, cells in records(data, file, Row.model_fields):
        row = checked(Row, cells, file, number)
        if row.index in numbers:
            raise DataError(f"{file}, row {number}: row {numbers[row.index]} has the index {row.index} already")
        numbers[row.index] = number
        yield row


def _load(files: Files, subset: str) -> Benchmark:
    file = str(files.path(_FILE))
    rows = list(read_rows(files.read(_FILE), file))
    names: dict[str, str] = {}
    for row in rows:
        names.setdefault(row.premise, row.index)
    chosen = [row for row in rows if row.belongs(subset)]
    if not chosen:
        raise DataError(f"{file} holds no rows of mindgames/{subset}: is it the right file?")
    stories = {row.premise: Story(names[row.premise], _lines(row.premise)) for row in chosen}
    questions = tuple(row.ask(names[row.premise]) for row in chosen)
    return Benchmark("mindgames", subset, tuple(stories.values()), questions, digest=files.digest, task="")


def _lines(premise: str) -> tuple[str, ...]:
    return sentences(premise)


ADAPTER: Final = Adapter(
    name="mindgames",
    title="MindGames: what follows about knowledge from announcements, in two orders (Sileo and Lernould 2023)",
    load=_load,
    subsets={
        "test": "the whole test file, 3,725",
        "forehead": "mud on foreheads that all others see, 932",
        "forehead_mirror": "the same with a mirror in the room, 921",
        "internal": "thirst, which each knows of himself only, 910",
        "explicit": "cards that are shown to some, 962",
        "depth-0": "what somebody can know, 1,592",
        "depth-1": "what somebody can know of what another can know, 2,133",
    },
    default="test",
    licence="Apache-2.0",
    sources=(
        Source(
            file=_FILE,
            addresses=("https://huggingface.co/datasets/sileod/mindgames/resolve/main/test.csv",),
            sha256="279aa13f7c3e1b5abd087e5270b4712dbb6593ae9a50de16b54ac652aea43fed",
            size=2_767_294,
        ),
    ),
)
