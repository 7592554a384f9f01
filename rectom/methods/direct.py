"""The answer alone: one call, no thinking asked for."""

from __future__ import annotations

from typing import Final

from rectom.methods.base import Kind, Setup
from rectom.methods.cot import ChainOfThought


class Direct(ChainOfThought):
    """Asks once a question, for the option only."""

    def fields(self) -> dict[str, object]:
        """Model, sampling, prompt and note."""
        return {**super().fields(), "method": "direct"}


def _make(setup: Setup) -> Direct:
    return Direct(setup)


KIND: Final = Kind("direct", "Direct: the option, without thinking", _make, prompts="direct")
