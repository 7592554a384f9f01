"""The benchmarks there are: those of this package, and those that other packages offer."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from rectom.benchmarks.adapter import GROUP, Adapter
from rectom.errors import DataError
from rectom.offers import all_names, checked, offered

#: The adapters of this package, each `ADAPTER` in the module of its name; none is imported before it is asked for.
BUILT_IN: Final = (
    "hitom",
    "fresh",
    "bigtom",
    "fantom",
    "tomi",
    "opentom",
    "exploretom",
    "tombench",
    "mindgames",
    "socialiqa",
)


def names() -> list[str]:
    """Every benchmark's name: this package's first, then the others in alphabetical order."""
    return all_names(BUILT_IN, GROUP)


def adapter(name: str) -> Adapter:
    """The adapter of a benchmark. Raises DataError, with the known names, if there is none or it cannot be loaded."""
    if name in BUILT_IN:
        found = import_module(f"rectom.benchmarks.{name}").ADAPTER
    else:
        found = offered("benchmark", name, GROUP, DataError, names())
    return checked("benchmark", name, found, Adapter, DataError)
