"""ToMi's files: what is loaded is what they hold, faults are named, and the audit of the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.registry import adapter
from rectom.benchmarks.tomi import ADAPTER, SUBSETS, read_simtom, read_test
from rectom.errors import DataError
from rectom.story import Question
from tests.published import published

TYPES = {
    "memory": 999,
    "reality": 999,
    "first_order_0_no_tom": 999,
    "first_order_1_no_tom": 595,
    "first_order_1_tom": 404,
    "second_order_0_no_tom": 724,
    "second_order_0_tom": 275,
    "second_order_1_no_tom": 724,
    "second_order_1_tom": 275,
}


def folder() -> Path:
    """Where ToMi's files lie; without them the test is skipped."""
    return published("tomi", "fb_all_test.txt") / "tomi"


@lru_cache
def opened(subset: str) -> Benchmark:
    return ADAPTER.open(subset, folder())


def raw(file: str) -> bytes:
    return (folder() / file).read_bytes()


def simtom(**changes: object) -> bytes:
    """A made-up file of one row."""
    row = {
        "story": "1 Zoe entered the shed.\n2 The hat is in the urn.",
        "question": "Where is the hat really?",
        "answer": "urn",
        "story_type": "true_belief",
        "question_type": "reality",
        "containers": ["jar", "urn"],
    }
    return orjson.dumps({**row, **changes})


TEXT = """1 Zoe entered the shed.
2 The hat is in the urn.
3 Zoe moved the hat to the jar.
4 Where is the hat really?\tjar\t1
"""
TRACE = "enter_agent_0,agent_0_moves_obj,reality,true_belief\n"


def test_the_registry_has_it() -> None:
    assert adapter("tomi") is ADAPTER
    assert ADAPTER.default == "1000"


def test_the_thousand_are_a_hundred_of_each_type() -> None:
    benchmark = opened("1000")
    assert len(benchmark.questions) == 1000
    assert len(benchmark.stories) == 875
    assert Counter(question.group for question in benchmark.questions) == dict.fromkeys(
        [*TYPES, "first_order_0_tom"], 100
    )
    assert Counter(question.order for question in benchmark.questions) == {0: 200, 1: 400, 2: 400}
    assert benchmark.task == "tomi"
    assert benchmark.digest == sha256(raw("simtom_test_balanced.jsonl")).hexdigest()
    assert not benchmark.warnings


def test_the_thousand_are_as_the_file_has_them() -> None:
    benchmark = opened("1000")
    stories = {story.id: story.numbered() for story in benchmark.stories}
    rows = [orjson.loads(line) for line in raw("simtom_test_balanced.jsonl").splitlines()]
    for row, question in zip(rows, benchmark.questions, strict=True):
        assert stories[question.story_id] == row["story"]
        assert (question.text, question.gold) == (row["question"], row["answer"])
        assert list(question.choices) == row["containers"]
        assert question.id.endswith(f"-{row['question_type']}")


def test_the_authors_file_has_six_questions_a_story() -> None:
    benchmark = opened("test")
    assert len(benchmark.questions) == 5994
    assert Counter(question.group for question in benchmark.questions) == TYPES
    assert Counter(question.order for question in benchmark.questions) == {0: 1998, 1: 1998, 2: 1998}
    asked = Counter(question.story_id for question in benchmark.questions)
    assert asked == dict.fromkeys([story.id for story in benchmark.stories], 6)
    assert len(asked) == 999
    assert benchmark.warnings


def test_the_authors_file_can_be_written_again() -> None:
    benchmark = opened("test")
    stories = {story.id: story for story in benchmark.stories}

    def block(question: Question) -> str:
        story = stories[question.story_id]
        return f"{story.numbered()}\n{len(story.lines) + 1} {question.text}\t{question.gold}\t1\n"

    assert "".join(map(block, benchmark.questions)).encode() == raw("fb_all_test.txt")
    types = [line.split(",")[-2] for line in raw("fb_all_test.trace").decode().split()]
    assert [question.group for question in benchmark.questions] == types


def test_the_options_of_the_authors_file_do_not_tell_the_answer() -> None:
    questions = opened("test").questions
    assert all(list(question.choices) == sorted(set(question.choices)) for question in questions)
    places = Counter((question.group == "memory", question.choices.index(str(question.gold))) for question in questions)
    assert places == {(True, 0): 509, (True, 1): 490, (False, 0): 2492, (False, 1): 2503}


def test_ids_are_numbered_as_in_the_files() -> None:
    first, second = opened("1000").questions[:2]
    assert (first.id, first.story_id) == ("0001-memory", "story-001")
    assert (second.id, second.story_id) == ("0002-first_order_0_no_tom", "story-002")
    last = opened("test").questions[-1]
    assert last.id.startswith("5994-second_order_")
    assert last.story_id == "story-999"


def test_equal_stories_are_one() -> None:
    for subset in SUBSETS:
        stories = opened(subset).stories
        assert len({story.lines for story in stories}) == len(stories)


def test_the_file_of_the_source_is_the_one_that_is_read() -> None:
    source = ADAPTER.sources[0]
    data = raw(source.file)
    assert (sha256(data).hexdigest(), len(data)) == (source.sha256, source.size)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "holds no questions"),
        (b"{", "row 1: not JSON"),
        (simtom() + b"\n" + simtom(answer="box"), "row 2: .*the answer 'box' is none of the containers jar, urn"),
        (simtom(containers=["urn"]), "row 1: containers"),
        (simtom(question_type="third_order_0_tom"), "row 1: question_type"),
        (simtom(story=""), "row 1: story"),
        (b"[1]", "row 1: the row"),
    ],
)
def test_a_wrong_row_of_the_thousand_is_named(data: bytes, fault: str) -> None:
    with pytest.raises(DataError, match=f"simtom_test_balanced.jsonl.*{fault}"):
        read_simtom(data)


@pytest.mark.parametrize(
    ("text", "trace", "fault"),
    [
        ("", "", "0 rows for the 0 questions"),
        (TEXT, "", "has 0 rows for the 1 questions"),
        (TEXT * 2, TRACE, "has 1 rows for the 2 questions"),
        (TEXT, TRACE.replace("reality", "guess"), "row 4: question_type"),
        (TEXT, "reality", "row 4: question_type"),
        (TEXT.replace("2 The", "3 The"), TRACE, "row 2: line 2 of a story is expected here, not '3 The hat"),
        (TEXT + "1 Zoe slept.\n", TRACE, "ends within a story"),
        (TEXT.replace("\t1\n", "\n"), TRACE, "row 4: not a story's"),
        ("1 Where is the hat really?\tjar\t1\n", TRACE, "row 1: not a story's"),
        (TEXT.replace("\tjar", "\tbox"), TRACE, "row 4: .*'box' is none of the containers jar, urn"),
        (TEXT.replace("entered", "painted"), TRACE, "the story before row 4: line 1: no ToMi template fits"),
        (TEXT.replace("moved", "hates").replace(" to the jar", ""), TRACE, "row 4: containers"),
        ("\n" + TEXT, TRACE, "row 1: line 1 of a story is expected"),
    ],
)
def test_a_wrong_row_of_the_authors_files_is_named(text: str, trace: str, fault: str) -> None:
    with pytest.raises(DataError, match=f"fb_all_test.*{fault}"):
        read_test(text.encode(), trace.encode())


def test_the_made_up_file_is_read() -> None:
    (row,) = read_test(TEXT.encode(), TRACE.encode())
    assert (row.answer, row.containers, row.question_type, row.order) == ("jar", ("jar", "urn"), "reality", 0)


@pytest.mark.parametrize("subset", list(SUBSETS))
def test_missing_files_are_named_with_what_to_do(subset: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="rectom data get tomi"):
        ADAPTER.open(subset, tmp_path)


def test_the_audit_counts_the_labels_by_reason() -> None:
    assert ADAPTER.audit
    came, back = (
        "somebody else comes into the object's room at some time",
        "one of the two comes back into the object's",
    )
    back += " room when the other has left it"
    expected = [
        "tomi/1000: 1 of 1,000 labels are not what the rules give",
        f"  0 of the 31 where {back}",
        f"  0 of the 12 where {came}",
        f"  0 of the 13 where {came}, and {back}",
        "  1 of the 94 where who is asked about has gone to another room; the first is 0540-first_order_1_no_tom: "
        "cupboard, by the rules envelope",
        "tomi/test: 464 of 5,994 labels are not what the rules give",
        f"  116 of the 116 where {back}; the first is 0195-second_order_0_no_tom: green_container, by the rules "
        "green_basket",
        f"  258 of the 258 where {came}; the first is 0045-second_order_0_no_tom: green_basket, by the rules "
        "blue_container",
        f"  90 of the 90 where {came}, and {back}; the first is 0093-second_order_0_no_tom: red_drawer, by the rules "
        "green_bathtub",
        "  0 of the 138 where who is asked about has gone to another room",
    ]
    assert ADAPTER.audit(ADAPTER.files(folder())) == expected


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., list[str]]:
    """What the audit says of a made-up thousand of one row and an authors' file of one question."""

    def audited(text: str = TEXT, **changes: Any) -> list[str]:
        (tmp_path / "simtom_test_balanced.jsonl").write_bytes(simtom(**changes))
        (tmp_path / "fb_all_test.txt").write_text(text)
        (tmp_path / "fb_all_test.trace").write_text(TRACE)
        assert ADAPTER.audit
        return ADAPTER.audit(ADAPTER.files(tmp_path))

    return audited


def test_a_label_without_a_known_reason_is_listed_as_such(written: Callable[..., list[str]]) -> None:
    assert written() == [
        "tomi/1000: 0 of 1 labels are not what the rules give",
        "tomi/test: 0 of 1 labels are not what the rules give",
    ]
    assert written(TEXT.replace("\tjar", "\turn"), answer="jar") == [
        "tomi/1000: 1 of 1 labels are not what the rules give",
        "  1 of the 1 where no reason is known; the first is 0001-reality: jar, by the rules urn",
        "tomi/test: 1 of 1 labels are not what the rules give",
        "  1 of the 1 where no reason is known; the first is 0001-reality: urn, by the rules jar",
    ]


def test_the_audit_refuses_what_the_grammar_does_not_know(written: Callable[..., list[str]]) -> None:
    with pytest.raises(DataError, match=r"cannot audit tomi/1000: story story-001, line 1"):
        written(story="1 Zoe slept.")
    with pytest.raises(DataError, match=r"cannot audit tomi/1000: not a ToMi question"):
        written(question="Who slept?")
