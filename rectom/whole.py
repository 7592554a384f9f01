"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A name in the folder of `path` for what is to take its place.

    What still bears the name when the block ends, however it ends, is deleted: a full disk is not kept full.
    """
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        yield part
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name for a file that takes the place of `path` when the block ends well; else `path` is as it was.

    Raises OSError where the folder is missing or cannot be written.
    """
    with beside(path) as part:
        yield part
        part.replace(path)


def write(path: Path, data: bytes, *, private: bool = False, lasting: bool = False) -> None:
    """Put `data` in the place of `path`. Raises OSError as `replacing` does.

    What is `private` only its owner can read, what is `lasting` is on the disk when this returns.
    """
    with replacing(path) as part, os.fdopen(_made(part, 0o600 if private else 0o666), "wb") as file:
        file.write(data)
        if lasting:
            file.flush()
            # The rename may reach the disk before the content does.
            os.fsync(file.fileno())
    if lasting:
        settle(path.parent)


def settle(folder: Path) -> None:
    """Bring the names in a folder to the disk: one that is written first must not outlive it in a loss of power."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _made(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
