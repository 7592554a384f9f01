from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from rectom.errors import BudgetReached
from rectom.llm.budget import Budget
from rectom.llm.prices import Prices
from rectom.llm.reply import Usage
from rectom.llm.stats import Stats

PRICES = Prices(input=Decimal(1), output=Decimal(2), date=date(2026, 1, 2))


@pytest.mark.parametrize(
    ("budget", "within", "beyond", "words"),
    [
        (Budget(calls=3), Stats(sent=2), Stats(sent=2, retried=1), "3 calls.*--max-calls"),
        (Budget(tokens=10), Stats(usage=Usage(4, 5)), Stats(usage=Usage(4, 6)), "10 of 10 tokens.*--max-tokens-total"),
        (
            Budget(cost=Decimal(3), prices=PRICES),
            Stats(usage=Usage(999_999, 1_000_000)),
            Stats(usage=Usage(1_000_000, 1_000_000)),
            "3.0000 of 3 USD.*--max-cost",
        ),
    ],
)
def test_what_is_spent_stops_the_next_request(budget: Budget, within: Stats, beyond: Stats, words: str) -> None:
    budget.check(within)
    with pytest.raises(BudgetReached, match=words):
        budget.check(beyond)


def test_no_bound_is_none() -> None:
    Budget().check(Stats(sent=10**9, usage=Usage(10**12, 10**12)))
