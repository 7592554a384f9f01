from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.exploretom import ADAPTER, kind_of, places
from rectom.errors import DataError
from tests.published import published

STORY = (
    "Ann entered the hall. Ann moved the small, old key to the tin box, which is also located in the hall. While this "
    "action was happening, Bob witnessed this action in secret (and only this action). Ann tied a bow to the key Bob "
    "entered the lobby. Ann moved the small, old key to the lobby, leaving the tin box in its original location. Ann "
    "left the hall. Bob moved the small, old key to the bag, which is also located in the lobby. Ann told privately to "
    "Bob that the small, old key is in the bag."
)
ROW = {
    "story": STORY,
    "infilled_story": "It was late.\n\nAnn came in!",
    "question": "In which container will Ann search for the small, old key?",
    "answer": "tin box",
}
#: Columns of the authors' file that are read, and some that are not.
COLUMNS = ["", "story_structure", "infilled_story", "question", "expected_answer", "qprop=params", "qprop=nth_order"]
BELIEFS = ["container", "room", "belief", "belief-1", "belief-2"]


@pytest.fixture(scope="module")
def file() -> Path:
    """The re-issued part, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    names = ("exploretom", "exploretom_2266.jsonl")
    return published(*names).joinpath(*names)


@pytest.fixture(scope="module")
def rows(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def benchmarks(file: Path) -> dict[str, Benchmark]:
    return {name: ADAPTER.open(name, file.parents[1]) for name in ADAPTER.subsets if not name.startswith("yes-no")}


def made(tmp_path: Path, *changes: dict[str, Any]) -> Path:
    """Rows that differ from ROW in the given fields; a field given as ... is left out."""
    rows = [{k: v for k, v in {**ROW, **change}.items() if v is not ...} for change in changes]
    (tmp_path / "some.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return tmp_path / "some.jsonl"


def official(tmp_path: Path, *rows: tuple[str, str, int], columns: list[str] = COLUMNS) -> Path:
    """Questions, answers and orders as the authors write them."""
    file = tmp_path / "ExploreToM-data-sample.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        lines = [[str(n), STORY, ROW["infilled_story"], q, a, "(…)", str(k)] for n, (q, a, k) in enumerate(rows)]
        csv.writer(opened).writerows([columns, *lines])
    return file


def test_the_subsets(benchmarks: dict[str, Benchmark]) -> None:
    assert {name: (len(b.stories), len(b.questions)) for name, b in benchmarks.items()} == {
        "container": (228, 651),
        "room": (274, 1009),
        "belief": (316, 1660),
        "belief-1": (176, 276),
        "belief-2": (296, 1384),
        "facts": (238, 606),
        "all": (327, 2266),
        "container-infilled": (177, 312),
        "room-infilled": (219, 576),
        "belief-infilled": (269, 888),
        "belief-1-infilled": (100, 118),
        "belief-2-infilled": (246, 770),
        "facts-infilled": (130, 178),
        "all-infilled": (293, 1066),
    }
    tasks = {name: b.task for name, b in benchmarks.items()}
    assert tasks == {name: "story" if name.removesuffix("-infilled") in BELIEFS else "" for name in tasks}
    assert {b.scoring for b in benchmarks.values()} == {"accuracy"}


def test_every_row_is_asked_once_with_its_words(rows: list[dict[str, Any]], benchmarks: dict[str, Benchmark]) -> None:
    for form, name in (("story", "all"), ("infilled_story", "all-infilled")):
        questions = {question.id: question for question in benchmarks[name].questions}
        stories = {story.id: " ".join(story.lines) for story in benchmarks[name].stories}
        told = {str(number): row for number, row in enumerate(rows, 1) if form in row}
        assert list(questions) == list(told)
        for number, row in told.items():
            assert stories[questions[number].story_id].split() == row[form].split()
            assert (questions[number].text, questions[number].gold) == (row["question"], row["answer"])


def test_kinds_and_orders_are_those_stated(rows: list[dict[str, Any]]) -> None:
    stated = [row for row in rows if "question_type" in row]
    assert len(stated) == 1066
    for row in stated:
        kind = kind_of(row["question"])
        assert kind.group == row["question_type"].removesuffix("-True").removesuffix("-False")
        assert kind.order == max(row["question_order"], 0)


def test_the_right_answer_is_of_the_kind_that_is_asked_for(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["answer"] in places(row["story"])[kind_of(row["question"]).place]


def test_options_are_places_of_the_story_and_say_nothing_of_its_order(
    rows: list[dict[str, Any]], benchmarks: dict[str, Benchmark]
) -> None:
    for question, row in zip(benchmarks["all"].questions, rows, strict=True):
        assert question.choices == tuple(sorted(set(question.choices)))
        assert all(f"the {choice}" in row["story"] for choice in question.choices)
        assert not any(mark in choice for choice in question.choices for mark in (".", ",", "moved"))
    sizes = Counter(len(question.choices) for question in benchmarks["all"].questions)
    assert sizes == {1: 118, 2: 30, 3: 906, 4: 974, 5: 224, 6: 14}


def test_what_users_are_told(benchmarks: dict[str, Benchmark]) -> None:
    assert benchmarks["container"].warnings == (
        "42 questions ask for a room or a container where the story has only one",
    )
    assert benchmarks["all"].warnings == (
        "948 questions ask for a room or a container where the story has only one",
        "118 questions have a single option",
        "1 questions repeat an earlier one",
    )
    assert benchmarks["all-infilled"].warnings[-1] == (
        "1200 more questions of this kind are left out, since their rows have no infilled story"
    )


def test_questions_and_stories_are_the_same_in_every_subset(benchmarks: dict[str, Benchmark]) -> None:
    for name, benchmark in benchmarks.items():
        whole = benchmarks["all-infilled" if name.endswith("-infilled") else "all"]
        assert set(benchmark.questions) <= set(whole.questions)
        assert set(benchmark.stories) <= set(whole.stories)
        assert {story.id for story in benchmark.stories} == {q.story_id for q in benchmark.questions}


def test_a_row_by_itself(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("container", made(tmp_path, {}))
    (question,), (story,) = benchmark.questions, benchmark.stories
    assert (question.id, question.story_id, question.order, question.group) == (
        "1",
        "story-001",
        1,
        "container_location",
    )
    assert question.choices == ("bag", "hall", "lobby", "tin box")
    assert len(story.lines) == 8
    assert story.lines[3] == "Ann tied a bow to the key Bob entered the lobby."
    (told,) = ADAPTER.open("container-infilled", made(tmp_path, {})).stories
    assert (told.id, told.lines) == ("infilled-001", ("It was late.", "Ann came in!"))


def test_the_file_of_the_authors(tmp_path: Path) -> None:
    asked = [
        ("In which room does Ann think that Bob will search for the small, old key?", "lobby", 2),
        ("In which container was the small, old key before Ann left the hall?", "tin box", -1),
        ("Does Bob know about the trip? Answer yes or no.", "no", 1),
        (
            "What does Ann think about Bob's belief on the trip? (knows about it / does not know about it)",
            "knows about it",
            2,
        ),
        ("Does Ann believe that the key is tied? Answer yes or no.", "yes", 1),
        ("Does Ann think that Bob believes that the key is tied? Answer yes or no.", "no", 2),
    ]
    file = official(tmp_path, *asked)
    whole = ADAPTER.open("all", file)
    assert [(q.text, q.gold, q.order) for q in whole.questions] == [(q, a, max(k, 0)) for q, a, k in asked]
    assert [q.group for q in whole.questions] == [
        "room_location",
        "memory_before_event-container_location",
        "knowledge",
        "knowledge",
        "state",
        "state",
    ]
    assert [q.choices for q in whole.questions][2:5] == [
        ("yes", "no"),
        ("knows about it", "does not know about it"),
        ("yes", "no"),
    ]
    assert [q.id for q in ADAPTER.open("yes-no", file).questions] == ["4", "5", "6", "7"]
    assert ADAPTER.open("yes-no", file).task == ""
    assert [q.id for q in ADAPTER.open("belief-2", tmp_path).questions] == ["2"]
    assert ADAPTER.sources[0].file == file.name


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([{}, {"story": ...}], r"row 2: story: Field required"),
        ([{"answer": ...}], r"row 1: answer: Field required"),
        ([{"question": "Where is Bob?"}], r"row 1: .*'Where is Bob\?' follows none of the templates"),
        ([{"answer": "moon"}], r"row 1: .*the answer 'moon' is none of the options bag, hall, lobby, tin box"),
        ([{"story": "Ann sat."}], r"row 1: .*is none of the options \(none\)"),
        ([{"story": " "}], r"row 1: story: "),
        ([{"question": 7}], r"row 1: question: .*string"),
        ([{"question": f"In which room is {'a ' * 500} now?"}], r"row 1: question: .*at most 1000"),
        ([{"question": "In which room is the key now?"}], r"holds no rows of exploretom/container: choose another"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, changes: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(
        DataError, match=rf"some\.jsonl,? {fault}" if fault.startswith("h") else rf"some\.jsonl, {fault}"
    ):
        ADAPTER.open("container", made(tmp_path, *changes))


def test_bad_rows_of_the_authors_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sample\.csv, row 3: .*follows none of the templates"):
        ADAPTER.open("all", official(tmp_path, ("In which room is the key now?", "lobby", -1), ("Why?", "yes", 1)))
    columns = [column.replace("expected_answer", "label") for column in COLUMNS]
    with pytest.raises(DataError, match=r"sample\.csv has no column 'expected_answer'; it has "):
        ADAPTER.open("all", official(tmp_path, columns=columns))
    with pytest.raises(DataError, match=r"sample\.csv holds no rows of exploretom/all"):
        ADAPTER.open("all", official(tmp_path))


def test_repeated_and_untold_rows_are_counted(tmp_path: Path) -> None:
    file = made(tmp_path, {}, {}, {"infilled_story": ...}, {"infilled_story": None})
    assert ADAPTER.open("all", file).warnings == ("2 questions repeat an earlier one",)
    infilled = ADAPTER.open("all-infilled", file)
    assert [question.id for question in infilled.questions] == ["1", "2"]
    assert (
        infilled.warnings[-1] == "2 more questions of this kind are left out, since their rows have no infilled story"
    )
