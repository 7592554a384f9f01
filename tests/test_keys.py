from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flows import evaluate, local, prefect_server
from flows.keys import withheld, without_keys
from rectom.llm.catalogue import config_folder

KEYS = dict.fromkeys(["OPENAI_API_KEY", "GEMINI_API_KEY", "VLLM_API_KEY", "MINE_API_KEY"], "planted")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a model whose key's name shows nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RECTOM_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.toml").write_text('[models.one]\nname = "one"\nkey = "HF_TOKEN"\n')
    return tmp_path


def test_keys_are_left_out_and_nothing_else_is() -> None:
    rest = {"PATH": "/bin", "HF_HOME": "/models", "API_KEYS": "none"}
    assert without_keys({**KEYS, **rest, "HF_TOKEN": "planted"}) == rest


def test_the_keys_of_every_file_are_left_out() -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "models.toml").write_text('[models.one]\nname = "one"\nkey = "THEIRS"\n')
    assert without_keys({"THEIRS": "planted", "HF_TOKEN": "planted"}) == {}


@pytest.mark.parametrize(
    "text",
    [
        '[models.one]\nname = "one"\nkey = "HF_TOKEN"\nprice = 1\n',
        '[models.one]\nname = "one"\napi-key="HF_TOKEN"\n',
        "[models\none = { name = 'one', key = 'HF_TOKEN' }",
        '\udcff[models.one]\n"key" = "HF_TOKEN"\n',
    ],
)
def test_a_file_that_is_wrong_keeps_no_program_from_starting_and_gives_it_no_key(here: Path, text: str) -> None:
    (here / "models.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert without_keys({**KEYS, "HF_TOKEN": "planted", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_file_that_cannot_be_read_keeps_no_program_from_starting(here: Path) -> None:
    (here / "models.toml").unlink()
    (here / "models.toml").mkdir()
    assert without_keys({**KEYS, "PATH": "/bin"}) == {"PATH": "/bin"}


def test_programs_that_outlive_a_step_get_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, "HF_TOKEN"]:
        monkeypatch.setenv(name, "planted")
    for given in (local._environment(), prefect_server._child_environment("http://127.0.0.1:1/api")):
        assert "planted" not in given.values()
        assert "PATH" in given


def test_keys_are_gone_while_they_are_withheld_and_back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, "HF_TOKEN"]:
        monkeypatch.setenv(name, "planted")
    before = dict(os.environ)
    with withheld():
        assert "planted" not in os.environ.values()
        assert "PATH" in os.environ
    assert dict(os.environ) == before
    with suppress(KeyboardInterrupt), withheld():
        raise KeyboardInterrupt
    assert dict(os.environ) == before


def test_git_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []

    def run(*_: object, env: dict[str, str] | None = None, **__: Any) -> Any:
        given.append(dict(os.environ) if env is None else env)
        raise OSError

    monkeypatch.setenv("HF_TOKEN", "planted")
    monkeypatch.setattr(subprocess, "run", run)
    assert evaluate._revision.__wrapped__() is None
    assert [("planted" in one.values(), "PATH" in one) for one in given] == [(False, True)]
