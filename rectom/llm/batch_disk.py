"""Files of batches: there whole or not at all, for their owner alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rectom import whole
from rectom.errors import SettingsError


@contextmanager
def using(folder: Path) -> Iterator[None]:
    """Turn what the disk refuses within into a `SettingsError` that names the folder."""
    try:
        yield
    except OSError as fault:
        raise SettingsError(
            f"the folder {folder} cannot be used ({fault.strerror or type(fault).__name__}); make room in it or make "
            "it writable, and run again: what was sent is found there"
        ) from None


def make(folder: Path) -> None:
    """Make `folder`, for its owner alone, where it is missing."""
    with using(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` in the place of `path`, on the disk when this returns. Raises `SettingsError`."""
    with using(path.parent):
        # A job that is created after its note is written must not outlive the note in a loss of power.
        whole.write(path, data, private=True, lasting=True)
