"""How far runs have come: a live line each in the terminal, plain lines where it is no terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rectom.llm import ChatClient
from rectom.llm.budget import Budget
from tasks.run import Run

#: Seconds between two plain lines, and between two looks at the bar.
_EVERY_LINE: Final = 10.0
_EVERY_LOOK: Final = 0.2

#: Calls a second are those of so many seconds back.
_LATELY: Final = 20.0

#: Stages that have an item a story or a question, in the order in which they end: what the bar measures.
_MEASURED: Final = ("abstraction", "questions", "completion", "answering")


class Line(Protocol):
    """Where the progress of a run is shown."""

    def show(self, share: float, words: Callable[[], str]) -> None:
        """Show how much is done, 0 to 1, and what is to be said of it, if it is time to."""
        ...


#: Gives a line for a run of a name, while it goes on.
Showing: TypeAlias = Callable[[str], AbstractContextManager[Line]]


class Bars:
    """The lines of runs that go on, one below the other; a context manager. `named` says whether each has its name."""

    def __init__(self, console: Console, *, named: bool = False) -> None:
        self._console = console
        self._named = named
        columns = (BarColumn(24), TaskProgressColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Line]:
        """A line for a run."""
        title = f"{name} · " if self._named else ""
        if not self._console.is_terminal:
            yield _Plain(self._console, title)
            return
        with self._shown():
            bar = _Bar(self._bars, title)
            try:
                yield bar
            finally:
                bar.end()

    @contextmanager
    def _shown(self) -> Iterator[None]:
        if not self._bars.tasks:
            self._bars.start()
        try:
            yield
        finally:
            if not self._bars.tasks:
                self._bars.stop()


class _Bar:
    """A bar of the terminal."""

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars = bars
        self._title = title
        self._task = bars.add_task(title, total=1.0)
        self._shown = 0.0

    def show(self, share: float, words: Callable[[], str]) -> None:
        now = time.monotonic()
        if now - self._shown >= _EVERY_LOOK:
            self._shown = now
            self._bars.update(self._task, completed=share, description=f"{self._title}{words()}")

    def end(self) -> None:
        """Take the bar away."""
        self._bars.remove_task(self._task)


class _Plain:
    """Lines one after the other, for a log."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._begun = self._shown = time.monotonic()

    def show(self, share: float, words: Callable[[], str]) -> None:
        now = time.monotonic()
        if now - self._shown < _EVERY_LINE:
            return
        self._shown = now
        left = f" · {_time((now - self._begun) * (1 - share) / share)} left" if share else ""
        self._console.print(
            f"{self._title}{100 * share:.0f} % · {words()}{left}", highlight=False, markup=False, soft_wrap=True
        )


class Meter:
    """Tells a line how far a run has come; `refresh` is called whenever something ended."""

    def __init__(self, run: Run, client: ChatClient | None, line: Line, budget: Budget | None = None) -> None:
        self._run = run
        self._client = client
        self._line = line
        self._budget = budget or Budget()
        self._questions = len(run.benchmark.questions)
        self._pace = _Pace()
        self.failed = 0

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        total = self._questions if self._run.method else len(self._run.benchmark.stories) + 3 * self._questions
        return sum(self._run.done[stage] for stage in _MEASURED) / max(1, total)

    async def tick(self) -> None:
        """Refresh now and then, also while nothing ends."""
        while True:
            await asyncio.sleep(1.0)
            self.refresh()

    def refresh(self) -> None:
        """Show the present state, where it is time to."""
        if self._client:
            self._pace.note(self._client.stats.sent + self._client.stats.retried)
        self._line.show(self.share, self._words)

    def _words(self) -> str:
        done = self._run.done
        read = [] if self._run.method else [f"{done['abstraction']} stories read"]
        answered = f"{done['answering']} of {self._questions} questions answered"
        failed = [f"{self.failed} failed"] if self.failed else []
        return " · ".join([", ".join([*read, answered, *failed]), *self._sent()])

    def _sent(self) -> list[str]:
        if self._client is None:
            return []
        stats = self._client.stats
        tokens = stats.usage.prompt + stats.usage.completion
        running = f"{stats.in_flight} running, {self._pace.rate:.1f} a second" if stats.sent else ""
        said = [f"{stats.sent} calls sent, {stats.cached} from the store, {tokens:,} tokens", running, self._money()]
        return [words for words in [*said, self._client.under_way] if words]

    def _money(self) -> str:
        prices = self._budget.prices
        if self._client is None or prices is None:
            return ""
        cost = prices.cost(self._client.stats.usage, batch=self._budget.batch)
        return "" if cost is None else f"{cost:.4f} {prices.currency}"


class _Pace:
    """How many calls a second there were lately."""

    def __init__(self) -> None:
        self._noted: list[tuple[float, int]] = [(time.monotonic(), 0)]

    def note(self, count: int) -> None:
        """Note how many there were so far; what is noted within a second counts as one."""
        now = time.monotonic()
        if now - self._noted[-1][0] >= 1.0:
            self._noted = [(at, had) for at, had in self._noted if now - at <= _LATELY] + [(now, count)]

    @property
    def rate(self) -> float:
        """Calls a second."""
        (begun, first), (ended, last) = self._noted[0], self._noted[-1]
        return (last - first) / (ended - begun) if ended > begun else 0.0


def _time(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
