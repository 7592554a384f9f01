from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rectom.events import persistent
from rectom.facts import Fact, State, in_room
from rectom.perspective import paired
from rectom.reader.rules import RuleReader
from tasks.observability import OBSERVABILITY, item

HALL, CUP = in_room("Ann", "hall"), Fact("in", ("cup", "box"))


def fields(monkeypatch: pytest.MonkeyPatch, *states: State) -> dict[str, Any]:
    """What the observability of somebody is found by, over a world of these states."""
    world = paired(states, [persistent([HALL]) for _ in states])
    monkeypatch.setattr("tasks.observability.global_perspective", lambda _run, _story: world)
    run: Any = SimpleNamespace(reader=RuleReader())
    return OBSERVABILITY.fields(run, item("s", "Ann"))


def test_it_is_found_by_whole_states_since_a_model_may_have_updated_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cup, without = frozenset([HALL, CUP]), frozenset([HALL])
    assert fields(monkeypatch, with_cup) == fields(monkeypatch, with_cup)
    assert fields(monkeypatch, with_cup) != fields(monkeypatch, without)
