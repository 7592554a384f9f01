"""An event loop whose time passes at once: hours of waiting in milliseconds, and a standstill that is heard."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Standstill(Exception):
    """Nothing is left that could ever happen."""


class _Jump(selectors.SelectSelector):
    """Waits for nothing: it puts the clock forward instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Standstill
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s. For coroutines that talk to nobody outside."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    return asyncio.get_running_loop().time()


class Headers(dict[str, str]):
    """Headers that are found whatever their case."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in fields.items()})

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)
