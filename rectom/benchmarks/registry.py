"""The benchmarks there are: those of this package, and those that other packages offer."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from rectom.benchmarks.adapter import GROUP, Adapter
from rectom.errors import DataError

#: The adapters of this package, each `ADAPTER` in the module of its name; none is imported before it is asked for.
BUILT_IN: Final = (
    "hitom",
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
    offered = sorted(point.name for point in entry_points(group=GROUP))
    return list(dict.fromkeys([*BUILT_IN, *offered]))


def adapter(name: str) -> Adapter:
    """The adapter of a benchmark. Raises DataError, with the known names, if there is none or it cannot be loaded."""
    if name in BUILT_IN:
        found = import_module(f"rectom.benchmarks.{name}").ADAPTER
    else:
        points = entry_points(group=GROUP, name=name)
        if not points:
            raise DataError(f"there is no benchmark {name!r}; there are {', '.join(names())}")
        point = next(iter(points))
        try:
            found = point.load()
        except Exception as error:
            raise DataError(f"the benchmark {name!r} of {point.value} cannot be loaded: {error}") from error
    if not isinstance(found, Adapter):
        raise DataError(f"the benchmark {name!r} is no Adapter but {type(found).__name__}")
    if found.name != name:
        raise DataError(
            f"the benchmark {name!r} calls itself {found.name!r}; its package must offer it under that name"
        )
    return found
