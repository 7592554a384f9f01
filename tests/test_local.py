"""Models from files, with a stand-in for llama.cpp that answers over HTTP as the scripted model does."""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from flows.local import revision, started
from flows.serving import Serving
from rectom.errors import SettingsError
from tests.laboratory import Ended, execute, finish, spawn

#: What stands in for the library: a scripted model in a thread, at the address that it is told.
LIBRARY = """
import asyncio, os, threading, time
from types import SimpleNamespace
from tests.fake_openai import FakeOpenAI

class CommonParams(SimpleNamespace):
    def __init__(self):
        threads = {name: SimpleNamespace(n_threads=0) for name in ("cpuparams", "cpuparams_batch")}
        super().__init__(model=SimpleNamespace(path=""), **threads)

class Server:
    def __init__(self, params):
        if "broken" in params.model.path:
            raise RuntimeError("no weights")
        if "slow" in params.model.path:
            time.sleep(600)
        self.fake, loop = FakeOpenAI(any_model=True, port=params.port), asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self.fake.__aenter__(), loop).result()
        self.listening_address = f"http://127.0.0.1:{self.fake.port}"
        if "short" in params.model.path:
            threading.Timer(1.0, os._exit, [9]).start()
"""


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "xllamacpp.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path / "library")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'library'}:{Path(__file__).parent.parent}")
    monkeypatch.setenv("RECTOM_HOME", str(tmp_path / "home"))
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF and weights")
    return file


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/models", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def test_a_file_is_served_while_it_is_needed(weights: Path) -> None:
    with started(Serving(weights)) as server:
        address = server.address()
        assert answers(address)
    assert not answers(address)


def test_what_cannot_be_served_points_to_the_log(weights: Path, tmp_path: Path) -> None:
    broken = weights.rename(weights.with_name("broken.gguf"))
    with (
        pytest.raises(SettingsError, match=r"cannot be served \(exit status 1\); see .*broken\.log"),
        started(Serving(broken)) as server,
    ):
        server.address()
    assert "no weights" in (tmp_path / "home" / "local" / "broken.log").read_text()


def test_a_server_that_ends_is_told(weights: Path, tmp_path: Path) -> None:
    ours = {"PYTHONPATH": os.environ["PYTHONPATH"], "RECTOM_HOME": str(tmp_path / "home")}
    ended = finish(spawn("serve", weights.rename(weights.with_name("short.gguf")), "--port", 0, **ours))
    assert ended.status == 1
    assert "rectom: the server of the model ended (exit status 9); see " in ended.err


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_what_loads_a_model_can_be_ended_meanwhile(weights: Path, tmp_path: Path, command: str) -> None:
    ours = {"PYTHONPATH": os.environ["PYTHONPATH"], "RECTOM_HOME": str(tmp_path / "home")}
    model = f"local:{weights.rename(weights.with_name('slow.gguf'))}"
    file = tmp_path / "night.toml"
    file.write_text(f'models = ["{model}"]\nmethods = ["direct"]\nbenchmarks = ["fresh/small"]\n')
    given = [file] if command == "sweep" else ["fresh", "--model", model]
    process = spawn(command, *given, "--plain", "--runs", tmp_path / "runs", **ours)
    deadline = time.monotonic() + 30
    while not (tmp_path / "home" / "local" / "slow.log").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert finish(process).status == 130


def test_the_revision_is_that_of_the_content(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF and other weights")
    assert len(revision(weights)) == 16
    assert revision(weights) != revision(other)
    with pytest.raises(SettingsError, match=r"cannot read .*; give a GGUF file, or local:qwen2.5-coder-1.5b, local:"):
        revision(tmp_path / "missing.gguf")


def test_a_run_serves_its_file_and_keeps_the_replies_by_what_is_in_it(weights: Path, tmp_path: Path) -> None:
    def sent(name: str) -> int:
        """How many calls a run of a name sends."""
        asked = ("run", "fresh", "--limit", 5, "--model", f"local:{weights}", "--plain", "--json", "--name", name)
        path, home = os.environ["PYTHONPATH"], str(tmp_path / "home")
        done = execute(*asked, "--runs", tmp_path / "runs", PYTHONPATH=path, RECTOM_HOME=home)
        assert (done.status, done.line["correct"]) == (0, 5), done.err
        calls: int = done.line["calls"]["sent"]
        return calls

    first = sent("first")
    assert first > 0
    assert sent("again") == 0
    weights.write_bytes(b"GGUF and newer weights")
    assert sent("newer") == first


def test_replies_of_known_weights_are_replayed_where_the_file_is_not(weights: Path, tmp_path: Path) -> None:
    file = tmp_path / "share" / "rectom" / "models" / "known.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(weights.read_bytes())
    declared = {"file": "known.gguf", "address": "http://localhost/known.gguf", "licence": "MIT"}
    declared["sha256"] = sha256(file.read_bytes()).hexdigest()
    (tmp_path / "config" / "rectom").mkdir(parents=True)
    lines = [f'{name} = "{value}"' for name, value in declared.items()]
    text = "\n".join(["[weights.known]", *lines, f"size = {file.stat().st_size}"])
    (tmp_path / "config" / "rectom" / "models.toml").write_text(text)
    places: dict[str, Any] = {"XDG_DATA_HOME": str(tmp_path / "share"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    places |= {"PYTHONPATH": os.environ["PYTHONPATH"], "RECTOM_HOME": str(tmp_path / "home")}

    def run(name: str, limit: int) -> Ended:
        asked = ("run", "fresh", "--limit", limit, "--model", "local:known", "--plain", "--json", "--name", name)
        return execute(*asked, "--runs", tmp_path / "runs", **places)

    here = run("here", 5)
    assert (here.status, here.line["model"], here.line["correct"]) == (0, "known", 5), here.err
    file.unlink()
    gone = run("gone", 5)
    assert (gone.status, gone.line["correct"], gone.line["calls"]["sent"]) == (0, 5, 0), gone.err
    more = run("more", 7)
    assert more.status != 0
    assert "known.gguf is not on this machine, and not every reply is in the store" in more.err


def test_a_server_ends_with_the_program_that_it_is_for(weights: Path, tmp_path: Path) -> None:
    ours = {"PYTHONPATH": os.environ["PYTHONPATH"], "RECTOM_HOME": str(tmp_path / "home")}
    process = spawn("serve", weights, "--port", 0, **ours)
    assert process.stdout
    address = process.stdout.readline().split()[-1]
    assert answers(address)
    process.send_signal(signal.SIGKILL)
    finish(process)
    deadline = time.monotonic() + 10
    while answers(address) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not answers(address)
