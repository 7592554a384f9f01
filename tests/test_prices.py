from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rectom.llm.prices import Prices
from rectom.llm.reply import Usage

DAY = date(2026, 5, 21)
PAID = {"input": 2, "output": 8, "date": DAY}
FULL = Prices.model_validate({**PAID, "cached_input": "0.5", "batch_input": 1, "batch_output": 4})
PLAIN = Prices.model_validate(PAID)
USED = Usage(prompt=1_000_000, completion=500_000, reasoning=100_000, cached=400_000)


def test_cached_tokens_have_their_own_price() -> None:
    assert FULL.cost(USED) == Decimal("1.2") + Decimal("0.2") + 4


def test_without_one_they_cost_as_much_as_others() -> None:
    assert PLAIN.cost(USED) == 2 + 4


def test_a_batch_has_its_own_prices_or_none() -> None:
    assert FULL.cost(USED, batch=True) == 1 + 2
    assert PLAIN.cost(USED, batch=True) is None


def test_prices_are_not_negative_and_have_a_day() -> None:
    with pytest.raises(ValidationError):
        Prices.model_validate({**PAID, "input": -1})
    with pytest.raises(ValidationError):
        Prices.model_validate({"input": 1, "output": 1})


@given(st.lists(st.builds(Usage, *(st.integers(0, 10**9) for _ in range(4))), max_size=5))
def test_the_cost_of_a_sum_is_the_sum_of_costs(parts: list[Usage]) -> None:
    honest = [Usage(part.prompt, part.completion, part.reasoning, min(part.cached, part.prompt)) for part in parts]
    costs = [cost for part in honest if (cost := FULL.cost(part)) is not None]
    assert FULL.cost(sum(honest, Usage())) == sum(costs)
