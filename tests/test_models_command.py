from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.fake_openai import FakeOpenAI
from tests.laboratory import call, serving


class Capital(FakeOpenAI):
    """Knows the capital of France; takes reply schemas or does not."""

    takes = True
    says = "Paris"

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.takes and "response_format" in body:
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        return web.json_response(self._completion(body, f'{{"capital": "{self.says}"}}'))


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
    assert "far is not declared in models.toml" in ended.errors[0]
