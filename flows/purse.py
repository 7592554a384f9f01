"""What a sweep may spend: one budget over all its cells, besides each cell's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from rectom.errors import SettingsError
from rectom.llm.budget import Budget, reached
from rectom.llm.stats import Stats


@dataclass
class Purse:
    """The most that all cells together may spend in one call of the command; None for no bound.

    `calls` are requests sent, `tokens` prompt and completion together, `cost` money.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    _spending: list[tuple[Stats, Budget]] = field(default_factory=list)

    def admit_currencies(self, budgets: list[Budget]) -> None:
        """Raise SettingsError if the money of the cells cannot be added up, though there is a bound for it."""
        if self.cost is None:
            return
        currencies = {budget.currency for budget in budgets}
        if None in currencies:
            raise SettingsError(
                "max-cost: not every model of the sweep has a price; declare them, or give prices = FILE"
            )
        if len(currencies) > 1:
            told = ", ".join(sorted(map(str, currencies)))
            raise SettingsError(f"max-cost: the models' prices are in several currencies ({told}); leave max-cost out")

    def join(self, stats: Stats, budget: Budget) -> None:
        """Count what a client spends, at the prices of its cell's budget."""
        self._spending.append((stats, budget))

    def check(self) -> None:
        """Raise BudgetReached if nothing more may be sent."""
        if self.calls is not None and self.sent >= self.calls:
            raise reached(f"the sweep's budget is spent ({self.calls} calls)", "--max-calls")
        if self.tokens is not None and self.used >= self.tokens:
            raise reached(
                f"the sweep's budget is spent ({self.used:,} of {self.tokens:,} tokens)", "--max-tokens-total"
            )
        if self.cost is not None and (spent := self.spent) is not None and spent >= self.cost:
            raise reached(f"the sweep's budget is spent ({spent:.4f} of {self.cost})", "--max-cost")

    @property
    def sent(self) -> int:
        """How often a request was sent."""
        return sum(stats.sent + stats.retried for stats, _ in self._spending)

    @property
    def used(self) -> int:
        """The tokens of all replies."""
        return sum(stats.usage.total for stats, _ in self._spending)

    @property
    def spent(self) -> Decimal | None:
        """The money; None where a price is not known."""
        known = [
            budget.prices.cost(stats.usage, batch=budget.batch) if budget.prices else None
            for stats, budget in self._spending
            if stats.usage.total
        ]
        return None if None in known else sum((cost for cost in known if cost is not None), Decimal())
