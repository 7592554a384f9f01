"""The tables of finished runs, results and calls, for other programs: CSV, Parquet, and a folder for `datasets`.

A file is there as a whole or not at all. CSV is what spreadsheets open, so a text that one of them would run as a
formula begins with an apostrophe there, and what cannot be printed is a blank; Parquet holds every text as it is.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
from pydantic import BaseModel

from rectom.errors import SettingsError
from rectom.printable import printable_text
from rectom.results.dataset_card import DATA_FILES, dataset_card
from rectom.results.exported import Answer, Asked, Exported, Said
from rectom.whole import replacing

_TABLES: Final = ("results", "calls")

#: What spreadsheets take for the beginning of a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

#: Rows that are held in memory together, and in one row group of a Parquet file.
_GROUP: Final = 2000

_Write: TypeAlias = Callable[[Path, type[BaseModel], Iterable[BaseModel]], None]


def export_csv(runs: Sequence[Exported], out: Path) -> list[Path]:
    """Write `results.csv` and `calls.csv` into a folder. Cells that hold lists are JSON; an empty cell is no value.

    Raises DataError if a run is damaged, SettingsError if there is no room.
    """
    files = {name: out / f"{name}.csv" for name in _TABLES}
    _export(runs, files, _write_csv)
    return list(files.values())


def export_parquet(runs: Sequence[Exported], out: Path) -> list[Path]:
    """Write `results.parquet` and `calls.parquet` into a folder. Raises as `export_csv` does, and without pyarrow."""
    _pyarrow()  # before a folder is made
    files = {name: out / f"{name}.parquet" for name in _TABLES}
    _export(runs, files, _write_parquet)
    return list(files.values())


def export_dataset(runs: Sequence[Exported], out: Path) -> list[Path]:
    """Write a folder that `datasets.load_dataset` reads, with the configurations `results` and `calls`.

    `calls` is left out where no model was asked, since `datasets` opens no empty table. Raises as `export_parquet`.
    """
    _, pq = _pyarrow()
    files = {name: out / DATA_FILES[name] for name in _TABLES}
    _export(runs, files, _write_parquet)
    for name in _TABLES:
        if not pq.read_metadata(files[name]).num_rows:
            files.pop(name).unlink()
    with whole(out / "README.md") as file:
        file.write_text(dataset_card(runs, list(files)), "utf-8")
    return [out / "README.md", *files.values()]


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Write a file under the name that is given, which becomes `path` when it is complete; makes the folder.

    Raises SettingsError if there is no room.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            yield part
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}; make room or choose another --out") from None


def _export(runs: Sequence[Exported], files: Mapping[str, Path], write: _Write) -> None:
    """Write both tables; none is there before both are complete."""
    with whole(files["results"]) as results, whole(files["calls"]) as calls:
        write(results, Answer, (answer for run in runs for answer, _ in run.answers()))
        write(calls, Asked, chain.from_iterable(run.calls() for run in runs))


def _write_csv(path: Path, model: type[BaseModel], rows: Iterable[BaseModel]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # Lines end as RFC 4180 says: then a carriage return within a text is quoted, too.
        writer = csv.writer(file)
        writer.writerow(model.model_fields)
        writer.writerows(map(_cell, row.model_dump().values()) for row in rows)


def _cell(value: Any) -> Any:
    """A value as a cell: a list as JSON, a time in ISO 8601, a text without the power to be a formula."""
    if isinstance(value, str):
        text = printable_text(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return printable_text(orjson.dumps(value).decode())
    return value.isoformat() if isinstance(value, datetime) else value


def _write_parquet(path: Path, model: type[BaseModel], rows: Iterable[BaseModel]) -> None:
    pa, pq = _pyarrow()
    schema, left = _schema(pa, model), iter(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := [row.model_dump() for row in islice(left, _GROUP)]:
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


def _pyarrow() -> tuple[Any, Any]:
    """The library of Parquet files, which not everybody has, and its module for them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SettingsError("Parquet files need pyarrow: pip install 'rectom[export]', or export --to csv") from None
    return pa, pq


def _schema(pa: Any, model: type[BaseModel]) -> Any:
    """The columns of a table: the fields of its rows, each with the type that it is declared with."""
    said = pa.struct([pa.field(name, pa.string()) for name in Said.model_fields])
    types: dict[Any, Any] = {
        str: pa.string(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        datetime: pa.timestamp("ms", tz="UTC"),
        list[str]: pa.list_(pa.string()),
        list[Said]: pa.list_(said),
    }
    types |= {declared | None: kind for declared, kind in types.items()}
    return pa.schema([pa.field(name, types[field.annotation]) for name, field in model.model_fields.items()])
