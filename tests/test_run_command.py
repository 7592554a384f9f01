"""What `rectom run` prints at its end, where names and warnings are odd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import evaluate, options
from rectom.benchmarks.adapter import Adapter, Files
from rectom.benchmarks.base import Benchmark
from rectom.story import Question, Story
from tests.fake_openai import FakeOpenAI
from tests.laboratory import call, serving

STORY = Story("s", ("Anne is out.",))
QUESTIONS = (
    Question("1", "s", "Where is Anne?", ("out", "in"), "out", 0, "[/place]"),
    Question("2", "s", "Where is she?", ("out", "in"), "out", 0, "[red]thought\x1b[2J"),
)


def load(_: Files, subset: str) -> Benchmark:
    return Benchmark("toy", subset, (STORY,), QUESTIONS, warnings=("[/toys] of \x1b]0;no\x07 use",))


TOY = Adapter(name="toy", title="Toy", load=load, subsets={"all": "two"}, default="all", licence="", sources=())


class Brief(FakeOpenAI):
    """Takes the first option."""

    def _answer(self, body: dict[str, Any]) -> str:
        return "Answer: A"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brief]:
    for module in (evaluate, options):
        monkeypatch.setattr(module, "adapter", lambda _: TOY)
    with serving(Brief(any_model=True)) as serves:
        yield serves


def test_what_looks_like_markup_is_printed_as_it_is_and_steers_nothing(tmp_path: Path, server: Brief) -> None:
    runs = tmp_path / "[" / "bold]"
    model = ("--model", "mine[/INST]", "--base-url", server.base_url, "--method", "direct")
    ended = call("run", "toy", *model, "--cache", tmp_path / "store", "--runs", runs, "--plain", COLUMNS="100")
    assert ended.status == 0, ended.err
    assert ended.out.splitlines()[0].strip() == "direct · toy/all · mine[/INST]"
    assert "│ [/place] " in ended.out
    assert "│ [red]thought [2J " in ended.out
    assert "note: [/toys] of  ]0;no  use\n" in ended.out
    assert "the price of mine[/INST] is not declared\n" in ended.out
    assert ended.out.splitlines()[-1].startswith(f"report: {runs}/")


def test_what_is_hardly_meant_is_noted_on_standard_error(tmp_path: Path, server: Brief) -> None:
    model = (
        "--model",
        "mine[/INST]",
        "--base-url",
        server.base_url,
        "--method",
        "sc:n=2",
        "--cache",
        tmp_path / "store",
    )
    note = "note: --method sc:n=2 at temperature 0 asks for one chain of thought 2 times: give --temperature"
    for more, noted in (((), True), (("--temperature", "0.7"), False)):
        ended = call("run", "toy", *model, "--runs", tmp_path / "runs", "--plain", *more, COLUMNS="80")
        assert ended.status == 0, ended.err
        assert (note in ended.err.splitlines(), "at temperature 0" in ended.out) == (noted, False)
