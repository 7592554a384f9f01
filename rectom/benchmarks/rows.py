"""The rows of benchmark files, checked: every fault is named with the file and the row."""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from rectom.errors import DataError

M = TypeVar("M", bound=BaseModel)

#: A row with its number in the file, from 1.
Numbered = tuple[int, Any]


def text_of(data: bytes, file: str) -> str:
    """The text of a file, which is UTF-8. Raises DataError, with the place, if it is not."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text (byte {error.start}): is it the right file?") from None


def json_of(data: bytes, file: str) -> Any:
    """The JSON value of a file."""
    try:
        return orjson.loads(data.removeprefix(BOM_UTF8))
    except orjson.JSONDecodeError as error:
        raise DataError(f"{file} is not JSON: {error}; is it the right file?") from None


def json_lines(data: bytes, file: str) -> Iterator[Numbered]:
    """The JSON values of a file that holds one a line; empty lines are skipped."""
    for number, line in enumerate(data.removeprefix(BOM_UTF8).splitlines(), 1):
        if line.strip():
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise DataError(f"{file}, row {number}: not JSON ({error})") from None


def table(data: bytes, file: str, delimiter: str = ",") -> Iterator[Numbered]:
    """The rows of a delimited file as lists of cells, the header (if any) included."""
    try:
        yield from enumerate(csv.reader(io.StringIO(text_of(data, file), newline=""), delimiter=delimiter), 1)
    except csv.Error as error:
        raise DataError(f"{file} is not a {delimiter!r}-separated table: {error}") from None


def records(
    data: bytes, file: str, columns: Iterable[str], delimiter: str = ","
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a delimited file with a header, as mappings. Raises DataError if a column is missing."""
    rows = table(data, file, delimiter)
    header: list[str] = next(rows, (1, []))[1]
    if missing := [column for column in columns if column not in header]:
        raise DataError(f"{file} has no column {missing[0]!r}; it has {', '.join(header) or 'none'}")
    for number, cells in rows:
        if not cells:  # an empty line, as at the end of many files
            continue
        if len(cells) != len(header):
            raise DataError(f"{file}, row {number}: {len(cells)} cells where the header has {len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def checked(model: type[M], row: object, file: str, number: int) -> M:
    """A row as an instance of its model. Raises DataError with the row's number and the first wrong field."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "the row"
        raise DataError(f"{file}, row {number}: {place}: {fault['msg']}") from None
