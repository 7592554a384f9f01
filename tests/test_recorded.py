"""Real replies, replayed: of Qwen2.5-Coder-1.5B-Instruct to sixty questions, and to Hi-ToM, BigToM and FanToM."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.documented import ROOT
from tests.laboratory import call, undrawn
from tests.published import published
from tests.recording import FREE, MANIFEST, REPLIES, SWEEP, calls, found, sent

METHODS = ["direct", "cot", "rectom-lite", "rectom"]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs, made from nothing but the recorded replies: no model, no weights, no server."""
    folder = tmp_path_factory.mktemp("recorded")
    places = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "RECTOM_HOME": str(folder / "home")}
    here = ("--cache", folder / "store", "--runs", folder / "runs", "--plain")
    nowhere = ("--base-url", "http://127.0.0.1:9/v1", "--attempts", 1)
    commands: list[tuple[int, tuple[object, ...]]] = [
        (0, ("cache", "import", REPLIES, *here[:2])),
        (0, ("sweep", SWEEP, *here)),
        (3, ("run", *FREE, *here, *nowhere)),  # of one story no try was usable
    ]
    for status, command in commands:
        with undrawn():
            ended = call(*command, **places)
        assert ended.status == status, ended.err
    return folder / "runs"


def test_the_answers_and_accuracies_are_those_of_the_model_and_nothing_is_sent(replayed: Path) -> None:
    recorded: dict[str, Any] = json.loads(MANIFEST.read_text())
    assert list(recorded) == [*METHODS, "free"]
    assert all(recorded[method]["questions"] == len(recorded[method]["answers"]) == 60 for method in METHODS)
    assert found(replayed) == recorded
    assert sent(replayed) == 0


@pytest.mark.parametrize(
    ("sweep", "name", "file", "heading", "ends"),
    [
        ("real", "hitom", "Hi-ToM_data.json", "## Hi-ToM, one chapter", 3),  # some questions have no answer
        ("real", "bigtom", "bigtom.csv", "## BigToM", 3),
        ("real", "fantom", "fantom_v1.belief_only.json", "## FanToM", 3),
        ("told", "hitom", "Hi-ToM_data.json", "## Hi-ToM, told the rules", 0),
        ("smaller", "hitom", "Hi-ToM_data.json", "## A smaller model", 3),
    ],
)
def test_a_table_of_results_comes_of_the_replies_in_the_repository(
    tmp_path: Path, sweep: str, name: str, file: str, heading: str, ends: int
) -> None:
    """The texts are not there: what was asked is only told by the keys of the replies."""
    places = {kind: str(tmp_path) for kind in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "RECTOM_HOME")}
    places["RECTOM_DATA"] = str(published(name, file))
    here = ("--cache", tmp_path / "store", "--runs", tmp_path / "runs")
    call("cache", "import", ROOT / "experiments" / "real-replies.gz", *here[:2], **places)
    with undrawn():
        ended = call(
            "sweep", ROOT / "experiments" / f"{sweep}.toml", "--only", name, "--plain", "--json", *here, **places
        )
    assert ended.status == ends, ended.err
    told = {cell["method"]: cell["summary"] for cell in json.loads(ended.out)["cells"] if cell["summary"]}
    assert sum(summary["calls"]["sent"] for summary in told.values()) == 0
    assert _table(heading) == {method: _figures(summary) for method, summary in told.items()}


def _table(heading: str) -> dict[str, tuple[float, ...]]:
    """The last five columns but the minutes of the table below a heading of the page of results, by the method."""
    _, _, after = (ROOT / "docs" / "results.md").read_text().partition(heading)
    section, _, _ = after.partition("\n## ")
    rows = re.findall(
        r"^\| `([^`]+)`.*?([\d.]+) \([^|]+\| ([^|]+) \| ([^|]+) \| ([^|]+) \| \d+ \|$", section, re.MULTILINE
    )
    return {method: tuple(float(figure.replace(",", "")) for figure in row) for method, *row in rows}


def _figures(summary: dict[str, Any]) -> tuple[float, ...]:
    """Accuracy in per cent, and calls, tokens and tokens alone of a question, as the table has them."""
    count, tokens = summary["questions"], summary["tokens"]
    calls = (summary["calls"]["sent"] + summary["calls"]["cached"]) / count
    paid = tokens["prompt"] + tokens["completion"]
    return (
        round(100 * summary["accuracy"], 1),
        round(calls, 2),
        round(paid / count),
        round(tokens["standalone"] / count),
    )


def test_replies_that_were_no_good_are_among_them(replayed: Path) -> None:
    """Cut off, or not of the form that was asked for, mended at the second try or never."""
    every = list(calls(replayed))
    assert {one["outcome"] for one in every} == {"ok", "truncated"}
    assert any(one["fault"] for one in every)
    assert any(one["repair"] for one in every)


def test_the_archive_is_small_and_every_line_of_it_is_json() -> None:
    assert REPLIES.stat().st_size < 300_000
    with gzip.open(REPLIES, "rt", encoding="utf-8") as lines:
        assert all(isinstance(json.loads(line), dict) for line in lines)
