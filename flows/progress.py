"""How far runs have come: a live line each in the terminal, plain lines where it is no terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from rectom.llm import ChatClient
from rectom.llm.budget import Budget
from rectom.llm.stats import Stats
from tasks.run import Run

#: Seconds between two plain lines, and between two looks at the bar.
_EVERY_LINE: Final = 10.0
_EVERY_LOOK: Final = 0.2

#: Calls a second are those of so many seconds back.
_LATELY: Final = 20.0

#: Stages that have an item a story or a question, in the order in which they end: what the bar measures.
_MEASURED: Final = ("abstraction", "questions", "completion", "answering")


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a run so far: sent, found in the store, in flight, sent in a second lately, and tokens paid for."""

    sent: int
    cached: int
    running: int
    rate: float
    tokens: int

    def words(self) -> str:
        """All of it."""
        said = f"{self.sent} calls sent, {self.cached} from the store, {self.tokens:,} tokens"
        return f"{said} · {self.running} running, {self.rate:.1f} a second" if self.sent else said

    def brief(self) -> str:
        """The same in short."""
        return f"{self.sent} sent, {self.running} running, {self.rate:.1f}/s · {_thousands(self.tokens)} tokens"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands: `stories` read (None where a method reads none), of `questions` how many are `answered` and how
    many of these `failed`; `calls` is None where no model is asked. `money` and `under_way` are told as they are.
    """

    questions: int
    answered: int
    failed: int
    stories: int | None = None
    calls: Calls | None = None
    money: str = ""
    under_way: str = ""

    def words(self) -> str:
        """All of it, for a line that has the width of the terminal."""
        read = [] if self.stories is None else [f"{self.stories} stories read"]
        answered = f"{self.answered} of {self.questions} questions answered"
        failed = [f"{self.failed} failed"] if self.failed else []
        sent = [self.calls.words(), self.money] if self.calls else []
        return " · ".join(filter(None, [", ".join([*read, answered, *failed]), *sent, self.under_way]))

    def brief(self) -> str:
        """The same as short as it may be, for one of several lines."""
        failed = f" {self.failed} failed" if self.failed else ""
        sent = [self.calls.brief(), self.money] if self.calls else []
        return " · ".join(filter(None, [f"{self.answered}/{self.questions}{failed}", *sent, self.under_way]))


class Line(Protocol):
    """Where the progress of a run is shown."""

    def show(self, share: float, standing: Callable[[], Standing]) -> None:
        """Show how much is done, 0 to 1, and how the run stands, if it is time to."""
        ...


#: Gives a line for a run of a name, while it goes on.
Showing: TypeAlias = Callable[[str], AbstractContextManager[Line]]


class Bars:
    """The lines of runs that go on, one below the other; a context manager. `named` says whether each has its name."""

    def __init__(self, console: Console, *, named: bool = False) -> None:
        self._console = console
        self._named = named
        told = TextColumn(
            "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        )
        columns = (
            BarColumn(12 if named else 24),
            TaskProgressColumn(),
            told,
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=console, transient=True, expand=True)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Line]:
        """A line for a run."""
        title = name if self._named else ""
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

    def show(self, share: float, standing: Callable[[], Standing]) -> None:
        now = time.monotonic()
        if now - self._shown >= _EVERY_LOOK:
            self._shown = now
            words = f"{self._title} · {standing().brief()}" if self._title else standing().words()
            self._bars.update(self._task, completed=share, description=words)

    def end(self) -> None:
        """Take the bar away."""
        self._bars.remove_task(self._task)


class _Plain:
    """Lines one after the other, for a log."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._shown = time.monotonic()
        self._left = _Left()

    def show(self, share: float, standing: Callable[[], Standing]) -> None:
        now, calls = time.monotonic(), standing().calls
        self._left.note(share, at_once=calls is not None and not calls.sent)
        if now - self._shown < _EVERY_LINE:
            return
        self._shown = now
        seconds = self._left.seconds()
        left = "" if seconds is None else f"{_time(seconds)} left"
        told = " · ".join(filter(None, [self._title, f"{100 * share:.0f} %", standing().words(), left]))
        self._console.print(told, highlight=False, markup=False, soft_wrap=True)


class _Left:
    """How long a run will take yet, at the pace of what it did so far. What the store held at once does not count."""

    def __init__(self) -> None:
        self._begun = self._moved = time.monotonic()
        self._first: float | None = None
        self._share = 0.0

    def note(self, share: float, *, at_once: bool) -> None:
        """Note how much is done, 0 to 1, and whether all of that took no call."""
        now = time.monotonic()
        if self._first is None or at_once:
            self._begun, self._first = now, share
        if share != self._share:
            self._share, self._moved = share, now

    def seconds(self) -> float | None:
        """From now; None where nothing was done yet, or less than a hundredth of the whole."""
        done = self._share - (self._first or 0.0)
        if done < 0.01:
            return None
        # As of the moment when something ended last: else the time left would grow until the next does.
        expected = (self._moved - self._begun) * (1 - self._share) / done
        return max(0.0, expected - (time.monotonic() - self._moved))


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
        self._line.show(self.share, self._standing)

    def _standing(self) -> Standing:
        done = self._run.done
        stories = None if self._run.method else done["abstraction"]
        if self._client is None:
            return Standing(self._questions, done["answering"], self.failed, stories)
        stats = self._client.stats
        calls = Calls(stats.sent, stats.cached, stats.in_flight, self._pace.rate, stats.usage.total)
        return Standing(
            self._questions, done["answering"], self.failed, stories, calls, self._money(stats), self._client.under_way
        )

    def _money(self, stats: Stats) -> str:
        prices = self._budget.prices
        cost = prices.cost(stats.usage, batch=self._budget.batch) if prices else None
        return f"{cost:.4f} {prices.currency}" if prices and cost is not None else ""


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


def _thousands(number: int) -> str:
    return f"{number / 1000:,.0f}k" if number >= 10_000 else str(number)


def _time(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
