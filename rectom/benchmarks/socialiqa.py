"""Social IQa (Sap et al. 2019): what people want, feel, need or do next in everyday situations.

Two files: the questions, and the number of the right option (1, 2 or 3) of each, a line a question. The labels of the
test set are not public, so that figures are those of the development set. The options stand in the published order.
No answer follows from who observed what, so that other methods than RecToM answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import checked, json_lines, text_of
from rectom.errors import DataError
from rectom.story import Question, Story, sentences

_QUESTIONS: Final = "dev.jsonl"
_LABELS: Final = "dev-labels.lst"
_ADDRESS: Final = "https://raw.githubusercontent.com/cicl-stanford/procedural-evals-tom/main/data/social_iqa/"


class Row(BaseModel):
    """A row of the file with the questions."""

    model_config = ConfigDict(frozen=True)

    context: str = Field(pattern=r"\S")
    question: str = Field(pattern=r"\S")
    first: str = Field(alias="answerA", pattern=r"\S")
    second: str = Field(alias="answerB", pattern=r"\S")
    third: str = Field(alias="answerC", pattern=r"\S")

    @property
    def options(self) -> tuple[str, str, str]:
        """The options in the published order."""
        return self.first, self.second, self.third


def read_rows(data: bytes, file: str) -> dict[int, Row]:
    """The checked rows of a file's bytes, by their numbers. Raises DataError with the first wrong row."""
    return {number: checked(Row, row, file, number) for number, row in json_lines(data, file)}


def read_labels(data: bytes, file: str) -> list[int]:
    """The numbers of the right options, from 1. Raises DataError with the first wrong line."""
    labels = text_of(data, file).splitlines()
    for number, label in enumerate(labels, 1):
        if label not in {"1", "2", "3"}:
            raise DataError(f"{file}, row {number}: {label[:20]!r} is no label; a label is 1, 2 or 3")
    return [int(label) for label in labels]


def _load(files: Files, subset: str) -> Benchmark:
    file = str(files.path(_QUESTIONS))
    rows = read_rows(files.read(_QUESTIONS), file)
    labels = read_labels(files.read(_LABELS), str(files.path(_LABELS)))
    if not rows or len(rows) != len(labels):
        raise DataError(
            f"{file} holds {len(rows)} questions, {_LABELS} {len(labels)} labels: are they the right files?"
        )
    names: dict[str, str] = {}
    for number, row in rows.items():
        names.setdefault(row.context, str(number))
    return Benchmark(
        name="socialiqa",
        subset=subset,
        stories=tuple(Story(name, sentences(context)) for context, name in names.items()),
        questions=tuple(
            Question(str(number), names[row.context], row.question, row.options, row.options[label - 1])
            for (number, row), label in zip(rows.items(), labels, strict=True)
        ),
        digest=files.digest,
        warnings=tuple(_warnings(rows)),
        task="",
    )


def _warnings(rows: dict[int, Row]) -> Iterator[str]:
    doubled = [str(number) for number, row in rows.items() if len(set(row.options)) < len(row.options)]
    if doubled:
        yield (
            f"{len(doubled)} questions have two equal options ({', '.join(doubled)}): an answer is judged by its "
            "words, so that either of them counts"
        )


ADAPTER: Final = Adapter(
    name="socialiqa",
    title="Social IQa: commonsense about social situations (Sap et al. 2019)",
    load=_load,
    subsets={"dev": "the development set, 1,954"},
    default="dev",
    licence="MIT (of the re-issue; the authors state none)",
    sources=(
        Source(
            file=_QUESTIONS,
            addresses=(f"{_ADDRESS}{_QUESTIONS}",),
            sha256="d8128dfe60783a9971b954ca82dd57b87b05d5d40468876d51a8e1ad2c557465",
            size=474_440,
        ),
        Source(
            file=_LABELS,
            addresses=(f"{_ADDRESS}{_LABELS}",),
            sha256="2d882ff71969d3980d37dd07aecdf9093c6e63e27c670f3a203bcf3b9b74bc05",
            size=3_908,
        ),
    ),
)
