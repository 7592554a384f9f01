"""A bar a file while files are downloaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

#: Downloads, and tells how far each file is: its name, the bytes so far and in all (0 if not known).
Download: TypeAlias = Callable[[Callable[[str, int, int], None]], Awaitable[tuple[Path, ...]]]


def with_bars(download: Download) -> tuple[Path, ...]:
    """The files that are downloaded; what cannot be is raised as it is."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bars: dict[str, TaskID] = {}

        def show(file: str, got: int, whole: int) -> None:
            if file not in bars:
                bars[file] = progress.add_task(file)
            progress.update(bars[file], completed=got, total=whole or None)

        async def run() -> tuple[Path, ...]:
            return await download(show)

        return asyncio.run(run())
