"""The manifest of a finished run, for those who read the run back; and what they say where a file of it is damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from rectom.errors import DataError
from rectom.results.folder import RunFolder

MEND: Final = "run the same command again to mend it"

M = TypeVar("M", bound=BaseModel)


def manifest(run: RunFolder, model: type[M], then: str) -> tuple[Mapping[str, Any], M]:
    """The manifest of a finished run as it is, and as far as it is checked.

    Raises DataError if there is no run; if it is not finished, with what may be done `then`; or if it is damaged.
    """
    raw = run.manifest()
    if (state := raw.get("state", "damaged")) != "finished":
        again = f"rectom resume {run.folder.name} gives it again"
        raise DataError(f"{run.folder} is not finished but {state}: run its command to the end{then} ({again})")
    with mending(run.folder / "manifest.json"):
        told = model.model_validate(raw)
    return raw, told


@contextmanager
def mending(path: Path) -> Iterator[None]:
    """Turn whatever is found wrong with a file of a run into a DataError that says how to mend it."""
    try:
        yield
    except ValidationError as error:
        fault = error.errors()[0]
        raise DataError(f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}; {MEND}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; {MEND}") from None
    except DataError as error:
        raise DataError(f"{error}; {MEND}") from None
