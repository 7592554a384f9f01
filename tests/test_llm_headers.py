from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from rectom.llm.headers import named_wait, spent_wait

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
EARLIER = format_datetime(NOW - timedelta(seconds=90), usegmt=True)


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
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"x-ratelimit-reset": "3"}, 3),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 5)}, 5),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() + 5) * 1000)}, 5),
        ({"x-ratelimit-reset": "6m0s"}, 360),
        ({"Retry-After": "1", "x-ratelimit-reset": "3"}, 1),
        ({"x-ratelimit-reset-requests": "1s"}, 1),
        ({"x-ratelimit-reset-tokens": "250ms"}, 0.25),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "2s"}, 2),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1m"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-reset-requests": "1m",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360,
        ),
        ({"x-ratelimit-reset-requests": "6m soon"}, None),
    ],
)
def test_the_wait_that_a_refusal_names(headers: dict[str, str], wait: float | None) -> None:
    assert named_wait(CIMultiDict(headers), NOW) == wait


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"x-ratelimit-reset-requests": "1s"}, None),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "8.64s"}, 8.64),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "90ms"}, 0.09),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 5)}, 5),
        ({"x-ratelimit-remaining-tokens": "0"}, None),
    ],
)
def test_the_wait_after_a_reply_that_used_everything_up(headers: dict[str, str], wait: float | None) -> None:
    assert spent_wait(CIMultiDict(headers), NOW) == wait


@settings(deadline=None)
@given(st.text(max_size=40) | st.from_regex(r"(\d{1,20}(\.\d+)?(ms|s|m|h|d)?){1,3}", fullmatch=True))
def test_any_header_is_read(text: str) -> None:
    for name in ("Retry-After", "Retry-After-Ms", "X-RateLimit-Reset", "X-RateLimit-Reset-Tokens"):
        wait = named_wait({name: text}, NOW)
        assert wait is None or wait >= 0
