from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.hitom import Row
from rectom.errors import DataError

ROW = {
    "prompting_type": "CoTP",
    "deception": False,
    "story_length": 1,
    "question_order": 0,
    "sample_id": 0,
    "story": "1 Anne entered the hall.\n2 The ball is in the box.\n\n",
    "question": "Where is the ball really?",
    "choices": "A. box, B. bag",
    "answer": "box",
}
Write: TypeAlias = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A file with rows that differ from ROW in the given fields; a field given as ... is left out."""

    def rows(*changes: dict[str, Any]) -> Path:
        made = [{k: v for k, v in {**ROW, **change}.items() if v is not ...} for change in changes]
        file = tmp_path / "some.json"
        file.write_bytes(orjson.dumps({"data": made}))
        return file

    return rows


def test_the_subsets_of_the_real_file(hitom_file: Path) -> None:
    sizes = {subset: hitom.load(hitom_file, subset) for subset in hitom.SUBSETS}
    assert {name: (len(b.stories), len(b.questions)) for name, b in sizes.items()} == {
        "400": (80, 400),
        "cotp": (120, 600),
        "vp": (120, 600),
        "length-1": (40, 200),
        "length-2": (40, 200),
        "length-3": (40, 200),
        "all": (120, 1200),
    }
    assert hitom.load(hitom_file) == sizes["400"]
    ids = [int(question.id) for question in sizes["400"].questions]
    assert ids == [*range(200), *range(600, 800)]
    assert Counter(question.order for question in sizes["400"].questions) == dict.fromkeys(range(5), 80)


def test_what_a_real_question_holds(cotp: Benchmark) -> None:
    question = cotp.questions[0]
    assert (question.id, question.text, question.gold) == ("0", "Where is the lettuce really?", "green_drawer")
    assert (len(question.choices), question.choices[0], question.choices[-1]) == (15, "blue_drawer", "green_bathtub")
    assert all(len(q.choices) == 15 and q.gold in q.choices for q in cotp.questions)
    assert (cotp.name, cotp.subset, cotp.warnings) == ("hitom", "cotp", ())
    assert cotp.digest == "1c4077bbcdf815b91dbb791b60dbce3920a98bd63317954ebf94a532d43cd573"
    assert "Assumptions" in cotp.note


def test_each_real_story_has_five_questions(cotp: Benchmark) -> None:
    for story in cotp.stories:
        assert [question.order for question in cotp.of_story(story.id)] == [0, 1, 2, 3, 4]
    assert Counter(story.id.rsplit("-", 1)[0] for story in cotp.stories) == {
        f"{group}-{length}": 20 for group in ("tell", "no-tell") for length in (1, 2, 3)
    }


def test_instructions_and_stray_marks_are_no_part_of_a_story(cotp: Benchmark, rows: list[Row]) -> None:
    stray = [row for row in rows if row.prompting_type == "CoTP" and "***" in row.story]
    assert {row.sample_id for row in stray} == {42, 60, 61, 62, 80, 81}
    assert not any("*" in line or "Read the following" in line for story in cotp.stories for line in story.lines)


def test_vp_warns_how_many_labels_conflict(hitom_file: Path, rows: list[Row]) -> None:
    assert len(hitom.conflicts(rows)) == 138
    for subset in ("vp", "all"):
        (warning,) = hitom.load(hitom_file, subset).warnings
        assert warning.startswith("138 labels of the VP rows")


def test_the_real_choices_are_written_back_as_they_were(hitom_file: Path) -> None:
    for row in orjson.loads(hitom_file.read_bytes())["data"]:
        assert hitom.write_choices(hitom.read_choices(row["choices"])) == row["choices"]


@given(st.lists(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), min_size=1, max_size=26).map(tuple))
def test_choices_are_written_and_read_back(options: tuple[str, ...]) -> None:
    assert hitom.read_choices(hitom.write_choices(options)) == options


@pytest.mark.parametrize("text", ["", "box, bag", "B. box, A. bag", "A. box, C. bag", "x A. box", None, 3, ["A. box"]])
def test_other_choices_are_an_error(text: object) -> None:
    with pytest.raises(ValueError, match="alphabetical order"):
        hitom.read_choices(text)


def test_a_small_file_loads(write: Write) -> None:
    benchmark = hitom.load(write({}, {"sample_id": 1, "question_order": 1, "answer": "bag"}), "cotp")
    assert [question.gold for question in benchmark.questions] == ["box", "bag"]
    assert [story.id for story in benchmark.stories] == ["no-tell-1-00"]
    assert benchmark.first(1).questions == benchmark.questions[:1]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"answer": ...}, r"data\.0\.answer: Field required"),
        ({"story": ...}, r"data\.0\.story: Field required"),
        ({"story": 7}, r"data\.0\.story: Input should be a valid string"),
        ({"question_order": "many"}, r"data\.0\.question_order: .*integer"),
        ({"question_order": -1}, r"data\.0\.question_order: .*greater than or equal to 0"),
        ({"story_length": 0}, r"data\.0\.story_length"),
        ({"prompting_type": "XP"}, r"data\.0\.prompting_type: Input should be 'CoTP' or 'VP'"),
        ({"deception": "maybe"}, r"data\.0\.deception"),
        ({"choices": "box, bag"}, r"data\.0\.choices: .*alphabetical order"),
        ({"choices": ["box"]}, r"data\.0\.choices"),
        ({"answer": "jar"}, "the answer 'jar' of question 0 is no option"),
        ({"story": ""}, "sample_id 0 holds no story"),
        ({"story": " \n\n"}, "sample_id 0 holds no story"),
        ({"story_length": 4}, "holds no rows of hitom/cotp"),
    ],
)
def test_a_bad_row_is_named(change: dict[str, Any], fault: str, write: Write) -> None:
    with pytest.raises(DataError, match=fault) as caught:
        hitom.load(write(change), "cotp")
    assert "\n" not in str(caught.value)


def test_more_faults_are_counted(write: Write) -> None:
    with pytest.raises(DataError, match=r"data\.0\.story: Field required \(and 2 more faults\)"):
        hitom.load(write({"answer": ..., "story": ...}, {"choices": ...}), "cotp")


def test_a_doubled_id_is_an_error(write: Write) -> None:
    with pytest.raises(DataError, match="the question id '0' occurs more than once"):
        hitom.load(write({}, {"question_order": 1}), "cotp")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not in Hi-ToM's schema"),
        (b"{}", "data: Field required"),
        (b'{"data": 7}', "data: Input should be a valid list"),
        (b'{"data": [7]}', r"data\.0: "),
        (b'{"data": []}', "holds no rows"),
    ],
)
def test_other_files_are_an_error(data: bytes, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(data)
    with pytest.raises(DataError, match=fault) as caught:
        hitom.load(file, "cotp")
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*: No such file .*; give --data FILE, set RECTOM_DATA"):
        hitom.load(tmp_path / "none.json", "cotp")
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        hitom.load(tmp_path, "cotp")


def test_an_unknown_subset_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="hitom has no subset '500'; it has 400, cotp, vp, length-1, length-2, length-3, all"
    ):
        hitom.load(tmp_path / "none.json", "500")
