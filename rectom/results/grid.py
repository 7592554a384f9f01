"""Runs arranged as model x method x benchmark: the cells of sweeps, and single runs by their settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import Any, Final

from rectom.errors import DataError
from rectom.results import sweep
from rectom.results.comparison import Figures
from rectom.results.finished import Answered, Finished
from rectom.results.named import run_or_sweep
from rectom.results.paper import BENCHMARKS
from rectom.results.readers import RECTOM, not_by_model

#: The method that the paper's Eff is relative to, and the two ablations.
COT: Final = "cot"
ABLATIONS: Final = ("w/o-det", "w/o-state")

#: Settings in which runs may differ and still be tries of one cell: which replies are drawn, and how many.
_DRAWS: Final = frozenset({"draw", "samples"})

#: Settings that a label tells already.
_TOLD: Final = frozenset({"model", "method", "benchmark", "data", "limit", "update", "state", "identity", "revision"})


@dataclass(frozen=True, slots=True)
class Labels:
    """What a cell is called. The setting is empty where there is one alone."""

    model: str
    method: str
    benchmark: str
    setting: str = ""

    @property
    def line(self) -> tuple[str, str]:
        """What tells the rows of one model apart: the method and its setting."""
        return self.method, self.setting


@dataclass(frozen=True, slots=True)
class Tried:
    """A run that belongs to a cell; `run` is None where it is not finished, and `why` says so in words."""

    labels: Labels
    name: str
    folder: Path
    run: Finished | None
    why: str = ""


@dataclass(frozen=True)
class Filled:
    """A cell with its runs: several are of several seeds, and their questions are pooled.

    `questions` are those of all its finished runs, and empty where none is finished; `missing` those that are not.
    """

    labels: Labels
    tried: tuple[Tried, ...]
    questions: tuple[Answered, ...]

    @property
    def finished(self) -> list[tuple[Finished, Path]]:
        """The runs that are finished, with their folders."""
        return [(one.run, one.folder) for one in self.tried if one.run]

    @property
    def missing(self) -> list[Tried]:
        """The runs that are not."""
        return [one for one in self.tried if not one.run]

    @cached_property
    def figures(self) -> Figures | None:
        """What all questions come to; None where there are none."""
        return Figures.of(self.questions) if self.questions else None

    @cached_property
    def keys(self) -> frozenset[str]:
        """The questions, by what was asked."""
        return frozenset(question.key for question in self.questions)

    @property
    def role(self) -> str:
        """What the method is, whatever its label: a method's name, or that of an ablation of RecToM."""
        return role_of(self.finished[0][0].settings) if self.finished else self.labels.method.lower()

    @property
    def asked(self) -> str:
        """The benchmark and subset that was run, as in `hitom/400`."""
        return self.finished[0][0].benchmark if self.finished else self.labels.benchmark

    @property
    def family(self) -> str:
        """The benchmark's name."""
        return re.split(r"[/,+ ]", self.asked)[0]

    @property
    def model_names(self) -> set[str]:
        """All that the model is called."""
        settings = self.finished[0][0].settings if self.finished else {}
        return {self.labels.model, *(str(settings[name]) for name in ("model", "identity") if settings.get(name))}


@dataclass(frozen=True)
class Grid:
    """Cells by their labels, in the order in which they were named."""

    cells: Mapping[Labels, Filled]

    @cached_property
    def models(self) -> list[str]:
        """The models."""
        return list(dict.fromkeys(labels.model for labels in self.cells))

    @cached_property
    def lines(self) -> list[tuple[str, str]]:
        """The methods, each with a setting."""
        return list(dict.fromkeys(labels.line for labels in self.cells))

    @cached_property
    def benchmarks(self) -> list[str]:
        """The benchmarks: the paper's first, in its order."""
        order = [*BENCHMARKS]
        found = dict.fromkeys(labels.benchmark for labels in self.cells)
        families = {name: self.family(name) for name in found}
        return sorted(found, key=lambda name: order.index(families[name]) if families[name] in order else len(order))

    def at(self, model: str, line: tuple[str, str], benchmark: str) -> Filled | None:
        """A cell, if there is one."""
        return self.cells.get(Labels(model, line[0], benchmark, line[1]))

    def of(self, benchmark: str, model: str | None = None) -> list[Filled]:
        """The cells of a benchmark, of one model or all."""
        return [
            cell
            for labels, cell in self.cells.items()
            if labels.benchmark == benchmark and model in {None, labels.model}
        ]

    def family(self, benchmark: str) -> str:
        """The name of the benchmark that a label stands for."""
        return max(self.of(benchmark), key=lambda cell: bool(cell.questions)).family

    def peer(self, cell: Filled, method: str) -> Filled | None:
        """The cell of the same model and benchmark with another method, by role or label; of the same setting first."""
        beside = [one for one in self.of(cell.labels.benchmark, cell.labels.model) if one.questions]
        found = [one for one in beside if method in {one.role, one.labels.method}]
        # `cot:conclude=on` where there is no plain `cot`.
        found = found or [one for one in beside if one.role.partition(":")[0] == method]
        alike = [one for one in found if one.labels.setting == cell.labels.setting]
        plain = [one for one in found if not one.labels.setting]
        return next(iter([*alike, *plain, *found]), None)


def role_of(settings: Mapping[str, object]) -> str:
    """What a run's method is: its name, or that of the paper's ablation of RecToM."""
    if settings.get("update") == "model":
        return ABLATIONS[0]
    return ABLATIONS[1] if settings.get("state") == "off" else str(settings.get("method", RECTOM))


def read(names: Sequence[str], place: Path) -> Grid:
    """The runs and sweeps of these names, or folders; `place` is where runs are.

    A cell of a sweep that is not finished, or whose run cannot be read, is kept with the reason. Raises DataError if
    there is no run or sweep of a name, if a run that is named itself is not finished, or if nothing is finished at all.
    """
    swept, single = list[Tried](), list[Tried]()
    for name in names:
        folder = run_or_sweep(name, place)
        if (folder / sweep.FILE).is_file():
            swept += _of_sweep(folder)
        else:
            run = Finished.read(folder)
            single.append(Tried(_labels(run.settings), run.name, folder, run))
    cells: dict[Labels, list[Tried]] = {}
    for tried in _once([*swept, *_told_apart(single)]):
        cells.setdefault(tried.labels, []).append(tried)
    grid = Grid({labels: Filled(labels, tuple(some), _pool(some)) for labels, some in cells.items()})
    if not any(cell.questions for cell in grid.cells.values()):
        raise DataError(f"{' '.join(names)}: no run is finished yet, and there is nothing to report")
    return grid


def _once(tried: Iterable[Tried]) -> list[Tried]:
    """Each run once a cell, also where it was named twice."""
    return list({(one.labels, one.folder.resolve() if one.run else one.name): one for one in tried}.values())


def _of_sweep(folder: Path) -> Iterator[Tried]:
    for cell in sweep.Sweep.read(folder).cells:
        labels = Labels(cell.model, cell.method, cell.benchmark, cell.setting)
        run = folder.resolve().parent / cell.run
        if cell.state != sweep.FINISHED:
            why = f"{cell.state}: {cell.why}" if cell.why else cell.state
            yield Tried(labels, cell.name, run, None, why)
        elif not cell.names_a_run:
            yield Tried(labels, cell.name, run, None, "the sweep does not tell which run it is")
        else:
            yield _read(labels, cell.name, run)


def _read(labels: Labels, name: str, folder: Path) -> Tried:
    try:
        return Tried(labels, name, folder, Finished.read(folder))
    except DataError as error:
        return Tried(labels, name, folder, None, str(error))


def _labels(settings: Mapping[str, Any]) -> Labels:
    """The labels that the settings of a run give it. The seed of a permutation, or of a sample, is not one."""
    benchmark = re.sub(r"(\+[a-z]+(?:\.\d+)?)\.\d+", r"\1", str(settings.get("benchmark")))
    limit = f", first {settings['limit']}" if settings.get("limit") else ""
    return Labels(str(settings.get("model", "rules")), role_of(settings), f"{benchmark}{limit}", _variant(settings))


def _variant(settings: Mapping[str, Any]) -> str:
    """What sets RecToM apart from the paper's, besides its ablations: steps by rule, checks, windows."""
    told = ["verify"] if settings.get("verify") else []
    told += [f"window {settings['window']}"] if settings.get("window") else []
    return ", ".join([*not_by_model(settings), *told])


def _told_apart(tried: Sequence[Tried]) -> list[Tried]:
    """Runs with the same labels that were over other data, or had other settings, with labels that say so."""
    groups: dict[Labels, list[Tried]] = {}
    for one in tried:
        groups.setdefault(one.labels, []).append(one)
    data = {
        one.labels.benchmark: {other.run.data for other in tried if other.run and _same(one, other)} for one in tried
    }
    return [_apart(one, groups[one.labels], len(data[one.labels.benchmark]) > 1) for one in tried]


def _same(one: Tried, other: Tried) -> bool:
    return one.labels.benchmark == other.labels.benchmark


def _apart(tried: Tried, group: Sequence[Tried], other_data: bool) -> Tried:
    assert tried.run
    settings = [one.run.settings for one in group if one.run]
    names = sorted({name for one in settings for name in one} - _DRAWS - _TOLD - {"readers"})
    told = [
        f"{name} {tried.run.settings.get(name, '-')}" for name in names if len({str(s.get(name)) for s in settings}) > 1
    ]
    benchmark = f"{tried.labels.benchmark}, data {tried.run.data[:8]}" if other_data else tried.labels.benchmark
    setting = ", ".join(filter(None, [tried.labels.setting, *told]))
    return replace(tried, labels=replace(tried.labels, benchmark=benchmark, setting=setting))


def _pool(tried: Iterable[Tried]) -> tuple[Answered, ...]:
    """The questions of a cell's runs, each once, with the share of all its tries that are right."""
    runs = [one.run for one in tried if one.run]
    if len(runs) == 1:
        return runs[0].questions
    groups: dict[str, list[Answered]] = {}
    for run in runs:
        for question in run.questions:
            groups.setdefault(question.name, []).append(question)
    return tuple(_pooled(some) for some in groups.values())


def _pooled(some: Sequence[Answered]) -> Answered:
    keys, tries = sorted({one.key for one in some}), sum(one.tries for one in some)
    score, calls, tokens = (
        fsum(getattr(one, name) * one.tries for one in some) / tries for name in ("score", "calls", "tokens")
    )
    return replace(
        some[0],
        # Where seeds permute the question, it is the same one only for runs with the same seeds.
        key=keys[0] if len(keys) == 1 else sha256("".join(keys).encode()).hexdigest(),
        tries=tries,
        score=score,
        failed=sum(one.failed for one in some),
        calls=calls,
        tokens=tokens,
        failed_steps=tuple(step for one in some for step in one.failed_steps),
        faults=tuple(fault for one in some for fault in one.faults),
    )
