"""A model from a file, served on this machine while it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from threading import Lock
from typing import Final

from flows.home import home
from flows.keys import without_keys
from flows.serving import PARENT, READY, Serving, check
from rectom.benchmarks.adapter import data_folder
from rectom.errors import SettingsError
from rectom.llm.catalogue import Weights, weights

#: What `--model local:FILE` and `--model local:NAME` begin with.
LOCAL: Final = "local:"

#: So much of a file's SHA-256 is its revision.
_MARK: Final = 16

#: Seconds that a server gets to end by itself.
_PATIENCE: Final = 10.0


class Server:
    """The process that serves a file, and the log of what it says."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._root = ""
        self._asked = Lock()

    def address(self) -> str:
        """The address of its endpoint, once the weights are loaded, which may take half a minute.

        Raises SettingsError if it ends before.
        """
        with self._asked:
            self._root = self._root or self._told()
        return f"{self._root}/v1"

    def outlasted(self) -> SettingsError:
        """Wait until it ends, which it does not do by itself; gives the error to raise."""
        return SettingsError(f"the server of the model ended (exit status {self._process.wait()}); see {self._log}")

    def end(self) -> None:
        """End it, by force if it takes long."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _told(self) -> str:
        assert self._process.stdout
        for line in self._process.stdout:
            word, _, address = line.strip().partition(" ")
            if word == READY:
                return address
        status = self._process.wait()
        raise SettingsError(f"the model cannot be served (exit status {status}); see {self._log}")


@contextmanager
def started(serving: Serving) -> Iterator[Server]:
    """Start the server of a file, and end it. Raises SettingsError if the file cannot be served."""
    check(serving.file)
    log = home() / "local" / f"{serving.file.stem}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "flows.serving", *serving.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env=_environment(),
            start_new_session=True,  # an interrupt of ours is not one of the server's
        )
    server = Server(process, log)
    try:
        yield server
    finally:
        server.end()


def folder() -> Path:
    """Where weights are downloaded to."""
    return data_folder() / "models"


def weights_of(name: str) -> Weights:
    """The weights of a name. Raises SettingsError, with the known names, if there are none."""
    known = weights()
    if name not in known:
        raise SettingsError(f"there are no weights {name!r} to download; there are {', '.join(known)}")
    return known[name]


def file_of(text: str) -> Path:
    """The file of `local:PATH`, or of `local:NAME` with the name of weights that can be downloaded.

    Those need not be on this machine: where every reply is in the store, none is asked.
    """
    named = text.removeprefix(LOCAL)
    path = Path(named).expanduser()
    return path if path.exists() or named not in weights() else folder() / weights_of(named).file


def revision_of(text: str) -> str:
    """The revision of the file of `local:PATH`, or that of the weights that are published under `local:NAME`.

    Raises SettingsError if there is no such file, and no such weights.
    """
    file, known = file_of(text), weights().get(text.removeprefix(LOCAL))
    return known.sha256[:_MARK] if known and not file.exists() else revision(file)


@lru_cache
def revision(file: Path) -> str:
    """What tells two files of one name apart: the beginning of the SHA-256 of what is in it.

    Raises SettingsError if it cannot be read.
    """
    try:
        with file.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()[:_MARK]
    except OSError as error:
        known = ", ".join(f"{LOCAL}{name}" for name in weights())
        raise SettingsError(f"cannot read {file}: {error.strerror}; give a GGUF file, or {known}") from None


def _environment() -> dict[str, str]:
    # Threads that spin while they wait for one another bring a machine that has other work, too, to a standstill.
    return {"GOMP_SPINCOUNT": "10000", **without_keys(os.environ), PARENT: str(os.getpid())}
