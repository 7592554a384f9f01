"""The seal of a command that a run's folder keeps: it shows that this user gave the command, on this machine.

`command.json` says which folder to work in and where to send the user's key, so that nobody else's may be given again
unseen. The seal is an HMAC under a random key in the user's data folder, and lies beside the command.
"""

from __future__ import annotations

import hmac
import os
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes
from typing import Final

from rectom import whole
from rectom.benchmarks.adapter import data_folder
from rectom.results.regular import read

FILE: Final = "command.seal"

_KEY: Final = "seal.key"
_BYTES: Final = 32

#: What there is when the user has no home, or none that can be written: then nothing is sealed.
_HOMELESS: Final = (OSError, RuntimeError)


def seal(run: Path, command: bytes) -> None:
    """Write the seal of a command into its run's folder, or none where the user has no place for a key.

    Raises OSError if there is no room in the run's folder.
    """
    try:
        key = _key()
    except _HOMELESS:
        return
    whole.write(run / FILE, _mark(key, command), private=True)


def is_sealed(run: Path, command: bytes) -> bool:
    """Whether the seal in a run's folder is this user's, and of this command."""
    try:
        return hmac.compare_digest(read(run / FILE), _mark(_key(), command))
    except _HOMELESS:
        return False


def _mark(key: bytes, command: bytes) -> bytes:
    return hmac.new(key, command, "sha256").hexdigest().encode() + b"\n"


def _key() -> bytes:
    """The user's key, made if there is none. Raises OSError or RuntimeError where there can be none."""
    path = data_folder() / _KEY
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole.beside(path) as part:
            whole.write(part, token_bytes(_BYTES), private=True)
            with suppress(FileExistsError):  # another process was first: the key is its
                os.link(part, path)
    key = path.read_bytes()
    if len(key) != _BYTES:
        raise OSError(f"{path} is no key")
    return key
