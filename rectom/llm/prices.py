"""What tokens cost. An unknown price is unknown, never 0."""

from __future__ import annotations

import datetime
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from rectom.llm.reply import Usage

_MILLION = Decimal(1_000_000)


class Prices(BaseModel):
    """Prices for a million tokens, and the day on which they held.

    `cached_input` is for prompt tokens that the provider had in its cache; without it they cost as much as others.
    The `batch_` prices are those of the Batch API; without them a batch has no known price.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cached_input: Decimal | None = Field(default=None, ge=0)
    batch_input: Decimal | None = Field(default=None, ge=0)
    batch_output: Decimal | None = Field(default=None, ge=0)
    currency: str = "USD"
    date: datetime.date

    def cost(self, usage: Usage, *, batch: bool = False) -> Decimal | None:
        """What some tokens cost, in `currency`; None where the price is not known."""
        if batch:
            if self.batch_input is None or self.batch_output is None:
                return None
            return (usage.prompt * self.batch_input + usage.completion * self.batch_output) / _MILLION
        cached = min(usage.cached, usage.prompt)
        cached_price = self.input if self.cached_input is None else self.cached_input
        read = (usage.prompt - cached) * self.input + cached * cached_price
        return (read + usage.completion * self.output) / _MILLION
