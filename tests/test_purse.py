"""One budget over several clients."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from flows.purse import Purse
from rectom.errors import BudgetReached, Partial, SettingsError
from rectom.llm.budget import Budget
from rectom.llm.prices import Prices
from rectom.llm.reply import Usage
from rectom.llm.stats import Stats

CHEAP = Prices(input=Decimal(1), output=Decimal(2), date=date(2026, 1, 2))
DEAR = Prices(
    input=Decimal(10), output=Decimal(20), batch_input=Decimal(5), batch_output=Decimal(8), date=date(2026, 1, 2)
)
EUROS = Prices(input=Decimal(1), output=Decimal(2), currency="EUR", date=date(2026, 1, 2))


def purse(
    *spending: tuple[Stats, Budget], calls: int | None = None, tokens: int | None = None, cost: int | None = None
) -> Purse:
    """A purse that these clients joined."""
    found = Purse(calls, tokens, None if cost is None else Decimal(cost))
    for stats, budget in spending:
        found.join(stats, budget)
    return found


def test_it_counts_what_all_clients_spend_from_then_on() -> None:
    one, other = Stats(sent=2), Stats()
    found = purse((one, Budget()), (other, Budget()), calls=5)
    other.sent, other.retried = 1, 1
    found.check()
    assert found.sent == 4
    one.retried += 1
    with pytest.raises(BudgetReached, match=r"^the sweep's budget is spent \(5 calls\).*--max-calls"):
        found.check()


def test_tokens_are_those_of_prompts_and_replies() -> None:
    stats = Stats(usage=Usage(600, 399))
    found = purse((stats, Budget()), (Stats(), Budget()), tokens=1000)
    found.check()
    stats.usage += Usage(1, 0)
    with pytest.raises(BudgetReached, match=r"1,000 of 1,000 tokens.*--max-tokens-total"):
        found.check()


def test_money_is_counted_at_the_prices_of_each_cell() -> None:
    cheap, dear, batch = Stats(usage=Usage(1_000_000, 1_000_000)), Stats(), Stats()
    found = purse(
        (cheap, Budget(prices=CHEAP)), (dear, Budget(prices=DEAR)), (batch, Budget(prices=DEAR, batch=True)), cost=36
    )
    dear.usage = Usage(1_000_000, 500_000)
    assert found.spent == 23
    found.check()
    batch.usage = Usage(1_000_000, 1_000_000)
    assert found.spent == 36
    with pytest.raises(BudgetReached, match=r"36.0000 of 36\).*--max-cost"):
        found.check()


def test_money_of_an_unknown_price_is_unknown_once_something_was_spent() -> None:
    unpriced = Stats()
    found = purse((Stats(usage=Usage(5, 5)), Budget(prices=CHEAP)), (unpriced, Budget()))
    assert found.spent == Decimal("0.000015")
    unpriced.usage = Usage(1, 0)
    assert found.spent is None


def test_no_bound_is_none_and_a_bound_of_0_sends_nothing() -> None:
    much = (Stats(sent=10**9, usage=Usage(10**12, 10**12)), Budget(prices=CHEAP))
    purse(much).check()
    for bound in ("calls", "tokens", "cost"):
        with pytest.raises(BudgetReached):
            purse((Stats(), Budget(prices=CHEAP)), **{bound: 0}).check()


def test_a_purse_that_is_empty_ends_a_cell_as_partial() -> None:
    assert issubclass(BudgetReached, Partial)


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ([Budget(prices=CHEAP), Budget()], "not every model of the sweep has a price"),
        ([Budget(prices=CHEAP, batch=True)], "not every model of the sweep has a price"),
        ([Budget(prices=CHEAP), Budget(prices=EUROS)], r"in several currencies \(EUR, USD\); leave max-cost out"),
    ],
    ids=["unknown", "batch", "currencies"],
)
def test_a_bound_on_money_needs_prices_of_one_currency(budgets: list[Budget], words: str) -> None:
    with pytest.raises(SettingsError, match=f"^max-cost: .*{words}"):
        purse(cost=1).admit_currencies(budgets)
    purse(calls=1, tokens=1).admit_currencies(budgets)


def test_prices_of_one_currency_are_admitted() -> None:
    purse(cost=1).admit_currencies([Budget(prices=CHEAP), Budget(prices=DEAR), Budget(prices=DEAR, batch=True)])
    purse(cost=1).admit_currencies([])
