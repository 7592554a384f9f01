from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from rectom.declared import parse, read_toml, validate
from rectom.errors import SettingsError

EXTRA = "Extra inputs are not permitted; there are"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    price: float


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"))
    name: str = ""
    inner: dict[str, Inner] = {}
    listed_too: list[Annotated[Inner, "noted"]] = []
    or_none: Inner | None = None


def test_a_file_is_read_as_its_model(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('name = "é"\n[inner.a]\nprice = 2\n', "utf-8")
    assert validate(Outer, read_toml(file), str(file)) == Outer(name="é", inner={"a": Inner(price=2.0)})


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, data: bytes | None, fault: str) -> None:
    file = tmp_path / "a.toml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(SettingsError) as refused:
        read_toml(file)
    assert str(refused.value) == f"cannot read {file}: {fault}"


@pytest.mark.parametrize("text", [f"a = {'[' * 2000}{']' * 2000}", f"a = {'9' * 5000}"])
def test_toml_that_python_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^here is not TOML: "):
        parse(text, "here")


def test_what_is_no_toml_names_its_place() -> None:
    with pytest.raises(SettingsError, match=r"^here is not TOML: .*line 2"):
        parse("a = 1\nb\nc = 2", "here")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"inner": {"a": {"price": "much"}}}, "here: inner.a.price: Input should be a valid number"),
        ({"nam": "a"}, "here: nam: Extra inputs are not permitted"),
        ({"inner": {"a": 3}}, "here: inner.a: Input should be a table"),
        ({"nam": "a"}, "here: nam: Extra inputs are not permitted; there are name, inner, listed-too, or-none"),
        ({"inner": {"name": {"prize": 1}}}, "here: inner.name.price: Field required"),
        ({"inner": {"name": {"price": 1, "date": 1}}}, f"here: inner.name.date: {EXTRA} price"),
        ({"listed-too": [{"price": 1, "date": 1}]}, f"here: listed-too.0.date: {EXTRA} price"),
        ({"or-none": {"price": 1, "date": 1}}, f"here: or-none.date: {EXTRA} price"),
    ],
)
def test_the_first_wrong_field_is_named(data: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as refused:
        validate(Outer, data, "here")
    assert str(refused.value).startswith(fault)
