from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from rectom.llm.retry import Patience, Retry, backoff, named_wait

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
EARLIER = format_datetime(NOW - timedelta(seconds=90), usegmt=True)


@settings(deadline=None)
@given(failures=st.integers(1, 10**9), draw=st.floats(0, 1), first=st.floats(0, 1e6), cap=st.floats(0, 1e6))
def test_a_backoff_is_bounded(failures: int, draw: float, first: float, cap: float) -> None:
    assert 0 <= backoff(Retry(first=first, cap=cap), failures, lambda: draw) <= cap


def test_a_backoff_doubles_up_to_its_cap() -> None:
    waits = [backoff(Retry(first=1, cap=60), failures, lambda: 1.0) for failures in range(1, 9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"Retry-After": " 0.25 "}, 0.25),
        ({"Retry-After": LATER}, 90),
        ({"Retry-After": EARLIER}, 0),
        ({"Retry-After": "Tue, 01 Jan 2030 12:01:30"}, 90),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"x-ratelimit-reset": "3"}, 3),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 5)}, 5),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() + 5) * 1000)}, 5),
        ({"x-ratelimit-reset": "6m0s"}, None),
        ({"Retry-After": "1", "x-ratelimit-reset": "3"}, 1),
    ],
)
def test_the_wait_that_a_server_names(headers: dict[str, str], wait: float | None) -> None:
    assert named_wait(CIMultiDict(headers), NOW) == wait


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_header_is_read(text: str) -> None:
    for name in ("Retry-After", "X-RateLimit-Reset"):
        wait = named_wait({name: text}, NOW)
        assert wait is None or wait >= 0


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
