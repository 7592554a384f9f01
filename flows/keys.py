"""The keys of models in the environment, which no program that is started beside a run has any use for."""

from __future__ import annotations

from collections.abc import Mapping

from rectom.llm.catalogue import key_names


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the keys of models: those that models declare, and every `…_API_KEY`."""
    declared = key_names()
    return {
        name: value
        for name, value in environment.items()
        if name not in declared and not name.upper().endswith("_API_KEY")
    }
