from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.socialiqa import ADAPTER
from rectom.errors import DataError
from tests.published import published

ROW = {
    "context": "Ann lost her key. Bob found it.",
    "question": "What will Ann want to do next?",
    "answerA": "sing",
    "answerB": "thank Bob",
    "answerC": "sleep",
}


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the two files, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    return published("socialiqa", "dev.jsonl") / "socialiqa"


@pytest.fixture(scope="module")
def dev(folder: Path) -> Benchmark:
    return ADAPTER.open("dev", folder.parent)


def made(tmp_path: Path, *changes: dict[str, Any], labels: str = "2\n") -> Path:
    """A folder with rows that differ from ROW in the given fields; a field given as ... is left out."""
    rows = [{k: v for k, v in {**ROW, **change}.items() if v is not ...} for change in changes]
    (tmp_path / "dev.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (tmp_path / "dev-labels.lst").write_text(labels)
    return tmp_path


def test_every_row_is_asked_once_with_its_words(folder: Path, dev: Benchmark) -> None:
    words = {story.id: " ".join(story.lines).split() for story in dev.stories}
    rows = [orjson.loads(line) for line in (folder / "dev.jsonl").read_bytes().splitlines()]
    labels = (folder / "dev-labels.lst").read_text().split()
    assert len(dev.questions) == len(rows) == 1954
    for number, (question, row, label) in enumerate(zip(dev.questions, rows, labels, strict=True), 1):
        assert question.id == str(number)
        assert words[question.story_id] == row["context"].split()
        assert question.text == row["question"]
        assert question.choices == (row["answerA"], row["answerB"], row["answerC"])
        assert question.gold == row["answer" + "ABC"["123".index(label)]]
    assert Counter(labels) == {"1": 643, "2": 654, "3": 657}


def test_what_it_is(dev: Benchmark) -> None:
    assert (dev.task, dev.scoring, len(dev.stories)) == ("", "accuracy", 1930)
    assert Counter(len(story.lines) for story in dev.stories) == {1: 1691, 2: 229, 3: 10}
    assert {question.order for question in dev.questions} == {None}
    (warning,) = dev.warnings
    assert warning.startswith("5 questions have two equal options (103, 429, 670, 878, 1259)")
    doubled = [question for question in dev.questions if len(set(question.choices)) < 3]
    assert [question.id for question in doubled] == ["103", "429", "670", "878", "1259"]


def test_the_sources_are_the_files(folder: Path, dev: Benchmark) -> None:
    for source in ADAPTER.sources:
        data = (folder / source.file).read_bytes()
        assert (source.sha256, source.size) == (sha256(data).hexdigest(), len(data))
    assert dev.digest not in {source.sha256 for source in ADAPTER.sources}


def test_a_row_by_itself(tmp_path: Path) -> None:
    file = made(tmp_path, {}) / "dev.jsonl"
    for place in (tmp_path, file):
        benchmark = ADAPTER.open("dev", place)
        (question,), (story,) = benchmark.questions, benchmark.stories
        assert story.lines == ("Ann lost her key.", "Bob found it.")
        assert (question.choices, question.gold) == (("sing", "thank Bob", "sleep"), "thank Bob")
        assert not benchmark.warnings


def test_questions_about_one_story_share_it(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("dev", made(tmp_path, {}, {"question": "Why?"}, labels="2\n1\n"))
    assert [(question.id, question.story_id) for question in benchmark.questions] == [("1", "1"), ("2", "1")]
    assert [story.id for story in benchmark.stories] == ["1"]


@pytest.mark.parametrize(
    ("changes", "labels", "fault"),
    [
        ([{}, {"context": ...}], "2\n2\n", r"dev\.jsonl, row 2: context: Field required"),
        ([{"answerC": " "}], "2\n", r"dev\.jsonl, row 1: answerC: "),
        ([{"question": 3}], "2\n", r"dev\.jsonl, row 1: question: .*string"),
        ([{}, {}], "2\n4\n", r"dev-labels\.lst, row 2: '4' is no label; a label is 1, 2 or 3"),
        ([{}], "A\n", r"dev-labels\.lst, row 1: 'A' is no label"),
        ([{}, {}], "2\n", r"dev\.jsonl holds 2 questions, dev-labels\.lst 1 labels: are they the right files\?"),
        ([], "", r"holds 0 questions"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, changes: list[dict[str, Any]], labels: str, fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        ADAPTER.open("dev", made(tmp_path, *changes, labels=labels))


def test_missing_files(tmp_path: Path) -> None:
    (made(tmp_path, {}) / "dev-labels.lst").unlink()
    with pytest.raises(DataError, match=r"no socialiqa data \(dev-labels\.lst\).*rectom data get socialiqa"):
        ADAPTER.open("dev", tmp_path)
    (tmp_path / "dev.jsonl").write_text("[1]")
    with pytest.raises(DataError, match=r"dev\.jsonl, row 1: the row: "):
        ADAPTER.open("dev", tmp_path)
