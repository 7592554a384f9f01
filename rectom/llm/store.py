"""Where replies are kept: the client is given a store and knows nothing more of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ReplyStore(Protocol):
    """Keeps the records of replies by key."""

    def find(self, key: str) -> Mapping[str, Any] | None:
        """The record kept under `key`, or None. It blocks the loop: it must be quick."""

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep `record` under `key`; when this returns the record must survive the end of the process.

        Raises a `RectomError` where this one record cannot be kept. After any other error nothing more is asked for.
        """


class MemoryReplies:
    """A store for library use and for tests: it lasts as long as the process."""

    def __init__(self) -> None:
        self.records: dict[str, Mapping[str, Any]] = {}

    def find(self, key: str) -> Mapping[str, Any] | None:
        """The record kept under `key`, or None."""
        return self.records.get(key)

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep `record` under `key`."""
        self.records[key] = record
