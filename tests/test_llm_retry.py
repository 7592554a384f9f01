from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rectom.llm.retry import Contact, Patience, Retry, backoff


@settings(deadline=None)
@given(failures=st.integers(1, 10**9), draw=st.floats(0, 1), first=st.floats(0, 1e6), cap=st.floats(0, 1e6))
def test_a_backoff_is_bounded(failures: int, draw: float, first: float, cap: float) -> None:
    assert 0 <= backoff(Retry(first=first, cap=cap), failures, lambda: draw) <= cap


def test_a_backoff_doubles_up_to_its_cap() -> None:
    waits = [backoff(Retry(first=1, cap=60), failures, lambda: 1.0) for failures in range(1, 9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


@settings(deadline=None)
@given(named=st.none() | st.floats(0, 1e15), attempts=st.integers(1, 9))
def test_all_waits_of_a_request_are_bounded(named: float | None, attempts: int) -> None:
    retry = Retry(attempts=attempts)
    patience = Patience(retry)
    waits = []
    while (wait := patience.next_wait(named)) is not None:
        waits.append(wait)
    assert len(waits) <= attempts - 1
    assert sum(waits) <= retry.total
    assert all(wait <= retry.named_cap for wait in waits)


def test_a_named_wait_is_kept_up_to_its_cap() -> None:
    patience = Patience(Retry(first=1.0, named_cap=600, total=1e6), draw=lambda: 0.5)
    assert patience.next_wait(100) == 100.5
    assert patience.next_wait(19_288) == 600


def test_a_server_that_never_was_there_is_given_up_soon() -> None:
    patience = Patience(Retry(), draw=lambda: 1.0)
    assert [patience.next_knock(None) for _ in range(3)] == [1, 2, None]


def test_a_server_that_was_there_is_waited_for_whatever_the_attempts() -> None:
    patience = Patience(Retry(attempts=2, total=5, down_s=600), draw=lambda: 1.0)
    waits = [patience.next_knock(lost_for) for lost_for in (0, 1, 3, 7, 15, 25, 599)]
    assert waits == [1, 2, 4, 8, 10, 10, 10]
    assert patience.next_knock(600) is None
    assert patience.next_wait(None) is not None  # its other attempts are not used up


def test_what_is_paid_for_and_of_no_use_is_tried_once_more() -> None:
    patience = Patience(Retry())
    assert patience.next_wait(None) is not None
    assert patience.next_wait(None, paid=True) is not None
    assert patience.next_wait(None, paid=True) is None


def test_with_one_attempt_nothing_is_sent_twice() -> None:
    assert Patience(Retry(attempts=1)).next_knock(1.0) is None
    assert Patience(Retry(attempts=1)).next_wait(1.0) is None


@pytest.mark.parametrize("been", [False, True])
def test_a_server_is_away_since_it_was_missed_first(been: bool) -> None:
    contact = Contact()
    if been:
        contact.made()
    assert contact.lost_for(5.0) == (0.0 if been else None)
    contact.missed(10.0)
    contact.missed(20.0)
    assert contact.lost_for(25.0) == (15.0 if been else None)
    contact.made()
    assert contact.lost_for(30.0) == 0.0
