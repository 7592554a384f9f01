from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest

from rectom.errors import DataError, SettingsError
from rectom.results import export
from rectom.results.export import export_csv, export_dataset, export_parquet, whole
from rectom.results.exported import Exported
from rectom.results.folder import RunFolder
from tests import viewers
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Lab, serving, write_stories
from tests.test_exported import CALL, reply, write_asked_run
from tests.test_finished import answer, asked


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> list[Exported]:
    """A run whose model errs, and one of the same questions by rule."""
    folder = tmp_path_factory.mktemp("night")
    with serving(FakeOpenAI(wrong="observe_states")) as server:
        lab = Lab(folder, write_stories(folder), server)
        done = [lab.run(), lab.run(model="rules", readers={})]
    return [Exported.read(one.report.parent) for one in done]


@pytest.fixture
def odd(tmp_path: Path) -> Exported:
    """A run of two questions and a call, with texts as no table likes them."""
    outcomes = [answer(0, gold='=HYPERLINK("http://x","box")', predicted="-3"), answer(1, False, predicted=None)]
    traces = [asked(outcomes[0], lines=['He said "no".\r\nÄ, 心'], calls=[CALL]), asked(outcomes[1], chain=[])]
    return Exported.read(write_asked_run(tmp_path / "odd", outcomes, traces, [reply("k0", "a\rb\0c")]))


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


# CSV.


def test_csv_has_every_field_of_every_row(night: list[Exported], tmp_path: Path) -> None:
    results, calls = export_csv(night, tmp_path / "out")
    assert (results.name, calls.name) == ("results.csv", "calls.csv")
    answers = [row for run in night for row, _ in run.answers()]
    for cells, row in zip(rows_of(results), answers, strict=True):
        assert list(cells)[:4] == ["run", "model", "method", "benchmark"]
        assert list(cells) == list(type(row).model_fields)
        assert json.loads(cells["story"]) == row.story
        assert (cells["correct"], cells["order"]) == (str(row.correct).lower(), str(row.order))
    assert len({(cells["run"], cells["id"]) for cells in rows_of(results)}) == len(answers)
    for cells, call in zip(rows_of(calls), night[0].calls(), strict=True):
        assert json.loads(cells["messages"]) == [said.model_dump() for said in call.messages]
        assert (cells["text"], cells["latency_s"]) == (call.text, str(call.latency_s))
        assert call.at is not None
        assert cells["at"] == call.at.isoformat()


def test_csv_keeps_odd_texts_apart_and_makes_no_formulas(odd: Exported, tmp_path: Path) -> None:
    first, second = rows_of(export_csv([odd], tmp_path / "out")[0])
    assert (first["gold"], first["predicted"]) == ('\'=HYPERLINK("http://x","box")', "'-3")
    assert json.loads(first["story"]) == ['He said "no".\r\nÄ, 心']
    assert (second["predicted"], second["chain"], first["chain"]) == ("", "[]", "")
    [call] = rows_of(tmp_path / "out" / "calls.csv")
    assert (call["text"], call["at"]) == ("a\rb c", "2026-01-02T03:04:10.500000+00:00")


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\tx", "\rx"])
def test_no_text_begins_as_a_formula_in_csv(text: str) -> None:
    assert export._cell(text) == f"'{text}"
    assert export._cell(-1) == -1


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\0", "\x7f", "\x9b", "\u202e", "\u2028"])
def test_no_cell_tells_a_terminal_anything(sign: str) -> None:
    assert export._cell(f"Ä,\n\t心{sign}[2J") == "Ä,\n\t心 [2J"
    assert sign not in export._cell([f"{sign}[2J"])
    assert export._cell(f"{sign}=1") == " =1"


# Parquet.


def test_parquet_is_typed_and_exact(night: list[Exported], odd: Exported, tmp_path: Path) -> None:
    results, calls = export_parquet([*night, odd], tmp_path / "out")
    table = pq.read_table(results)
    assert table.to_pylist() == [row.model_dump() for run in [*night, odd] for row, _ in run.answers()]
    asked_for = ("run", "order", "correct", "story", "fault_line")
    assert [str(table.schema.field(name).type) for name in asked_for] == [
        "string",
        "int64",
        "bool",
        "list<element: string>",
        "int64",
    ]
    table = pq.read_table(calls)
    assert table.to_pylist() == [call.model_dump() for run in [*night, odd] for call in run.calls()]
    assert str(table.schema.field("at").type) == "timestamp[ms, tz=UTC]"
    assert str(table.schema.field("latency_s").type) == "double"
    column = pq.ParquetFile(results).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_parquet_is_written_in_groups(night: list[Exported], tmp_path: Path) -> None:
    with mock.patch.object(export, "_GROUP", 5):
        results, _ = export_parquet(night[:1], tmp_path / "out")
    groups = pq.ParquetFile(results).metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [5, 5, 2]


def test_without_pyarrow_the_error_says_what_to_install(odd: Exported, tmp_path: Path) -> None:
    with mock.patch.dict(sys.modules, {"pyarrow": None}):
        with pytest.raises(SettingsError, match=r"need pyarrow: pip install 'rectom\[export\]'"):
            export_parquet([odd], tmp_path / "out")
        assert not (tmp_path / "out").exists()
        assert export_csv([odd], tmp_path / "csv")


# Whole files.


def test_neither_table_is_there_if_one_cannot_be_written(odd: Exported, tmp_path: Path) -> None:
    RunFolder(odd.folder.folder).write_calls([])
    out = tmp_path / "out"
    for write in (export_csv, export_parquet):
        with pytest.raises(DataError, match="does not keep 1 of its calls"):
            write([odd], out)
        assert not list(out.iterdir())


def test_what_was_there_stays_until_the_new_file_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.txt"
    with whole(file) as part:
        part.write_text("old")
    with pytest.raises(UnicodeEncodeError), whole(file) as part:
        part.write_text("ne\N{SNOWMAN}", "ascii")
    assert ([found.name for found in file.parent.iterdir()], file.read_text()) == (["b.txt"], "old")


def test_a_place_that_cannot_be_written_is_named(odd: Exported, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"cannot write .*results.csv: .*; make room or choose another --out"):
        export_csv([odd], tmp_path / "file")


# A folder for datasets.

_LOAD = """
import json, sys
from datasets import load_dataset
told = {}
for name in ("results", "calls"):
    rows = load_dataset(sys.argv[1], name)["test"]
    told[name] = [rows.num_rows, {column: str(rows.features[column]) for column in rows.column_names}]
answers = load_dataset(sys.argv[1])["test"]
told["right"], told["last"] = sum(answers["correct"]), {**answers[-1]}
told["reply"] = load_dataset(sys.argv[1], "calls")["test"][0]["text"]
print(json.dumps(told))
"""


def test_datasets_opens_the_folder(night: list[Exported], tmp_path: Path) -> None:
    files = export_dataset(night, tmp_path / "out")
    assert all(file.is_file() for file in files)
    told = viewers.ask(tmp_path, _LOAD, tmp_path / "out")
    answers, calls = [row for run in night for row, _ in run.answers()], list(night[0].calls())
    assert (told["results"][0], told["calls"][0]) == (len(answers), len(calls))
    assert told["right"] == sum(run.correct for run in night) < len(answers)
    assert told["last"] == answers[-1].model_dump()
    assert told["reply"] == calls[0].text
    assert told["results"][1]["story"] == "List(Value('string'))"
    assert told["calls"][1]["at"] == "Value('timestamp[ms, tz=UTC]')"


def test_datasets_opens_a_run_without_calls(night: list[Exported], tmp_path: Path) -> None:
    files = export_dataset(night[1:], tmp_path / "out")
    assert [file.name for file in files] == ["README.md", "results-00000.parquet"]
    assert "config_name: calls" not in files[0].read_text("utf-8")
    assert not (tmp_path / "out" / "data" / "calls-00000.parquet").exists()
    count = 'import json, sys, datasets; print(json.dumps(datasets.load_dataset(sys.argv[1])["test"].num_rows))'
    assert viewers.ask(tmp_path, count, tmp_path / "out") == night[1].questions
