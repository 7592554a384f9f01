from __future__ import annotations

from codecs import BOM_UTF8

import pytest
from pydantic import BaseModel, Field

from rectom.benchmarks.rows import checked, json_lines, json_of, records, table, text_of
from rectom.errors import DataError


class Row(BaseModel):
    name: str
    order: int = Field(ge=0)


def test_text_is_utf8_with_or_without_a_mark() -> None:
    assert text_of("ö".encode(), "f") == text_of(BOM_UTF8 + "ö".encode(), "f") == "ö"
    with pytest.raises(DataError, match=r"f is not UTF-8 text \(byte 1\): is it the right file\?"):
        text_of(b"a\xff", "f")


def test_json_is_one_value() -> None:
    assert json_of(b'{"a": 1}', "f") == json_of(BOM_UTF8 + b'{"a": 1}', "f") == {"a": 1}
    for data in (b"", b"{", b'{"a": NaN}', b'"\xff"', b"<html>"):
        with pytest.raises(DataError, match=r"f is not JSON: .*; is it the right file\?"):
            json_of(data, "f")


def test_json_lines_are_numbered_as_in_the_file() -> None:
    assert list(json_lines(BOM_UTF8 + b'{"a": 1}\r\n\n[2]\n', "f")) == [(1, {"a": 1}), (3, [2])]
    separator = "\u2028".encode()
    assert list(json_lines(b'"a' + separator + b'b"\n', "f")) == [(1, "a\u2028b")]
    with pytest.raises(DataError, match=r"f, row 2: not JSON \("):
        list(json_lines(b"1\n{\n", "f"))


def test_a_table_may_have_lines_in_its_cells() -> None:
    assert list(table(b'a;"b\nc"\nd;e\n', "f", ";")) == [(1, ["a", "b\nc"]), (2, ["d", "e"])]


def test_a_cell_that_never_ends_is_no_table() -> None:
    with pytest.raises(DataError, match="f is not a ','-separated table: field larger"):
        list(table(b'"' + b"a" * 200_000, "f"))


def test_records_have_the_header_as_keys() -> None:
    data = BOM_UTF8 + b"name,order,more\r\na,1,x\r\n\r\nb,2,y\r\n\n"
    assert list(records(data, "f", ["name", "order"])) == [
        (2, {"name": "a", "order": "1", "more": "x"}),
        (4, {"name": "b", "order": "2", "more": "y"}),
    ]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "f has no column 'name'; it has none"),
        (b"names,order\n", "f has no column 'name'; it has names, order"),
        (b"<!doctype html>\n", "f has no column 'name'; it has <!doctype html>"),
        (b"name,order\na,1\nb\n", "f, row 3: 1 cells where the header has 2"),
        (b"name,order\na,1,2\n", "f, row 2: 3 cells where the header has 2"),
    ],
)
def test_faulty_records_are_named(data: bytes, fault: str) -> None:
    with pytest.raises(DataError) as caught:
        list(records(data, "f", Row.model_fields))
    assert str(caught.value) == fault


def test_a_row_is_checked() -> None:
    assert checked(Row, {"name": "a", "order": "1"}, "f", 2) == Row(name="a", order=1)
    for row, fault in [
        ({"name": "a"}, "f, row 7: order: Field required"),
        ({"name": "a", "order": -1}, "f, row 7: order: Input should be greater than or equal to 0"),
        (["a", 1], "f, row 7: the row: Input should be a valid dictionary or instance of Row"),
    ]:
        with pytest.raises(DataError) as caught:
            checked(Row, row, "f", 7)
        assert str(caught.value) == fault
