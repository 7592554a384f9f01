from __future__ import annotations

import csv
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.mindgames import ADAPTER
from rectom.errors import DataError
from tests.published import published

HEADER = "index,premise,hypothesis,setup,hypothesis_depth,label,other"
ROW = "7,Ann is thirsty. Bob is told so.,Bob can now know that Ann is thirsty.,internal,0,entailment,x"


@pytest.fixture(scope="module")
def file() -> Path:
    """The test file, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    return published("mindgames", "test.csv") / "mindgames" / "test.csv"


@pytest.fixture(scope="module")
def benchmarks(file: Path) -> dict[str, Benchmark]:
    return {subset: ADAPTER.open(subset, file.parents[1]) for subset in ADAPTER.subsets}


def made(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    file = tmp_path / "some.csv"
    file.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return file


def test_the_subsets(benchmarks: dict[str, Benchmark]) -> None:
    assert {name: (len(b.stories), len(b.questions)) for name, b in benchmarks.items()} == {
        "test": (3401, 3725),
        "forehead": (834, 932),
        "forehead_mirror": (772, 921),
        "internal": (833, 910),
        "explicit": (962, 962),
        "depth-0": (1536, 1592),
        "depth-1": (1899, 2133),
    }
    assert all(f"{len(b.questions):,}" in ADAPTER.subsets[name] for name, b in benchmarks.items())
    assert {(b.task, b.scoring, b.warnings) for b in benchmarks.values()} == {("", "accuracy", ())}


def test_every_row_is_asked_once_with_its_words(file: Path, benchmarks: dict[str, Benchmark]) -> None:
    whole = benchmarks["test"]
    stories = {story.id: " ".join(story.lines) for story in whole.stories}
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [question.id for question in whole.questions] == [row["index"] for row in rows]
    for question, row in zip(whole.questions, rows, strict=True):
        assert stories[question.story_id] == row["premise"]
        assert question.text.endswith(f"? {row['hypothesis']}")
        assert (question.gold, question.group) == (row["label"], row["setup"])
        assert question.order == int(row["hypothesis_depth"]) + 1
        assert question.choices == ("entailment", "not_entailment")
    assert Counter(question.gold for question in whole.questions) == {"entailment": 1823, "not_entailment": 1902}


def test_a_story_bears_the_number_of_the_first_question_about_it(benchmarks: dict[str, Benchmark]) -> None:
    first: dict[str, str] = {}
    for question in benchmarks["test"].questions:
        first.setdefault(question.story_id, question.id)
    assert all(story == question for story, question in first.items())
    assert len(first) == 3401


def test_a_line_is_a_sentence(benchmarks: dict[str, Benchmark]) -> None:
    assert benchmarks["test"].stories[0].lines[:2] == ("There are two persons.", "Everyone is visible to others.")
    assert {line[-1] for story in benchmarks["test"].stories for line in story.lines} == {"."}


def test_questions_and_stories_are_the_same_in_every_subset(benchmarks: dict[str, Benchmark]) -> None:
    questions = {question.id: question for question in benchmarks["test"].questions}
    stories = {story.id: story for story in benchmarks["test"].stories}
    for benchmark in benchmarks.values():
        assert all(questions[question.id] == question for question in benchmark.questions)
        assert all(stories[story.id] == story for story in benchmark.stories)
        assert {story.id for story in benchmark.stories} == {q.story_id for q in benchmark.questions}


def test_the_source_is_the_file(file: Path, benchmarks: dict[str, Benchmark]) -> None:
    (source,) = ADAPTER.sources
    data = file.read_bytes()
    assert (source.sha256, source.size) == (sha256(data).hexdigest(), len(data))
    assert {benchmark.digest for benchmark in benchmarks.values()} == {source.sha256}


def test_a_row_by_itself(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("internal", made(tmp_path, ROW))
    (question,), (story,) = benchmark.questions, benchmark.stories
    assert (question.id, question.story_id, story.id) == ("7", "7", "7")
    assert story.lines == ("Ann is thirsty.", "Bob is told so.")
    assert question.text == "Does this hypothesis follow from what is told? Bob can now know that Ann is thirsty."


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([ROW.replace("entailment", "neutral")], r"row 2: label: .*'entailment' or 'not_entailment'"),
        ([ROW, ROW.replace("7,Ann", "8, ").replace(" is thirsty. Bob is told so.", "", 1)], r"row 3: premise: "),
        ([ROW.replace("internal", "outside")], r"row 2: setup: "),
        ([ROW.replace(",0,", ",2,")], r"row 2: hypothesis_depth: "),
        ([ROW.replace("7,", ",", 1)], r"row 2: index: "),
        ([ROW, ROW], r"row 3: row 2 has the index 7 already"),
        ([ROW, "8,Ann is thirsty."], r"row 3: 2 cells where the header has 7"),
        ([], r"holds no rows of mindgames/test: is it the right file\?"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: list[str], fault: str) -> None:
    with pytest.raises(DataError, match=rf"some\.csv[,:]? ?{fault}"):
        ADAPTER.open("test", made(tmp_path, *rows))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"some\.csv has no column 'label'"):
        ADAPTER.open("test", made(tmp_path, ROW, header=HEADER.replace("label", "gold")))
    with pytest.raises(DataError, match=r"some\.csv holds no rows of mindgames/forehead"):
        ADAPTER.open("forehead", made(tmp_path, ROW))
    (tmp_path / "some.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"some\.csv is not UTF-8"):
        ADAPTER.open("test", tmp_path / "some.csv")
