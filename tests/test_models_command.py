from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from aiohttp import web

from flows.local import file_of
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, call, serving


class Capital(FakeOpenAI):
    """Knows the capital of France; takes reply schemas or does not."""

    takes = True
    says = "Paris"
    lists = "fake"

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.takes and "response_format" in body:
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        return web.json_response(self._completion(body, f'{{"capital": "{self.says}"}}'))

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.lists, "object": "model"}]})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Capital]:
    with serving(Capital()) as server:
        text = f'[models.near]\nname = "fake"\nbase_url = "{server.base_url}"\n'
        (tmp_path / "models.toml").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        yield server


@pytest.mark.usefixtures("server")
def test_the_declared_models_are_listed() -> None:
    ended = call("models")
    assert ended.status == 0
    assert {"gpt-5.4", "qwen3.5-27b", "near"} <= set(ended.out.splitlines())
    assert "prices     unknown" in ended.out


def test_an_endpoint_says_what_it_supports(server: Capital) -> None:
    ended = call("models", "check", "near")
    assert ended.status == 0
    assert "answers         rightly" in ended.out
    assert "reply schemas   json_schema" in ended.out
    assert "usage           told" in ended.out
    assert "models listed   fake" in ended.out


def test_a_terminal_obeys_nothing_that_a_server_says(server: Capital) -> None:
    server.lists = "fake\x1b[2J"
    assert "models listed   fake [2J\n" in call("models", "check", "near").out


def test_one_that_takes_no_schemas_is_found_out(server: Capital) -> None:
    server.takes = False
    assert "reply schemas   text" in call("models", "check", "near").out


def test_a_wrong_answer_is_no_success(server: Capital) -> None:
    server.says = "Lyon"
    ended = call("models", "check", "near")
    assert ended.status == 1
    assert "wrongly, or not in the form" in ended.out


@pytest.mark.usefixtures("server")
def test_a_model_that_is_not_declared_needs_an_address() -> None:
    ended = call("models", "check", "far")
    assert (ended.status, len(ended.errors)) == (1, 1)
    assert "no address of far is declared in models.toml" in ended.errors[0]


def test_an_address_in_the_environment_is_for_models_that_have_none(server: Capital) -> None:
    nobody = "http://127.0.0.1:9/v1"
    assert call("models", "check", "near", OPENAI_BASE_URL=nobody).status == 0
    assert call("models", "check", "fake", OPENAI_BASE_URL=server.base_url).status == 0
    assert call("models", "check", "near", "--base-url", nobody).status == 1


# Weights.

WEIGHTS = b"GGUF and some weights"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Declares `tiny`, which a server has, and `forged`, of which it has other bytes; gives the server's address."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "tiny.gguf").write_bytes(WEIGHTS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "shelf")))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    digests = {"tiny": sha256(WEIGHTS).hexdigest(), "forged": "0" * 64}
    (tmp_path / "models.toml").write_text("".join(declared(name, address, digest) for name, digest in digests.items()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield address
    server.shutdown()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


def declared(name: str, address: str, digest: str) -> str:
    fields = {"file": f"{name}.gguf", "address": f"{address}/tiny.gguf", "sha256": digest, "licence": "MIT"}
    lines = [f'{field} = "{value}"' for field, value in fields.items()]
    return "\n".join([f"[weights.{name}]", *lines, f"size = {len(WEIGHTS)}\n"])


@pytest.mark.usefixtures("shelf")
def test_weights_are_downloaded_checked_and_found_by_name(tmp_path: Path) -> None:
    missed = "tiny.gguf is not on this machine, and not every reply is in the store: rectom models get tiny"
    assert missed in asked("local:tiny").err
    assert "not here" in call("models").out
    ended = call("models", "get", "tiny")
    file = tmp_path / "share" / "rectom" / "models" / "tiny.gguf"
    assert (ended.status, ended.out.strip()) == (0, str(file))
    assert "to use it: --model local:tiny" in ended.err
    assert file.read_bytes() == WEIGHTS
    assert str(file) in call("models").out
    assert file_of("local:tiny") == file
    # Now it is served, or the library is missed that serves it.
    assert "not on this machine" not in asked("local:tiny").err


@pytest.mark.usefixtures("shelf")
def test_weights_in_another_folder_are_used_by_their_path(tmp_path: Path) -> None:
    ended = call("models", "get", "tiny", "--folder", tmp_path / "other")
    assert f"--model local:{tmp_path}/other/tiny.gguf" in ended.err
    assert (tmp_path / "other" / "tiny.gguf").read_bytes() == WEIGHTS


@pytest.mark.usefixtures("shelf")
def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    ended = call("models", "get", "forged")
    assert ended.status != 0
    assert "not the official file: the sha256 is" in ended.err
    assert "or elsewhere and give --model local:PATH" in ended.err
    assert not [*(tmp_path / "share").rglob("*.gguf")]


@pytest.mark.usefixtures("shelf")
def test_unknown_weights_are_an_error_that_lists_them() -> None:
    ended = call("models", "get", "none")
    assert ended.status != 0
    assert "no weights 'none' to download; there are qwen2.5-coder-1.5b, qwen2.5-coder-0.5b, tiny, forged" in ended.err


def asked(model: str) -> Ended:
    return call("run", "fresh", "--limit", "1", "--plain", "--model", model, "--max-calls", "0")


def test_nothing_of_a_file_steers_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = r"\u001b]0;taken\u0007\u009b2J"
    model = f'[models."{odd}"]\nname = "{odd}"\nbase_url = "{odd}"\n'
    weights = f'[weights."{odd}"]\nfile = "a.gguf"\naddress = "http://x"\nsize = 1\nlicence = "{odd}"\n'
    (tmp_path / "models.toml").write_text(f'{model}{weights}sha256 = "{"0" * 64}"\n')
    monkeypatch.chdir(tmp_path)
    ended = call("models")
    assert ended.status == 0
    assert ended.out.count("]0;taken") == 5
    assert {sign for sign in ended.out if not sign.isprintable()} == {"\n"}


def test_a_key_in_the_place_of_its_name_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.toml").write_text('[models.mine]\nname = "m"\nkey = "sk-live-planted"\n')
    monkeypatch.chdir(tmp_path)
    for words in (["models"], ["models", "check", "mine"], ["run", "fresh/small", "--model", "mine", "--plain"]):
        ended = call(*words)
        assert (ended.status, ended.out) == (1, "")
        assert "models.mine.key: " in ended.err
        assert "the name of the environment variable that holds the key" in ended.err
        assert "planted" not in ended.err
