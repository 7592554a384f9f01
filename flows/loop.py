"""Running a coroutine as a command: an interrupt or a termination cancels it, so that it can close its books."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with SIGTERM (what batch systems and service managers send) taken as an interrupt."""
    return asyncio.run(_terminable(work))


async def _terminable(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
