from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.bigtom import ADAPTER as BIGTOM
from rectom.benchmarks.fantom import ADAPTER as FANTOM
from rectom.chains import belief_chain, mentions
from rectom.task import task
from tests.published import published

NAMES = ("Ann", "Anna", "Ben", "Travis", "Mary Ann", "Will")


@pytest.mark.parametrize(
    ("question", "chain"),
    [
        # Verbs of belief.
        ("Does Ann believe the can is full?", ["Ann"]),
        ("Where does Ann really think the coin is?", ["Ann"]),
        ("Where does Ann think Ben thinks Anna thinks the coin is?", ["Ann", "Ben", "Anna"]),
        ("What does Ann believe that Ben still assumes about the trip?", ["Ann", "Ben"]),
        ("What does Ann know about it?", ["Ann"]),
        ("What does Ann feel that Ben understands?", ["Ann", "Ben"]),
        ("How does Ann believe that Ben views the influence of her upbringing?", ["Ann", "Ben"]),
        ("What does Ann believe was what Ben thought of it?", ["Ann", "Ben"]),
        ("What does Ann imagine?", ["Ann"]),
        # Nouns of belief.
        ("What is Ben's current understanding of the plan?", ["Ben"]),
        ("What is Ben’s belief about it?", ["Ben"]),
        ("What does Ann believe about Ben's opinion on Anna's hat?", ["Ann", "Ben"]),
        ("What does Ann believe about Travis' thoughts on it?", ["Ann", "Travis"]),
        ("What does Ann believe about Ben's own view?", ["Ann", "Ben"]),
        ("What does Ann believe about Ben's perceived interest in it?", ["Ann", "Ben"]),
        # What somebody will do.
        ("What will Ann do?", ["Ann"]),
        ("Where will Ann look for the coin?", ["Ann"]),
        ("Where does Ann think that Ben will look for the coin?", ["Ann", "Ben"]),
        ("What does Ann think Ben will do?", ["Ann", "Ben"]),
        ("After Ben returns, where does Ann look for the coin?", ["Ann"]),
        ("Where does Ann think Ben looks for it after Anna returns?", ["Ann", "Ben"]),
        ("Where does Ann think Ben searches for the coin?", ["Ann", "Ben"]),
        ("How does Ann look?", []),
        # Those whom it is about.
        ("What does Ann believe about Ben's sister?", ["Ann"]),
        ("What does Ann believe about Ben and Anna's views on it?", ["Ann"]),
        ("What does Ann believe Ben will like?", ["Ann"]),
        ("What did Ben say about his lamp?", []),
        ("Is the can really full?", []),
        ("Does Ann thinking matter?", []),
        # Names.
        ("What does Ann believe about Ann's belief?", ["Ann"]),
        ("What does Ann think Ben thinks Ann thinks?", ["Ann", "Ben"]),
        ("What does Mary Ann believe?", ["Mary Ann"]),
        ("What does Anna believe?", ["Anna"]),
        ("What does Joann believe?", []),
        ("What does Zoe believe?", []),
        ("What does Will believe?", ["Will"]),
        ("Will Ann come?", []),
        ("Where will Will look for it?", ["Will"]),
        ('"What does Ann believe about it?"', ["Ann"]),
    ],
)
def test_a_chain_holds_those_whose_beliefs_are_asked_for(question: str, chain: list[str]) -> None:
    assert list(belief_chain(question, NAMES)) == chain


def test_what_somebody_will_do_may_be_left_out() -> None:
    assert belief_chain("What will Ann do?", NAMES, acting=False) == ()
    assert belief_chain("What does Ann think Ben will do?", NAMES, acting=False) == ("Ann",)


def test_without_names_there_is_no_chain() -> None:
    assert belief_chain("Does Ann believe it?", ()) == ()


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=8), max_size=4))
def test_any_question_and_any_names_give_a_chain_of_those_names(question: str, names: list[str]) -> None:
    chain = belief_chain(question, names)
    assert set(chain) <= set(names)
    assert len(set(chain)) == len(chain)


def chains(benchmark: Benchmark) -> list[tuple[str, int | None, tuple[str, ...]]]:
    """The group, the order and the chain of each question, with the words of its story for names."""
    names = {story.id: task(benchmark.task).words(story.lines).characters for story in benchmark.stories}
    return [(q.group, q.order, belief_chain(q.text, names[q.story_id])) for q in benchmark.questions]


#: How many questions of an order have a chain of a length, where the two differ. Six name nobody by the name that is
#: written in the conversation (`Michael` for `Micheal`); the others word a belief as something else, or the reverse.
OTHER = {(1, 0): 5, (1, 2): 5, (2, 1): 23, (2, 3): 4}


@pytest.mark.parametrize(("subset", "other"), [("belief", OTHER | {(2, 0): 1, (2, 1): 22}), ("belief-full", OTHER)])
def test_fantoms_questions_have_as_many_characters_as_their_order_says(
    subset: str, other: dict[tuple[int, int], int]
) -> None:
    found = chains(FANTOM.open(subset, published("fantom", "fantom_v1.belief_only.json")))
    assert len(found) == 1540
    lengths = Counter((order, len(chain)) for _, order, chain in found)
    assert lengths[1, 1] + lengths[2, 2] == 1503
    assert lengths == {(1, 1): 860, (2, 2): 643, **other}


def test_bigtoms_questions_are_about_the_one_whom_the_story_is_about() -> None:
    benchmark = BIGTOM.open("all", published("bigtom", "bigtom.csv"))
    lengths = Counter(len(chain) for _, _, chain in chains(benchmark))
    assert lengths == {1: len(benchmark.questions)}


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does Ann believe Ben thinks?", {"Ann believe": "Ann", "Ben thinks": "Ben"}),
        ("What is Ann's view of Ben’s?", {"Ann's view": "Ann", "Ben’s": "Ben"}),
        ("Did Mary Ann and Ann leave?", {"Mary Ann and": "Mary Ann", "Ann leave": "Ann"}),
        ("Does Ann know Ben, and Anna?", {"Ann know": "Ann", "Ben": "Ben", "Anna": "Anna"}),
        ("Who told Ben Travis's story?", {"Ben": "Ben", "Travis's story": "Travis"}),
        ("What was said?", {}),
        ("Annabel knows.", {}),
    ],
)
def test_names_are_mentioned_each_with_the_word_that_follows(question: str, named: dict[str, str]) -> None:
    assert mentions(question, NAMES) == named


def test_of_no_names_there_is_no_mention() -> None:
    assert mentions("What does Ann believe?", ()) == {}
