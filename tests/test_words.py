from __future__ import annotations

import pytest
from hypothesis import given

from rectom import grammar
from rectom.errors import StoryError
from rectom.grammar import belief_question, reduced_question
from rectom.reader.rules import RuleReader
from rectom.story import Story
from rectom.words import check_question, words_of
from tests.conftest import characters_of, stories

FREE = (
    "In the kitchen, Mina puts her book on a Shelf.",
    "Then Omar takes the book while Mina is out.",
    "Everyone knows that Omar likes the kitchen.",
)


@given(stories())
def test_lines_of_the_grammar_give_what_each_name_names(story: Story) -> None:
    words = words_of(story.lines)
    assert words == grammar.vocabulary(story.lines)
    world = RuleReader().world(story)
    assert set(characters_of(world)) <= set(words.characters)
    assert set(world.setting.places) == set(words.containers)
    assert not set(words.characters) & {*words.rooms, *words.objects, *words.containers}


def test_other_text_gives_capitalised_words_as_characters() -> None:
    assert set(words_of(FREE).characters) >= {"Mina", "Omar"}
    assert not set(words_of(FREE).characters) & {"Then", "Everyone"}


def test_other_text_leaves_the_things_open() -> None:
    words = words_of(FREE)
    assert words.open
    assert words.objects == words.rooms == words.containers == ()
    check_question("Where is the teapot really?", words)
    assert not words_of(STORY.lines).open


def test_no_lines_name_nothing() -> None:
    words = words_of([])
    assert (words.characters, words.rooms, words.objects, words.containers) == ((), (), (), ())


STORY = Story.parse("Anne and Bob entered the hall.\nThe ball is in the box.\nBob moved the ball to the bag.")
WORDS = words_of(STORY.lines)


@pytest.mark.parametrize(
    "question", [reduced_question("ball"), belief_question(["Anne"], "ball"), belief_question(["Bob", "Anne"], "ball")]
)
def test_a_question_about_the_storys_own_names_is_let_through(question: str) -> None:
    check_question(question, WORDS)


def test_an_unknown_character_is_named_with_those_that_exist() -> None:
    with pytest.raises(StoryError, match=r"the story has no character 'Zoe'; it has Anne, Bob"):
        check_question(belief_question(["Anne", "Zoe"], "ball"), WORDS)


def test_an_unknown_object_is_named_with_those_that_exist() -> None:
    with pytest.raises(StoryError, match=r"the story has no object 'kite'; it has ball"):
        check_question(reduced_question("kite"), WORDS)


def test_a_container_is_no_object() -> None:
    with pytest.raises(StoryError, match="no object 'box'"):
        check_question(reduced_question("box"), WORDS)


def test_a_question_of_another_grammar_is_the_readers_affair() -> None:
    check_question("Does Zoe know where Kim hid the kite?", WORDS)
