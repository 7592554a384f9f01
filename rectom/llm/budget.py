"""What a run may spend: when it is spent, nothing more is sent, and what was paid for is kept."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from rectom.errors import BudgetReached
from rectom.llm.prices import Prices
from rectom.llm.reply import Usage
from rectom.llm.stats import Stats


@dataclass(frozen=True)
class Budget:
    """The most that may be spent by one call of the command; None for no bound.

    `calls` are requests sent, `tokens` prompt and completion together, `cost` money in the currency of `prices`.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    prices: Prices | None = None
    batch: bool = False

    @property
    def currency(self) -> str | None:
        """What the replies are paid in; None where their price is not known."""
        known = self.prices is not None and self.prices.cost(Usage(), batch=self.batch) is not None
        return self.prices.currency if self.prices is not None and known else None

    def check(self, stats: Stats) -> None:
        """Raise BudgetReached if nothing more may be sent. What is in flight may still exceed the bound a little."""
        spent = stats.usage.total
        if self.calls is not None and stats.sent + stats.retried >= self.calls:
            raise reached(f"the budget is spent ({self.calls} calls)", "--max-calls")
        if self.tokens is not None and spent >= self.tokens:
            raise reached(f"the budget is spent ({spent:,} of {self.tokens:,} tokens)", "--max-tokens-total")
        if self.cost is not None and self.prices is not None:
            cost = self.prices.cost(stats.usage, batch=self.batch)
            if cost is not None and cost >= self.cost:
                raise reached(f"the budget is spent ({cost:.4f} of {self.cost} {self.prices.currency})", "--max-cost")


def reached(spent: str, option: str) -> BudgetReached:
    """What is raised when it is `spent` what `option` allows."""
    return BudgetReached(f"{spent}; every reply is kept: the same command goes on, and {option} counts from 0")
