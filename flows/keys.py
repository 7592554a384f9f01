"""The keys of models in the environment, which no program that is started beside a run has any use for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rectom.llm.catalogue import key_names


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the keys of models: those that models declare, and every `…_API_KEY`."""
    declared = key_names()
    return {
        name: value
        for name, value in environment.items()
        if name not in declared and not name.upper().endswith("_API_KEY")
    }


@contextmanager
def withheld() -> Iterator[None]:
    """Take the keys of models out of this process's environment for a moment, in which another program is started.

    For programs that get the whole environment, whoever starts them. Nobody may look for a key meanwhile: nothing is to
    be awaited within.
    """
    kept = without_keys(os.environ)
    keys = {name: value for name, value in os.environ.items() if name not in kept}
    for name in keys:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(keys)
