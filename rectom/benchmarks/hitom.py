"""Hi-ToM (Wu et al. 2023): loading and subsets.

A file of this schema is `{"data": [row, …]}`. Any such file loads: the published one, others, generated ones.
The questions of the prompting types CoTP and VP are the same; 138 of 600 labels are not. The VP labels come from
a fault that the authors later mended for CoTP, so scoring is on CoTP unless VP is asked for by name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark, digest_of
from rectom.errors import DataError, StoryError
from rectom.story import Question, Story

#: Named subsets: which prompting types and story lengths (chapters) they take.
SUBSETS: Final[dict[str, tuple[frozenset[str], frozenset[int]]]] = {
    "400": (frozenset({"CoTP"}), frozenset({1, 2})),
    "cotp": (frozenset({"CoTP"}), frozenset({1, 2, 3})),
    "vp": (frozenset({"VP"}), frozenset({1, 2, 3})),
    "length-1": (frozenset({"CoTP"}), frozenset({1})),
    "length-2": (frozenset({"CoTP"}), frozenset({2})),
    "length-3": (frozenset({"CoTP"}), frozenset({3})),
    "all": (frozenset({"CoTP", "VP"}), frozenset({1, 2, 3})),
}

_OPTION = re.compile(r"(?:^|, )([A-Z])\. ")


def read_choices(text: object) -> tuple[str, ...]:
    """`A. x, B. y, …` as options in order. Raises ValueError if the letters do not run from A."""
    parts = _OPTION.split(str(text))
    letters, options = parts[1::2], tuple(part.strip() for part in parts[2::2])
    if parts[0] or not options or letters != [chr(ord("A") + i) for i in range(len(options))]:
        raise ValueError("choices must read 'A. …, B. …' in alphabetical order")
    return options


def write_choices(options: tuple[str, ...]) -> str:
    """Options as Hi-ToM writes them; the inverse of `read_choices`."""
    return ", ".join(f"{chr(ord('A') + i)}. {option}" for i, option in enumerate(options))


class Row(BaseModel):
    """A row of the file."""

    model_config = ConfigDict(frozen=True)

    prompting_type: Literal["CoTP", "VP"]
    deception: bool
    story_length: int = Field(ge=1)
    question_order: int = Field(ge=0)
    sample_id: int = Field(ge=0)
    story: str
    question: str
    choices: Annotated[tuple[str, ...], BeforeValidator(read_choices)]
    answer: str


class _File(BaseModel):
    data: list[Row]


def note() -> str:
    """The assumptions that the paper of Hi-ToM gives and its file leaves out: for methods that take a text as it is."""
    return resources.files("rectom.benchmarks").joinpath("hitom_note.txt").read_text("utf-8").strip()


def load(file: Path, subset: str = "400") -> Benchmark:
    """Read a file and cut it to a subset. Raises DataError for an unknown subset, a missing or a wrong file."""
    if subset not in SUBSETS:
        raise DataError(f"hitom has no subset {subset!r}; it has {', '.join(SUBSETS)}")
    data = read_bytes(file)
    rows = read_rows(data, file)
    chosen = [row for row in rows if _belongs(row, subset)]
    if not chosen:
        others = [name for name in SUBSETS if any(_belongs(row, name) for row in rows)]
        raise DataError(f"{file} holds no rows of hitom/{subset}; of these it does: {', '.join(others) or 'none'}")
    warnings = _warnings(rows) if "VP" in SUBSETS[subset][0] else ()
    return benchmark("hitom", subset, chosen, name_stories(rows), data, warnings)


def benchmark(
    name: str, subset: str, rows: Sequence[Row], stories: Mapping[str, str], data: bytes, warnings: tuple[str, ...] = ()
) -> Benchmark:
    """The benchmark of some rows, read from `data`; `stories` gives the text of each story its id."""
    told = {stories[row.story]: Story.parse(row.story, stories[row.story]) for row in rows}
    questions = tuple(_question(row, stories[row.story]) for row in rows)
    return Benchmark(name, subset, tuple(told.values()), questions, note(), digest_of(data), warnings)


def _belongs(row: Row, subset: str) -> bool:
    types, lengths = SUBSETS[subset]
    return row.prompting_type in types and row.story_length in lengths


def read_bytes(file: Path) -> bytes:
    """A file's bytes; raises DataError if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        hint = "give --data FILE, set RECTOM_DATA, or run: rectom data get hitom"
        raise DataError(f"cannot read {file}: {error.strerror}; {hint}") from None


def read_rows(data: bytes, file: Path) -> list[Row]:
    """The checked rows of a file's bytes. Raises DataError that names the first wrong row and field."""
    try:
        return _File.model_validate(orjson.loads(data)).data
    except orjson.JSONDecodeError as error:
        raise DataError(f"{file} is not JSON: {error}") from None
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "the file"
        more = f" (and {error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
        raise DataError(f"{file} is not in Hi-ToM's schema: {place}: {fault['msg']}{more}") from None


def name_stories(rows: list[Row]) -> dict[str, str]:
    """A readable id for each story text: `tell-2-07` is the eighth two-chapter story with communication.

    CoTP and VP dress the same story in different instructions; what counts is its numbered lines.
    """
    by_lines: dict[tuple[str, ...], str] = {}
    counts: dict[str, int] = defaultdict(int)
    names = {}
    for row in rows:
        lines = _lines(row)
        if lines not in by_lines:
            group = f"{'tell' if row.deception else 'no-tell'}-{row.story_length}"
            by_lines[lines] = f"{group}-{counts[group]:02d}"
            counts[group] += 1
        names[row.story] = by_lines[lines]
    return names


def _lines(row: Row) -> tuple[str, ...]:
    try:
        return Story.parse(row.story).lines
    except StoryError:
        raise DataError(f"the row with sample_id {row.sample_id} holds no story") from None


def _question(row: Row, story_id: str) -> Question:
    return Question(str(row.sample_id), story_id, row.question.strip(), row.choices, row.answer, row.question_order)


def conflicts(rows: list[Row]) -> list[tuple[Row, Row]]:
    """The pairs of CoTP and VP rows that ask the same and are labelled differently."""
    asked: dict[tuple[tuple[str, ...], str], Row] = {}
    for row in rows:
        if row.prompting_type == "CoTP":
            asked[_lines(row), row.question.strip()] = row
    pairs = [(asked.get((_lines(row), row.question.strip())), row) for row in rows if row.prompting_type == "VP"]
    return [(cotp, vp) for cotp, vp in pairs if cotp and cotp.answer != vp.answer]


def _warnings(rows: list[Row]) -> tuple[str, ...]:
    pairs = len(conflicts(rows))
    if not pairs:
        return ()
    return (f"{pairs} labels of the VP rows contradict those of the same CoTP question; VP labels are faulty",)


_FILE: Final = "Hi-ToM_data.json"


def _load(files: Files, subset: str) -> Benchmark:
    return load(files.path(_FILE), subset)


ADAPTER: Final = Adapter(
    name="hitom",
    title="Hi-ToM: nested beliefs of orders 0 to 4 about where a thing is (Wu et al. 2023)",
    load=_load,
    subsets={
        "400": "CoTP, one and two chapters: 400 questions, as many as the paper has",
        "cotp": "CoTP, all 600",
        "vp": "VP, all 600 (138 of the labels contradict CoTP's)",
        "length-1": "CoTP, one chapter: 200",
        "length-2": "CoTP, two chapters: 200",
        "length-3": "CoTP, three chapters: 200",
        "all": "both prompting types, 1,200",
    },
    default="400",
    licence="Apache-2.0",
    sources=(
        Source(
            file=_FILE,
            addresses=(
                "https://raw.githubusercontent.com/ying-hui-he/Hi-ToM_dataset/main/Hi-ToM_data.json",
                "https://huggingface.co/datasets/Hi-ToM/Hi-ToM_Dataset/resolve/main/Hi-ToM_data.json",
            ),
            sha256="1c4077bbcdf815b91dbb791b60dbce3920a98bd63317954ebf94a532d43cd573",
            size=2_267_625,
        ),
    ),
)
