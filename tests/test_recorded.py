"""A real model's real replies, replayed: Qwen2.5-Coder-1.5B-Instruct on sixty questions by four methods."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rectom.results.folder import RunFolder
from tests.laboratory import call
from tests.recording import MANIFEST, REPLIES, found, sent

SWEEP = Path(__file__).parents[1] / "experiments" / "recorded.toml"
METHODS = ["direct", "cot", "rectom-lite", "rectom"]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep's folder, after its replies were taken in and nothing but them was there."""
    folder = tmp_path_factory.mktemp("recorded")
    places = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "RECTOM_HOME": str(folder / "home")}
    store = ("--cache", folder / "store")
    taken = call("cache", "import", REPLIES, *store, **places)
    assert taken.status == 0, taken.err
    ended = call("sweep", SWEEP, "--plain", "--json", *store, "--runs", folder / "runs", **places)
    assert ended.status == 0, ended.err
    return folder / "runs" / "recorded"


def test_the_answers_and_accuracies_are_those_of_the_model_and_nothing_is_sent(replayed: Path) -> None:
    recorded: dict[str, Any] = json.loads(MANIFEST.read_text())
    assert list(recorded) == METHODS
    assert all(run["questions"] == len(run["answers"]) == 60 for run in recorded.values())
    assert found(replayed) == recorded
    assert sent(replayed) == 0


def test_replies_that_were_no_good_are_among_them(replayed: Path) -> None:
    """Cut off, or at fault and mended: the ways on which a scripted model seldom leads."""
    runs = [RunFolder(folder) for folder in replayed.parent.iterdir() if (folder / "traces.jsonl").is_file()]
    calls = [one for run in runs for name in run.results() for one in run.trace(name)["calls"]]
    assert {one["outcome"] for one in calls} == {"ok", "truncated"}
    assert any(one["repair"] for one in calls)


def test_the_archive_is_small_and_holds_words_alone() -> None:
    assert REPLIES.stat().st_size < 400_000
    with gzip.open(REPLIES, "rt", encoding="utf-8") as lines:
        assert all(isinstance(json.loads(line), dict) for line in lines)
