"""The files and batches of one server, over the openai package: what comes back is checked, what fails is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rectom.errors import EndpointBusy, EndpointDown, EndpointError, EndpointFault, WrongKey
from rectom.llm.address import Address
from rectom.llm.batch_disk import using
from rectom.llm.headers import named_wait
from rectom.llm.secret import Secret
from rectom.llm.verdict import BUSY, KEY_TROUBLE, PASSING, Judge
from rectom.whole import beside, settle

if TYPE_CHECKING:
    import openai

_CONNECT_S, _LOOK_S, _TRANSFER_S = 10.0, 60.0, 600.0
_LARGEST_OUTPUT = 8 * 2**30
_CLOCKS_DIFFER_S = 24 * 3600
_MOST_LISTED = 10_000
_ENDED = {"completed", "expired", "failed", "cancelled"}
_FULL = {"token_limit_exceeded", "batch_queue_full"}
_ABSENT = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
_FAULTS_SHOWN = 3


class BatchRefused(EndpointError):
    """The server takes no batches, or not this one, or does not know it."""


class Passing(Exception):
    """Another try may help: `error` is what to raise when patience runs out, `wait` what the server asks for."""

    def __init__(self, error: EndpointError, wait: float | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.wait = wait


class Unknown(Exception):
    """The server does not know that batch or file."""


@dataclass(frozen=True)
class State:
    """How far a batch is. `done` of its rows have ended; `fault` says why it failed as a whole.

    `full`: it failed because too much waits at the server already, so that it may be sent again later.
    """

    batch_id: str
    status: str = ""
    done: int = 0
    output_id: str = ""
    error_id: str = ""
    fault: str = ""
    full: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.status in _ENDED


class BatchApi:
    """One server. Its methods raise `Passing`, and an `EndpointError` where no further try will help."""

    def __init__(self, address: Address, secret: Secret) -> None:
        self._address = address
        self._secret = secret
        self._judge = Judge(address, secret)
        self._made: openai.AsyncOpenAI | None = None

    async def close(self) -> None:
        """Close the connections."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    async def upload(self, name: str, data: bytes) -> str:
        """Put the input of a batch there; returns the id of the file."""
        try:
            made = await self._client.files.create(file=(name, data), purpose="batch", timeout=_TRANSFER_S)
        except Exception as fault:
            raise self._meaning(fault, "files") from None
        return self._id(made, "file")

    async def create(self, file_id: str, metadata: Mapping[str, str]) -> str:
        """Start a batch; returns its id. After a `Passing` there may be one nevertheless: see `find`."""
        try:
            made = await self._client.batches.create(
                input_file_id=file_id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata=dict(metadata),
                timeout=_LOOK_S,
            )
        except Exception as fault:
            raise self._meaning(fault, "batches") from None
        return self._id(made, "batch")

    async def find(self, file_id: str, metadata: Mapping[str, str], since: float) -> str:
        """The id of the batch that was made of a file, or "": looks at those made after `since` (epoch seconds)."""
        listed = 0
        try:
            async for batch in self._client.batches.list(limit=100, timeout=_LOOK_S):
                found = _fields(batch)
                noted = _mapping(found.get("metadata"))
                if found.get("input_file_id") == file_id or metadata.items() <= noted.items():
                    return self._id(batch, "batch")
                listed += 1
                made = found.get("created_at")
                if listed >= _MOST_LISTED or (isinstance(made, int) and made < since - _CLOCKS_DIFFER_S):
                    break
        except Passing:
            raise
        except Exception as fault:
            raise self._meaning(fault, "batches") from None
        return ""

    async def look(self, batch_id: str) -> State:
        """How far a batch is. Raises `Unknown` where the server has none of that id."""
        try:
            batch = await self._client.batches.retrieve(batch_id, timeout=_LOOK_S)
        except Exception as fault:
            if _is_unknown(fault):
                raise Unknown from None
            raise self._meaning(fault, "batches") from None
        self._id(batch, "batch")
        return self._state(batch_id, _fields(batch))

    async def download(self, file_id: str, path: Path) -> None:
        """Put a file of the server's into `path`, whole or not at all, on the disk when this returns.

        Raises `Unknown` where there is none.
        """
        try:
            with beside(path) as part:
                with using(path.parent):
                    part.touch(mode=0o600)
                await self._receive(file_id, part)
                with using(path.parent):
                    part.replace(path)
                    settle(path.parent)
        except Exception as fault:
            if _is_unknown(fault):
                raise Unknown from None
            raise self._meaning(fault, "files") from None

    async def _receive(self, file_id: str, part: Path) -> None:
        async with self._client.files.with_streaming_response.content(file_id, timeout=_TRANSFER_S) as response:
            size = 0
            with using(part.parent), part.open("wb") as file:
                async for piece in response.iter_bytes(1 << 20):
                    size += len(piece)
                    if size > _LARGEST_OUTPUT:
                        raise BatchRefused(f"{self._address} sends more than {_LARGEST_OUTPUT:,} bytes of results")
                    file.write(piece)
                file.flush()
                # The note that says that it came must not outlive it in a loss of power.
                await asyncio.to_thread(os.fsync, file.fileno())

    @property
    def _client(self) -> openai.AsyncOpenAI:
        if self._made is None:
            import openai  # takes a second to import, which only a batch is worth

            # Tries are ours to count: a batch whose creation is tried again blindly runs, and is paid, twice.
            self._made = openai.AsyncOpenAI(
                base_url=self._address.root,
                api_key=self._secret.reveal() or "none",
                max_retries=0,
                timeout=openai.Timeout(_LOOK_S, connect=_CONNECT_S),
            )
        return self._made

    def _state(self, batch_id: str, fields: Mapping[str, Any]) -> State:
        counts = _mapping(fields.get("request_counts"))
        faults = [_mapping(fault) for fault in _list(_mapping(fields.get("errors")).get("data"))]
        codes = {str(fault.get("code")) for fault in faults}
        return State(
            batch_id,
            _text(fields.get("status")),
            sum(count for name in ("completed", "failed") if isinstance(count := counts.get(name), int)),
            _text(fields.get("output_file_id")),
            _text(fields.get("error_file_id")),
            self._judge.tidy(_words(faults)),
            bool(codes & _FULL),
        )

    def _id(self, found: object, what: str) -> str:
        name = _text(_fields(found).get("id"))
        if not name:
            raise Passing(self._fault(f"it sends no {what} where one was asked for"))
        return name

    def _meaning(self, fault: Exception, what: str) -> Exception:
        import openai

        if isinstance(fault, EndpointError | Passing) or not _is_foreign(fault):
            return fault
        if isinstance(fault, openai.APIStatusError):
            return self._refusal(fault, what)
        words = self._judge.tidy(str(fault.__cause__ or fault) or type(fault).__name__)
        if isinstance(fault, openai.APIConnectionError):
            cure = "is the server running? --base-url gives another address"
            return Passing(EndpointDown(f"cannot reach {self._address}: {words}; {cure}"))
        return Passing(self._fault(words))

    def _refusal(self, fault: openai.APIStatusError, what: str) -> Exception:
        words = self._judge.tidy(_text(_mapping(fault.body).get("message")) or fault.message)
        status, said = fault.status_code, f"HTTP {fault.status_code} ({words})"
        wait = named_wait(fault.response.headers, datetime.now(UTC))
        if status in KEY_TROUBLE:
            return WrongKey(f"{self._address}/{what} says {said}: it does not take the API key; set OPENAI_API_KEY")
        if status in _ABSENT:
            return BatchRefused(f"{self._address} has no {what}: {said}; use --transport live, or batch-file DIR")
        if status in BUSY:
            busy = f"the server is still busy after all retries: {said}"
            return Passing(EndpointBusy(f"{busy}; come back later: what was sent is noted"), wait)
        if status in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Passing(self._fault(said), wait)
        return BatchRefused(f"{self._address}/{what} says {said}: it refuses the batch; change what is sent")

    def _fault(self, why: str) -> EndpointFault:
        # Of single questions, whose failures are published: without the address.
        return EndpointFault(f"the server fails after all retries: {why}; see the server's log")


def _is_foreign(fault: Exception) -> bool:
    # Ours and our programming errors are raised as they are, not tried again.
    return isinstance(fault, ValueError) or type(fault).__module__.partition(".")[0] not in {"builtins", "rectom"}


def _is_unknown(fault: Exception) -> bool:
    return getattr(fault, "status_code", None) == HTTPStatus.NOT_FOUND


def _words(faults: list[Mapping[str, Any]]) -> str:
    said = [
        f"line {fault['line']}: {fault.get('message')}" if fault.get("line") else str(fault.get("message"))
        for fault in faults
    ]
    more = f"; and {len(said) - _FAULTS_SHOWN} more" if len(said) > _FAULTS_SHOWN else ""
    return "; ".join(said[:_FAULTS_SHOWN]) + more


def _fields(found: object) -> Mapping[str, Any]:
    # A body that is no JSON comes as text, one of another form with whatever it has.
    dump = getattr(found, "model_dump", None)
    return _mapping(dump(warnings=False)) if callable(dump) else {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
