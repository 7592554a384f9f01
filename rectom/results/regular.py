"""Files of a run that may come from somebody else: only regular files are opened, and no more is read than may be.

A link would lead out of the run's folder, a pipe would be waited for, a device has no end. The folder itself may be
a link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedIOBase, BufferedReader, FileIO
from pathlib import Path
from typing import Final

#: The most bytes of a file that is read as a whole: a sweep of ten thousand cells has a third of that.
SMALL: Final = 32 * 2**20

#: The most bytes of a line: what a value of the store may have, and some more.
LINE: Final = 64 * 2**20 + 4096

#: How many times its own size a packed file may unpack to, besides one line.
RATIO: Final = 500


class Irregular(OSError):
    """It is a link, a pipe or the like, or too large; `filename` is what, and `strerror` says why it is left alone."""

    def __str__(self) -> str:
        return str(self.strerror)


def opened(path: Path) -> BufferedReader:
    """Open a file to read it. Raises OSError; Irregular if it is no regular file."""
    return os.fdopen(_number(path, os.O_RDONLY), "rb")


def appended(path: Path) -> FileIO:
    """Open a file, or make it, to add to its end without a buffer. Raises as `opened` does."""
    return os.fdopen(_number(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0)


def read(path: Path, most: int = SMALL) -> bytes:
    """What a small file holds. Raises as `opened` does, and Irregular if that is more than `most` bytes."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Irregular(errno.EFBIG, f"it is larger than {most} bytes", str(path))
    return data


def lines(file: BufferedIOBase, name: str, most: int = LINE) -> Iterator[bytes]:
    """The lines of an open file; `name` is what errors call it. Raises Irregular for one of more than `most` bytes."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise Irregular(errno.EFBIG, f"it has a line of more than {most} bytes", name)
        yield line


def refuse_links(path: Path, within: Path) -> None:
    """Raise Irregular if a file would not lie in a folder, since one between them is a link to another place."""
    for between in path.relative_to(within).parents[:-1]:
        if (within / between).is_symlink():
            raise _link(within / between)


def _number(path: Path, flags: int) -> int:
    try:
        # Without O_NONBLOCK a pipe would be waited for until somebody opens its other end.
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise _odd(path) from None
        raise (_link(path) if path.is_symlink() else error) from None
    kind = os.fstat(number).st_mode
    if stat.S_ISREG(kind):
        return number
    os.close(number)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise _odd(path)


def _link(path: Path) -> Irregular:
    return Irregular(errno.ELOOP, "it is a link to another place", str(path))


def _odd(path: Path) -> Irregular:
    return Irregular(errno.EINVAL, "it is no regular file", str(path))
