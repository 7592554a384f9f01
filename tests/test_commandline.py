from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from flows.commandline import FILE, CommandLine
from flows.commands.run import command as run
from flows.commands.sweep import command as sweep
from flows.seal import FILE as SEAL
from rectom.errors import DataError, SettingsError
from tests.laboratory import environment
from tests.test_whole import full_disk, held

ADDRESS = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> Iterator[Path]:
    """A folder to give commands in, with nothing of RecToM's in the environment."""
    # Not with the tests' own monkeypatch, which would be undone after this and take from the environment what is back.
    with chdir(tmp_path), mock.patch.dict(os.environ, environment(), clear=True):
        yield tmp_path


def line(*words: str) -> CommandLine:
    with run.make_context("run", list(words)) as context:
        return CommandLine.of(context)


def params(words: tuple[str, ...]) -> dict[str, Any]:
    with run.make_context("run", list(words)) as context:
        return context.params


def test_the_words_of_a_command_mean_the_same_again(here: Path) -> None:
    words = ["hitom/cotp", "--model", "m", "--reader", "chain=rules", "--reader", "answer=rules", "--verify"]
    words += ["--permute", "names", "--seed", "7", "--temperature", "0.5", "--max-cost", "2.5", "--max-failures", "5%"]
    words += ["--data", "stories.json", "--plain", "--name", "-x"]
    kept = line(*words, "--json")
    given = params(tuple(words))
    assert params(kept.arguments) == {**given, "data": here / "stories.json"}
    assert (kept.name, kept.folder, kept.environment) == ("run", here, {})
    assert "--json" not in kept.arguments
    assert "--runs" not in kept.arguments  # what is not given stays as it is when nothing is given


def test_places_hold_in_any_folder(here: Path) -> None:
    kept = line("--data", "a", "--cache", "b", "--runs", "c", "--prices", "/d", "--transport", "batch-file:e")
    assert set(kept.arguments[1::2]) == {str(here / name) for name in "abc"} | {"/d", f"batch-file:{here / 'e'}"}
    with sweep.make_context("sweep", ["night.toml", "--plain"]) as context:
        assert CommandLine.of(context).arguments == (str(here / "night.toml"), "--plain")


def test_what_the_environment_says_is_kept_but_no_key(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"OPENAI_BASE_URL": ADDRESS, "RECTOM_CACHE": "store", "RECTOM_DATA": "/data", "RECTOM_HOME": "home"}
    for name, value in {**said, "OPENAI_API_KEY": "sk-planted", "VLLM_API_KEY": "sk-planted"}.items():
        monkeypatch.setenv(name, value)
    kept = line("hitom/cotp")
    assert kept.environment == said
    kept.keep(here)
    assert "planted" not in (here / FILE).read_text()
    assert not [option for option in run.params if "key" in (option.name or "")]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://me:planted@host:1/v1", "http://host:1/v1"),
        ("https://planted@host/v1?key=planted#planted", "https://host/v1"),
        ("HTTP://me:planted/?#@host/v1", "HTTP://host/v1"),
        (ADDRESS, ADDRESS),
    ],
)
def test_a_secret_in_an_address_is_not_kept(here: Path, given: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", given)
    command = line("--base-url", given)
    assert (command.arguments, command.environment) == (("--base-url", kept), {"OPENAI_BASE_URL": kept})
    assert "planted" not in str(command)


def test_an_address_at_which_nobody_can_ask_is_not_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (" https://me:planted@host/v1", "me:planted@host:8000/v1", "http://host:8000/v1 planted"):
        monkeypatch.setenv("OPENAI_BASE_URL", given)
        assert line("hitom/cotp").environment == {}


def test_it_comes_back_from_a_folder_and_only_its_owner_may_read_it(here: Path) -> None:
    kept = line("hitom/cotp", "--model", "m")
    kept.keep(here)
    line("hitom/cotp", "--model", "n").keep(here)
    kept.keep(here)
    assert CommandLine.kept(here) == kept
    assert sorted(path.name for path in here.iterdir()) == [FILE, SEAL]
    assert {stat.S_IMODE(path.stat().st_mode) for path in here.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"name": "run", "arguments": [], "folder": "/"}',
        '{"name": "rm", "arguments": ["--yes", "*"], "folder": "/", "environment": {}}',
        '{"name": "run", "arguments": [], "folder": "runs/gift", "environment": {}}',
        '{"name": "run", "arguments": [], "folder": "/", "environment": {"LD_PRELOAD": "/tmp/evil.so"}}',
    ],
)
def test_what_is_no_command_of_ours_is_not_taken(here: Path, text: str) -> None:
    (here / FILE).write_text(text)
    with pytest.raises(DataError, match=r"cannot be read \(it is damaged\): run the command again as it was begun"):
        CommandLine.kept(here)


def test_a_full_disk_is_told_and_not_kept_full(here: Path) -> None:
    line().keep(here)
    before = held(here)
    with full_disk(), pytest.raises(SettingsError, match=r"cannot write to .*; make room"):
        line("hitom/cotp", "--name", "x" * 1000).keep(here)
    assert held(here) == before


def test_a_folder_without_a_command_says_how_to_go_on(here: Path) -> None:
    with pytest.raises(DataError, match="does not hold its command: run it again as it was begun"):
        CommandLine.kept(here)
    (here / FILE).mkdir()
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        CommandLine.kept(here)
    with pytest.raises(SettingsError, match=r"cannot write to .*/nosuch: No such file or directory"):
        line().keep(here / "nosuch")


def test_a_place_whose_name_is_no_text_hinders_no_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = here / os.fsdecode(b"\xff")
    odd.mkdir()
    line("--data", str(odd / "stories.json")).keep(here)
    monkeypatch.chdir(odd)
    line().keep(here)
    assert list(here.iterdir()) == [odd]


def test_it_is_typed_with_its_environment() -> None:
    command = CommandLine("run", ("hitom/cotp", "--data", "my file"), Path("/"), {"RECTOM_CACHE": "a b"})
    assert str(command) == "RECTOM_CACHE='a b' rectom run hitom/cotp --data 'my file'"


def test_its_circumstances_are_as_they_were(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "RECTOM_CACHE", "RECTOM_HOME"):
        monkeypatch.setenv(name, "of now")
    (here / "there").mkdir()
    then = {"OPENAI_BASE_URL": ADDRESS, "RECTOM_DATA": "/data", "RECTOM_HOME": "home"}
    with CommandLine("run", (), here / "there", then).circumstances():
        assert Path.cwd() == here / "there"
        ours = ("OPENAI_BASE_URL", "RECTOM_CACHE", "RECTOM_DATA", "RECTOM_HOME")
        assert [os.environ.get(name) for name in ours] == ["of now", None, "/data", "home"]
    assert Path.cwd() == here
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    with CommandLine("run", (), here / "there", then).circumstances():
        assert os.environ["OPENAI_BASE_URL"] == ADDRESS
    moved = CommandLine("run", ("hitom/cotp",), here / "gone")
    with pytest.raises(DataError, match=r"gone is gone, .* begin it again where it shall go on: rectom run hitom/cotp"):
        moved.circumstances().__enter__()


def test_the_file_is_plain_json(here: Path) -> None:
    line("hitom/cotp").keep(here)
    assert json.loads((here / FILE).read_text()) == {
        "name": "run",
        "arguments": ["hitom/cotp"],
        "folder": str(here),
        "environment": {},
    }


@pytest.mark.parametrize("change", ["the command", "the seal", "no seal"])
def test_a_command_that_is_not_sealed_is_told_and_taken_only_on_trust(here: Path, change: str) -> None:
    line("hitom/cotp", "--base-url", ADDRESS).keep(here)
    if change == "the command":
        (here / FILE).write_text((here / FILE).read_text().replace("127.0.0.1", "evil"))
    elif change == "the seal":
        (here / SEAL).write_text("0" * 64 + "\n")
    else:
        (here / SEAL).unlink()
    with pytest.raises(
        DataError, match=r"is not sealed as yours: .* give --trust .*: rectom run hitom/cotp --base-url"
    ):
        CommandLine.kept(here)
    assert CommandLine.kept(here, trusted=True).arguments[:2] == ("hitom/cotp", "--base-url")
