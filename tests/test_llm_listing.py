from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from rectom.llm import listing
from rectom.llm.listing import list_models
from tests.fault_server import FaultServer

KEY = "planted-0123456789-secret"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def listed(answer: Answer, key: str | None = KEY) -> list[str]:
    app = web.Application()
    app.router.add_get("/v1/models", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return await list_models(f"http://127.0.0.1:{runner.addresses[0][1]}", key)
    finally:
        await runner.cleanup()


async def test_the_names_are_sorted() -> None:
    async with FaultServer() as server:
        assert await list_models(server.url, None) == ["large", "small"]


async def test_the_key_is_shown_to_the_server_and_to_nobody_else() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": request.headers["Authorization"]}]})

    assert await listed(answer) == ["Bearer [key]"]


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"data": 3}', b'{"data": [3, {}]}', b'{"error": "no"}'])
async def test_what_is_no_list_names_none(body: bytes) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    assert await listed(answer) == []


async def test_a_server_that_refuses_names_none() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]}, status=403)

    assert await listed(answer) == []


async def test_a_list_without_end_is_not_read_on() -> None:
    pieces = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal pieces
        response = web.StreamResponse()
        await response.prepare(request)
        for pieces in range(64):  # noqa: B007  looked at when all is over
            await response.write(b" " * 2**20)
        await response.write(b'{"data": [{"id": "m"}]}')
        return response

    assert await listed(answer) == []
    assert pieces < 63


async def test_a_server_that_drips_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_PATIENCE_S", 0.2)
    left = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not left.is_set():
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    async with asyncio.timeout(30):
        assert await listed(answer) == []


async def test_a_redirect_is_not_followed() -> None:
    async with FaultServer() as other:

        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{other.url}/models"})

        assert await listed(answer) == []
