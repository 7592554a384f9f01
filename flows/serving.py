"""The program that serves a GGUF file: llama.cpp's own HTTP server, with an OpenAI-compatible endpoint.

It is a process of its own (`python -m flows.serving`), since llama.cpp's threads and memory are to end with it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rectom.errors import SettingsError

#: The environment variable with the process that the server is for: when that is gone, it ends as well.
PARENT = "RECTOM_SERVED_FOR"

#: What the program says when it answers, before its address.
READY = "ready"

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Serving:
    """How a file is served: `slots` requests at once, each with a context of `context` tokens, by `threads` threads.

    `port` 0 is a free one. `alias` is the model's name at the endpoint.
    """

    file: Path
    slots: int = 2
    context: int = 4096
    port: int = 0
    threads: int = 0
    alias: str = ""

    @property
    def name(self) -> str:
        """The model's name: the file's, without its ending, unless another is given."""
        return self.alias or self.file.stem

    def arguments(self) -> list[str]:
        """The arguments of the program."""
        numbers = (self.slots, self.context, self.port, self.threads)
        return [str(self.file), *map(str, numbers), self.name]

    @classmethod
    def from_arguments(cls, arguments: list[str]) -> Serving:
        """The inverse of `arguments`."""
        file, slots, context, port, threads, alias = arguments
        return cls(Path(file), int(slots), int(context), int(port), int(threads), alias)


def check(file: Path) -> None:
    """Raise SettingsError if a file is no GGUF file, or the library that serves it is not installed."""
    from importlib.util import find_spec

    try:
        with file.open("rb") as opened:
            head = opened.read(4)
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}; give a GGUF file") from None
    if head != b"GGUF":
        raise SettingsError(f"{file} is not a GGUF file; give the weights of a model in that format")
    if find_spec("xllamacpp") is None:
        raise SettingsError("serving a file needs xllamacpp: pip install 'rectom[local]'")


def main(arguments: list[str]) -> None:
    """Serve until a signal ends it. Prints `ready` and the address when requests are answered."""
    import xllamacpp

    serving = Serving.from_arguments(arguments)
    threads = serving.threads or os.cpu_count() or 1
    params = xllamacpp.CommonParams()
    params.model.path = str(serving.file)
    params.model_alias = {serving.name}
    params.n_ctx, params.n_parallel, params.kv_unified = serving.context * serving.slots, serving.slots, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http, params.hostnames, params.port = serving.slots + 2, [HOST], serving.port
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server = xllamacpp.Server(params)
    print(READY, server.listening_address, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Event().wait()


def _end_with_parent() -> None:
    """End this process when that is gone which the server is for, also while the weights are being loaded."""
    parent = int(os.environ.get(PARENT, "0"))
    while not parent or os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
