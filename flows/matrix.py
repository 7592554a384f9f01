"""The file of a sweep: models x methods x benchmarks x settings x seeds, each cell a `rectom run` of its own.

    name = "night"                                    # left out: the file's name
    at-once = 4                                       # cells under way together
    models = ["gpt-5.4", { model = "qwen3.5-27b", concurrency = 128, priority = 1 }]
    methods = ["cot", "rectom", { label = "w/o-det", method = "rectom", update = "model" }]
    benchmarks = ["hitom/400", { benchmark = "tomi", limit = 200 }]
    settings = [{ label = "window 5", window = 5 }]   # left out: one setting without a label
    seeds = [0, 1, 2]                                 # left out: 0; of --permute, and which replies are drawn

    [defaults]                                        # options of every cell
    max-calls = 5000                                  # so a budget of each cell

    [budget]                                          # of all cells together
    max-cost = 20

    [[skip]]                                          # cells to leave out, by their labels
    model = "gpt-5.4"
    benchmark = "tomi"

Options are those of `rectom run` by their long names; `false` takes one of the defaults back. An entry that is a text
is the model, method or benchmark alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final

import click
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from flows.commands.run import command as run
from flows.local import LOCAL
from flows.options import settings_from
from flows.settings import MODEL, OFF, Settings
from rectom.declared import read_toml, validate
from rectom.errors import RectomError, SettingsError
from rectom.results.sweep import Cell

#: Options that belong to the sweep as a whole.
_OF_THE_SWEEP: Final = frozenset({"name", "runs", "cache", "plain", "json", "seed", "draw", "help"})

#: The most cells of a sweep, those included that are left out: each of them is held in memory.
MOST: Final = 10_000

#: The options of `rectom run` by their long names.
_OPTIONS: Final = {
    name.removeprefix("--"): option for option in run.params if isinstance(option, click.Option) for name in option.opts
}


class _Entry(BaseModel):
    """An entry of a list: its label, its priority (larger ones are begun first), and options of `rectom run`."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    label: str = ""
    priority: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """The options by their long names."""
        return dict(self.model_extra or {})


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=lambda name: name.replace("_", "-")
    )


class _Spending(_Strict):
    max_calls: int | None = Field(default=None, ge=0)
    max_tokens_total: int | None = Field(default=None, ge=0)
    max_cost: Decimal | None = Field(default=None, ge=0, strict=False)


class _Skip(_Strict):
    model: str | None = None
    method: str | None = None
    benchmark: str | None = None
    setting: str | None = None
    seed: int | None = None

    def takes(self, cell: Cell) -> bool:
        """Whether a cell is left out: all labels that are given are its own."""
        return all(getattr(cell, name) == value for name, value in self.model_dump(exclude_none=True).items())


def _named(option: str) -> BeforeValidator:
    """Reads a text in a list as an entry with that option alone."""
    return BeforeValidator(lambda value: {option: value} if isinstance(value, str) else value)


class _File(_Strict):
    models: list[Annotated[_Entry, _named("model")]] = Field(min_length=1)
    methods: list[Annotated[_Entry, _named("method")]] = Field(min_length=1)
    benchmarks: list[Annotated[_Entry, _named("benchmark")]] = Field(min_length=1)
    settings: list[_Entry] = Field(default=[_Entry()], min_length=1)
    seeds: list[Annotated[int, Field(ge=0)]] = Field(default=[0], min_length=1)
    name: str = Field(default="", pattern=r"^([\w-][\w.-]*)?$")
    at_once: int = Field(default=4, ge=1)
    defaults: dict[str, Any] = {}
    budget: _Spending = _Spending()
    skip: list[_Skip] = []


@dataclass(frozen=True)
class Planned:
    """A cell that is to be run: its settings, the command that runs it alone, and what is run before what."""

    cell: Cell
    settings: Settings
    command: tuple[str, ...]
    priority: int = 0


@dataclass(frozen=True)
class Matrix:
    """A sweep's file: cells in the order of the file, how many go on at once, and the most that may be spent."""

    name: str
    cells: tuple[Planned, ...]
    at_once: int
    budget: _Spending


def read(
    file: Path, cache: Path, runs: Path, more: Mapping[str, Any] | None = None, models: Sequence[str] = ()
) -> Matrix:
    """Read a sweep's file; `more` are options that every cell gets besides, and `models` go for those of the file.

    Raises SettingsError that names the field or the cell, if one is wrong.
    """
    told = validate(_File, {**read_toml(file), **({"models": [*models]} if models else {})}, str(file))
    if (count := _count(told)) > MOST:
        raise SettingsError(f"{file}: it has {count:,} cells, and {MOST:,} are the most: split it into several sweeps")
    labelled = list(_labelled(told))
    if fault := _idle(told.skip, [cell for cell, _, _ in labelled], unless="model" if models else ""):
        raise SettingsError(f"{file}: {fault}")
    cells = tuple(
        _planned(file, cell, {**options, **(more or {})}, priority, cache, runs)
        for cell, options, priority in labelled
        if not any(skip.takes(cell) for skip in told.skip)
    )
    if not cells:
        raise SettingsError(f"{file}: no cell is left; skip fewer")
    if doubled := _doubled([planned.cell.name for planned in cells]):
        raise SettingsError(f"{file}: there are two cells {doubled}; give one of them a label")
    return Matrix(told.name or file.stem, cells, told.at_once, told.budget)


def _count(told: _File) -> int:
    """How many cells a file has, those included that are left out."""
    entries = (told.benchmarks, told.models, told.methods, told.settings)
    return prod(len(one) for one in entries) * len(told.seeds)


def _labelled(told: _File) -> Iterator[tuple[Cell, dict[str, Any], int]]:
    """Every cell, also those that are to be left out, with its options and its priority."""
    # Benchmarks first, so that the methods that share replies on one are neighbours.
    for benchmark, model, method, setting, seed in product(
        told.benchmarks, told.models, told.methods, told.settings, told.seeds
    ):
        entries = (benchmark, model, method, setting)
        options = {**told.defaults}
        for entry in entries:
            options |= entry.options
        cell = Cell(
            model.label or _model(str(options.get("model", "rules"))),
            method.label or _method(method.options),
            benchmark.label or str(options.get("benchmark")),
            setting.label or _setting(setting.options),
            seed,
        )
        yield cell, options, sum(entry.priority for entry in entries)


def _idle(skips: Sequence[_Skip], cells: Sequence[Cell], unless: str) -> str:
    """What is wrong with the first skip that leaves out nothing; the label `unless` may be one that no cell has."""
    for place, skip in enumerate(skips):
        for name, value in skip.model_dump(exclude_none=True, exclude={unless}).items():
            known = dict.fromkeys(str(getattr(cell, name)) for cell in cells)
            if str(value) not in known:
                return f"skip.{place}.{name}: no cell has {value}; there are {', '.join(filter(None, known)) or 'none'}"
    return ""


def _planned(file: Path, cell: Cell, options: Mapping[str, Any], priority: int, cache: Path, runs: Path) -> Planned:
    command = _command(file, cell, options)
    return Planned(cell, _settings(file, cell, command, cache, runs), command, priority)


def _model(name: str) -> str:
    """What a model without a label is called; one from a file by the file's name."""
    return Path(name.removeprefix(LOCAL)).name.removesuffix(".gguf") if name.startswith(LOCAL) else name


def _method(options: Mapping[str, Any]) -> str:
    """What a method without a label is called: the paper's name, where it is one of its ablations."""
    name = str(options.get("method", "rectom"))
    ablation = {MODEL: "w/o-det", OFF: "w/o-state"}
    given = (str(options.get(option)) for option in ("update", "state"))
    found = [ablation[value] for value in given if value in ablation]
    return found[0] if found and name == "rectom" else name


def _setting(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def _command(file: Path, cell: Cell, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of the `rectom run` that a cell is."""
    given = {**options}
    target = given.pop("benchmark", None)
    if not isinstance(target, str) or target.startswith("-"):
        raise SettingsError(f'{file}: {cell.name}: no benchmark; write benchmark = "NAME/SUBSET"')
    for name, value in given.items():
        if fault := _fault(name, value):
            raise SettingsError(f"{file}: {cell.name}: {name} {fault}")
    # Where questions are answered several times, no reply is drawn for two seeds.
    samples = str(options.get("samples", 1))
    apart = int(samples) if samples.isdecimal() else 1
    seeds = {"seed": cell.seed, "draw": cell.seed * apart} if cell.seed else {}
    return (target, *(word for name, value in {**given, **seeds}.items() for word in _words(name, value)))


def _fault(name: str, value: object) -> str:
    """What is wrong with an option, where the parser of `rectom run` would take it for something else."""
    option = _OPTIONS.get(name)
    if name in _OF_THE_SWEEP or not re.fullmatch(r"[\w-]+", name):
        return "is not an option of a cell"
    if option is None or value is False:
        return ""
    if option.is_flag != isinstance(value, bool):
        return "is true or false" if option.is_flag else "needs a value"
    return "takes one value, not several" if isinstance(value, list | dict) and not option.multiple else ""


def _words(name: str, value: object) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif isinstance(value, list):
        for one in value:
            yield from _words(name, one)
    elif value is not False:
        yield from (f"--{name}", str(value))


def _settings(file: Path, cell: Cell, command: Sequence[str], cache: Path, runs: Path) -> Settings:
    try:
        with run.make_context("run", list(command)) as context:
            settings = settings_from(context.params)
        settings.by_step()
    except click.ClickException as error:
        raise SettingsError(f"{file}: {cell.name}: {error.format_message()}") from None
    except RectomError as error:
        raise SettingsError(f"{file}: {cell.name}: {error}") from None
    return replace(settings, cache=cache, runs=runs)


def _doubled(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
