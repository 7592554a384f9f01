from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.bigtom import ADAPTER, options
from rectom.benchmarks.bigtom_conditions import CONDITIONS, Condition, Row, read_rows
from rectom.errors import DataError
from rectom.story import Story
from tests.published import published

ROW = [
    "Ann is a cook. Ann wants tea. Ann fills a pot. Ann believes that the pot is full. A guest empties the pot.",
    "Ann sees it.",
    "Ann does not see it.",
    "Ann fills the pot again.",
    "Ann pours the tea.",
    "Is the pot full?",
    "Does Ann want tea?",
    "What will Ann do?",
    "Ann believes that it is empty.",
    "Ann wants tea.",
    "Ann will fill it.",
    "Ann believes that it is full.",
    "Ann wants tea.",
    "Ann will pour.",
    "A bird sings.",
    "Ann hears it.",
    "Ann does not hear it.",
    "auto",
    "0",
]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The data folder, from RECTOM_DATA or ../shared/data; without BigToM in it the test is skipped."""
    return published("bigtom", "bigtom.csv")


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[Row]:
    return read_rows((folder / "bigtom" / "bigtom.csv").read_bytes(), "bigtom.csv")


@pytest.fixture(scope="module")
def everything(folder: Path) -> Benchmark:
    return ADAPTER.open("all", folder)


def small(tmp_path: Path, *changes: dict[int, str]) -> Path:
    """A file whose rows differ from ROW in the given cells."""
    file = tmp_path / "some.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, delimiter=";").writerows(
            [change.get(i, cell) for i, cell in enumerate(ROW)] for change in changes
        )
    return file


def condition_file(condition: Condition, rows: Iterable[Row]) -> bytes:
    """The bytes of the authors' `stories.csv` of a condition: `story;question;correct;wrong`, without a header."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";")
    for item in map(condition.item, rows):
        writer.writerow((" ".join(item.story), item.question, item.correct, item.wrong))
    return text.getvalue().encode()


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.folder)
def test_a_condition_is_the_authors_file_byte_for_byte(condition: Condition, folder: Path, rows: list[Row]) -> None:
    file = folder / "bigtom" / "conditions" / condition.folder / "stories.csv"
    if not file.is_file():
        pytest.skip(f"no {file}")
    assert condition_file(condition, rows) == file.read_bytes()


def test_the_conditions_are_all_that_the_authors_have(folder: Path) -> None:
    theirs = folder / "bigtom" / "conditions"
    if not theirs.is_dir():
        pytest.skip(f"no {theirs}")
    assert {condition.folder for condition in CONDITIONS} == {place.name for place in theirs.iterdir()}
    assert len({condition.name for condition in CONDITIONS}) == len(CONDITIONS) == 25


def test_the_subsets_of_the_real_file(folder: Path, everything: Benchmark) -> None:
    assert set(ADAPTER.subsets) == {"400", "forward_action", "backward_belief", "all", *(c.name for c in CONDITIONS)}
    assert (len(everything.stories), len(everything.questions)) == (3000, 5000)
    for subset in ("400", "forward_action", "backward_belief"):
        benchmark = ADAPTER.open(subset, folder)
        assert (len(benchmark.stories), len(benchmark.questions)) == (400, 400)
    for condition in CONDITIONS:
        benchmark = ADAPTER.open(condition.name, folder)
        assert [question.id for question in benchmark.questions] == [f"{condition.name}/{i:03d}" for i in range(1, 201)]
        assert {question.group for question in benchmark.questions} == {condition.name}


def test_the_default_is_forward_belief_without_the_initial_belief(folder: Path) -> None:
    benchmark = ADAPTER.open(ADAPTER.default, folder)
    assert Counter(question.group for question in benchmark.questions) == {
        "forward_belief_true": 200,
        "forward_belief_false": 200,
    }
    assert (benchmark.name, benchmark.subset, benchmark.task) == ("bigtom", "400", "story")
    assert (benchmark.digest, benchmark.warnings) == (ADAPTER.sources[0].sha256, ())
    assert ADAPTER.sources[0].size == (folder / "bigtom" / "bigtom.csv").stat().st_size
    assert {question.order for question in benchmark.questions} == {1}


def test_what_a_real_question_holds(everything: Benchmark) -> None:
    questions = {question.id: question for question in everything.questions}
    question = questions["forward_belief_false/001"]
    assert question.story_id == question.id
    assert question.text == "Does Noor believe the milk pitcher contains oat milk or almond milk?"
    assert question.gold == "Noor believes the milk pitcher contains oat milk."
    assert {question.gold, "Noor believes the milk pitcher contains almond milk."} == set(question.choices)
    action = questions["forward_action_false/001"]
    assert (action.order, action.story_id, action.text) == (None, question.id, "What will Noor do?")


def test_stories_are_shared_and_numbered_the_same_in_every_subset(folder: Path, everything: Benchmark) -> None:
    assert len({story.lines for story in everything.stories}) == len(everything.stories)
    known = {story.id: story for story in everything.stories}
    asked = {question.id: question for question in everything.questions}
    for subset in ("400", "forward_action", "backward_belief_false_control-initial", "percept_to_belief"):
        benchmark = ADAPTER.open(subset, folder)
        assert all(known[story.id] == story for story in benchmark.stories)
        assert all(asked[question.id] == question for question in benchmark.questions)


def test_a_line_is_a_sentence_and_no_word_changes(everything: Benchmark, rows: list[Row]) -> None:
    told = {" ".join(condition.item(row).story).strip() for condition in CONDITIONS for row in rows}
    assert {" ".join(story.lines) for story in everything.stories} == told
    assert all(Story.parse(" ".join(story.lines)).lines == story.lines for story in everything.stories)
    assert Counter(len(story.lines) for story in everything.stories) == {3: 200, 5: 1400, 6: 1400}


@pytest.mark.parametrize("condition", CONDITIONS[:3] + CONDITIONS[-1:], ids=lambda condition: condition.name)
def test_the_options_stand_as_the_official_calls_shuffle_them(condition: Condition, folder: Path) -> None:
    questions = ADAPTER.open(condition.name, folder).questions
    state = random.getstate()
    try:
        random.seed(0)
        for question in questions:
            (wrong,) = set(question.choices) - {question.gold}
            answers = [question.gold, wrong]
            random.shuffle(answers)
            assert list(question.choices) == answers
    finally:
        random.setstate(state)
    # One seed a condition: the right answer comes first in the same 96 rows of every condition.
    assert Counter(question.choices.index(str(question.gold)) for question in questions) == {0: 96, 1: 104}


def test_the_global_generator_is_left_alone(rows: list[Row]) -> None:
    state = random.getstate()
    options(CONDITIONS[0].item(row) for row in rows)
    assert random.getstate() == state


def test_percept_to_belief_warns_that_it_contradicts_the_controls(folder: Path, rows: list[Row]) -> None:
    percept = CONDITIONS[-1]
    control = next(condition for condition in CONDITIONS if condition.name == "forward_belief_true_control")
    assert all(percept.item(row).correct == control.item(row).wrong for row in rows)
    for subset in ("percept_to_belief", "all"):
        (warning,) = ADAPTER.open(subset, folder).warnings
        assert "percept_to_belief" in warning


def test_a_small_file_loads(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("forward_belief_true_control-initial", small(tmp_path, {15: "Ann hears it. "}))
    assert benchmark.stories[0].lines[3:] == ("Ann believes that the pot is full.", "A bird sings.", "Ann hears it.")
    assert benchmark.questions[0].gold == "Ann believes that it is full."
    action = ADAPTER.open("forward_action_true", small(tmp_path, {}))
    assert action.stories[0].lines[3:] == ("A guest empties the pot.", "Ann sees it.")
    assert action.questions[0].gold == "Ann will fill it."
    backward = ADAPTER.open("backward_belief_true", small(tmp_path, {}))
    assert backward.stories[0].lines[3:] == ("A guest empties the pot.", "Ann fills the pot again.")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({8: ""}, "row 2: belief_aware: .*the cell is empty"),
        ({16: " "}, "row 2: random_unaware: .*the cell is empty"),
        ({11: "Ann believes that it is empty. "}, "row 2: the two belief answers are equal"),
        ({13: "Ann will fill it."}, "row 2: the two action answers are equal"),
        ({0: "Ann is a cook. Ann wants tea."}, "row 2: story: .*2 sentences where there must be five"),
        ({0: ""}, "row 2: story: .*the cell is empty"),
    ],
)
def test_a_bad_row_is_named(change: dict[int, str], fault: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=fault) as caught:
        ADAPTER.open("400", small(tmp_path, {}, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is empty"),
        (b"\n", "row 1: 0 cells between semicolons where bigtom.csv has 19: is it the right file?"),
        (b"a;b;c;d\r\n", "row 1: 4 cells"),
        (",".join(ROW).encode(), "row 1: 1 cells"),
        (";".join(ROW).encode() + b"\r\n" + ";".join(ROW[:-1]).encode(), "row 2: 18 cells"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * 200_000, "is not a ';'-separated table"),
    ],
)
def test_other_files_are_an_error(data: bytes, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_bytes(data)
    with pytest.raises(DataError, match=fault) as caught:
        ADAPTER.open("400", file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_unknown_subset_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="bigtom has no subset '401'; it has 400, "):
        ADAPTER.open("401", tmp_path)
    with pytest.raises(DataError, match=r"no bigtom data .*rectom data get bigtom"):
        ADAPTER.open("400", tmp_path)
