from __future__ import annotations

import pytest

from rectom.benchmarks import fresh
from rectom.benchmarks.generate import VOCABULARIES
from rectom.benchmarks.registry import adapter
from rectom.reader.rules import RuleReader
from rectom.words import words_of
from tests.laboratory import call


@pytest.mark.parametrize(("subset", "stories", "questions", "highest"), [("small", 8, 40, 4), ("deep", 20, 180, 8)])
def test_a_subset_is_what_it_is_said_to_be(subset: str, stories: int, questions: int, highest: int) -> None:
    benchmark = adapter("fresh").open(subset)
    assert (len(benchmark.stories), len(benchmark.questions)) == (stories, questions)
    assert {question.order for question in benchmark.questions} == set(range(highest + 1))
    assert f"{questions} questions" in fresh.ADAPTER.subsets[subset]
    told = [story for story in benchmark.stories if any("claimed" in line or "told" in line for line in story.lines)]
    assert 2 * len(told) == stories


def test_it_is_the_same_everywhere() -> None:
    assert adapter("fresh").open("small").digest[:16] == "0f695f107f7f3366"


async def test_the_rules_answer_every_question() -> None:
    benchmark, reader = adapter("fresh").open("small"), RuleReader()
    for story in benchmark.stories:
        world = reader.world(story)
        for question in benchmark.of_story(story.id):
            perspective, chain = world, await reader.chain(question.text, words_of(story.lines))
            for name in chain:
                perspective = reader.perspective(perspective, name)
            reduced = await reader.reduce(question.text, chain)
            assert await reader.answer(reduced, perspective.final, question.choices) == question.gold


def test_no_name_is_one_of_hitoms() -> None:
    published = VOCABULARIES["hitom"]
    for story in adapter("fresh").open("small").stories:
        words = words_of(story.lines)
        assert not {*published.names} & {*words.characters}
        assert not {*published.objects} & {*words.objects}
        assert not {*published.containers} & {*words.containers}


def test_it_needs_no_file() -> None:
    assert call("data", "show", "fresh", RECTOM_DATA="/nowhere").status == 0
    assert "fresh" in call("data", "list").out
