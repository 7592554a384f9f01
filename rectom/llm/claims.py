"""Which requests are on their way, for programs that share a store."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_DIGITS = 15  # of the key, in hex: nearly as far as a file offset reaches
_PRESENCE = 16**_DIGITS  # the byte after those of all keys
_LOOK_S = 0.02  # between two looks for another program


class Claims:
    """Claims to requests by key, each a lock on one byte of `file`, which stays empty.

    The system keeps the locks, and lets go of them when their program ends, however it does. Use one of these
    a file and program: a program that closes the file anywhere loses all its locks. Not for network file systems.
    """

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mine: set[str] = set()
        self._next_look = 0.0
        self._alone = self._share()

    @property
    def alone(self) -> bool:
        """Whether no other program has been met that has claims here: nobody else stores anything."""
        now = time.monotonic()
        if self._alone and now >= self._next_look:
            self._next_look = now + _LOOK_S
            try:
                # A lock for all becomes one for a single holder only where there is no other.
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _PRESENCE)
                fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)
            except OSError:
                self._alone = False
        return self._alone

    def _share(self) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)
        except OSError:
            return False
        return True

    def take(self, key: str) -> bool:
        """Claim a key, unless it is claimed by anyone else; the one who has it may take it again."""
        if key not in self._mine:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
            except (BlockingIOError, PermissionError):  # the two ways of saying that it is another program's
                return False
            except OSError:
                return True  # no lock is to be had here: asking twice does less harm than never
            self._mine.add(key)
        return True

    def drop(self, key: str) -> None:
        """Give up a claim, if there is one."""
        if key in self._mine:
            self._mine.remove(key)
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _offset(key))

    def close(self) -> None:
        """Give up all claims."""
        self._mine.clear()
        os.close(self._file)


def _offset(key: str) -> int:
    return int(key[:_DIGITS], 16)
