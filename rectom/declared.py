"""What people declare in TOML files, read and checked; what is wrong is told in one line that names file and field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

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
        if fault["type"] == "extra_forbidden":
            words += f"; there are {', '.join(_keys(model, fault['loc'][:-1]))}"
        raise SettingsError(f"{where}: {place}: {words}") from None


def _keys(kind: Any, place: Sequence[int | str]) -> list[str]:
    """The keys that a model takes, or a table at a place within it."""
    for step in place:
        fields = getattr(kind, "model_fields", None)
        kind = _by_key(fields)[step].annotation if fields else get_args(kind)[-1]  # of a list, or of named tables
        while get_origin(kind) in {Annotated, Union, UnionType}:
            kind = get_args(kind)[0]
    return list(_by_key(kind.model_fields))


def _by_key(fields: Mapping[str, FieldInfo]) -> dict[Any, FieldInfo]:
    return {field.alias or name: field for name, field in fields.items()}
