from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.llm import batch_rows
from rectom.llm.batch_rows import RowId, model_of, outcome_at, outcome_of, read_rows, request_line
from rectom.llm.wire import NoResponse, Response

KEY = "0123456789abcdef" * 4
ROW = RowId(KEY, 3)
COMPLETION = {"choices": [{"message": {"content": "hi"}}]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
responses = json_values | st.fixed_dictionaries(
    {}, optional={"status_code": json_values | st.integers(100, 600), "body": json_values, "choices": json_values}
)
results = st.fixed_dictionaries(
    {"custom_id": st.just(str(ROW)) | json_values}, optional={"response": responses, "error": json_values}
)


@pytest.mark.parametrize(
    "custom_id",
    [KEY, f"{KEY}-0", f"{KEY}-01", f"{KEY}-1000000", f"{KEY.upper()}-1", f"{KEY}-1\n", "../etc-1", "", None, 3, [KEY]],
)
def test_a_custom_id_that_is_not_ours_is_none(custom_id: object) -> None:
    assert RowId.parse(custom_id) is None


def test_a_custom_id_is_read_back() -> None:
    assert RowId.parse(str(ROW)) == ROW


def test_a_request_keeps_its_payload_to_the_byte() -> None:
    payload = b'{"model":"m","b":1,"a":[1.0,"\\u00fc"]}'
    line = request_line(ROW, payload)
    assert payload in line
    assert line.count(b"\n") == 1
    assert orjson.loads(line)["custom_id"] == str(ROW)
    assert model_of(payload) == "m"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # OpenAI: a success, a refusal in the error file, an expired row.
        ({"response": {"status_code": 200, "body": COMPLETION}, "error": None}, (200, COMPLETION)),
        ({"response": {"status_code": 400, "body": {"error": {"message": "no"}}}}, (400, {"error": {"message": "no"}})),
        ({"response": None, "error": {"code": "batch_expired", "message": "late"}}, "batch_expired: late"),
        # vLLM: a refusal whose words stand beside it; other runners: the bare completion.
        ({"response": {"status_code": 400, "request_id": "r", "body": None}, "error": "no"}, (400, {"error": "no"})),
        ({"response": COMPLETION}, (200, COMPLETION)),
        # Nothing of use.
        ({"response": {"status_code": 200, "body": None}, "error": None}, "its row of the batch holds no response"),
        ({"response": {"status_code": 42, "body": {}}, "error": {}}, "its row of the batch failed"),
        ({"response": {"status_code": "200", "body": {}}, "error": "odd"}, "odd"),
        ({}, "its row of the batch holds no response"),
    ],
)
def test_results_of_every_maker_are_read(found: dict[str, Any], expected: Any) -> None:
    outcome = outcome_of(found, 1.5)
    if isinstance(expected, str):
        assert outcome == NoResponse(expected, unreachable=False)
    else:
        status, body = expected
        assert outcome == Response(status, {}, orjson.dumps(body), 1.5)


@pytest.mark.parametrize(
    "result",
    [
        b'{"response": {"status_code": 200, "body": %s}}',
        b'{"response": {"status_code": 400, "body": null}, "error": %s}',
        b'{"response": null, "error": {"message": %s}}',
    ],
)
@pytest.mark.parametrize("depth", [260, 1000])
def test_a_result_that_is_nested_too_deeply_is_none(result: bytes, depth: int) -> None:
    outcome = outcome_of(orjson.loads(result % (b"[" * depth + b"]" * depth)), 0.0)
    assert isinstance(outcome, NoResponse)
    assert outcome.why


@given(found=results)
def test_no_result_is_too_odd(found: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    outcome = outcome_of(found, 0.0)
    assert isinstance(outcome, NoResponse) or 200 <= outcome.status < 600
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    path.write_bytes(orjson.dumps(found) + b"\n")
    for place in read_rows(path).results.values():
        again = outcome_at(place, 0.0)
        assert again == outcome
        assert place.status == (again.status if isinstance(again, Response) else 0)


@given(content=st.binary(max_size=200))
def test_no_file_is_too_odd(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    path.write_bytes(content)
    assert not read_rows(path).results


def test_rows_are_found_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        orjson.dumps({"custom_id": f"{KEY}-{n}", "response": {"status_code": 200, "body": {"n": n}}}) + b"\n"
        for n in range(1, 4)
    ]
    path.write_bytes(lines[0] + b"\n" + lines[1] + b"torn\n" + request_line(ROW, b'{"model":"m"}') + lines[2][:-1])
    rows = read_rows(path)
    assert rows.malformed == 1
    assert rows.requests == {ROW: "m"}
    bodies = [outcome_at(place, 0.0) for place in rows.results.values()]
    assert bodies == [Response(200, {}, orjson.dumps({"n": n}), 0.0) for n in range(1, 4)]


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rows, "LINE_LIMIT", 300)
    path = tmp_path / "a.jsonl"
    good = orjson.dumps({"custom_id": str(ROW), "error": "x"}) + b"\n"
    for size in (299, 300, 301, 1000):
        path.write_bytes(b"[" + b" " * size + b"]\n" + good)
        rows = read_rows(path)
        assert (rows.malformed, list(rows.results)) == (1, [ROW])
