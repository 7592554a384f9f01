"""The live line in the terminal: what is done, what was sent, the time left. Plain lines where it is no terminal."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rectom.llm import ChatClient
from tasks.run import Run

#: Seconds between two plain lines, and between two looks at the bar.
_EVERY_LINE = 10.0
_EVERY_LOOK = 0.2

#: Stages that have an item a story or a question, in the order in which they end: what the bar measures.
_MEASURED = ("abstraction", "questions", "completion", "answering")


class Meter:
    """Shows how far a run has come; `refresh` is called whenever something ended."""

    def __init__(self, run: Run, client: ChatClient | None, console: Console) -> None:
        self._run = run
        self._client = client
        self._console = console
        self._shown = time.monotonic()
        self._questions = len(run.benchmark.questions)
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self._line = self._bar.add_task(self._words(), total=1.0)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

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
        now = time.monotonic()
        if now - self._shown < (_EVERY_LOOK if self._bar else _EVERY_LINE):
            return
        self._shown = now
        if self._bar:
            self._bar.update(self._line, completed=self.share, description=self._words())
        else:
            self._console.print(f"{100 * self.share:.0f} % · {self._words()}", highlight=False, soft_wrap=True)

    def _words(self) -> str:
        done = self._run.done
        read = [] if self._run.method else [f"{done['abstraction']} stories read"]
        answered = f"{done['answering']} of {self._questions} questions answered"
        return " · ".join([", ".join([*read, answered]), *_sent(self._client)])


def _sent(client: ChatClient | None) -> list[str]:
    if client is None:
        return []
    stats = client.stats
    tokens = stats.usage.prompt + stats.usage.completion
    said = [f"{stats.sent} calls sent, {stats.cached} from the store, {tokens:,} tokens", client.under_way]
    return [words for words in said if words]
