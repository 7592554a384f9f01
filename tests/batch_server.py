"""The files and batches of an OpenAI-compatible server, over real HTTP: it misbehaves on purpose, and counts."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from tests.fault_server import OK, completion

Rows = Callable[[int], bool]
Answer = Callable[[dict[str, Any]], Any]


def echo(body: dict[str, Any]) -> Any:
    """A completion that says the last message."""
    return orjson.loads(completion(OK, body))


def none(_: int) -> bool:
    """No row."""
    return False


@dataclass(frozen=True)
class Plan:
    """What becomes of one batch: it ends after `looks` looks, as `end` says; rows by their number go wrong.

    `broken` rows come back as `status` with `words`, `expired` ones in the error file, `missing` ones not at all.
    `faults` are the words (with a code) that a whole batch is refused with. `first` comes before the rows in the
    output.
    """

    looks: int = 2
    end: str = "completed"
    broken: Rows = none
    status: int = 500
    words: str = "it broke"
    expired: Rows = none
    missing: Rows = none
    faults: tuple[tuple[str, str], ...] = ()
    first: bytes = b""


@dataclass
class Batch:
    """A batch that was created."""

    id: str
    file: str
    metadata: dict[str, str]
    plan: Plan
    rows: list[dict[str, Any]]
    created: int
    looks: int = 0
    output: str | None = None
    errors: str | None = None
    cancelled: bool = False

    @property
    def ids(self) -> list[str]:
        return [row["custom_id"] for row in self.rows]


@dataclass(frozen=True)
class Trouble:
    """An HTTP fault of the next request whose method and path begin so; `done` does what was asked nevertheless."""

    where: str
    status: int = 500
    words: str = "trouble"
    done: bool = False
    body: bytes | None = None


class BatchServer:
    """Runs batches by `plans` in turn, then as a good server does. `answer` makes the completion of a row."""

    def __init__(self, plans: Iterable[Plan] = (), answer: Answer = echo, troubles: Iterable[Trouble] = ()) -> None:
        self.plans = deque(plans)
        self.troubles = deque(troubles)
        self.answer = answer
        self.usual = Plan()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.asked: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28, middlewares=[self._misbehave])
        app.add_routes(
            [
                web.post("/v1/files", self._upload),
                web.get("/v1/files/{id}/content", self._content),
                web.post("/v1/batches", self._create),
                web.get("/v1/batches", self._list),
                web.get("/v1/batches/{id}", self._look),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def sent(self) -> Counter[str]:
        """How often each row's body came, in whatever batch."""
        bodies = (row["body"] for batch in self.batches.values() for row in batch.rows)
        return Counter(orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode() for body in bodies)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each batch, in their order."""
        return [len(batch.rows) for batch in self.batches.values()]

    @web.middleware
    async def _misbehave(self, request: web.Request, handler: Any) -> web.StreamResponse:
        where = f"{request.method} {request.path.removeprefix('/v1')}"
        self.asked[where.split("/", maxsplit=1)[0] + "/".join(where.split("/")[1:2])] += 1
        self.headers.append(dict(request.headers))
        trouble = next((trouble for trouble in self.troubles if where.startswith(trouble.where)), None)
        if trouble is None:
            done: web.StreamResponse = await handler(request)
            return done
        self.troubles.remove(trouble)
        if trouble.done:
            await handler(request)
        if trouble.body is not None:
            return web.Response(status=trouble.status, body=trouble.body, content_type="text/html")
        return web.json_response({"error": {"message": trouble.words}}, status=trouble.status)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        sent = form["file"]
        assert isinstance(sent, web.FileField)
        assert form["purpose"] == "batch"
        return web.json_response(self._file(sent.file.read(), sent.filename))

    def _file(self, data: bytes, name: str) -> dict[str, Any]:
        made = f"file-{len(self.files)}"
        self.files[made] = data
        return {"id": made, "object": "file", "bytes": len(data), "created_at": 1, "filename": name, "purpose": "batch"}

    async def _content(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["id"])
        if data is None:
            return web.json_response({"error": {"message": "no such file"}}, status=404)
        return web.Response(body=data, content_type="application/octet-stream")

    async def _create(self, request: web.Request) -> web.Response:
        asked = orjson.loads(await request.read())
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        rows = [orjson.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert len({row["custom_id"] for row in rows}) == len(rows)
        assert all(row["method"] == "POST" and row["url"] == "/v1/chat/completions" for row in rows)
        plan = self.plans.popleft() if self.plans else self.usual
        made = f"batch-{len(self.batches)}"
        self.batches[made] = Batch(made, asked["input_file_id"], asked["metadata"], plan, rows, int(time.time()))
        return web.json_response(self._shown(self.batches[made]))

    async def _list(self, request: web.Request) -> web.Response:
        newest = list(reversed(self.batches.values()))
        after = request.query.get("after")
        start = [batch.id for batch in newest].index(after) + 1 if after else 0
        page = newest[start : start + 2]
        data = [self._shown(batch) for batch in page]
        return web.json_response({"object": "list", "data": data, "has_more": start + 2 < len(newest)})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        batch.looks += 1
        if batch.looks == batch.plan.looks and not batch.plan.faults:
            self._run(batch)
        return web.json_response(self._shown(batch))

    def _run(self, batch: Batch) -> None:
        plan, output, errors = batch.plan, [], []
        for number, row in enumerate(batch.rows):
            named = {"id": f"batch_req_{number}", "custom_id": row["custom_id"]}
            if plan.expired(number):
                errors.append({**named, "response": None, "error": {"code": "batch_expired", "message": "too late"}})
            elif plan.broken(number):
                body = {"error": {"message": plan.words}}
                errors.append({**named, "response": {"status_code": plan.status, "body": body}, "error": None})
            elif not plan.missing(number):
                response = {"status_code": 200, "request_id": "1", "body": self.answer(row["body"])}
                output.append({**named, "response": response, "error": None})
        # In another order than they were asked in.
        batch.output = self._lines(output[::-1], plan.first)
        batch.errors = self._lines(errors, b"")

    def _lines(self, rows: list[dict[str, Any]], first: bytes) -> str | None:
        text = first + b"".join(orjson.dumps(row) + b"\n" for row in rows)
        return str(self._file(text, "output")["id"]) if text else None

    def _shown(self, batch: Batch) -> dict[str, Any]:
        plan, total = batch.plan, len(batch.rows)
        ended = batch.looks >= plan.looks
        status = ("failed" if plan.faults else plan.end) if ended else "in_progress" if batch.looks else "validating"
        failed = sum(plan.expired(n) or plan.broken(n) for n in range(total))
        counts = {"total": total, "completed": total - failed, "failed": failed} if ended else {}
        faults = [{"code": code, "message": words, "line": 1} for code, words in plan.faults]
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": batch.file,
            "completion_window": "24h",
            "created_at": batch.created,
            "metadata": batch.metadata,
            "status": status,
            "request_counts": counts or {"total": total, "completed": total // 2, "failed": 0},
            "output_file_id": batch.output if ended else None,
            "error_file_id": batch.errors if ended else None,
            "errors": {"object": "list", "data": faults} if faults and ended else None,
        }


@dataclass
class Cluster:
    """Somebody who runs files of requests, as `vllm run-batch -i FILE -o FILE` does. Counts the rows it ran."""

    answer: Answer = echo
    ran: Counter[str] = field(default_factory=Counter)

    def run(self, requests: bytes, skip: Rows = none) -> bytes:
        """The results of a file."""
        lines = []
        for number, line in enumerate(requests.splitlines()):
            row = orjson.loads(line)
            if skip(number):
                continue
            self.ran[orjson.dumps(row["body"], option=orjson.OPT_SORT_KEYS).decode()] += 1
            response = {"status_code": 200, "request_id": "r", "body": self.answer(row["body"])}
            lines.append(orjson.dumps({"id": "v", "custom_id": row["custom_id"], "response": response, "error": None}))
        return b"\n".join([*lines, b""])
