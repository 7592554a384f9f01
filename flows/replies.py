"""The store as the model client wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cache import CacheTooLarge, Store
from rectom.errors import EndpointFault


class StoredReplies:
    """Replies in the store: on disk before anybody uses them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, key: str) -> Mapping[str, Any] | None:
        """The record of a reply, or None."""
        return self._store.get("reply", key)

    async def keep(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep a record; returns when it is on disk. Raises EndpointFault for one that is too large."""
        try:
            await self._store.put("reply", key, dict(record))
        except CacheTooLarge as error:
            raise EndpointFault(f"the reply cannot be kept: {error}") from None
