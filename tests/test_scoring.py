from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import DataError
from rectom.results.outcome import Outcome
from rectom.results.scoring import SCORERS, Measure, official, winner

ANSWERS = ("red", "green", "blue")


def outcome(
    gold: str | None, predicted: str | None, *, name: str = "q", group: str = "", ballot: str = "", failed: bool = False
) -> Outcome:
    correct = predicted is not None and predicted == gold and not failed
    return Outcome(name, "s", 1, gold, predicted, correct, "answer" if failed else None, 1, 1, group, ballot)


def of(pairs: str, group: str = "") -> list[Outcome]:
    """`y:y n:- …`: the right answer and the one given, `-` for none."""
    answers = [pair.split(":") for pair in pairs.split()]
    return [outcome(gold, None if given == "-" else given, group=group) for gold, given in answers]


def tries(votes: str, gold: str = "a", ballot: str = "b") -> list[Outcome]:
    """A question put several times; `-` is a try without an answer, `!` one that failed after an answer."""
    return [
        outcome(
            gold, {"-": None, "!": "a"}.get(vote, vote), name=f"{ballot}/{place}", ballot=ballot, failed=vote == "!"
        )
        for place, vote in enumerate(votes, 1)
    ]


def outcomes() -> st.SearchStrategy[list[Outcome]]:
    one = st.tuples(st.sampled_from(ANSWERS), st.sampled_from([*ANSWERS, None]), st.sampled_from(["", "x", "y"]))
    return st.lists(one, max_size=30).map(
        lambda drawn: [outcome(g, p, name=str(n), group=group) for n, (g, p, group) in enumerate(drawn)]
    )


def as_dict(measures: list[Measure]) -> dict[str, tuple[float, int]]:
    return {measure.name: (measure.value, measure.questions) for measure in measures}


def test_a_group_counts_the_same_though_it_has_no_name() -> None:
    measures = as_dict(official([*of("y:y", "easy"), *of("y:n n:y")], "macro-f1"))
    assert measures == {"macro-f1: easy": (1.0, 1), "macro-f1": (0.5, 3)}


def test_accuracy_by_group_and_over_all() -> None:
    given = [*of("y:y y:n n:n n:n", "b"), *of("y:-", "a"), *of("y:y")]
    assert official(given, "accuracy") == [
        Measure("accuracy: a", 0.0, 1),
        Measure("accuracy: b", 0.75, 4),
        Measure("accuracy", 4 / 6, 6),
    ]


def test_macro_f1_by_hand() -> None:
    # y: 2 right of 3, given 3 times, F1 2/3; n: 1 right of 2, given twice, F1 1/2.
    (measure,) = official(of("y:y y:y y:n n:n n:y"), "macro-f1")
    assert (measure.name, measure.questions) == ("macro-f1", 5)
    assert measure.value == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_a_class_that_is_only_answered_lowers_the_mean() -> None:
    # a: 2*1/(2+1); c: given once, never right.
    assert official(of("a:a a:c"), "macro-f1")[-1].value == pytest.approx((2 / 3 + 0) / 2)


def test_no_answer_costs_the_right_class_its_recall_and_is_no_class() -> None:
    # y: 1 right of 2, given once, F1 2/3; n: 1 of 1.
    (measure,) = official(of("y:y y:- n:n"), "macro-f1")
    assert measure.questions == 3
    assert measure.value == pytest.approx((2 / 3 + 1) / 2)
    failed = [*of("y:y n:n"), outcome("y", "y", failed=True)]
    assert official(failed, "macro-f1") == official(of("y:y y:- n:n"), "macro-f1")


def test_nothing_but_failures_scores_zero() -> None:
    assert official(of("y:- n:-"), "macro-f1") == [Measure("macro-f1", 0.0, 2)]
    assert official(tries("-----"), "majority") == [Measure("majority", 0.0, 1)]


def test_each_group_counts_the_same_in_the_macro_f1_over_all() -> None:
    measures = as_dict(official([*of("y:y " * 98 + "n:n", "easy"), *of("y:n n:y", "hard")], "macro-f1"))
    assert measures == {"macro-f1: easy": (1.0, 99), "macro-f1: hard": (0.0, 2), "macro-f1": (0.5, 101)}


@pytest.mark.parametrize(
    ("votes", "won"),
    [
        ("aabbc", "a"),  # two each: a was given first
        ("bbaac", "b"),
        ("bacac", "a"),
        ("abbcc", "b"),
        ("abbb", "b"),
        ("---aa", None),
        ("aa---", None),
        ("-aa-b", None),  # two each: nothing was given first
        ("a-a-b", "a"),
        ("!!!bb", None),
        ("b", "b"),
    ],
)
def test_who_wins(votes: str, won: str | None) -> None:
    assert winner(tries(votes)) == won
    assert official(tries(votes), "majority") == [Measure("majority", float(won == "a"), 1)]


def test_majority_counts_questions_in_their_groups() -> None:
    given = [
        *(one for ballot in "xy" for one in tries("aab", ballot=ballot)),
        *tries("bba", ballot="z"),
        outcome("a", "a", name="alone", group="g"),
    ]
    assert official(given, "majority") == [Measure("majority: g", 1.0, 1), Measure("majority", 0.75, 4)]


@given(st.text("ab-", min_size=1, max_size=5), outcomes(), st.randoms(use_true_random=False))
def test_the_order_of_outcomes_does_not_matter(votes: str, others: list[Outcome], chance: Random) -> None:
    given = [*tries(votes), *tries(votes[::-1], ballot="c"), *others]
    mixed = list(given)
    chance.shuffle(mixed)
    for scoring in SCORERS:
        assert official(mixed, scoring) == official(given, scoring)


@given(outcomes())
def test_macro_f1_is_that_of_the_confusion_matrix(given: list[Outcome]) -> None:
    found = official(given, "macro-f1")
    expected = brute_force(given)
    assert [(measure.name, measure.questions) for measure in found] == [(name, n) for name, (_, n) in expected.items()]
    assert [measure.value for measure in found] == pytest.approx([float(value) for value, _ in expected.values()])


def brute_force(given: list[Outcome]) -> dict[str, tuple[Fraction, int]]:
    """The same from precision and recall, in whole numbers."""
    some = {name: [one for one in given if one.group == name] for name in ("", "x", "y")}
    values = {name: f1(group) for name, group in some.items() if group}
    named = {f"macro-f1: {name}": (value, len(some[name])) for name, value in values.items() if name}
    return {**named, "macro-f1": (sum(values.values(), Fraction()) / (len(values) or 1), len(given))}


def f1(some: list[Outcome]) -> Fraction:
    scores = []
    for name in ANSWERS:
        hits = sum(one.gold == name == one.predicted for one in some)
        right = sum(one.gold == name for one in some)
        given = sum(one.predicted == name for one in some)
        if hits:
            precision, recall = Fraction(hits, given), Fraction(hits, right)
            scores.append(2 * precision * recall / (precision + recall))
        elif right or given:
            scores.append(Fraction())
    return sum(scores, Fraction()) / (len(scores) or 1)


@given(outcomes())
def test_nothing_is_left_out_and_values_are_shares(given: list[Outcome]) -> None:
    for scoring in SCORERS:
        *groups, whole = official(given, scoring)
        assert whole.questions == len(given)
        assert sum(measure.questions for measure in groups) == sum(one.group != "" for one in given)
        assert all(0 <= measure.value <= 1 for measure in [*groups, whole])
        assert [measure.name for measure in groups] == sorted(measure.name for measure in groups)


@given(outcomes())
def test_a_right_answer_in_place_of_none_never_lowers_a_figure(given: list[Outcome]) -> None:
    better = [outcome(o.gold, o.predicted or o.gold, name=o.id, group=o.group) for o in given]
    for scoring in SCORERS:
        assert official(better, scoring)[-1].value >= official(given, scoring)[-1].value - 1e-12


@given(outcomes())
def test_a_majority_of_single_tries_is_the_accuracy(given: list[Outcome]) -> None:
    values = [(measure.value, measure.questions) for measure in official(given, "accuracy")]
    assert [(measure.value, measure.questions) for measure in official(given, "majority")] == values


def test_no_answer_to_a_question_without_a_label_is_not_right() -> None:
    assert [official([outcome(None, None)], scoring)[-1].value for scoring in SCORERS] == [0, 0, 0]


def test_no_outcomes_are_no_questions() -> None:
    assert [official([], scoring) for scoring in SCORERS] == [[Measure(name, 0.0, 0)] for name in SCORERS]


def test_an_unknown_measure() -> None:
    with pytest.raises(DataError, match=r"no measure 'bleu'; .* accuracy, macro-f1, majority$"):
        official([], "bleu")


def test_macro_f1_counts_classes_where_answers_have_such() -> None:
    def place(gold: str, predicted: str | None, gold_class: str, predicted_class: str) -> Outcome:
        return replace(outcome(gold, predicted), gold_class=gold_class, predicted_class=predicted_class)

    given = [
        place("box", "box", "first", "first"),
        place("bag", "bag", "first", "first"),
        place("tin", "bag", "then", "first"),
        place("jar", None, "then", ""),
        place("jar", "jar", "then", "then"),
    ]
    # first: 2 right of 2, given 3 times; then: 1 right of 3, given once.
    assert official(given, "macro-f1")[-1].value == pytest.approx((4 / 5 + 2 / 4) / 2)
