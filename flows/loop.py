"""Running a coroutine as a command: an interrupt or a termination cancels it, so that it can close its books."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

#: Some systems allow 256 where nobody asks; a sweep at four servers has as many requests in flight.
_FILES = 4096


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with SIGTERM (what batch systems and service managers send) taken as an interrupt, and with room
    for a connection a request.
    """
    _allow_files()
    try:
        return asyncio.run(_terminable(work))
    except BaseException as error:
        # While a flow runs Prefect takes the signal as well, and raises this wherever the program is.
        if (type(error).__module__, type(error).__name__) == ("prefect.exceptions", "TerminationSignal"):
            raise KeyboardInterrupt from None
        raise


def _allow_files() -> None:
    """Let the program have more files and sockets open, as far as it may without being asked to have less."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _terminable(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
