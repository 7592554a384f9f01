from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import FormulaError
from rectom.facts import Fact, inside
from rectom.logic import Atom, Believes, Formula, Implies, Not, both, either, holds, parse
from rectom.perspective import Perspective
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS
from rectom.story import Story
from tests.conftest import along, characters_of, places_of, remembered, some_formula, stories
from tests.test_facts import FACTS, NAMES

FORMULAS = st.recursive(
    st.builds(Atom, FACTS),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Implies, inner, inner)
        | st.builds(Believes, NAMES, inner)
        | st.builds(both, inner, inner)
        | st.builds(either, inner, inner)
    ),
    max_leaves=8,
)
P, Q, R = (Atom(inside("ball", place)) for place in ("box", "bag", "tin"))


@given(FORMULAS)
def test_what_is_printed_is_read_back(formula: Formula) -> None:
    assert parse(str(formula)) == formula


@given(
    st.text()
    | st.text(alphabet="~&|->()[]B ina,x'.")
    | FORMULAS.map(str).flatmap(lambda t: st.permutations(t).map("".join))
)
def test_any_text_is_a_formula_or_a_formula_error(text: str) -> None:
    with suppress(FormulaError):
        formula = parse(text)
        assert parse(str(formula)) == formula


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("in(ball,box)", P),
        (" ~ in(ball,box) ", Not(P)),
        ("B[Anne](in(ball,box) -> B[Bob] in(ball,box))", Believes("Anne", Implies(P, Believes("Bob", P)))),
        ("B[ Anne ]~in(ball,box)", Believes("Anne", Not(P))),
        ("in(ball,box) -> in(ball,bag) -> in(ball,tin)", Implies(P, Implies(Q, R))),
        ("(in(ball,box) -> in(ball,bag)) -> in(ball,tin)", Implies(Implies(P, Q), R)),
        ("~in(ball,box) & in(ball,bag) | in(ball,tin)", either(both(Not(P), Q), R)),
        ("in(ball,box) | in(ball,bag) & in(ball,tin)", either(P, both(Q, R))),
        ("in(ball,box) & in(ball,bag) & in(ball,tin)", both(P, both(Q, R))),
        ("in(ball,box) | in(ball,bag) -> in(ball,tin)", Implies(either(P, Q), R)),
        ("B[Anne] in(ball,box) & in(ball,bag)", both(Believes("Anne", P), Q)),
        ("B(a,b)", Atom(Fact("B", ("a", "b")))),
    ],
)
def test_how_tightly_things_bind(text: str, formula: Formula) -> None:
    assert parse(text) == formula


@pytest.mark.parametrize(
    "text",
    [
        *("", "~", "->", "in(a,b) ->", "-> in(a,b)", "(in(a,b)", "in(a,b))", "()", "B[]in(a,b)", "B[a]", "a"),
        *("B[a b] in(a,b)", "in(a,b) in(a,b)", "in(a,b) & & in(a,b)", "in(a,b) | ", "B[a in(a,b)", "in(a,~b)"),
        "in(a,b) - > in(a,b)",
    ],
)
def test_a_fault_is_a_formula_error(text: str) -> None:
    with pytest.raises(FormulaError, match=r"expected .* in "):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 101 + "in(a,b)" + ")" * 101,
        "(" * 50_000,
        "~" * 50_000 + "in(a,b)",
        "B[a] " * 50_000 + "in(a,b)",
        " & ".join(["in(a,b)"] * 50_000),
        " | ".join(["in(a,b)"] * 50_000),
        " -> ".join(["in(a,b)"] * 50_000),
        "p(" * 50_000 + "a" + ")" * 50_000,
    ],
    ids=["101 brackets", "brackets", "not", "believes", "and", "or", "implies", "fact"],
)
def test_deep_nesting_is_refused_and_exhausts_nothing(text: str) -> None:
    with pytest.raises(FormulaError, match="deep"):
        parse(text)


def test_a_hundred_brackets_are_read() -> None:
    assert parse("(" * 100 + "in(ball,box)" + ")" * 100) == P
    wide = parse(" & ".join(["in(ball,box)"] * 100))
    assert parse(str(parse("~" * 60 + "in(ball,box)"))) == parse("~" * 60 + "in(ball,box)")
    assert holds(wide, Perspective((frozenset({P.fact}),), (None,), (None,)), RuleReader().perspective)


STORY = Story.parse(
    """
    1 Anne and Bob entered the hall.
    2 The ball is in the box.
    3 Anne exited the hall.
    4 Bob moved the ball to the bag.
    5 Bob exited the hall.
    6 Anne and Bob entered the waiting_room.
    """
)


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("in(ball,bag)", True),
        ("in(ball,box)", False),
        ("in(ball,nowhere)", False),
        ("B[Anne] in(ball,box)", True),
        ("B[Anne] in(ball,bag)", False),
        ("B[Anne] ~in(ball,bag)", True),
        ("B[Bob](in(ball,bag) & B[Anne] in(ball,box))", True),
        ("B[Bob] B[Anne] in(ball,bag) -> in(ball,box)", True),
        ("in(ball,box) | B[Anne] in(ball,box)", True),
        ("in(ball,bag) & B[Anne] in(ball,bag)", False),
        ("B[Nobody] in(ball,box)", False),
    ],
)
def test_formulas_of_a_story(text: str, true: bool) -> None:
    reader = RuleReader()
    assert holds(parse(text), reader.world(STORY), reader.perspective) is true


def _axioms(a: str, p: Formula, q: Formula) -> dict[str, Formula]:
    """K, D, 4 and 5 for a character and two formulas."""

    def b(body: Formula) -> Formula:
        return Believes(a, body)

    return {
        "K": Implies(b(Implies(p, q)), Implies(b(p), b(q))),
        "D": Implies(b(p), Not(b(Not(p)))),
        "4": Implies(b(p), b(b(p))),
        "5": Implies(Not(b(p)), b(Not(b(p)))),
    }


def _check_axioms(world: Perspective, reader: RuleReader, below: Callable[[int], int]) -> bool:
    """Check the axioms for formulas nested to depth 3, also as others believe them; returns whether a believes p."""
    people, facts = characters_of(world), places_of(world)
    construct = remembered(reader.perspective)
    p, q = (some_formula(below, people, facts, 3) for _ in range(2))
    a, other = people[below(len(people))], people[below(len(people))]
    for name, axiom in _axioms(a, p, q).items():
        assert holds(axiom, world, construct), (name, str(axiom))
        assert holds(Believes(other, axiom), world, construct), (name, other, str(axiom))
    return holds(Believes(a, p), world, construct)


@given(stories(), st.sampled_from(sorted(PRESETS)), st.data())
def test_belief_is_kd45_on_generated_stories(story: Story, preset: str, data: st.DataObject) -> None:
    reader = RuleReader(PRESETS[preset])
    _check_axioms(reader.world(story), reader, lambda n: data.draw(st.integers(0, n - 1)))


@pytest.mark.parametrize("preset", PRESETS)
def test_belief_is_kd45_on_all_real_stories(preset: str, worlds: dict[str, Perspective]) -> None:
    reader = RuleReader(PRESETS[preset])
    pick = Random(preset)
    believed = [_check_axioms(world, reader, pick.randrange) for world in worlds.values()]
    assert len(believed) == 120
    assert 20 < sum(believed) < 100


def _assert_idempotent(source: Perspective, reader: RuleReader, character: str) -> None:
    once = reader.perspective(source, character)
    assert reader.perspective(once, character) == once, (source.chain, character)


@given(stories(), st.sampled_from(sorted(PRESETS)), st.data())
def test_who_thinks_about_himself_thinks_the_same_on_generated_stories(
    story: Story, preset: str, data: st.DataObject
) -> None:
    reader = RuleReader(PRESETS[preset])
    world = reader.world(story)
    people = st.sampled_from(characters_of(world))
    source = along(reader.perspective, world, data.draw(st.lists(people, max_size=3)))
    _assert_idempotent(source, reader, data.draw(people))


@pytest.mark.parametrize("preset", PRESETS)
def test_who_thinks_about_himself_thinks_the_same_on_all_real_stories(
    preset: str, worlds: dict[str, Perspective]
) -> None:
    reader = RuleReader(PRESETS[preset])
    for number, world in enumerate(worlds.values()):
        people = characters_of(world)
        # Every character of every story as himself; as others see him, and others again, on a sample of chains.
        chains = [chain for size in (1, 2) for chain in permutations(people, size)]
        for character in people:
            _assert_idempotent(world, reader, character)
        for chain in (chains[number % 25], chains[(7 * number + 3) % 25]):
            source = along(reader.perspective, world, chain)
            for character in people:
                _assert_idempotent(source, reader, character)
