from __future__ import annotations

import pytest

from rectom.errors import StepFailure
from tests.method_cases import HITOM, STORY
from tests.scripted_methods import ask, given, made, path, perfect


def test_it_is_one_call() -> None:
    assert [path("direct", asked) for asked in (*HITOM, STORY)] == [["answer"]] * 5


def test_it_asks_what_chain_of_thought_asks_but_for_the_thinking() -> None:
    direct, cot = perfect(), perfect()
    ask("direct", HITOM[2], direct)
    ask("cot", HITOM[2], cot)
    assert given(direct.requests[0]) == given(cot.requests[0])
    assert "step by step" not in direct.requests[0].messages[0].content
    assert direct.requests[0].key != cot.requests[0].key


def test_its_answers_are_not_those_of_chain_of_thought() -> None:
    direct, cot = (made(name, perfect()).fields() for name in ("direct", "cot"))
    assert (direct["method"], cot["method"]) == ("direct", "cot")
    assert direct["prompts"] != cot["prompts"]


def test_an_answer_that_names_two_options_fails() -> None:
    assert ask("direct", HITOM[0], perfect(answer="B")) == "basket"
    with pytest.raises(StepFailure) as caught:
        ask("direct", HITOM[0], perfect(answer="A or B"))
    assert caught.value.step == "answer"
