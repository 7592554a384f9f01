from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rectom.events import (
    NOTHING,
    Delta,
    Event,
    Kind,
    persistent,
    private_tell,
    public_claim,
    settle,
)
from rectom.facts import EMPTY, Fact, in_room, inside

BALL_BOX, BALL_BAG = inside("ball", "box"), inside("ball", "bag")
ANNE_HALL = in_room("Anne", "hall")

FACTS = st.builds(inside, st.sampled_from(["ball", "cup"]), st.sampled_from(["box", "bag", "tin"])) | st.builds(
    in_room, st.sampled_from(["Anne", "Bob"]), st.sampled_from(["hall", "den"])
)
STATES = st.frozensets(FACTS, max_size=5)


def _one_value_a_slot(facts: frozenset[Fact]) -> frozenset[Fact]:
    return frozenset({fact.slot: fact for fact in sorted(facts, key=str)}.values())


EVENTS = st.builds(lambda added, removed: persistent(_one_value_a_slot(added), removed), STATES, STATES) | st.builds(
    public_claim, st.just("Anne"), FACTS
)


@given(STATES, STATES, STATES)
def test_equation_1(state: frozenset[Fact], added: frozenset[Fact], removed: frozenset[Fact]) -> None:
    after = Delta(added, removed).apply(state)
    for fact in state | added | removed:
        assert (fact in after) == (fact in added or (fact in state and fact not in removed))


def test_a_fact_that_is_removed_and_added_holds() -> None:
    assert Delta(frozenset({BALL_BOX}), frozenset({BALL_BOX})).apply(EMPTY) == {BALL_BOX}


def test_settling_removes_what_an_addition_makes_false() -> None:
    first, second = settle([persistent([BALL_BOX]), persistent([BALL_BAG])])
    assert first.delta == Delta(frozenset({BALL_BOX}))
    assert second.delta == Delta(frozenset({BALL_BAG}), frozenset({BALL_BOX}))


def test_settling_drops_removals_of_what_did_not_hold() -> None:
    assert settle([persistent(removed=[ANNE_HALL])]) == (NOTHING,)


def test_settling_leaves_communications_alone() -> None:
    claim = public_claim("Anne", BALL_BAG)
    assert settle([persistent([BALL_BOX]), claim, persistent([BALL_BAG])])[1:] == (
        claim,
        persistent([BALL_BAG], [BALL_BOX]),
    )


@given(st.lists(EVENTS, max_size=8))
def test_in_settled_sequences_a_slot_has_one_value_and_settling_again_changes_nothing(events: list[Event]) -> None:
    settled = settle(events)
    assert settle(settled) == settled
    state = EMPTY
    for event in settled:
        assert not event.delta.added & event.delta.removed
        assert event.delta.removed <= state
        state = event.delta.apply(state)
        assert len({fact.slot for fact in state}) == len(state)


def test_who_speaks_to_whom_about_what() -> None:
    claim, told = public_claim("Anne", BALL_BOX), private_tell("Anne", "Bob", BALL_BAG)
    assert (claim.speaker, claim.listener, claim.proposition) == ("Anne", None, BALL_BOX)
    assert (told.speaker, told.listener, told.proposition) == ("Anne", "Bob", BALL_BAG)
    assert (NOTHING.speaker, NOTHING.listener, NOTHING.proposition) == (None, None, None)
    assert claim.kind is told.kind is Kind.TRANSIENT
    assert not claim.delta


def test_moves_are_entries_and_exits() -> None:
    event = persistent([in_room("Anne", "den"), BALL_BOX], [ANNE_HALL])
    assert event.moves == {in_room("Anne", "den"), ANNE_HALL}
    assert persistent([BALL_BOX]).moves == EMPTY


def test_events_print_in_the_papers_notation() -> None:
    assert str(persistent([in_room("Anne", "den")], [ANNE_HALL])) == "+in_room(Anne,den) -in_room(Anne,hall)"
    assert str(private_tell("Anne", "Bob", BALL_BOX)) == "private_tell(Anne,Bob,in(ball,box))"
    assert str(NOTHING) == "-"
