from typing import Any

import pytest

from cache import Entry, digest
from cache.entry import fits, has_form

FIELDS = {"stage": "s", "version": 1}
STAGE: dict[str, Any] = {"fields": FIELDS, "output": None, "calls": []}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("reply", {}),
        ("reply", {"request": {}}),
        ("stage", STAGE),
        ("latest", {"fields": {}, "key": "", "outcome": "ok"}),
        ("latest", {"structured": "text"}),
    ],
)
def test_what_is_written_has_the_form_of_its_kind(kind: str, value: dict[str, Any]) -> None:
    assert has_form(kind, value)


@pytest.mark.parametrize("lacking", list(STAGE))
def test_a_stage_result_lacks_nothing(lacking: str) -> None:
    assert not has_form("stage", {name: value for name, value in STAGE.items() if name != lacking})


def test_the_form_of_one_kind_is_not_that_of_another() -> None:
    assert not has_form("latest", STAGE)
    assert not has_form("stage", {"structured": "text"})


def test_a_stage_result_lies_under_the_digest_of_its_fields() -> None:
    assert fits(Entry("stage", digest(FIELDS), STAGE))
    assert not fits(Entry("stage", digest("another"), STAGE))
    assert not fits(Entry("stage", digest(FIELDS), {"fields": FIELDS}))


def test_a_reply_lies_under_the_digest_of_its_request_if_it_carries_one() -> None:
    assert fits(Entry("reply", digest(FIELDS), {"request": FIELDS}))
    assert not fits(Entry("reply", digest("another"), {"request": FIELDS}))
    assert fits(Entry("reply", digest("another"), {"text": "bare"}))


@pytest.mark.parametrize("request_", [None, [], "asked", 3])
def test_what_a_reply_carries_as_its_request_is_one(request_: object) -> None:
    assert not has_form("reply", {"text": "hm", "request": request_})
    assert not fits(Entry("reply", digest(request_), {"text": "hm", "request": request_}))


def test_what_was_last_computed_lies_anywhere() -> None:
    assert fits(Entry("latest", digest("a place"), {"fields": FIELDS, "outcome": "ok"}))
    assert not fits(Entry("latest", digest("a place"), {}))
