"""What people declare in TOML files, read and checked; what is wrong is told in one line that names file and field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rectom.errors import SettingsError

T = TypeVar("T", bound=BaseModel)


def read_toml(file: Path) -> Mapping[str, Any]:
    """What a file holds. Raises SettingsError if it cannot be read, or is no TOML."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {why}") from None
    return parse(text, str(file))


def parse(text: str, where: str) -> Mapping[str, Any]:
    """TOML from `where`. Raises SettingsError if it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, tables within tables
        raise SettingsError(f"{where} is not TOML: {error}") from None


def validate(model: type[T], data: Mapping[str, Any], where: str) -> T:
    """The data as a model. Raises SettingsError with the first field that is wrong."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        words = "Input should be a table" if fault["type"] == "model_type" else fault["msg"]
        raise SettingsError(f"{where}: {place}: {words}") from None
