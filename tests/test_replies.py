from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rectom.methods import replies
from rectom.schemas import json_schema


def test_lines_are_numbers_of_the_story() -> None:
    model = replies.lines(3)
    assert model.model_validate({"lines": [3, 1]}).model_dump() == {"lines": [3, 1]}
    assert json_schema(model)["properties"]["lines"]["items"] == {"minimum": 1, "maximum": 3, "type": "integer"}


@pytest.mark.parametrize("reply", [{"lines": [0]}, {"lines": [4]}, {"lines": [1] * 4}, {"lines": [1], "x": 1}, {}, []])
def test_other_lines_are_refused(reply: object) -> None:
    with pytest.raises(ValidationError):
        replies.lines(3).model_validate(reply)


def test_stamps_are_an_enumeration() -> None:
    model = replies.stamps(["t2", "t4"])
    assert json_schema(model)["properties"]["stamps"]["items"]["enum"] == ["t2", "t4"]
    with pytest.raises(ValidationError):
        model.model_validate({"stamps": ["t3"]})


def test_what_is_chosen_comes_once_and_in_order() -> None:
    assert replies.in_order(["t3", "t1", "t3"], ["t1", "t2", "t3"]) == ("t1", "t3")
    assert replies.in_order([], ["t1"]) == ()
    with pytest.raises(ValueError, match="'t9' is none of those that are given, such as 't1'"):
        replies.in_order(["t1", "t9"], ["t1", "t2"])


def told(*entries: tuple[int, list[str]]) -> dict[str, Any]:
    return {"lines": [{"line": line, "perceivers": who} for line, who in entries]}


def test_perceivers_have_an_entry_a_line_with_the_storys_characters() -> None:
    reply = replies.perceivers(2, ["Ann", "Bo"]).model_validate(told((2, []), (1, ["Bo", "Ann"])))
    assert replies.by_line(reply) == (frozenset({"Ann", "Bo"}), frozenset())


@pytest.mark.parametrize(
    "reply",
    [
        told((1, ["Ann"])),
        told((1, ["Ann"]), (2, []), (2, [])),
        told((1, ["Cy"]), (2, [])),
        told((0, ["Ann"]), (1, [])),
        told((1, ["Ann"] * 3), (2, [])),
    ],
)
def test_other_entries_are_refused(reply: object) -> None:
    with pytest.raises(ValidationError):
        replies.perceivers(2, ["Ann", "Bo"]).model_validate(reply)


def test_every_line_must_have_its_own_entry() -> None:
    reply = replies.perceivers(2, ["Ann"]).model_validate(told((2, []), (2, ["Ann"])))
    with pytest.raises(ValueError, match="one entry for each of the lines 1 to 2, each line once"):
        replies.by_line(reply)
