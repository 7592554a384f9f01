from __future__ import annotations

from pathlib import Path

import pytest

from flows.serving import Serving, check
from rectom.errors import SettingsError


def test_the_arguments_of_the_program_are_read_back(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "model.q4.gguf", 3, 8192, 9000, 2)
    assert serving.name == "model.q4"
    assert Serving.from_arguments(serving.arguments()) == Serving(serving.file, 3, 8192, 9000, 2, "model.q4")


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "cannot read .*No such file"), (b"", "is not a GGUF file"), (b"PK\x03\x04", "is not a")],
)
def test_what_is_no_file_of_weights_is_said(content: bytes | None, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=fault):
        check(file)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(SettingsError, match=r"pip install 'rectom\[local\]'"):
        check(file)
