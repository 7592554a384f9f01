"""A sweep as its folder tells it: `sweep.json`, the cells with what became of each. The runs lie beside the folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from rectom.errors import DataError
from rectom.results import regular
from rectom.results.folder import RunFolder

FILE: Final = "sweep.json"

#: What a cell may be: a finished one may hold failed questions; a stopped one reached its budget.
WAITING, RUNNING, FINISHED, STOPPED, FAILED = "waiting", "running", "finished", "stopped", "failed"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep.

    `model`, `method`, `benchmark` and `setting` are the labels that the sweep's file gives; `run` is the name of the
    run's folder, empty if it is not known; `why` says what stopped the cell or let it fail.
    """

    model: str
    method: str
    benchmark: str
    setting: str = ""
    seed: int = 0
    run: str = ""
    state: str = WAITING
    why: str = ""

    @property
    def name(self) -> str:
        """What a person finds the cell by: `hitom/400 · cot · gpt-5.4`."""
        seed = f"seed {self.seed}" if self.seed else ""
        return " · ".join(filter(None, [self.benchmark, self.method, self.model, self.setting, seed]))

    @property
    def names_a_run(self) -> bool:
        """Whether `run` is a folder's name, so that it leads nowhere but beside the sweep."""
        return self.run not in {"", ".."} and Path(self.run).name == self.run


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep: its name, state (`running`, `finished`, `partial` or `interrupted`), times (ISO 8601) and cells."""

    name: str
    state: str
    started: str
    cells: Sequence[Cell]
    ended: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write `sweep.json` into the sweep's folder. Raises SettingsError if there is no room."""
        data = orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        RunFolder(folder).write(FILE, data)

    @classmethod
    def read(cls, folder: Path) -> Sweep:
        """Read a sweep's folder. Raises DataError if it holds none, or a damaged one."""
        path = folder / FILE
        try:
            found = orjson.loads(regular.read(path))
            return cls(**{**found, "cells": tuple(Cell(**cell) for cell in found["cells"])})
        except FileNotFoundError:
            raise DataError(f"{folder} holds no sweep") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path} cannot be read ({error}); run the sweep again to write it anew") from None
