from __future__ import annotations

import re
from collections import Counter

import pytest

from rectom.benchmarks import registry
from rectom.benchmarks.base import Benchmark
from rectom.methods.believers import chain_of, characters_of
from rectom.story import Story
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI, Case
from tests.published import published


def benchmark(name: str, subset: str) -> Benchmark:
    """A benchmark from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    return registry.adapter(name).open(subset, published(name))


@pytest.mark.parametrize(
    ("asked", "chain"),
    [
        *zip(HITOM, ((), ("Bob",), ("Cid", "Anne"), ("Cid", "Bob", "Anne")), strict=True),
        *zip(TOMI, ((), (), ("Ann",), ("Bo", "Ann")), strict=True),
        (STORY, ("Ann",)),
        *zip(DIALOGUE, ((), ("Ann",), ("Bo", "Ann")), strict=True),
        *zip(GENERIC, ((), ("Ann",), ("Bo", "Ann")), strict=True),
    ],
)
def test_the_chain_of_a_question_of_each_kind(asked: Case, chain: tuple[str, ...]) -> None:
    story, question, task = asked
    assert chain_of(story, question.text, task) == chain


@pytest.mark.parametrize("task", ["hitom", "tomi", "story", ""])
def test_a_question_outside_the_grammar_is_read_by_what_it_says_of_believing(task: str) -> None:
    assert chain_of(HITOM[0][0], "What does Cid believe about what Bob knows?", task) == ("Cid", "Bob")


def test_in_a_conversation_those_who_speak_count_and_the_questions_names_where_none_of_them_is_asked_for() -> None:
    story = DIALOGUE[0][0]
    assert chain_of(story, "What does Dr believe, and does Ann know it?", "dialogue") == ("Ann",)
    assert chain_of(story, "What does Anne believe about Bo?", "dialogue") == ("Anne",)
    assert chain_of(story, "What does Anne believe about Bo?", "") == ()


@pytest.mark.parametrize(
    ("question", "chain"),
    [
        ("Where does Han Meimei look for it?", ("Han Meimei",)),
        ("Where does Li Lei think that Han Mei Mei looks for it?", ("Li Lei", "Han Mei Mei")),
        ("Does Lei think so?", ("Lei",)),
        ("Does Lilei think so?", ("Lilei",)),
    ],
)
def test_a_name_of_several_words_is_one_however_the_story_spells_it(question: str, chain: tuple[str, ...]) -> None:
    story = Story("s", ("Han Meimei and Li Lei met Mei.",))
    assert chain_of(story, question, "story") == chain


def test_tombenchs_false_beliefs_have_a_chain_as_long_as_they_are_nested() -> None:
    asked = benchmark("tombench", "false-belief-en-once")
    stories = {story.id: story for story in asked.stories}
    lengths: Counter[tuple[int, int]] = Counter()
    for question in asked.questions:
        acts, thinks = re.search(r"\b(?:look|expect)", question.text), re.search(r"\bthinks?\b", question.text)
        chain = chain_of(stories[question.story_id], question.text, asked.task)
        lengths[bool(acts) + bool(thinks), len(chain)] += 1
    assert lengths == {(0, 0): 200, (1, 1): 200, (2, 2): 200}


@pytest.mark.parametrize(
    ("asked", "characters"),
    [
        (HITOM[0], ("Anne", "Bob", "Cid")),
        (TOMI[0], ("Ann", "Bo")),
        (DIALOGUE[0], ("Ann", "Bo", "Cy")),
        (GENERIC[0], ("Ann", "Bo")),
    ],
)
def test_the_characters_of_each_kind_of_text(asked: Case, characters: tuple[str, ...]) -> None:
    assert characters_of(asked[0], asked[2]) == characters


def test_in_tomis_grammar_a_container_is_nobody() -> None:
    story = Story("s", ("Ann entered the den.", "The Cup is in the den."))
    assert characters_of(story, "tomi") == ("Ann",)


def test_a_text_of_no_grammar_has_everyone_who_is_named() -> None:
    story = Story("s", ("Ann met Bo.", "It rained."))
    assert {characters_of(story, task) for task in ("hitom", "tomi", "story", "")} == {("Ann", "Bo")}


@pytest.mark.parametrize(("name", "subset"), [("hitom", "cotp"), ("tomi", "1000")])
def test_the_chain_is_as_long_as_the_order_of_every_question_of_a_grammar(name: str, subset: str) -> None:
    asked = benchmark(name, subset)
    stories = {story.id: story for story in asked.stories}
    for question in asked.questions:
        chain = chain_of(stories[question.story_id], question.text, asked.task)
        assert len(chain) == question.order
        assert set(chain) <= set(characters_of(stories[question.story_id], asked.task))


def test_bigtoms_questions_ask_for_the_first_word_of_the_story() -> None:
    asked = benchmark("bigtom", "all")
    stories = {story.id: story for story in asked.stories}
    assert len(asked.questions) == 5000
    for question in asked.questions:
        story = stories[question.story_id]
        first = re.match(r"\w+", story.lines[0])
        assert first
        assert chain_of(story, question.text, "story") == (first[0],)


def test_every_belief_question_of_fantom_has_a_chain_nearly_always_of_its_order() -> None:
    asked = benchmark("fantom", "belief")
    stories = {story.id: story for story in asked.stories}
    found = Counter(
        (question.order, len(chain_of(stories[question.story_id], question.text, "dialogue")))
        for question in asked.questions
    )
    assert found == {(1, 1): 865, (1, 2): 5, (2, 1): 22, (2, 2): 644, (2, 3): 4}
