"""The live line in the terminal: questions done, calls, time left. Plain lines where it is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

#: Seconds between two plain lines.
_EVERY = 10.0


class Meter:
    """Counts questions as they end. `note` gives what is said beside the count."""

    def __init__(self, total: int, console: Console, note: Callable[[], str]) -> None:
        self.total = total
        self.done = 0
        self._note = note
        self._console = console
        self._said = time.monotonic()
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self._line = self._bar.add_task("questions", total=total)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def one_more(self) -> None:
        """A question ended."""
        self.done += 1
        self.refresh()

    def refresh(self) -> None:
        """Show the present state, where it is time to."""
        if self._bar:
            self._bar.update(self._line, completed=self.done, description=f"questions · {self._note()}")
        elif time.monotonic() - self._said >= _EVERY:
            self._said = time.monotonic()
            self._console.print(f"{self.done}/{self.total} questions · {self._note()}", highlight=False)
