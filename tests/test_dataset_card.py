from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rectom.results.dataset_card import dataset_card
from rectom.results.exported import Exported
from tests.test_exported import write_asked_run
from tests.test_finished import SETTINGS, answer


@pytest.fixture
def run(tmp_path: Path) -> Exported:
    return Exported.read(write_asked_run(tmp_path / "night", [answer(0), answer(1, False), answer(2), answer(3)]))


def test_a_card_tells_the_accuracy_with_its_interval_and_the_settings(run: Exported) -> None:
    card = dataset_card([run, replace(run, name="other", correct=0, failed=2)], ["results", "calls"])
    assert "| night | m/1 | cot | toy/all | 4 | 75.00 | 30.1 to 95.4 | 0 |" in card
    assert "| other | m/1 | cot | toy/all | 4 | 0.00 | 0.0 to 49.0 | 2 |" in card
    assert card.count("toy/all") == 6  # twice in the headings, in each row and in each of the settings
    assert "Written by RecToM 9.9." in card
    settings = [json.loads(found) for found in re.findall(r"```json\n(.*?)```", card, re.DOTALL)]
    assert settings == [{**SETTINGS, "model": "m/1", "method": "cot"}] * 2


def test_names_cannot_break_out_of_a_card(run: Exported) -> None:
    hostile = 'x"\n---\nlicense: mit\n# <script>| [a](http://b) `c`'
    card = dataset_card([replace(run, name=hostile, model=hostile, method=hostile, benchmark=hostile)], ["results"])
    front, _, body = card.removeprefix("---\n").partition("\n---\n")
    assert "license: other" in front.splitlines()
    assert "license: mit" not in card.splitlines()
    assert not re.search(r"<script>|\[a\]", body)
    assert len({line.count("|") for line in body.splitlines() if line.startswith("|")}) == 1
