from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import prefect_server as ours
from rectom.errors import SettingsError
from tests.fake_openai import FakeOpenAI
from tests.laboratory import (
    PrefectServer,
    call,
    execute,
    serving,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without a server, in an environment that is put back."""
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "RECTOM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECTOM_HOME", str(tmp_path))
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def note(home: Path, text: str) -> Path:
    file = home / "prefect" / "server.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_prefect_keeps_its_data_under_our_home_and_tells_nobody(home: Path) -> None:
    found = ours.environment()
    assert found["PREFECT_HOME"] == str(home / "prefect")
    assert Path(found["PREFECT_LOCAL_STORAGE_PATH"]).is_relative_to(home)
    assert (found["PREFECT_SERVER_ANALYTICS_ENABLED"], found["DO_NOT_TRACK"]) == ("false", "1")
    assert int(found["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"]) >= 120


def test_what_the_user_has_set_stands(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "INFO")
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere/api")
    ours.prepare()
    assert os.environ["PREFECT_LOGGING_LEVEL"] == "INFO"
    assert os.environ["PREFECT_API_URL"] == "http://elsewhere/api"
    assert os.environ["DO_NOT_TRACK"] == "1"
    assert (home / "prefect").is_dir()


@pytest.mark.usefixtures("home")
def test_how_to_log_is_not_read_from_our_home(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Path(ours.environment()["PREFECT_LOGGING_SETTINGS_PATH"])
    assert found.parts[-3:] == ("prefect", "logging", "logging.yml")
    assert found.is_file()
    assert ours._child_environment("http://127.0.0.1:1/api")["PREFECT_LOGGING_SETTINGS_PATH"] == str(found)
    monkeypatch.setenv("PREFECT_LOGGING_SETTINGS_PATH", "/theirs.yml")
    ours.prepare()
    assert os.environ["PREFECT_LOGGING_SETTINGS_PATH"] == "/theirs.yml"


def test_without_a_server_none_is_used(home: Path) -> None:
    ours.prepare()
    assert "PREFECT_API_URL" not in os.environ


NOTES = ["", "no json", "[]", "{}", '{"pid": "x", "port": "y"}', '{"pid": 1, "port": null}']


@pytest.mark.parametrize("text", NOTES)
def test_a_note_that_makes_no_sense_is_no_server(home: Path, text: str) -> None:
    note(home, text)
    assert ours.status() is None
    assert ours.stop() is False


def test_a_note_of_a_server_that_is_gone_is_cleared_away(home: Path) -> None:
    file = note(home, json.dumps({"pid": 2**22 - 1, "port": ours.free_port()}))
    assert ours.status() is None
    assert ours.stop() is False
    assert not file.exists()


def test_a_process_that_got_the_pid_since_is_left_alone(home: Path) -> None:
    port = ours.free_port()
    other = subprocess.Popen(["sleep", "60"])
    try:
        note(home, json.dumps({"pid": other.pid, "port": port}))
        assert ours.stop() is False
        assert other.poll() is None
        # Not even this one, in whose command line the word may well occur.
        note(home, json.dumps({"pid": os.getpid(), "port": port}))
        assert ours.stop() is False
    finally:
        other.kill()
        other.wait()


def test_a_server_that_is_something_else_is_none(home: Path) -> None:
    with serving(FakeOpenAI()) as server:
        note(home, json.dumps({"pid": os.getpid(), "port": server.port}))
        assert ours.status() is None


def test_a_server_does_not_get_the_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere/api")
    found = ours._child_environment("http://127.0.0.1:1/api")
    assert "sk-planted" not in found.values()
    assert "http://elsewhere/api" not in found.values()


def test_stop_and_status_without_a_server_say_so(home: Path) -> None:
    stopped, status = (call("server", name, RECTOM_HOME=str(home)) for name in ("stop", "status"))
    assert (stopped.status, stopped.out) == (1, "no server was running\n")
    assert status.status == 1
    assert "start one with: rectom server start" in status.out


@pytest.mark.prefect
def test_a_port_that_is_taken_is_said_in_one_line(home: Path) -> None:
    with serving(FakeOpenAI()) as taken:
        ended = execute("server", "start", "--port", taken.port, RECTOM_HOME=str(home))
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert f"something listens at port {taken.port} already" in ended.errors[0]
    assert not (home / "prefect" / "server.json").exists()


@pytest.mark.prefect
def test_a_server_that_runs_is_found_and_no_second_is_started(
    prefect_server: PrefectServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = call("server", "status", RECTOM_HOME=str(prefect_server.home))
    assert (status.status, status.out) == (0, f"{prefect_server.url}\n")
    second = call("server", "start", RECTOM_HOME=str(prefect_server.home))
    assert second.status == 1
    assert second.errors == [f"rectom: a server runs already at {prefect_server.url}; stop it with: rectom server stop"]
    monkeypatch.setenv("RECTOM_HOME", str(prefect_server.home))
    with pytest.raises(SettingsError, match="runs already"):
        ours.start()
    ours.prepare()
    assert os.environ["PREFECT_API_URL"] == f"{prefect_server.url}/api"
