"""Which requests are on their way, for programs that share a store."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path

_DIGITS = 15  # of the key, in hex: nearly as far as a file offset reaches
_PRESENCE = 16**_DIGITS  # the byte after those of all keys
_LONE = _PRESENCE + 1  # and the one that a program holds while its claims are no locks
_LOOK_S = 0.05
_PATIENCE_S = 1.0  # with a program that does not look


class Claims:
    """Claims to requests by key, each of an owner and a lock on one byte of `file`, which stays empty.

    The system keeps the locks, and lets go of them when their program ends, however it does. Use one of these
    a file and program: a program that closes the file anywhere loses all its locks. Not for network file systems.

    A program alone with the file only notes its claims: locks cost more than a reply from the store. It looks out
    for others (`watch`), and locks what it has claimed as soon as one comes. That one waits until it has, for a second
    at most: who has the file open but asks for nothing looks when it begins to. `shared` tells that several clients
    of this program use the claims.
    """

    def __init__(self, file: Path, *, shared: bool = False) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._shared = shared
        self._mine: dict[str, object] = {}
        self._locked: set[str] = set()
        self._lock(_PRESENCE, fcntl.LOCK_SH)
        self.alone = self._is_alone()
        if not self.alone:
            self._be_noticed()

    @property
    def contested(self) -> bool:
        """Whether anyone else may claim a key."""
        return self._shared or not self.alone

    async def watch(self) -> None:
        """Look out for another program until one has come."""
        self.look()
        while self.alone:
            await asyncio.sleep(_LOOK_S)
            self.look()

    def look(self) -> None:
        """Find out whether another program has the file open; from then on claims are locks."""
        if self.alone and not self._is_alone():
            self.alone = False
            self._locked = {key for key in self._mine if self._lock(_offset(key), fcntl.LOCK_EX | fcntl.LOCK_NB)}
            self._lock(_LONE, fcntl.LOCK_UN)

    def _is_alone(self) -> bool:
        # A lock for all becomes one for a single holder only where there is no other.
        if not self._lock(_PRESENCE, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
        self._lock(_LONE, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._lock(_PRESENCE, fcntl.LOCK_SH)
        return True

    def _be_noticed(self) -> None:
        """Wait until no other program takes itself to be alone, which a busy machine may hold up."""
        until = time.monotonic() + _PATIENCE_S
        while not self._lock(_LONE, fcntl.LOCK_EX | fcntl.LOCK_NB) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        self._lock(_LONE, fcntl.LOCK_UN)

    def take(self, key: str, owner: object = None) -> bool:
        """Claim a key, unless it is claimed by anyone else; the one who has it may take it again."""
        if key in self._mine:
            return self._mine[key] is owner
        if not self.alone:
            if not self._lock(_offset(key), fcntl.LOCK_EX | fcntl.LOCK_NB):
                return False
            self._locked.add(key)
        self._mine[key] = owner
        return True

    def drop(self, key: str, owner: object = None) -> None:
        """Give up a claim, if the owner has it."""
        if key not in self._mine or self._mine[key] is not owner:
            return
        del self._mine[key]
        if key in self._locked:
            self._locked.remove(key)
            self._lock(_offset(key), fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up all claims."""
        self._mine.clear()
        self._locked.clear()
        os.close(self._file)

    def _lock(self, offset: int, how: int) -> bool:
        """Whether no other program stands in the way of it."""
        try:
            fcntl.lockf(self._file, how, 1, offset)
        except (BlockingIOError, PermissionError):  # the two ways of saying that one does
            return False
        except OSError:
            pass  # no lock is to be had here: asking twice does less harm than never
        return True


def _offset(key: str) -> int:
    return int(key[:_DIGITS], 16)
