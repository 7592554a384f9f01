from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rectom.llm.rates import Charge, Rate, TokenGuess


def test_what_does_not_fit_waits_for_the_oldest_to_leave_the_span() -> None:
    rate = Rate(3, 60.0)
    for at in (0.0, 10.0, 20.0):
        assert rate.ready_at(at, 1) == at
        rate.take(at, 1)
    assert 60 < rate.ready_at(30.0, 1) < 60.2
    assert 70 < rate.ready_at(30.0, 2) < 70.2
    assert rate.ready_at(61.0, 1) == 61.0


def test_what_is_larger_than_the_ceiling_passes_alone() -> None:
    rate = Rate(100, 60.0)
    assert rate.ready_at(0.0, 1000) == 0.0
    rate.take(0.0, 1000)
    assert 60 < rate.ready_at(1.0, 1) < 60.2
    assert 60 < rate.ready_at(1.0, 1000) < 60.2


def test_a_correction_frees_or_takes_room_while_it_counts() -> None:
    rate = Rate(100, 60.0)
    charge = rate.take(0.0, 90)
    assert rate.ready_at(1.0, 50) > 1.0
    rate.correct(charge, 20)
    assert rate.ready_at(1.0, 50) == 1.0
    rate.correct(charge, 80)
    assert rate.ready_at(1.0, 50) > 1.0
    assert rate.ready_at(100.0, 100) == 100.0
    rate.correct(charge, 1)  # too late to matter
    assert rate.ready_at(100.0, 100) == 100.0
    assert rate.ready_at(100.0, 101) == 100.0


@given(
    ceiling=st.integers(1, 50),
    span=st.sampled_from([1.0, 60.0]),
    asks=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 60), st.none() | st.integers(0, 60)), max_size=60),
)
def test_no_span_holds_more_than_the_ceiling(
    ceiling: int, span: float, asks: list[tuple[float, int, int | None]]
) -> None:
    rate = Rate(ceiling, span)
    taken: list[Charge] = []
    now = 0.0
    for gap, amount, real in asks:
        now += gap
        at = rate.ready_at(now, amount)
        assert now <= at <= now + span + 0.1  # nobody waits for ever
        now = at
        assert rate.ready_at(now, amount) == now
        within = [charge.amount for charge in taken if charge.at + span > now]
        assert sum(within) + amount <= ceiling or not any(within)
        taken.append(rate.take(now, amount))
        if real is not None:
            rate.correct(taken[-1], real)


def test_a_guess_is_dear_before_anything_is_known() -> None:
    guess = TokenGuess()
    assert guess.of(300, 50) == 150
    assert guess.of(300, None) == 600


def test_a_guess_learns_from_replies() -> None:
    guess = TokenGuess()
    for completion in (10, 30):
        guess.learn(400, 100, completion)
    assert guess.of(800, 4096) == 200 + 20
    assert guess.of(800, 15) == 200 + 15
    assert guess.of(800, None) == 200 + 20


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_a_guess_is_a_number_whatever_was_learnt(replies: list[tuple[int, int, int]]) -> None:
    guess = TokenGuess()
    for length, prompt, completion in replies:
        guess.learn(length, prompt, completion)
    assert guess.of(1000, 100) >= 1
