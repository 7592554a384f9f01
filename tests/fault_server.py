"""An OpenAI-compatible server that misbehaves on purpose: over real HTTP, in the test's own loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Fault:
    """One way to answer: `latency` seconds, then what `how` says, or the reply made of the other fields.

    `how` is "reply", "hang" (never answers), "stall" (half the body, then silence), "reset" (breaks off in the middle
    of the body), "drip" (a byte every `latency` seconds) or "cut" (half the JSON, then a clean end).
    """

    how: str = "reply"
    status: int = 200
    text: str | None = None
    finish: str | None = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    body: bytes | None = None
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0


def error(status: int, words: str, code: str | None = None, **headers: str) -> Fault:
    """An OpenAI-style error; `headers` with _ for -."""
    body = orjson.dumps({"error": {"message": words, "type": "error", "param": None, "code": code}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(status=status, body=body, headers=named)


def says(text: str) -> Fault:
    return Fault(text=text)


OK = Fault()
HANG = Fault("hang")
STALL = Fault("stall")
RESET = Fault("reset")
CUT = Fault("cut")
DRIP = Fault("drip", latency=0.02)
HTML = Fault(body=b"<!doctype html><title>hotel wifi</title>", kind="text/html")
WRONG_KIND = Fault(body=b"all is well", kind="text/plain")
NOT_UTF8 = Fault(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}')
NO_CHOICES = Fault(body=b'{"choices": []}')
ERROR_IN_200 = Fault(body=b'{"error": {"message": "upstream is ill", "code": 502}}')
NULL = Fault(message={"content": None})
LENGTH = Fault(text="and then and then", finish="length")
FILTERED = Fault(text="", finish="content_filter")
REFUSAL = Fault(message={"content": None, "refusal": "I would rather not."})
REASONING = Fault(message={"content": "", "reasoning_content": "hm, hm"})
TOOL = Fault(
    message={"content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
    finish="tool_calls",
)
UNKNOWN_MODEL = error(404, "The model `nobody` does not exist", "model_not_found")
WRONG_KEY = error(401, "Incorrect API key provided")
NO_SCHEMAS = error(400, "'response_format' of type json_schema is not supported")


@dataclass
class Seen:
    """A request as it came."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float


class FaultServer:
    """Answers with the faults of `plan` in turn, then with `usual`, which may depend on the request's body."""

    def __init__(
        self, plan: Iterable[Fault] = (), usual: Fault | Callable[[dict[str, Any]], Fault] = OK, port: int = 0
    ) -> None:
        self.plan = deque(plan)
        self.usual = usual
        self.models = ["small", "large"]
        self.requests: list[Seen] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.port = port
        self.url = ""
        self.arrived = asyncio.Event()
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        host, self.port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{self.port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        await self._runner.cleanup()

    async def _list(self, _: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "us"} for name in self.models]
        return web.json_response({"object": "list", "data": data})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        self.requests.append(Seen(body, dict(request.headers), asyncio.get_running_loop().time()))
        self.arrived.set()
        fault = self._next(body)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._answer(request, fault, body)
        finally:
            self.in_flight -= 1

    def _next(self, body: dict[str, Any]) -> Fault:
        if self.plan:
            return self.plan.popleft()
        return self.usual if isinstance(self.usual, Fault) else self.usual(body)

    async def _answer(self, request: web.Request, fault: Fault, body: dict[str, Any]) -> web.StreamResponse:
        payload = completion(fault, body) if fault.body is None else fault.body
        if fault.how == "hang":
            await self._stop.wait()
        elif fault.how == "drip":
            return await self._drip(request, fault, payload)
        await asyncio.sleep(fault.latency)
        if fault.how in {"reset", "stall"}:
            return await self._break_off(request, payload, reset=fault.how == "reset")
        if fault.how == "cut":
            payload = payload[: len(payload) // 2]
        headers = {"Content-Type": fault.kind, **fault.headers}
        return web.Response(status=fault.status, body=payload, headers=headers)

    async def _drip(self, request: web.Request, fault: Fault, payload: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": fault.kind})
        await response.prepare(request)
        for byte in payload:
            if self._stop.is_set() or request.transport is None or request.transport.is_closing():
                break
            await response.write(bytes([byte]))
            await asyncio.sleep(fault.latency)
        return response

    async def _break_off(self, request: web.Request, payload: bytes, *, reset: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": JSON, "Content-Length": str(len(payload))})
        await response.prepare(request)
        await response.write(payload[: len(payload) // 2])
        if not reset:
            await self._stop.wait()
        if request.transport is not None:
            request.transport.abort()
        return response


def completion(fault: Fault, body: dict[str, Any]) -> bytes:
    """A chat completion; without a text of its own it echoes the last message."""
    text = f"echo: {body['messages'][-1]['content']}" if fault.text is None else fault.text
    message = {"role": "assistant", "content": text, **fault.message}
    choice = {"index": 0, "message": message, "finish_reason": fault.finish}
    return orjson.dumps(
        {"id": "1", "object": "chat.completion", "model": "small-0", "choices": [choice], "usage": fault.usage}
    )
