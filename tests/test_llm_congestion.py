from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.llm.congestion import Congestion


def replies(found: Congestion, number: int) -> None:
    for _ in range(number):
        found.replied(found.era)


def test_it_starts_at_the_ceiling_and_replies_leave_it_there() -> None:
    found = Congestion(64)
    replies(found, 100)
    assert found.limit == 64


def test_a_burst_is_one_fall() -> None:
    found = Congestion(64)
    assert [found.overloaded(0, named=False) for _ in range(64)] == [True] + [False] * 63
    assert (found.limit, found.era) == (44, 1)


def test_falls_bring_it_down_to_one() -> None:
    found = Congestion(64)
    limits = []
    for _ in range(14):
        found.overloaded(found.era, named=False)
        limits.append(found.limit)
    assert limits == [44, 31, 21, 15, 10, 7, 5, 3, 2, 1, 1, 1, 1, 1]
    assert found.strikes == 14


def test_a_reply_to_what_was_sent_before_the_fall_does_not_raise_it() -> None:
    found = Congestion(64)
    found.overloaded(0, named=False)
    found.replied(0)
    assert (found.limit, found.strikes) == (44, 1)


def test_it_rises_fast_to_where_the_trouble_began_and_slowly_beyond() -> None:
    found = Congestion(64)
    for _ in range(14):
        found.overloaded(found.era, named=False)
    rounds = []
    while found.limit < 64:
        replies(found, found.limit)
        rounds.append(found.limit)
    assert rounds[:6] == [2, 4, 8, 16, 32, 46]
    assert rounds[6] - rounds[5] in {2, 3}
    assert len(rounds) < 14


@pytest.mark.parametrize("ceiling", [1, 2, 7, 1024])
def test_it_reaches_every_ceiling_again(ceiling: int) -> None:
    found = Congestion(ceiling)
    for _ in range(30):
        found.overloaded(found.era, named=False)
    replies(found, 20 * ceiling)
    assert found.limit == ceiling


def test_a_named_time_is_no_fall_unless_it_is_named_again_too_soon() -> None:
    found = Congestion(64)
    found.overloaded(found.era, named=True)
    assert (found.limit, found.era) == (64, 1)
    replies(found, 64)
    found.overloaded(found.era, named=True)
    assert found.limit == 64
    replies(found, 10)
    found.overloaded(found.era, named=True)
    assert found.limit == 32
    found.overloaded(found.era, named=True)
    assert found.limit == 16


def test_a_fixed_limit_counts_strikes_and_stays() -> None:
    found = Congestion(64, floor=64)
    for _ in range(5):
        found.overloaded(found.era, named=False)
    assert (found.limit, found.strikes) == (64, 5)


def server_with(room: int, *, named: bool) -> Callable[[Congestion], int]:
    """A server that takes `room` at once: a round, and how many it refused."""

    def one_round(found: Congestion) -> int:
        era, sent = found.era, found.limit
        for _ in range(min(sent, room)):
            found.replied(era)
        for _ in range(max(0, sent - room)):
            found.overloaded(era, named=named)
        return max(0, sent - room)

    return one_round


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("room", [1, 3, 10, 40])
def test_it_settles_near_what_the_server_bears(room: int, named: bool) -> None:
    found = Congestion(64)
    one_round = server_with(room, named=named)
    for _ in range(30):
        one_round(found)
    limits, refused = [], 0
    for _ in range(100):
        limits.append(min(room, found.limit))
        refused += one_round(found)
    assert sum(limits) / 100 > 0.7 * room
    # Beside a limit of 1 there is only 2: the least that can be tried is as much again.
    assert refused <= (0.1 if room >= 10 else 0.6) * sum(limits)


@given(
    ceiling=st.integers(1, 200),
    adaptive=st.booleans(),
    events=st.lists(st.tuples(st.sampled_from(["reply", "busy", "named"]), st.integers(0, 3)), max_size=200),
)
def test_it_stays_between_floor_and_ceiling_and_is_never_stuck(
    ceiling: int, adaptive: bool, events: list[tuple[str, int]]
) -> None:
    floor = 1 if adaptive else ceiling
    found = Congestion(ceiling, floor)
    for what, age in events:
        era = max(0, found.era - age)
        before = found.limit
        if what == "reply":
            found.replied(era)
            assert found.limit >= before
        else:
            current = era == found.era
            assert found.overloaded(era, named=what == "named") == current
            assert found.limit <= before if current else found.limit == before
        assert floor <= found.limit <= ceiling
    replies(found, 20 * ceiling)
    assert found.limit == ceiling
