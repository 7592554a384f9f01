"""A sweep: the cells of a matrix, several at once, each a run of its own that can be taken up again."""

from __future__ import annotations

import asyncio
import fnmatch
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cache import CacheError, CacheFull, CacheReadOnly
from flows.commandline import CommandLine
from flows.evaluate import Conduct, Evaluation, benchmark_of, conduct_plainly, evaluate, is_done
from flows.matrix import Planned
from flows.progress import Showing
from flows.session import moment
from flows.shared import Shared
from rectom.errors import DataError, Occupied, Partial, RectomError, SettingsError
from rectom.results.folder import RunFolder
from rectom.results.sweep import FAILED, FINISHED, RUNNING, STOPPED, WAITING, Cell, Sweep

_LOG = logging.getLogger(__name__)

#: Seconds between two looks whether another process is done with a cell.
_LOOK_S: Final = 2.0

#: What a store says that takes nothing more.
_FULL: Final = (CacheFull, CacheReadOnly)


@dataclass
class Sweeper:
    """Runs the cells of a sweep, and keeps what becomes of each in the sweep's folder.

    `others` names cells of the file that are left alone: the folder goes on telling how far they are. `conduct` brings
    a cell through its stages, `showing` tells of its progress. `told` is called after each change of a cell.
    Cells whose run is finished, by this code and over these data, are not done again, unless questions of theirs failed
    and `retry` says that those are asked again.
    """

    name: str
    folder: Path
    planned: Sequence[Planned]
    shared: Shared
    conduct: Conduct
    showing: Showing
    others: Set[str] = frozenset()
    retry: bool = False
    told: Callable[[Cell], None] = lambda _: None
    debug: bool = False
    _cells: dict[str, Cell] = field(default_factory=dict)
    _started: str = ""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that are done here, in the order of the file, with what became of each so far."""
        return tuple(self._cells[planned.cell.name] for planned in self._chosen)

    @property
    def _chosen(self) -> list[Planned]:
        return [planned for planned in self.planned if planned.cell.name not in self.others]

    async def run(self, at_once: int) -> Sweep:
        """Do every cell, `at_once` together, those of higher priority first. One that fails stops no other.

        Raises CacheFull or CacheReadOnly where nothing more can be stored.
        """
        self._started = moment()
        self._cells = {planned.cell.name: self._found(planned) for planned in self.planned}
        self._write("running")
        ordered = sorted(self._chosen, key=lambda planned: -planned.priority)
        waiting = deque(planned for planned in ordered if self._cells[planned.cell.name].state == WAITING)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(waiting))):
                    group.create_task(self._work(waiting))
        except BaseException as error:
            self._cells = {name: _at_rest(cell) for name, cell in self._cells.items()}
            self._write("interrupted")
            full = error.subgroup(_FULL) if isinstance(error, BaseExceptionGroup) else None
            if full:
                raise full.exceptions[0] from None
            raise
        self._write(_outcome(self._cells.values()))
        return Sweep(self.name, _outcome(self.cells), self._started, self.cells, moment())

    def _found(self, planned: Planned) -> Cell:
        """A cell as it stands before anything is done; one whose data are not there has failed before it began."""
        if planned.cell.name in self.others:
            return self._left_alone(planned)
        try:
            return self._placed(planned)
        except RectomError as error:
            return replace(planned.cell, state=FAILED, why=str(error))

    def _left_alone(self, planned: Planned) -> Cell:
        """Such a cell is finished, or waits; where that cannot be found out, it is as the record has it."""
        try:
            cell = self._placed(planned)
            return replace(cell, state=FINISHED if self._is_done(planned, cell) else WAITING)
        except Exception as error:  # of whatever kind: nobody asked for this cell
            _LOG.debug("%s: %s", planned.cell.name, error)
            return self._recorded(planned.cell)

    def _recorded(self, cell: Cell) -> Cell:
        """A cell as an earlier call of the sweep left it; what was under way then is so no longer."""
        try:
            before = next((one for one in Sweep.read(self.folder).cells if one.name == cell.name), cell)
        except DataError:
            return cell
        return _at_rest(before)

    def _placed(self, planned: Planned) -> Cell:
        """A cell with the name of its run. Raises as `benchmark_of` does."""
        benchmark = benchmark_of(planned.settings, self.shared)
        return replace(planned.cell, run=planned.settings.run_name(benchmark.digest))

    async def _work(self, waiting: deque[Planned]) -> None:
        while waiting:
            planned = waiting.popleft()
            if await self._do(planned):
                continue
            waiting.append(planned)
            await asyncio.sleep(_LOOK_S)

    async def _do(self, planned: Planned) -> bool:
        """Do a cell; False if another process is at it."""
        name = planned.cell.name
        try:
            if not self._is_done(planned, self._cells[name]):
                await self._evaluate(planned, name)
            self._note(name, FINISHED)
        except Occupied:
            self._note(name, WAITING, "another process works on it")
            return False
        except _FULL:
            # The store is that of all cells: each would lose there what it has paid for.
            raise
        except Partial as error:
            self._note(name, STOPPED, str(error))
        except (RectomError, CacheError, OSError) as error:
            self._note(name, FAILED, " ".join(str(error).split()))
        except Exception as error:
            if self.debug:
                raise
            self._note(name, FAILED, f"an unexpected {type(error).__name__}: {' '.join(str(error).split())}")
        return True

    async def _evaluate(self, planned: Planned, name: str) -> None:
        async def conduct(evaluation: Evaluation) -> None:
            # Not before: whether the run is ours to do is known now.
            self._note(name, RUNNING)
            await self.conduct(evaluation)

        await evaluate(planned.settings, conduct, self.showing, self.shared, name, self._command(planned))

    def _command(self, planned: Planned) -> CommandLine:
        """The command that runs a cell alone."""
        settings = planned.settings
        places = ("--cache", str(settings.cache.absolute()), "--runs", str(settings.runs.absolute()))
        plainly = ("--plain",) if self.conduct is conduct_plainly else ()
        command = [word for word in planned.command if word != "--retry-failed"]  # which is for once
        return CommandLine.given("run", (*command, *places, *plainly))

    def _is_done(self, planned: Planned, cell: Cell) -> bool:
        settings = planned.settings
        benchmark = benchmark_of(settings, self.shared)
        return is_done(settings.runs / cell.run, settings, benchmark, self.shared.store, retry=self.retry)

    def _note(self, name: str, state: str, why: str = "") -> None:
        before, now = self._cells[name], replace(self._cells[name], state=state, why=why)
        if now == before:  # each look at a cell that another process is at
            return
        self._cells[name] = now
        self._write("running")
        self.told(now)

    def _write(self, state: str) -> None:
        ended = "" if state == "running" else moment()
        Sweep(self.name, state, self._started, tuple(self._cells.values()), ended).write(self.folder)


def _at_rest(cell: Cell) -> Cell:
    return replace(cell, state=WAITING) if cell.state == RUNNING else cell


def _outcome(cells: Iterable[Cell]) -> str:
    return "finished" if all(cell.state == FINISHED for cell in cells) else "partial"


def chosen(planned: Sequence[Planned], patterns: Sequence[str]) -> tuple[Planned, ...]:
    """The cells whose names a pattern is found in (`*` stands for anything). Raises SettingsError if none is."""
    if not patterns:
        return tuple(planned)
    found = tuple(one for one in planned if any(fnmatch.fnmatch(one.cell.name, f"*{text}*") for text in patterns))
    if not found:
        known = "; ".join(one.cell.name for one in planned[:4])
        raise SettingsError(f"no cell is called {' or '.join(patterns)}; there are {known}{' …' * (len(planned) > 4)}")
    return found


def figures(cell: Cell, runs: Path) -> Mapping[str, Any]:
    """The summary line of a finished cell; empty if there is none."""
    manifest = RunFolder(runs / cell.run).before() if cell.run and cell.state == FINISHED else None
    summary: Mapping[str, Any] = (manifest or {}).get("summary", {})
    return summary
