from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache import Reason, Verdict, compare, digest

LEAF = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab1é \n") | st.just("a" * 64)
FIELDS = st.dictionaries(
    st.text("ab.", min_size=1),
    st.recursive(
        LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab.", min_size=1), inner), max_leaves=5
    ),
)


@settings(deadline=None)
@given(FIELDS, FIELDS)
def test_the_verdict_agrees_with_the_digests(old: dict[str, Any], new: dict[str, Any]) -> None:
    verdict = compare(old, new)
    assert (verdict.reason is Reason.MISSING) == (digest(old) == digest(new))
    assert (verdict.reason is Reason.CHANGED) == bool(verdict.fields)
    assert len(verdict.fields) == len(verdict.details)
    for detail in verdict.details:
        before, _, after = detail.partition(" -> ")
        assert before != after
    assert "\n" not in str(verdict)


@settings(deadline=None)
@given(FIELDS)
def test_the_same_fields_mean_that_the_entry_is_gone(fields: dict[str, Any]) -> None:
    assert compare(fields, dict(reversed(fields.items()))) == Verdict(Reason.MISSING)


@settings(deadline=None)
@given(FIELDS, st.sampled_from(["prompt", "model"]), LEAF, LEAF)
def test_one_change_is_named_alone(fields: dict[str, Any], field: str, old: Any, new: Any) -> None:
    verdict = compare({**fields, field: old}, {**fields, field: new})
    assert verdict.fields == (() if digest(old) == digest(new) else (field,))


def test_no_previous_fields_mean_a_first_run() -> None:
    assert str(compare(None, {"prompt": "x"})) == "first run"


ONE, OTHER = "1a2b3c4d" * 8, "5e6f7a8b" * 8


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({"prompt": ONE}, {"prompt": OTHER}, "changed: prompt 1a2b3c4d -> 5e6f7a8b"),
        ({"prompt": ONE}, {"prompt": ONE[:-1] + "0"}, f'changed: prompt "{ONE}" -> "{ONE[:-1]}0"'),
        ({"model": {"identity": "a"}}, {"model": {"identity": "b"}}, "changed: model.identity a -> b"),
        ({"t": 0}, {"t": 0.0}, "changed: t 0 -> 0.0"),
        ({"t": "1"}, {"t": 1}, 'changed: t "1" -> 1'),
        ({"t": "true"}, {"t": True}, 'changed: t "true" -> true'),
        ({}, {"seed": None}, "changed: seed (none) -> null"),
        ({"seed": 7}, {}, "changed: seed 7 -> (none)"),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, "changed: a 1 -> 2, b 1 -> 2"),
        ({"a": {}}, {"a": {"b": 1}}, "changed: a.b (none) -> 1, a {} -> (none)"),
        ({"a.b": 1}, {"a": {"b": 1}}, "changed: a.b (none) -> 1, a.b 1 -> (none)"),
        ({"text": "two\nlines"}, {"text": "one"}, r'changed: text "two\nlines" -> one'),
    ],
)
def test_what_a_verdict_reads_like(old: dict[str, Any], new: dict[str, Any], text: str) -> None:
    assert str(compare(old, new)) == text


def test_a_long_text_is_shortened() -> None:
    verdict = compare({"text": "x" * 1000}, {"text": "x" * 1001})
    assert len(str(verdict)) < 120
    assert verdict.details[0].count("…") == 2


@pytest.mark.parametrize("reason", [Reason.HIT, Reason.FORCED, Reason.FAILED_BEFORE, Reason.UPSTREAM])
def test_the_other_reasons_read_as_they_are(reason: Reason) -> None:
    assert str(Verdict(reason)) == reason.value
