from __future__ import annotations

from collections.abc import Sequence

import pytest

from rectom.benchmarks.audit import Finding, audit
from rectom.benchmarks.generate import Recipe
from rectom.benchmarks.hitom import Row
from rectom.errors import DataError
from tests.conftest import generated
from tests.test_reader_rules import WRONG_LABELS


@pytest.fixture(scope="module")
def findings(rows: list[Row]) -> list[Finding]:
    return audit(rows)


def _of(findings: Sequence[Finding], kind: str) -> list[Finding]:
    return [finding for finding in findings if finding.kind == kind]


def test_cotp_and_vp_contradict_each_other_138_times(findings: list[Finding], rows: list[Row]) -> None:
    by_id = {row.sample_id: row for row in rows}
    found = _of(findings, "prompting-type")
    assert len(found) == 138
    for finding in found:
        vp, cotp = (by_id[i] for i in finding.ids)
        assert (vp.prompting_type, vp.answer) == ("VP", finding.label)
        assert (cotp.prompting_type, cotp.answer) == ("CoTP", finding.expected)
        assert vp.question == cotp.question


def test_742_contradicts_questions_of_equal_structure(findings: list[Finding]) -> None:
    found = _of(findings, "structure")
    assert [finding.ids for finding in found] == [(742, 147), (742, 851), (742, 854)]
    assert {(finding.label, finding.expected) for finding in found} == {("blue_treasure_chest", "red_bottle")}
    assert "is the same in 742 and 854" in found[-1].reason


def test_the_rules_cannot_reach_exactly_the_wrong_labels(findings: list[Finding], rows: list[Row]) -> None:
    found = _of(findings, "unreachable")
    assert [finding.ids for finding in found] == [(i,) for i in WRONG_LABELS]
    labels = {row.sample_id: row for row in rows}
    for finding in found:
        row = labels[finding.ids[0]]
        assert finding.label == row.answer != finding.expected
        assert finding.expected in row.choices
        assert f"by the rules it is {finding.expected}: the belief last changes at step" in finding.reason


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((241, 261, 281), "blue_container only ever holds the lemon, never the onion"),
        ((285,), "green_drawer only ever holds the sweet_potato, never the turnip"),
        ((857,), "green_treasure_chest only ever holds the spinach, never the cabbage"),
        ((292, 774, 794, 881), "the faulty VP row "),
        ((742,), "rows of equal structure contradict it: 147, 851, 854"),
        ((242, 262), "green_bucket is where the peas is from step 5 to 9"),
        ((292,), "is where the corn is at step 2 and from step 13 to 29"),
        ((774, 794), "is where Charlotte claims at step 29 that the potato is"),
        ((774,), "it is where Ava thinks Charlotte thinks the potato is"),
        ((758, 778), "it is where Jack thinks the carrot is"),
        ((296,), "it is where Jack thinks Jackson thinks Emma thinks the eggplant is"),
        ((742, 762, 782), "last changes at step 2 (The peas is in the red_bottle)"),
    ],
)
def test_each_has_its_reason(ids: tuple[int, ...], reason: str, findings: list[Finding]) -> None:
    with_it = [finding.ids[0] for finding in _of(findings, "unreachable") if reason in finding.reason]
    assert with_it == [*ids]


@pytest.mark.parametrize("tell", [False, True])
@pytest.mark.parametrize("max_order", [2, 7])
def test_labels_that_follow_the_rules_raise_no_doubts(tell: bool, max_order: int) -> None:
    assert audit(generated(Recipe(stories=20, chapters=3, tell=tell, max_order=max_order))) == []


def _relabelled(row: Row, answer: str) -> Row:
    return row.model_copy(update={"answer": answer})


def test_a_wrong_label_is_found_in_any_file() -> None:
    rows = list(generated(Recipe(stories=5, tell=False, vocabulary="fresh", wording="now")))
    unused = next(option for option in rows[2].choices if option not in rows[2].story)
    rows[2] = _relabelled(rows[2], unused)
    (finding,) = audit(rows)
    assert (finding.kind, finding.ids, finding.label) == ("unreachable", (2,), unused)
    assert finding.reason.startswith(f"the story never puts anything into the {unused}; by the rules it is ")


def test_a_wrong_label_contradicts_its_renamed_copy() -> None:
    """The same story under other names is labelled otherwise: both findings name the wrong one."""
    rows = list(generated(Recipe(stories=30, tell=False, max_order=1)))
    first = next(r for r in rows if r.question_order == 1 and r.answer != rows[r.sample_id - 1].answer)
    chain = first.question.split()[2]
    copy = first.model_copy(
        update={
            "sample_id": 900,
            "story": first.story.replace(chain, "Zoe"),
            "question": first.question.replace(chain, "Zoe"),
            "answer": rows[first.sample_id - 1].answer,
        }
    )
    structure, unreachable = audit([first, copy])
    assert (structure.kind, structure.ids) == ("structure", (900, first.sample_id))
    assert (structure.label, structure.expected) == (copy.answer, first.answer)
    assert (unreachable.kind, unreachable.ids) == ("unreachable", (900,))


def test_an_unknown_name_is_an_error_that_gives_the_row() -> None:
    rows = [
        row.model_copy(update={"question": "Where does Zoe really think the ball is?"})
        for row in generated(Recipe(stories=1))
    ]
    with pytest.raises(DataError, match="cannot audit the row with sample_id 0: the story has no character 'Zoe'"):
        audit(rows)


def test_a_story_of_no_grammar_is_an_error_that_gives_the_row() -> None:
    rows = [row.model_copy(update={"story": "1 Anne danced."}) for row in generated(Recipe(stories=1))]
    with pytest.raises(DataError, match=r"cannot audit the row with sample_id 0: .*line 1: no Hi-ToM template"):
        audit(rows)


def test_no_rows_no_findings() -> None:
    assert audit([]) == []
