"""When a server's headers say that it wants to be asked again. Nothing here is bounded: see `retry`.

All functions need `headers` that find names whatever their case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_SECONDS = re.compile(_NUMBER)
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|us|µs|ns|d|h|m|s))+")
_PIECE = re.compile(rf"({_NUMBER})(ms|us|µs|ns|d|h|m|s)")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_FIRST_EPOCH, _FIRST_EPOCH_MS = 1e9, 1e12
# What is counted: requests, tokens, or the one thing that the server counts.
_COUNTED = ("-Requests", "-Tokens", "")


def named_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait in seconds that a refusal names, or None.

    Reads `Retry-After-Ms`, `Retry-After` (seconds or an HTTP date), and then the `X-RateLimit-Reset…` headers of
    whatever does not remain.
    """
    milliseconds = headers.get("Retry-After-Ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    asked = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(asked):
        return float(asked)
    # What is not said to remain is what the request was refused for.
    return _until_date(asked, now) if asked else _resets(headers, now, unsaid="0")


def spent_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds until a reply's server takes more, where it says that no requests or no tokens remain, or None."""
    return _resets(headers, now, unsaid="")


def _resets(headers: Mapping[str, str], now: datetime, unsaid: str) -> float | None:
    spent = [what for what in _COUNTED if headers.get(f"X-RateLimit-Remaining{what}", unsaid).strip() == "0"]
    waits = [_until_reset(headers.get(f"X-RateLimit-Reset{what}", "").strip(), now) for what in spent]
    return max((wait for wait in waits if wait is not None), default=None)


def _until_date(text: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def _until_reset(text: str, now: datetime) -> float | None:
    """The seconds that a reset header names: `3`, `6m0s`, `250ms`, or an epoch in seconds or milliseconds."""
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    if not _SECONDS.fullmatch(text):
        return None
    reset = float(text)
    if reset >= _FIRST_EPOCH_MS:
        reset /= 1000
    return reset if reset < _FIRST_EPOCH else max(0.0, reset - now.timestamp())
