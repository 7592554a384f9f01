from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.fantom import ADAPTER, SHORT, utterances
from rectom.errors import DataError
from tests.published import published

BELIEF = {
    "question": "What does Ann believe about the tea?",
    "question_type": "tom:belief:inaccessible",
    "tom_type": "first-order",
    "correct_answer": "Ann does not know about it.",
    "wrong_answer": "Ann believes that it is cold.",
    "missed_info_accessibility": "inaccessible",
}
SET = {
    "set_id": "0-0-0",
    "part_id": "0-0",
    "conv_id": 0,
    "full_context": "Ann: Hello!\nBob: Hello!\nAnn: Bye!\nBob: The tea is cold.",
    "short_context": "Ann: Bye!\nBob: The tea is cold.",
    "beliefQAs": [BELIEF],
}
#: What the original file has besides.
ORIGINAL = {
    "missed_info": "the tea",
    "joining_speaker": "Ann",
    "factQA": {"question": "What is the tea like?", "correct_answer": "Cold.", "wrong_answer": "Hot."},
    "infoAccessibilityQA_list": {"question": "Who knows it?", "correct_answer": ["Bob"], "wrong_answer": ["Ann"]},
    "answerabilityQA_list": {"question": "Who can tell?", "correct_answer": ["Bob"], "wrong_answer": ["Ann"]},
    "infoAccessibilityQAs_binary": [{"question": "Does Ann know it?", "correct_answer": "no"}],
    "answerabilityQAs_binary": [{"question": "Can Ann tell?", "correct_answer": "no"}],
}
Write: TypeAlias = Callable[..., Path]


@pytest.fixture(scope="module")
def file() -> Path:
    """The re-issue of the belief questions, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    names = ("fantom", "fantom_v1.belief_only.json")
    return published(*names).joinpath(*names)


@pytest.fixture(scope="module")
def sets(file: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = orjson.loads(file.read_bytes())
    return loaded


@pytest.fixture(scope="module")
def benchmarks(file: Path) -> dict[str, Benchmark]:
    return {subset: ADAPTER.open(subset, file.parents[1]) for subset in ADAPTER.subsets}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A file with sets that differ from SET in the given fields; a field given as ... is left out."""

    def rows(*changes: dict[str, Any]) -> Path:
        made = [{k: v for k, v in {**SET, **change}.items() if v is not ...} for change in changes]
        path = tmp_path / "some.json"
        path.write_bytes(orjson.dumps(made))
        return path

    return rows


def belief(**change: Any) -> dict[str, Any]:
    """A set whose only belief question differs from BELIEF."""
    return {"set_id": "0-0-1", "beliefQAs": [{k: v for k, v in {**BELIEF, **change}.items() if v is not ...}]}


def test_the_subsets_of_the_real_file(benchmarks: dict[str, Benchmark]) -> None:
    sizes = {name: (len(b.stories), len(b.questions)) for name, b in benchmarks.items()}
    assert sizes == {
        "324": (82, 324),
        "belief": (369, 1540),
        "accessible": (242, 547),
        "inaccessible": (337, 993),
        "first": (369, 870),
        "second": (264, 670),
        "324-full": (80, 324),
        "belief-full": (254, 1540),
        "accessible-full": (188, 547),
        "inaccessible-full": (238, 993),
        "first-full": (254, 870),
        "second-full": (206, 670),
    }
    assert Counter(question.group for question in benchmarks["belief"].questions) == {
        "first-order/accessible": 228,
        "first-order/inaccessible": 642,
        "second-order/accessible": 319,
        "second-order/inaccessible": 351,
    }


def test_the_default_is_181_and_143_about_short_conversations(benchmarks: dict[str, Benchmark]) -> None:
    assert ADAPTER.default == "324"
    benchmark = benchmarks["324"]
    assert Counter(question.order for question in benchmark.questions) == {1: 181, 2: 143}
    assert max(len(story.lines) for story in benchmark.stories) == SHORT
    taken = {question.id for question in benchmark.questions}
    stories = {story.id: story for story in benchmarks["belief"].stories}
    left = [question for question in benchmarks["belief"].questions if question.id not in taken]
    assert min(len(stories[question.story_id].lines) for question in left) == SHORT + 1


def test_what_a_real_question_holds(benchmarks: dict[str, Benchmark]) -> None:
    question = next(question for question in benchmarks["belief"].questions if question.id == "56-1-2/b1")
    assert question.text == (
        "What does Jordyn believe about the concept of first love and the intensity of feelings and emotions?"
    )
    assert (question.order, question.group) == (1, "first-order/inaccessible")
    assert str(question.gold).startswith("Jordyn does not know or is unaware about")
    assert len(question.choices) == 2


def test_the_options_stand_as_the_official_calls_put_them(
    sets: list[dict[str, Any]], benchmarks: dict[str, Benchmark]
) -> None:
    expected = {}
    state = random.getstate()
    try:
        random.seed(99)
        for one in sets:
            for place, asked in enumerate(one["beliefQAs"], 1):
                if random.choice([True, False]):
                    expected[f"{one['set_id']}/b{place}"] = (asked["wrong_answer"], asked["correct_answer"])
                else:
                    expected[f"{one['set_id']}/b{place}"] = (asked["correct_answer"], asked["wrong_answer"])
    finally:
        random.setstate(state)
    questions = benchmarks["belief"].questions
    assert {question.id: question.choices for question in questions} == expected
    assert Counter(question.choices.index(str(question.gold)) for question in questions) == {0: 741, 1: 799}


def test_a_question_is_the_same_in_every_subset(benchmarks: dict[str, Benchmark]) -> None:
    for full in ("", "-full"):
        everything = benchmarks[f"belief{full}"]
        questions = {question.id: question for question in everything.questions}
        stories = {story.id: story for story in everything.stories}
        for subset in ("324", "accessible", "inaccessible", "first", "second"):
            benchmark = benchmarks[f"{subset}{full}"]
            assert all(questions[question.id] == question for question in benchmark.questions)
            assert all(stories[story.id] == story for story in benchmark.stories)
            assert [q for q in everything.questions if q in set(benchmark.questions)] == list(benchmark.questions)
    assert [q.choices for q in benchmarks["belief"].questions] == [
        q.choices for q in benchmarks["belief-full"].questions
    ]


def test_a_line_is_an_utterance_and_no_word_changes(
    sets: list[dict[str, Any]], benchmarks: dict[str, Benchmark]
) -> None:
    for subset, field in (("belief", "short_context"), ("belief-full", "full_context")):
        stories = {story.id: story for story in benchmarks[subset].stories}
        told = {question.id.split("/")[0]: stories[question.story_id] for question in benchmarks[subset].questions}
        for one in sets:
            assert list(told[one["set_id"]].lines) == [line.strip() for line in one[field].split("\n")]
        assert len({story.lines for story in stories.values()}) == len(stories)
        assert (told["0-0-0"].id, told["0-0-1"].id, told["1-0-1"].id) == ("0-0-0", "0-0-0", "1-0-0")


def test_the_reissue_warns(file: Path, benchmarks: dict[str, Benchmark]) -> None:
    for benchmark in benchmarks.values():
        (warning,) = benchmark.warnings
        assert warning.startswith("fantom_v1.belief_only.json is a re-issue")
        assert "83 second-order questions are of unknown kind" in warning
        assert "213 full contexts are borrowed" in warning
        assert (benchmark.name, benchmark.task) == ("fantom", "dialogue")
        assert benchmark.digest == "28c80461aeefdb743ffdbb8521c3ab7592867ff1a75d1f969669a285d7762b3d"


def test_the_original_schema_loads_without_a_warning(write: Write) -> None:
    path = write(ORIGINAL)
    benchmark = ADAPTER.open("324", path)
    assert benchmark.warnings == ()
    (question,) = benchmark.questions
    assert (question.id, question.story_id, question.gold) == ("0-0-0/b1", "0-0-0", BELIEF["correct_answer"])
    assert benchmark.stories[0].lines == ("Ann: Bye!", "Bob: The tea is cold.")
    full = ADAPTER.open("324-full", path)
    assert full.stories[0].lines == ("Ann: Hello!", "Bob: Hello!", *benchmark.stories[0].lines)
    (warning,) = ADAPTER.open("324", write(ORIGINAL, {"set_id": "0-0-1"})).warnings
    assert "213" not in warning


def test_the_original_goes_before_the_reissue(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "fantom"
    folder.mkdir()
    write({}).rename(folder / "fantom_v1.belief_only.json")
    assert ADAPTER.open("belief", tmp_path).warnings
    write(ORIGINAL).rename(folder / "fantom_v1.json")
    assert not ADAPTER.open("belief", tmp_path).warnings


@pytest.mark.parametrize(
    ("context", "lines"),
    [
        (
            "Ann: Hi!\n\nBob: Two\nlines,\n  3 in fact.\nAnn: Oh.",
            ("Ann: Hi!", "Bob: Two lines, 3 in fact.", "Ann: Oh."),
        ),
        ("They meet.\nAnn: Hi!", ("They meet.", "Ann: Hi!")),
        ("Ann & Bob: Hi!\nAnn, Bob, and Cid: Oh.", ("Ann & Bob: Hi!", "Ann, Bob, and Cid: Oh.")),
        ("Mark and Bryce: Hi!\nÉlodie O'Neil: Oh:\nwell.", ("Mark and Bryce: Hi!", "Élodie O'Neil: Oh: well.")),
        ("Ann: At\n10:30, or so: yes", ("Ann: At 10:30, or so: yes",)),
        ("Ann:\nHi!\nBob:", ("Ann: Hi!", "Bob:")),
    ],
)
def test_lines_without_a_speaker_are_kept(context: str, lines: tuple[str, ...]) -> None:
    assert utterances(context) == lines


@given(st.text(st.sampled_from("Ab: ,&\n.é3"), max_size=80))
def test_no_word_of_a_context_is_lost(context: str) -> None:
    assert " ".join(utterances(context)).split() == context.split()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"set_id": "0-0-0"}, "row 2: row 1 has the set_id '0-0-0' already"),
        ({"set_id": ...}, "row 2: set_id: Field required"),
        ({"set_id": 7}, "row 2: set_id: Input should be a valid string"),
        ({"set_id": "1", "short_context": ...}, "row 2: short_context: Field required"),
        ({"set_id": "1", "full_context": " \n"}, "row 2: full_context: .*the text is empty"),
        ({"set_id": "1", "beliefQAs": ...}, "row 2: beliefQAs: Field required"),
        (belief(question=""), r"row 2: beliefQAs\.0\.question: .*the text is empty"),
        (belief(correct_answer=...), r"row 2: beliefQAs\.0\.correct_answer: Field required"),
        (belief(wrong_answer=" "), r"row 2: beliefQAs\.0\.wrong_answer: .*the text is empty"),
        (belief(wrong_answer="Ann does not know about it. "), r"row 2: beliefQAs\.0: .*the two answers are equal"),
        (belief(tom_type="third-order"), r"row 2: beliefQAs\.0\.tom_type: "),
        (belief(tom_type="first-orders"), r"row 2: beliefQAs\.0\.tom_type: "),
        (belief(question_type="tom:fact"), r"row 2: beliefQAs\.0\.question_type: "),
    ],
)
def test_a_bad_set_is_named(change: dict[str, Any], fault: str, write: Write) -> None:
    with pytest.raises(DataError, match=fault) as caught:
        ADAPTER.open("belief", write({}, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "is no list of FANToM's sets"),
        (b"[]", "is no list of FANToM's sets"),
        (b"[7]", "row 1: "),
        (b'[{"data": 7}]', "row 1: set_id: Field required"),
    ],
)
def test_other_files_are_an_error(data: bytes, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(data)
    with pytest.raises(DataError, match=fault) as caught:
        ADAPTER.open("belief", path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_without_questions_of_a_subset_is_an_error(write: Write) -> None:
    with pytest.raises(DataError, match="holds no questions of fantom/second"):
        ADAPTER.open("second", write({}))
    with pytest.raises(DataError, match="fantom has no subset '325'; it has 324, belief"):
        ADAPTER.open("325", write({}))


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no fantom data \(fantom_v1\.json or .*rectom data get fantom"):
        ADAPTER.open("324", tmp_path)
