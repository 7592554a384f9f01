"""The numbers that the paper prints in its tables, as `paper.toml` holds them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from math import isnan
from typing import Final

from pydantic import BaseModel, ConfigDict

#: The questions of the paper, by the kind of benchmark.
BENCHMARKS: Final = {"hitom": "hitom/400", "bigtom": "bigtom/400", "fantom": "fantom/324"}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperTable(_Strict):
    """One table: the names of its columns, and by model and method its numbers."""

    columns: tuple[str, ...]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]

    def value(self, model: str, method: str, column: str) -> float | None:
        """The number in a cell; None where there is no such cell, or a dash in it."""
        numbers = self.values.get(model, {}).get(method)
        if numbers is None or column not in self.columns:
            return None
        number = numbers[self.columns.index(column)]
        return None if isnan(number) else number

    def methods(self, model: str) -> tuple[str, ...]:
        """The methods of a model, in the order of the paper."""
        return tuple(self.values.get(model, {}))


class Paper(_Strict):
    """The paper: its models, each with the names that runs may call it by, and its tables, `table1` to `table5`."""

    models: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, PaperTable]

    def model(self, names: Iterable[str]) -> str | None:
        """What the paper calls a model that has one of these names; None if the model is not in it."""
        small = {name.lower() for name in names}
        return next((model for model, known in self.models.items() if small & {model.lower(), *known}), None)


@cache
def paper() -> Paper:
    """The paper's numbers."""
    text = (files("rectom.results") / "paper.toml").read_text("utf-8")
    return Paper.model_validate(tomllib.loads(text))
