"""ToMi (Le et al. 2019): where an object is, was, and is believed to be, in stories of rooms and containers.

Two files. SimToM's thousand (Wilf et al. 2023) are 100 questions of each type from stories that say in which room a
container stands; their options stand in the published order. The authors' own test file repeats a story with each
of its six questions, and a second file names the type of each; it has no options, so that they are the two containers
of the story, in alphabetical order: in the order of the story, the second would be the answer wherever no belief is
false.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rectom.benchmarks import tomi_audit
from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import checked, json_lines, text_of
from rectom.errors import DataError, StoryError
from rectom.grammars.tomi import vocabulary
from rectom.story import Question, Story

_SIMTOM: Final = "simtom_test_balanced.jsonl"
_TEXT: Final = "fb_all_test.txt"
_TRACE: Final = "fb_all_test.trace"

QuestionType: TypeAlias = Literal[
    "memory",
    "reality",
    "first_order_0_no_tom",
    "first_order_0_tom",
    "first_order_1_no_tom",
    "first_order_1_tom",
    "second_order_0_no_tom",
    "second_order_0_tom",
    "second_order_1_no_tom",
    "second_order_1_tom",
]


class Row(BaseModel):
    """A question. In its type, 0 and 1 tell who is asked about; `tom` that the answer is not the object's place."""

    model_config = ConfigDict(frozen=True)

    story: str = Field(min_length=1)
    question: str
    answer: str
    question_type: QuestionType
    containers: tuple[str, str]

    @model_validator(mode="after")
    def _answerable(self) -> Row:
        if self.answer not in self.containers:
            raise ValueError(f"the answer {self.answer!r} is none of the containers {', '.join(self.containers)}")
        return self

    @property
    def order(self) -> int:
        """How deep the belief is nested, 0 to 2."""
        return {"first": 1, "second": 2}.get(self.question_type.partition("_")[0], 0)


def read_simtom(data: bytes, file: str = _SIMTOM) -> list[Row]:
    """The rows of SimToM's file. Raises DataError for the first wrong one."""
    rows = [checked(Row, row, file, number) for number, row in json_lines(data, file)]
    if not rows:
        raise DataError(f"{file} holds no questions: is it the right file?")
    return rows


def read_test(text: bytes, trace: bytes) -> list[Row]:
    """The rows of the authors' file and of the one with their types. Raises DataError for the first wrong one."""
    asked = list(_blocks(text_of(text, _TEXT)))
    types = [line.rpartition(",")[0].rpartition(",")[2] for line in text_of(trace, _TRACE).splitlines()]
    if not asked or len(asked) != len(types):
        raise DataError(
            f"{_TRACE} has {len(types)} rows for the {len(asked)} questions of {_TEXT}; take both from the same archive"
        )
    return [
        checked(Row, {**row, "question_type": kind, "containers": _containers(row["story"], number)}, _TEXT, number)
        for (number, row), kind in zip(asked, types, strict=True)
    ]


def _blocks(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Story, question and answer of each block of numbered lines, with the row of its last line, the question."""
    lines: list[str] = []
    for row, line in enumerate(text.splitlines(), 1):
        number, _, written = line.partition(" ")
        if number != str(len(lines) + 1):
            raise DataError(f"{_TEXT}, row {row}: line {len(lines) + 1} of a story is expected here, not {line[:40]!r}")
        question, *rest = written.split("\t")
        if not rest:
            lines.append(line)
            continue
        if len(rest) != 2 or not lines:
            raise DataError(f"{_TEXT}, row {row}: not a story's 'QUESTION<tab>ANSWER<tab>1', but {line[:60]!r}")
        yield row, {"story": "\n".join(lines), "question": question, "answer": rest[0]}
        lines = []
    if lines:
        raise DataError(f"{_TEXT} ends within a story: download it again")


def _containers(story: str, row: int) -> tuple[str, ...]:
    try:
        return tuple(sorted(vocabulary(Story.parse(story).lines).containers))
    except StoryError as error:
        raise DataError(f"{_TEXT}, the story before row {row}: {error}") from None


def _benchmark(rows: list[Row], subset: str, digest: str) -> Benchmark:
    names: dict[str, str] = {}
    for row in rows:
        names.setdefault(row.story, f"story-{len(names) + 1:03d}")
    return Benchmark(
        "tomi",
        subset,
        tuple(Story.parse(text, name) for text, name in names.items()),
        tuple(_question(row, number, names[row.story]) for number, row in enumerate(rows, 1)),
        digest=digest,
        warnings=_WARNINGS.get(subset, ()),
        task="tomi",
    )


def _question(row: Row, number: int, story: str) -> Question:
    """A question by its number in the file and its type: `0017-memory`."""
    name = f"{number:04d}-{row.question_type}"
    return Question(name, story, row.question, row.containers, row.answer, row.order, row.question_type)


#: What a user should know about a subset.
_WARNINGS: Final = {"test": ("some second-order labels are faults of the generator: see rectom data audit tomi",)}


def load(files: Files, subset: str) -> Benchmark:
    """Read a subset. Raises DataError for missing and wrong files."""
    rows = read_simtom(files.read(_SIMTOM)) if subset == "1000" else read_test(files.read(_TEXT), files.read(_TRACE))
    return _benchmark(rows, subset, files.digest)


def audit(files: Files) -> list[str]:
    """The labels of both subsets that the rules do not give, by reason; a line each. Raises DataError as `load`."""
    return [line for subset in SUBSETS for line in tomi_audit.report(load(files, subset))]


SUBSETS: Final = {
    "1000": "SimToM's thousand, 100 of each question type",
    "test": "the authors' test file, 5,994 (464 second-order labels are in doubt)",
}

_ARCHIVE: Final = (
    "https://raw.githubusercontent.com/facebookresearch/ToMi/be9a664dcab839a5732a0cdcae49350d101c5439/"
    "tomi_balanced_story_types.zip",
)

ADAPTER: Final = Adapter(
    name="tomi",
    title="ToMi: first- and second-order beliefs about where a thing is (Le et al. 2019)",
    load=load,
    subsets=SUBSETS,
    default="1000",
    licence="1000: MIT; test: CC-BY-NC-4.0",
    sources=(
        Source(
            file=_SIMTOM,
            addresses=(
                "https://raw.githubusercontent.com/shawnsihyunlee/simulatedtom/"
                "60e4acf10ecc7e75ba85faa5264d0d1a43a6bf68/data/fixedtomi/test_balanced.jsonl",
            ),
            sha256="f6c029c38366fe657123b422fb8e5604ca9cf9b0bba3b49c9fe5a6ad1b10a294",
            size=527_456,
        ),
        Source(file=_TEXT, addresses=_ARCHIVE, sha256="", size=0, member=f"tomi_balanced_story_types/{_TEXT}"),
        Source(file=_TRACE, addresses=_ARCHIVE, sha256="", size=0, member=f"tomi_balanced_story_types/{_TRACE}"),
    ),
    audit=audit,
)
