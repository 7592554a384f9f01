from __future__ import annotations

from itertools import pairwise

import pytest

from rectom.rules import PRESETS, Depth, Rules, Scope, Trust, Waiting


def test_the_ladder_goes_from_the_text_read_literally_to_the_labels() -> None:
    assert next(iter(PRESETS.values())) == Rules()
    assert list(PRESETS)[-1] == "hitom"
    assert PRESETS["hitom"] == Rules(
        Scope.ROOM,
        Waiting.ABSENT,
        Trust.LATER_LEAVER,
        Depth.FIRST,
        speaker_convinces=True,
        speaker_sincere=True,
        joint=True,
    )


def test_each_rung_adds_one_thing() -> None:
    steps = [
        {name for name in low.fields() if low.fields()[name] != high.fields()[name]}
        for low, high in pairwise(PRESETS.values())
    ]
    assert steps == [
        {"waiting"},
        {"scope"},
        {"trust"},
        {"depth"},
        {"speaker_convinces", "speaker_sincere"},
        {"joint"},
    ]


def test_fields_are_plain_values() -> None:
    assert Rules().fields() == {
        "scope": "state",
        "waiting": "present",
        "trust": "everyone",
        "depth": "every",
        "speaker_convinces": False,
        "speaker_sincere": False,
        "joint": False,
    }
    assert all(type(value) in {str, bool} for value in PRESETS["hitom"].fields().values())


@pytest.mark.parametrize("name", PRESETS)
def test_the_fields_tell_the_presets_apart(name: str) -> None:
    assert [other for other, rules in PRESETS.items() if rules.fields() == PRESETS[name].fields()] == [name]
