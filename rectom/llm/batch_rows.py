"""The rows of a batch, a JSON line each: requests as the Batch API and `vllm run-batch` read them, and their results.

A result comes from a server or from somebody's cluster: nothing in it is trusted, and a line that cannot be read is
counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from rectom.llm.wire import NoResponse, Response

LINE_LIMIT = 64 * 2**20
"""The most bytes of a line that is read: a reply has kilobytes, a damaged file must not fill the memory."""

_ROW_ID = re.compile(r"([0-9a-f]{64})-([1-9][0-9]{0,5})")
_LONGEST_MODEL = 200


@dataclass(frozen=True)
class RowId:
    """What a row is called (its `custom_id`): the request's key, and the number of the try."""

    key: str
    attempt: int

    @classmethod
    def parse(cls, custom_id: object) -> RowId | None:
        """Read a `custom_id`; None for one that we did not give."""
        found = _ROW_ID.fullmatch(custom_id) if isinstance(custom_id, str) else None
        return cls(found[1], int(found[2])) if found else None

    def __str__(self) -> str:
        return f"{self.key}-{self.attempt}"


@dataclass(frozen=True)
class Place:
    """Where a result lies, and the status of the response that it holds: 0 where it holds none."""

    file: Path
    start: int
    length: int
    status: int

    @property
    def good(self) -> bool:
        """Whether it is a reply."""
        return self.status // 100 == 2


@dataclass
class Rows:
    """The rows of a file: the results by their row, the models of the requests by theirs, and the bad lines."""

    results: dict[RowId, Place] = field(default_factory=dict)
    requests: dict[RowId, str] = field(default_factory=dict)
    malformed: int = 0


def request_line(row: RowId, payload: bytes) -> bytes:
    """One request as a line, its newline included."""
    body = orjson.Fragment(payload)
    asked = {"custom_id": str(row), "method": "POST", "url": "/v1/chat/completions", "body": body}
    return orjson.dumps(asked, option=orjson.OPT_APPEND_NEWLINE)


def model_of(payload: bytes) -> str:
    """The model that a request names: all rows of one batch ask one model."""
    return _model(orjson.loads(payload))


def read_rows(path: Path) -> Rows:
    """Find the rows in a file. Raises OSError where it cannot be read."""
    rows = Rows()
    with path.open("rb") as file:
        for start, line in _lines(file):
            if line is not None and not line.strip():
                continue
            found = _parsed(line)
            if found is None:
                rows.malformed += 1
                continue
            row = RowId.parse(found.get("custom_id"))
            if row is None or line is None:
                continue  # somebody else's
            if "response" in found or "error" in found:
                rows.results[row] = Place(path, start, len(line), _status(found))
            elif "body" in found:
                rows.requests[row] = _model(found["body"])
    return rows


def outcome_at(place: Place, latency_s: float) -> Response | NoResponse:
    """Read a result as the client's judge reads one that came over HTTP. Raises OSError."""
    with place.file.open("rb") as file:
        file.seek(place.start)
        return outcome_of(_parsed(file.read(place.length)) or {}, latency_s)


def outcome_of(found: Mapping[str, Any], latency_s: float) -> Response | NoResponse:
    """What a result says: a response, or why there is none."""
    status = _status(found)
    body = _response(found).get("body")
    said = {"error": found.get("error")} if body is None else body
    try:
        if not status:
            return NoResponse(_words(found.get("error")), unreachable=False)
        return Response(status, {}, orjson.dumps(said), latency_s)
    except (orjson.JSONEncodeError, RecursionError):  # less deep can be written than read
        return NoResponse("its row of the batch is nested too deeply", unreachable=False)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Each line with its start; None for one that is too long."""
    start = 0
    while line := file.readline(LINE_LIMIT):
        whole = line.endswith(b"\n") or len(line) < LINE_LIMIT
        yield start, line if whole else None
        while not whole and line:
            line = file.readline(LINE_LIMIT)
            whole = line.endswith(b"\n")
        start = file.tell()


def _parsed(line: bytes | None) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _response(found: Mapping[str, Any]) -> Mapping[str, Any]:
    response = found.get("response")
    if not isinstance(response, dict):
        return {}
    # Some runners put the completion itself there.
    return {"status_code": 200, "body": response} if "choices" in response else response


def _status(found: Mapping[str, Any]) -> int:
    response = _response(found)
    status, body = response.get("status_code", 200), response.get("body")
    if not isinstance(status, int) or not 200 <= status < 600:
        return 0
    # A success without a body is none; a refusal's words may stand beside it, under "error".
    return status if body is not None or (status >= 300 and response) else 0


def _words(error: object) -> str:
    if isinstance(error, dict):
        said = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
        return said or "its row of the batch failed"
    return error if isinstance(error, str) and error else "its row of the batch holds no response"


def _model(body: object) -> str:
    model = body.get("model") if isinstance(body, dict) else None
    return model[:_LONGEST_MODEL] if isinstance(model, str) else ""
