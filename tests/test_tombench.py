from __future__ import annotations

import json
import random
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.tombench import ADAPTER, lines_of, name_of, read_rows
from rectom.errors import DataError
from tests.published import published

ROW: dict[str, Any] = {
    "能力\nABILITY": "Belief: Content false beliefs",
    "序号\nINDEX": 1,
    "故事": "小安走了。小白笑了！",
    "问题": "为什么？",
    "选项A": "A. 是",
    "选项B": "B：不是",
    "选项C": "C.也许",
    "选项D": "从不",
    "STORY": "Mr. Li left. Ann laughed!",
    "QUESTION": "Why?",
    "OPTION-A": "A. Because he left",
    "OPTION-B": "He stayed",
    "OPTION-C": "A bird",
    "OPTION-D": "D: No reason ",
    "答案\nANSWER": "B",
}
NAN = float("nan")
TWO = {"OPTION-C": NAN, "OPTION-D": NAN}
FALSE_BELIEF = "False Belief Task.jsonl"
ENGLISH = ("STORY", "QUESTION", "OPTION-")
CHINESE = ("故事", "问题", "选项")


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the files, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    return published("tombench", FALSE_BELIEF) / "tombench"


@pytest.fixture(scope="module")
def raw(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file, by the name in subsets."""
    files = {name_of(file.stem): file for file in folder.glob("*.jsonl")}
    return {name: [json.loads(line) for line in file.read_bytes().splitlines()] for name, file in files.items()}


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, Benchmark]:
    return {subset: ADAPTER.open(subset, folder.parent) for subset in ("en", "zh", "en-once", "zh-once")}


def made(tmp_path: Path, *changes: dict[str, Any]) -> Path:
    """A file with rows that differ from ROW in the given fields; a field given as ... is left out."""
    rows = [{k: v for k, v in {**ROW, **change}.items() if v is not ...} for change in changes]
    file = tmp_path / FALSE_BELIEF
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return file


def test_the_names_of_the_subsets(raw: dict[str, list[dict[str, Any]]]) -> None:
    bases = ["", *(f"{name}-" for name in raw)]
    assert set(ADAPTER.subsets) == {f"{base}{tail}" for base in bases for tail in ("en", "zh", "en-once", "zh-once")}
    assert len(raw) == 20
    assert {"false-belief-en", "faux-pas-recognition-zh-once", "hinting-en"} < set(ADAPTER.subsets)


def test_the_sizes(folder: Path, raw: dict[str, list[dict[str, Any]]], whole: dict[str, Benchmark]) -> None:
    assert {name: (len(b.stories), len(b.questions), b.scoring, b.task) for name, b in whole.items()} == {
        "en": (1383, 14300, "majority", ""),
        "zh": (1349, 14300, "majority", ""),
        "en-once": (1383, 2860, "accuracy", ""),
        "zh-once": (1349, 2860, "accuracy", ""),
    }
    assert sum(map(len, raw.values())) == 2860
    for name, rows in raw.items():
        assert ADAPTER.subsets[f"{name}-zh-once"].startswith(f"{len(rows)} questions in Chinese, once each")
        assert len(ADAPTER.open(f"{name}-zh-once", folder.parent).questions) == len(rows)
    assert ADAPTER.subsets["en"].startswith("2,860 questions in English, five times each")
    assert Counter(q.group for q in whole["en-once"].questions) == {name: len(rows) for name, rows in raw.items()}


def test_rectom_answers_the_false_beliefs_in_english(folder: Path) -> None:
    tasks = {name: ADAPTER.open(f"false-belief-{name}", folder.parent).task for name in ("en", "zh", "en-once")}
    assert tasks == {"en": "story", "zh": "", "en-once": "story"}
    assert ADAPTER.open("hinting-en", folder.parent).task == ""


def bare(row: dict[str, Any], option: str) -> list[str]:
    """The options of a row without the letters that stand before some."""
    written = [(letter, row[option + letter]) for letter in "ABCD" if isinstance(row[option + letter], str)]
    return [re.sub(rf"^ *{letter}[.:：、] *", "", text).strip() for letter, text in written]


@pytest.mark.parametrize(("language", "fields"), [("en", ENGLISH), ("zh", CHINESE)])
def test_every_row_is_asked_once_with_its_words(
    raw: dict[str, list[dict[str, Any]]], whole: dict[str, Benchmark], language: str, fields: tuple[str, str, str]
) -> None:
    story, question, option = fields
    asked = {one.id: one for one in whole[f"{language}-once"].questions}
    told = {one.id: "".join("".join(one.lines).split()) for one in whole[f"{language}-once"].stories}
    for name, rows in raw.items():
        for number, row in enumerate(rows, 1):
            one = asked.pop(f"{name}/{number:03d}")
            assert told[one.story_id] == "".join(row[story].split())
            assert one.text == row[question]
            assert list(one.choices) == bare(row, option)
            assert one.gold == one.choices["ABCD".index(row["答案\nANSWER"][0])]
            assert (one.ballot, one.order) == ("", None)
    assert not asked


def test_two_options_and_four(whole: dict[str, Benchmark]) -> None:
    counts = {
        name: Counter(len(question.choices) for question in whole[f"{name}-once"].questions) for name in ("en", "zh")
    }
    assert counts == {"en": {2: 483, 4: 2377}, "zh": {2: 484, 4: 2376}}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_option_shows_a_letter(whole: dict[str, Benchmark], language: str) -> None:
    options = {choice for question in whole[language].questions for choice in question.choices}
    assert not [option for option in options if re.match(r"\s*[A-D]\s*[.:：、]", option) or option != option.strip()]


def test_the_orders_are_those_of_the_authors_script(
    raw: dict[str, list[dict[str, Any]]], whole: dict[str, Benchmark]
) -> None:
    """One generator with seed 42 for a file, rows in file order, five shuffles each, as the script does it."""
    for language, option in (("en", "OPTION-"), ("zh", "选项")):
        shown = {question.id: question.choices for question in whole[language].questions}
        for name, rows in raw.items():
            random.seed(42)
            for number, row in enumerate(rows, 1):
                for attempt in range(1, 6):
                    choices = bare(row, option)
                    random.shuffle(choices)
                    assert shown[f"{name}/{number:03d}/{attempt}"] == tuple(choices)


def test_the_tries_of_a_question_differ_in_their_options_only(whole: dict[str, Benchmark]) -> None:
    once = {question.id: question for question in whole["en-once"].questions}
    ballots: dict[str, list[str]] = {}
    for question in whole["en"].questions:
        ballots.setdefault(question.ballot, []).append(question.id)
        published = once[question.ballot]
        assert (question.text, question.story_id, question.gold) == (published.text, published.story_id, published.gold)
        assert sorted(question.choices) == sorted(published.choices)
    assert list(ballots) == list(once)
    assert all(ids == [f"{ballot}/{attempt}" for attempt in range(1, 6)] for ballot, ids in ballots.items())


def test_a_file_is_the_same_alone_and_among_all(folder: Path, whole: dict[str, Benchmark]) -> None:
    alone = ADAPTER.open("false-belief-en", folder.parent)
    among = [question for question in whole["en"].questions if question.group == "false-belief"]
    assert [(q.id, q.choices) for q in alone.questions] == [(q.id, q.choices) for q in among]
    assert alone.stories == whole["en"].stories[:100]
    assert Counter(question.group for question in alone.questions) == {
        "Belief: Location false beliefs": 1000,
        "Belief: Content false beliefs": 1000,
        "Belief: Location false beliefs Belief: Second-order beliefs": 500,
        "Belief: Content false beliefs Belief: Second-order beliefs": 500,
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_false_belief_stories_have_an_event_a_line(folder: Path, language: str) -> None:
    stories = ADAPTER.open(f"false-belief-{language}-once", folder.parent).stories
    assert Counter(len(story.lines) for story in stories) == {5: 50, 7: 50}
    assert {line[-1] for story in stories for line in story.lines} == ({",", "."} if language == "en" else {"，", "。"})


def test_faults_of_the_data_are_told(whole: dict[str, Benchmark]) -> None:
    (warning,) = whole["en"].warnings
    assert warning.startswith("2 questions have two equal options (unexpected-outcome/166, unexpected-outcome/168)")
    assert whole["en-once"].warnings == (warning,)
    assert not whole["zh"].warnings


def test_the_sources_are_the_files(folder: Path, whole: dict[str, Benchmark]) -> None:
    assert len(ADAPTER.sources) == 20
    for source in ADAPTER.sources:
        data = (folder / source.file).read_bytes()
        assert (source.sha256, source.size) == (sha256(data).hexdigest(), len(data))
        assert source.addresses[0].endswith(source.file.replace(" ", "%20"))


def test_a_row_by_itself_in_both_languages(tmp_path: Path) -> None:
    file = made(tmp_path, {})
    english, chinese = (ADAPTER.open(f"false-belief-{language}-once", file) for language in ("en", "zh"))
    assert english.questions[0].choices == ("Because he left", "He stayed", "A bird", "No reason")
    assert chinese.questions[0].choices == ("是", "不是", "也许", "从不")
    assert (english.questions[0].gold, chinese.questions[0].gold) == ("He stayed", "不是")
    assert english.stories[0].lines == ("Mr. Li left.", "Ann laughed!")
    assert chinese.stories[0].lines == ("小安走了。", "小白笑了！")


def test_two_options_are_two(tmp_path: Path) -> None:
    (row,) = read_rows(made(tmp_path, TWO).read_bytes(), "some", "en").values()
    assert row.options == ("Because he left", "He stayed")
    nulls = made(tmp_path, {"OPTION-C": None, "OPTION-D": None})
    assert read_rows(nulls.read_bytes(), "some", "en") == {1: row}


def test_a_letter_with_a_stop_is_that_letter(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("false-belief-en-once", made(tmp_path, {"答案\nANSWER": "C. "}))
    assert benchmark.questions[0].gold == "A bird"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('He said, "Go." Then he went.', ('He said, "Go."', "Then he went.")),
        ('"Go!" she said. He went.', ('"Go!" she said.', "He went.")),
        ("Dr. Wu and Mrs. Ma met. They sat.", ("Dr. Wu and Mrs. Ma met.", "They sat.")),
        ("他说：“走吧！”她笑了。什么！？好。", ("他说：“走吧！”", "她笑了。", "什么！？", "好。")),
        ("一行\n二行", ("一行", "二行")),
        ("收到了 5 封信。", ("收到了 5 封信。",)),
    ],
)
def test_lines_are_sentences(text: str, lines: tuple[str, ...]) -> None:
    assert lines_of(text) == lines


def test_clauses_are_lines_but_lists_are_not() -> None:
    text = "Ann and Bo see a bag, a box, and a tin, they find a hat in the bag, Bo leaves, there is no cat."
    assert lines_of(text, clauses=True) == (
        "Ann and Bo see a bag, a box, and a tin,",
        "they find a hat in the bag,",
        "Bo leaves,",
        "there is no cat.",
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([{}, {"STORY": ...}], r"row 2: story: .*string"),
        ([{"QUESTION": " "}], r"row 1: question: "),
        ([{"OPTION-B": ...}], r"row 1: options\.1: .*string"),
        ([{"OPTION-D": NAN}], r"row 1: options\.3: .*string"),
        ([{"OPTION-A": "A. "}], r"row 1: options: .*two options or four, and none empty"),
        ([{"答案\nANSWER": "E"}], r"row 1: .*the answer 'E' is the letter of none of the 4 options"),
        ([{"答案\nANSWER": ""}], r"row 1: .*the answer '' is the letter of none"),
        ([{"答案\nANSWER": "AB"}], r"row 1: .*the answer 'AB' is the letter of none"),
        ([{**TWO, "答案\nANSWER": "C"}], r"row 1: .*the answer 'C' is the letter of none of the 2 options"),
        ([{"能力\nABILITY": ...}], r"row 1: ability: "),
        ([], r"holds no questions: is it the right file\?"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, changes: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(DataError, match=rf"False Belief Task\.jsonl,? {fault}"):
        ADAPTER.open("false-belief-en", made(tmp_path, *changes))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"{}\n{", "row 2: not JSON"),
        (b"\n[1]", "row 2: no object"),
        (b'{"a": "\xff"}', "row 1: not JSON"),
        (b"[" * 99999, "row 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, fault: str) -> None:
    file = tmp_path / FALSE_BELIEF
    file.write_bytes(data if fault != "row 2: not JSON" else json.dumps(ROW).encode() + b"\n{")
    with pytest.raises(DataError, match=rf"False Belief Task\.jsonl, {fault}"):
        ADAPTER.open("false-belief-zh", file)


def test_missing_files(tmp_path: Path) -> None:
    made(tmp_path, {})
    assert len(ADAPTER.open("false-belief-zh", tmp_path).questions) == 5
    with pytest.raises(
        DataError, match=r"no tombench data \(Unexpected Outcome Test\.jsonl\).*rectom data get tombench"
    ):
        ADAPTER.open("en", tmp_path)
