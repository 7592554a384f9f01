import enum
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache import digest
from cache.keys import encode

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab.é\n"), inner), max_leaves=20)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_fields_never_matters(value: Any, order: random.Random) -> None:
    assert digest(value) == digest(shuffled(value, order))


@settings(deadline=None)
@given(JSON, JSON)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (encode(sort(one)) == encode(sort(other)))


def sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value


def test_a_digest_is_the_same_on_every_machine() -> None:
    assert digest({"b": [1, 2.5, None], "a": "é"}) == "d764fee2563da33e3d57334755404e635da33c995824b0adfabc4b6e1af4f608"


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), ("1", 1), ([1, 2], [2, 1]), ({}, []), (None, "null")])
def test_near_values_differ(pair: tuple[Any, Any]) -> None:
    assert digest({"x": pair[0]}) != digest({"x": pair[1]})


class Colour(enum.Enum):
    RED = "red"


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: {1, 2},
        lambda: b"bytes",
        lambda: float("nan"),
        lambda: float("-inf"),
        lambda: {1: "a key that is no string"},
        lambda: 2**64,
        lambda: Colour.RED,
        lambda: uuid.UUID(int=0),
        lambda: datetime(2025, 1, 1, tzinfo=UTC),
        lambda: "\ud800",
        lambda: deep(300),
        circular,
        object,
    ],
)
def test_what_json_cannot_hold_is_a_type_error(make: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        digest({"field": [make()]})
