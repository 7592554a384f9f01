from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rectom.results import grid, side_by_side
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Lab, serving, write_stories
from tests.test_report import Page


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, write_stories(tmp_path), server)
        lab.run(name="ours")
        lab.run(name="cot", method="cot")
        yield lab


def test_runs_over_the_same_questions_have_a_page_together(lab: Lab) -> None:
    (beside,) = side_by_side.side_by_side(grid.read(["ours", "cot"], lab.runs))
    assert beside.title == "Every answer: hitom/cotp, fake"
    ((name, page),) = beside.files.items()
    assert name == "answers-hitom-cotp-fake.html"
    assert [run["name"] for run in Page(page.decode()).data["runs"]] == ["RecToM", "CoT"]


def test_one_run_or_too_many_answers_have_none(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not list(side_by_side.side_by_side(grid.read(["ours"], lab.runs)))
    monkeypatch.setattr(side_by_side, "MOST", 23)
    assert not list(side_by_side.side_by_side(grid.read(["ours", "cot"], lab.runs)))
