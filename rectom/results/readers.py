"""Who reads the steps of a run: a model, or rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: The method whose steps either may read, and that others are measured against.
RECTOM: Final = "rectom"


def not_by_model(settings: Mapping[str, Any]) -> list[str]:
    """The steps of RecToM that no model is asked for, where it is asked for others: `chain by rules`."""
    readers = settings.get("readers") or {}
    mixed = len({*readers.values()}) > 1 and settings.get("method") == RECTOM
    return [f"{step} by {reader}" for step, reader in readers.items() if mixed and reader != "model"]


def has_steps(method: str) -> bool:
    """Whether a method has these steps, which can be at fault: RecToM and what is short for settings of it."""
    return method.startswith(RECTOM)
