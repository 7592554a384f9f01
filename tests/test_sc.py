from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from rectom.errors import SettingsError, StepFailure
from rectom.llm import ModelId
from rectom.methods.base import Setup
from rectom.methods.sc import KIND, SelfConsistency, majority
from rectom.reader.asking import Asker
from tests.laboratory import Scripted
from tests.method_cases import HITOM
from tests.scripted_methods import ask, made, path, perfect


def drawing(*replies: str) -> Scripted:
    """A client whose chains of thought end in these replies, by the number of the sample."""
    return Scripted(lambda _, request: f"Answer: {replies[request.sample]}")


def test_it_draws_n_chains_five_unless_asked_for_more_or_fewer() -> None:
    assert path("sc", HITOM[1]) == ["answer"] * 5
    assert path("sc:n=1", HITOM[1]) == ["answer"]
    assert path("sc:n=12", HITOM[1]) == ["answer"] * 12


def test_its_chains_are_different_samples_the_first_of_which_is_chain_of_thoughts() -> None:
    chains, cot = perfect(), perfect()
    ask("sc:n=3", HITOM[1], chains)
    ask("cot", HITOM[1], cot)
    assert [request.sample for request in chains.requests] == [0, 1, 2]
    assert chains.requests[0].key == cot.requests[0].key
    assert len({request.key for request in chains.requests}) == 3


def test_another_answer_draws_other_chains() -> None:
    client = perfect()
    asker = Asker(client, ModelId("m"), benchmark=KIND.prompts).drawing(2)
    asyncio.run(SelfConsistency(Setup(asker, options={"n": "2", "seed": "0"})).answer(*HITOM[1][:2]))
    assert [request.sample for request in client.requests] == [2000, 2001]


def test_most_votes_win() -> None:
    assert ask("sc", HITOM[1], drawing("A", "B", "C", "B", "B")) == "basket"


def test_a_chain_that_names_no_option_has_no_vote() -> None:
    assert ask("sc", HITOM[1], drawing("nobody knows", "A or B", "unknown", "C", "never")) == "chest"


def test_where_no_chain_names_an_option_the_step_failed() -> None:
    with pytest.raises(StepFailure) as caught:
        ask("sc:n=2", HITOM[1], drawing("A or B", "nobody knows"))
    assert caught.value.step == "answer"
    assert "A or B" in caught.value.why


def test_of_equally_many_votes_one_wins_by_a_lot_that_falls_the_same_way_again() -> None:
    client = drawing("A", "B", "C", "B", "A")

    def winners(seed: int) -> Iterator[str]:
        story, question, _ = HITOM[1]
        for number in range(40):
            yield asyncio.run(
                made(f"sc:seed={seed}", client).answer(story, replace(question, text=f"{question.text} {number}"))
            )

    first, second = list(winners(0)), list(winners(1))
    assert first == list(winners(0))
    assert first != second
    assert set(first) == {"box", "basket"}


def test_the_lot_does_not_hang_on_the_order_of_the_votes() -> None:
    votes = ["c", "a", "b", "a", "b"]
    assert majority(votes, Random(3)) == majority(votes[::-1], Random(3))
    assert majority(["a", "b", "b"], Random(3)) == "b"


@pytest.mark.parametrize("option", ["n=0", "n=-1", "n=many", "n=1001", "n=2.5", "seed=-1", "seed=x"])
def test_numbers_that_are_none_are_said(option: str) -> None:
    with pytest.raises(SettingsError, match=f"--method sc:{option}: give a whole number"):
        made(f"sc:{option}", perfect())


def test_its_answers_depend_on_the_number_of_chains_and_the_seed() -> None:
    fields = [made(name, perfect()).fields() for name in ("sc", "sc:n=3", "sc:seed=1")]
    assert [(one["n"], one["seed"]) for one in fields] == [(5, 0), (3, 0), (5, 1)]
    assert {one["method"] for one in fields} == {"sc"}
