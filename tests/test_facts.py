from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import FormulaError
from rectom.facts import Fact, in_room, inside, printed, superseded, value_of

NAMES = st.from_regex(r"\w[\w'.-]{0,8}", fullmatch=True)
FACTS = st.recursive(
    st.builds(Fact, NAMES, st.lists(NAMES, min_size=1, max_size=3).map(tuple)),
    lambda inner: st.builds(Fact, NAMES, st.lists(NAMES | inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=6,
)


@given(FACTS)
def test_what_is_printed_is_read_back(fact: Fact) -> None:
    assert Fact.parse(str(fact)) == fact


@given(FACTS, st.sampled_from([" ", "  ", "\t", "\n"]))
def test_blanks_between_the_parts_do_not_matter(fact: Fact, gap: str) -> None:
    spaced = str(fact).replace("(", f"{gap}({gap}").replace(",", f"{gap},{gap}").replace(")", f"{gap})")
    assert Fact.parse(f"{gap}{spaced}{gap}") == fact


@given(st.text() | st.text(alphabet="in(,)ab B[]~&|-> "))
def test_any_text_is_a_fact_or_a_formula_error(text: str) -> None:
    with suppress(FormulaError):
        assert Fact.parse(text).args


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "in", "in(", "in()", "in(ball", "in(ball,", "in(ball,)", "in(ball box)", "in(ball,box"),
        *("(ball,box)", "in(ball,box))", "in(ball,box) in(ball,box)", "in(,box)", "in[ball,box]", "in(ball,box("),
    ],
)
def test_a_fault_is_named_with_its_text(text: str) -> None:
    with pytest.raises(FormulaError, match="expected"):
        Fact.parse(text)


def test_half_a_character_is_no_word_since_it_cannot_be_kept() -> None:
    with pytest.raises(FormulaError, match="half a character in the quotation at 5"):
        Fact.parse(r'is(a,"\ud83d")')
    assert Fact.parse(r'is(a,"\ud83d\ude00")').args == ("a", "😀")


def test_of_several_values_it_is_the_same_one_in_every_process() -> None:
    places = [f"place{number}" for number in range(50)]
    assert value_of(frozenset(inside("ball", place) for place in places), "in", "ball") == min(places)


@pytest.mark.parametrize("depth", [60, 1_000, 50_000])
def test_deep_nesting_is_refused_and_exhausts_nothing(depth: int) -> None:
    with pytest.raises(FormulaError, match="deep"):
        Fact.parse("p(" * depth + "a" + ")" * depth)


def test_a_communication_holds_a_fact() -> None:
    told = Fact.parse("private_tell(Anne,Bob,in(ball,box))")
    assert told.args == ("Anne", "Bob", inside("ball", "box"))
    assert told.slot is None


def test_only_functional_predicates_have_a_slot() -> None:
    assert inside("ball", "box").slot == ("in", "ball")
    assert in_room("Anne", "hall").slot == ("in_room", "Anne")
    assert Fact("likes", ("Anne", "Bob")).slot is None


def test_a_state_gives_a_value_or_none() -> None:
    state = frozenset({inside("ball", "box"), in_room("Anne", "hall")})
    assert value_of(state, "in", "ball") == "box"
    assert value_of(state, "in", "Anne") is None
    assert value_of(state, "in_room", "Anne") == "hall"


def test_news_supersede_other_values_of_the_same_slot_only() -> None:
    likes = Fact("likes", ("Anne", "Bob"))
    state = frozenset({inside("ball", "box"), inside("cup", "box"), likes})
    assert superseded(state, [inside("ball", "bag"), Fact("likes", ("Anne", "Cy"))]) == {inside("ball", "box")}
    assert superseded(state, [inside("ball", "box")]) == frozenset()


def test_facts_print_sorted() -> None:
    assert printed({inside("cup", "box"), in_room("Bob", "hall"), inside("ball", "box")}) == [
        "in(ball,box)",
        "in(cup,box)",
        "in_room(Bob,hall)",
    ]
