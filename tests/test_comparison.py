from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import SettingsError
from rectom.results.comparison import Comparison, Difference, Row, compare
from rectom.results.finished import Answered, Finished, Paid
from rectom.results.statistics import holm, mcnemar, wilson

ORDERS = 5


def run(
    name: str, scores: Sequence[float], *, orders: int = ORDERS, tokens: float = 0, calls: float = 0, **changes: Any
) -> Finished:
    """A run with these scores; a story has a question of each order."""
    questions = tuple(
        Answered(f"k{place}", f"s{place // orders}", place % orders, 1, score, 0, calls, tokens)
        for place, score in enumerate(scores)
    )
    return replace(Finished(name, "toy/all", "d" * 64, {}, questions, Paid(0, 0)), **changes)


def row(compared: Comparison, order: str) -> Row:
    return next(one for one in compared.rows if one.order == order)


def overall(*runs: Finished, **more: Any) -> Difference:
    return row(compare(runs, **more), "all").differences[0]


SCORES = st.lists(st.tuples(st.sampled_from((0.0, 1.0)), st.sampled_from((0.0, 1.0))), min_size=10, max_size=40)

A = run("a", [1, 0, 0, 0, 0, 1, 1, 0, 0, 0], tokens=600, calls=1)
B = run("b", [1, 1, 0, 1, 0, 1, 0, 1, 1, 0], tokens=2600, calls=4)


def test_by_order_and_in_all_the_figures_are_those_of_the_questions() -> None:
    compared = compare([A, B])
    assert [one.order for one in compared.rows] == ["0", "1", "2", "3", "4", "all"]
    assert [one.stories for one in compared.rows] == [2] * 6
    assert [(one.figures[0].accuracy, one.figures[1].accuracy) for one in compared.rows] == [
        (1, 1),
        (0.5, 0.5),
        (0, 0.5),
        (0, 1),
        (0, 0),
        (0.3, 0.6),
    ]
    last = compared.rows[-1]
    assert [(f.questions, f.tokens, f.calls) for f in last.figures] == [(10, 600, 1), (10, 2600, 4)]
    assert last.figures[1].interval == wilson(0.6, 10)
    difference = last.differences[0]
    assert difference.accuracy == pytest.approx(0.3)
    assert (difference.b, difference.c, difference.p) == (1, 4, mcnemar(1, 4))


def test_eff_is_points_for_each_further_thousand_tokens() -> None:
    assert overall(A, B).eff == pytest.approx(30 / 2)
    assert overall(replace(A, name="x", questions=B.questions), B).eff is None
    # The measure is of additional tokens: it has no meaning where there are fewer.
    assert overall(B, A).eff is None


@given(SCORES)
def test_the_other_way_round_everything_is_mirrored(scores: list[tuple[float, float]]) -> None:
    one, other = (run(name, column) for name, column in zip("ab", zip(*scores, strict=True), strict=True))
    there, back = overall(one, other, resamples=100), overall(other, one, resamples=100)
    assert (there.accuracy, there.b, there.c, there.p) == (-back.accuracy, back.c, back.b, back.p)
    assert there.interval
    assert back.interval
    assert there.interval == (-back.interval[1], -back.interval[0])


@given(SCORES)
def test_runs_of_the_same_answers_do_not_differ(scores: list[tuple[float, float]]) -> None:
    column = [score for score, _ in scores]
    for one in compare([run("a", column), run("b", column)], resamples=100).rows:
        (difference,) = one.differences
        assert (difference.accuracy, difference.p, difference.holm) == (0, 1, 1)
        assert difference.interval in {(0, 0), None}


@given(SCORES)
def test_the_counts_and_the_difference_are_those_of_the_pairs(scores: list[tuple[float, float]]) -> None:
    one, other = (run(name, column) for name, column in zip("ab", zip(*scores, strict=True), strict=True))
    found = overall(one, other, resamples=100)
    assert (found.b, found.c) == (scores.count((1.0, 0.0)), scores.count((0.0, 1.0)))
    assert found.accuracy == pytest.approx((found.c - found.b) / len(scores))
    assert found.p == mcnemar(found.b, found.c)


def test_questions_are_paired_by_what_they_are_not_by_where_they_stand() -> None:
    shuffled = list(B.questions)
    Random(1).shuffle(shuffled)
    assert overall(A, replace(B, questions=tuple(shuffled))) == overall(A, B)


def test_holm_is_over_the_runs_in_all_and_apart_over_the_orders() -> None:
    chance, shares = Random(4), {"a": 0.3, "b": 0.5, "c": 0.6}
    runs = [run(name, [float(chance.random() < share) for _ in range(200)]) for name, share in shares.items()]
    compared = compare(runs, resamples=100)
    by_order = [difference for one in compared.rows[:-1] for difference in one.differences]
    assert [one.holm for one in by_order] == holm([one.p for one in by_order])
    in_all = compared.rows[-1].differences
    assert [one.holm for one in in_all] == holm([one.p for one in in_all])
    assert [one.holm for one in in_all] != [one.p for one in in_all]
    (single,) = compare(runs[:2], resamples=100).rows[-1].differences
    assert single.holm == single.p


def test_questions_of_one_order_have_one_row_alone() -> None:
    one, other = run("a", [0, 1, 1], orders=1), run("b", [1, 1, 1], orders=1)
    assert [row.order for row in compare([one, other]).rows] == ["all"]


def test_unstated_orders_come_first() -> None:
    def without(questions: Sequence[Answered]) -> tuple[Answered, ...]:
        return tuple(replace(q, order=None) if q.order == 2 else q for q in questions)

    runs = [replace(one, questions=without(one.questions)) for one in (A, B)]
    assert [one.order for one in compare(runs).rows] == ["-", "0", "1", "3", "4", "all"]


def test_failures_are_wrong_and_counted() -> None:
    failed = replace(B, questions=(replace(B.questions[0], score=0.0, failed=1), *B.questions[1:]))
    last = compare([A, failed]).rows[-1]
    assert [figures.failed for figures in last.figures] == [0, 1]
    assert last.figures[1].accuracy == pytest.approx(0.5)
    assert (last.differences[0].b, last.differences[0].c) == (2, 4)


def test_samples_count_as_their_share_and_b_and_c_as_questions() -> None:
    # Three samples of five questions: shares, of which two differ one way and one the other.
    one = run("a", [1 / 3, 2 / 3, 1, 0, 1 / 3])
    other = run("b", [2 / 3, 1, 1, 0, 0])
    figures = compare([one, other]).rows[-1].figures
    assert [found.accuracy for found in figures] == pytest.approx([7 / 15, 8 / 15])
    assert figures[0].interval == wilson(figures[0].accuracy, 5)
    found = overall(one, other)
    assert (found.b, found.c, found.p) == (1, 2, 1.0)
    assert found.interval is None  # one story


def test_stories_are_drawn_not_questions() -> None:
    # In every story all questions go the same way: 100 questions are worth 20 stories.
    better = [place % 2 for place in range(20)]
    alike = run("b", [better[place // ORDERS] for place in range(100)])
    apart = replace(alike, questions=tuple(replace(q, story_id=q.key) for q in alike.questions))
    zero = run("a", [0] * 100)
    split = replace(zero, questions=tuple(replace(q, story_id=q.key) for q in zero.questions))
    wide, narrow = overall(zero, alike).interval, overall(split, apart).interval
    assert wide
    assert narrow
    assert wide[1] - wide[0] > 1.8 * (narrow[1] - narrow[0])


# Which runs may be compared.


def part(whole: Finished, questions: slice, **changes: Any) -> Finished:
    return replace(whole, questions=whole.questions[questions], **changes)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (part(B, slice(0, 5)), r"a has 10 \(toy/all\), b has 5 \(toy/all\); they share 5: --intersect compares those"),
        (replace(B, benchmark="toy/some"), r"b has 10 \(toy/some\); they share 10: --intersect"),
        (
            replace(B, data="e" * 64),
            r"\(toy/all of data dddddddd\), b has 10 \(toy/all of data eeeeeeee\); they share 10",
        ),
        (part(B, slice(0, 0)), "they share none: compare others"),
        (run("b", [1] * 12), "a has 10 .*, b has 12 .*; they share 10"),
    ],
)
def test_runs_over_other_questions_are_refused(other: Finished, said: str) -> None:
    with pytest.raises(SettingsError, match=f"^the runs are not over the same questions: .*{said}"):
        compare([A, other])


def test_what_all_share_is_compared_if_that_is_wanted() -> None:
    first, last = part(A, slice(0, 7), benchmark="toy/first"), part(B, slice(2, 10), data="e" * 64)
    compared = compare([first, last, A], intersect=True)
    assert compared.left_out == (2, 3, 5)
    assert compared.rows[-1].figures[0].questions == 5
    assert compared.rows[-1].figures[1].accuracy == pytest.approx(2 / 5)


@pytest.mark.parametrize("empty", [(), tuple(replace(q, key=f"other {q.key}") for q in B.questions)])
def test_nothing_shared_is_refused_even_then(empty: tuple[Answered, ...]) -> None:
    with pytest.raises(SettingsError, match="they share none"):
        compare([A, replace(B, questions=empty)], intersect=True)


# The line of JSON.


def test_the_line_has_the_fields_that_scripts_read() -> None:
    (line,) = compare([A, B]).to_json()
    assert (line["run"], line["against"]) == ("b", "a")
    assert line["benchmark"] == {"run": "toy/all", "against": "toy/all"}
    assert line["left_out"] == {"run": 0, "against": 0}
    assert list(line["by_order"]) == ["0", "1", "2", "3", "4"]
    assert line["paid"]["run"] == B.paid.to_json()
    found = line["all"]
    low, high = wilson(0.6, 10)
    assert found["run"] == {
        "accuracy": 0.6,
        "interval": pytest.approx([low, high], abs=1e-6),
        "failed": 0,
        "tokens": 2600,
        "calls": 4,
    }
    assert found["against"]["accuracy"] == 0.3
    kept = {name: found[name] for name in ("questions", "stories", "difference", "b", "c", "p", "p_holm", "eff")}
    assert kept == {
        "questions": 10,
        "stories": 2,
        "difference": 0.3,
        "b": 1,
        "c": 4,
        "p": 0.375,
        "p_holm": 0.375,
        "eff": 15.0,
    }
    assert len(found["difference_interval"]) == 2


def test_each_run_but_the_baseline_has_a_line() -> None:
    lines = compare([A, B, replace(A, name="c")]).to_json()
    assert [(line["run"], line["against"]) for line in lines] == [("b", "a"), ("c", "a")]
