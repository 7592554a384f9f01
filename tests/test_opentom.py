from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.opentom import ADAPTER
from rectom.errors import DataError
from rectom.story import Question
from tests.published import published

STORY = {
    "narrative": "Ann saw a hat in a box.\n\nShe took it!  Bob left.",
    "plot_info": {
        "mover": "Ann",
        "eoi": "hat",
        "original_place": "box",
        "move_to_place": "the shed",
        "observer": "Bob",
    },
}
ANSWERS = {
    "location_cg_fo": ("From Bob's perspective, is the hat in its initial location?", "Yes"),
    "location_cg_so": ("From Ann's perspective, does Bob think that the hat is in its initial location?", "No"),
    "location_fg_fo_new": ("From narrator's perspective, where is hat located by the end of the story?", "the shed"),
    "location_fg_so_new": ("From Ann's perspective, where does Bob think that the hat is located?", "box"),
    "multihop_fo": ("From Ann's perspective, how does box's fullness change?", "less full"),
    "multihop_so": ("From Ann's perspective, how would hat's accessibility change for Bob?", "equally accessible"),
    "attitude": ("As Bob, what is your attitude towards Ann's action?", "neutral"),
}


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the files, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    return published("opentom", "meta_data.json") / "opentom"


@pytest.fixture(scope="module")
def benchmarks(folder: Path) -> dict[str, Benchmark]:
    return {subset: ADAPTER.open(subset, folder.parent) for subset in ADAPTER.subsets}


@pytest.fixture(scope="module")
def whole(benchmarks: dict[str, Benchmark]) -> Benchmark:
    return benchmarks["all"]


def made(tmp_path: Path, **files: Any) -> Path:
    """A folder of one story, 7, with a question in each file; the files given hold what is given instead."""
    questions = {name: {"7": [{"question": q, "answer": a, "type": "t"}]} for name, (q, a) in ANSWERS.items()}
    for name, value in {"meta_data": {"7": STORY}, **questions, **files}.items():
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps(value))
    return tmp_path


def one(tmp_path: Path, file: str, question: str, answer: str) -> Question:
    asked = {"7": [{"question": question, "answer": answer}]}
    benchmark = ADAPTER.open("all", made(tmp_path, **{file: asked}))
    return next(question for question in benchmark.questions if f"/{file}/" in question.id)


def test_the_subsets(benchmarks: dict[str, Benchmark]) -> None:
    assert {name: (len(b.questions), b.task) for name, b in benchmarks.items()} == {
        "location": (5960, "story"),
        "location-fo": (3576, "story"),
        "location-so": (2384, "story"),
        "location-coarse": (2384, "story"),
        "location-fine": (3576, "story"),
        "multihop": (7152, ""),
        "multihop-fo": (3576, ""),
        "multihop-so": (3576, ""),
        "attitude": (596, ""),
        "all": (13708, ""),
    }
    assert all(f"{len(b.questions):,}" in ADAPTER.subsets[name] for name, b in benchmarks.items())
    assert {(len(b.stories), b.scoring) for b in benchmarks.values()} == {(596, "macro-f1")}


def test_the_kinds_and_orders(whole: Benchmark) -> None:
    assert Counter((question.group, question.order) for question in whole.questions) == {
        ("location-coarse-fo", 1): 1192,
        ("location-coarse-so", 2): 1192,
        ("location-fine-fo", 0): 1192,
        ("location-fine-fo", 1): 1192,
        ("location-fine-so", 2): 1192,
        ("multihop-fullness-fo", 1): 2384,
        ("multihop-accessibility-fo", 1): 1192,
        ("multihop-fullness-so", 2): 2384,
        ("multihop-accessibility-so", 2): 1192,
        ("attitude", None): 596,
    }


def test_a_subset_is_its_part_of_the_whole(benchmarks: dict[str, Benchmark], whole: Benchmark) -> None:
    parts = {
        "location": ("location", ""),
        "location-fo": ("location", "-fo"),
        "location-so": ("location", "-so"),
        "location-coarse": ("location-coarse", ""),
        "location-fine": ("location-fine", ""),
        "multihop": ("multihop", ""),
        "multihop-fo": ("multihop", "-fo"),
        "multihop-so": ("multihop", "-so"),
        "attitude": ("attitude", ""),
        "all": ("", ""),
    }
    for name, (begin, end) in parts.items():
        expected = [q for q in whole.questions if q.group.startswith(begin) and q.group.endswith(end)]
        assert list(benchmarks[name].questions) == expected


def test_every_row_is_asked_once_with_its_words(folder: Path, whole: Benchmark) -> None:
    questions = {question.id: question for question in whole.questions}
    found = 0
    for file in ANSWERS:
        for story, rows in orjson.loads((folder / f"{file}.json").read_bytes()).items():
            for number, row in enumerate(rows, 1):
                question = questions[f"{story}/{file}/{number}"]
                added = ", assuming that you observed the action?" if file == "attitude" else "?"
                assert question.text == row["question"].rstrip("?") + added
                assert (question.story_id, question.gold) == (story, row["answer"])
                assert question.group.split("-")[0] == row["type"].split("-")[0]
                assert question.group.split("-")[-1] == row["type"].split("-")[-1]
                found += 1
    assert found == len(questions) == len(whole.questions)


def test_the_narratives_keep_their_words(folder: Path, whole: Benchmark) -> None:
    written = orjson.loads((folder / "meta_data.json").read_bytes())
    assert [story.id for story in whole.stories] == list(written)
    for story in whole.stories:
        assert " ".join(story.lines).split() == written[story.id]["narrative"].split()
        assert not any("\n" in line or not line for line in story.lines)


def test_the_options_are_those_of_the_plot_and_of_the_authors(folder: Path, whole: Benchmark) -> None:
    plots = {story: row["plot_info"] for story, row in orjson.loads((folder / "meta_data.json").read_bytes()).items()}
    others: set[str] = set()
    for question in whole.questions:
        assert question.gold in question.choices
        assert len(set(question.choices)) == len(question.choices)
        if question.group.startswith("location-fine"):
            places = {plots[question.story_id]["original_place"], plots[question.story_id]["move_to_place"]}
            assert question.choices == tuple(sorted(question.choices))
            others.update({question.id} if set(question.choices) != places else ())
        else:
            assert question.choices in {
                ("Yes", "No"),
                ("more full", "equally full", "less full"),
                ("more accessible", "equally accessible", "less accessible"),
                ("positive", "neutral", "negative"),
            }
    assert others == {"71136438/location_fg_fo_new/1", "71306900/location_fg_fo_new/1"}


def test_answers_spelt_otherwise_are_told(benchmarks: dict[str, Benchmark]) -> None:
    told = {name for name, benchmark in benchmarks.items() if benchmark.warnings}
    assert told == {"location", "location-fo", "location-fine", "all"}
    (warning,) = benchmarks["all"].warnings
    assert warning.startswith("2 answers spell the place otherwise than the plot (71136438/location_fg_fo_new/1, ")


def test_the_sources_are_the_files(folder: Path, benchmarks: dict[str, Benchmark]) -> None:
    assert [source.file for source in ADAPTER.sources] == ["meta_data.json", *(f"{name}.json" for name in ANSWERS)]
    for source in ADAPTER.sources:
        data = (folder / source.file).read_bytes()
        assert (source.sha256, source.size) == (sha256(data).hexdigest(), len(data))
    assert len({benchmark.digest for benchmark in benchmarks.values()}) == len(benchmarks)


def test_a_story_by_itself(tmp_path: Path) -> None:
    benchmark = ADAPTER.open("all", made(tmp_path))
    (story,) = benchmark.stories
    assert story.lines == ("Ann saw a hat in a box.", "She took it!", "Bob left.")
    assert [(q.id, q.group, q.order, q.choices) for q in benchmark.questions] == [
        ("7/location_cg_fo/1", "location-coarse-fo", 1, ("Yes", "No")),
        ("7/location_cg_so/1", "location-coarse-so", 2, ("Yes", "No")),
        ("7/location_fg_fo_new/1", "location-fine-fo", 0, ("box", "the shed")),
        ("7/location_fg_so_new/1", "location-fine-so", 2, ("box", "the shed")),
        ("7/multihop_fo/1", "multihop-fullness-fo", 1, ("more full", "equally full", "less full")),
        (
            "7/multihop_so/1",
            "multihop-accessibility-so",
            2,
            ("more accessible", "equally accessible", "less accessible"),
        ),
        ("7/attitude/1", "attitude", None, ("positive", "neutral", "negative")),
    ]
    assert not benchmark.warnings


def test_the_name_of_the_narratives_where_they_are_published_twice(tmp_path: Path) -> None:
    (made(tmp_path) / "meta_data.json").rename(tmp_path / "metadata.json")
    assert len(ADAPTER.open("all", tmp_path).questions) == 7
    assert len(ADAPTER.open("all", tmp_path / "metadata.json").questions) == 7


def test_an_answer_in_another_spelling_takes_the_place_of_the_destination(tmp_path: Path) -> None:
    question = one(tmp_path, "location_fg_fo_new", "From Ann's perspective, where is the hat?", "shed")
    assert question.choices == ("box", "shed")


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"meta_data": {"7": {**STORY, "narrative": " "}}}, r"meta_data\.json, story 7, row 1: narrative: "),
        ({"meta_data": {"7": {**STORY, "plot_info": {}}}}, r"row 1: plot_info\.original_place: Field required"),
        ({"meta_data": {"8": STORY}}, r"location_cg_fo\.json: there is no narrative of story 7 in meta_data\.json"),
        ({"meta_data": [STORY]}, r"meta_data\.json maps no ids of stories to anything: is it the right file\?"),
        ({"attitude": {}}, r"attitude\.json maps no ids"),
        ({"attitude": {"7": None}}, r"attitude\.json, story 7, row 1: the row: "),
        ({"attitude": {"7": [{"question": "Why?"}]}}, r"attitude\.json, story 7, row 1: 0\.answer: Field required"),
        (
            {"attitude": {"7": [{"question": "Why?", "answer": "angry"}]}},
            r"attitude\.json, story 7, row 1: the answer 'angry' is none of the options positive, neutral, negative",
        ),
        (
            {"location_fg_fo_new": {"7": [{"question": "Where?", "answer": "the moon"}]}},
            r"location_fg_fo_new\.json, story 7, row 1: the answer 'the moon' is none of the options box, the shed",
        ),
        (
            {"multihop_fo": {"7": [{"question": "How full?", "answer": "less full"}]}},
            r"row 1: the answer 'less full' is none of the options more accessible",
        ),
        (
            {"location_cg_so": {"7": [{"question": "Is it?", "answer": a} for a in ("Yes", "No")]}},
            r"location_cg_so\.json, story 7, row 2: row 1 asks the same",
        ),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, files: dict[str, Any], fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        ADAPTER.open("all", made(tmp_path, **files))


def test_missing_files(tmp_path: Path) -> None:
    (made(tmp_path) / "attitude.json").write_bytes(b"{")
    assert len(ADAPTER.open("location", tmp_path).questions) == 4
    with pytest.raises(DataError, match=r"attitude\.json is not JSON"):
        ADAPTER.open("all", tmp_path)
    (tmp_path / "attitude.json").unlink()
    with pytest.raises(DataError, match=r"no opentom data \(attitude\.json\)"):
        ADAPTER.open("attitude", tmp_path)
    with pytest.raises(DataError, match=r"opentom has no subset 'fine'; it has location, "):
        ADAPTER.open("fine", tmp_path)


def test_fine_locations_count_as_first_and_then(whole: Benchmark) -> None:
    golds = Counter(q.class_of(q.gold) for q in whole.questions if q.group.startswith("location-fine"))
    assert golds == {"first": 939 + 734, "then": 1445 + 458}
    assert {q.classes for q in whole.questions if not q.group.startswith("location-fine")} == {()}
