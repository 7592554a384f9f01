from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.errors import StoryError
from rectom.story import Story


def test_numbered_lines_are_the_story_and_the_rest_is_instruction() -> None:
    story = Story.parse("Read the story.\n1 Anne entered the hall.\n\n***\n2 Bob exited the hall.\n\nNote: no numbers.")
    assert story.lines == ("Anne entered the hall.", "Bob exited the hall.")


@pytest.mark.parametrize("mark", ["1 ", "1. ", "1: ", "1) ", "  12   "])
def test_numbers_may_be_written_in_several_ways(mark: str) -> None:
    assert Story.parse(f"{mark}Anne entered the hall.").lines == ("Anne entered the hall.",)


def test_without_numbers_every_line_is_an_event() -> None:
    assert Story.parse("Anne came in. She sat.\n\nBob left.\n").lines == ("Anne came in. She sat.", "Bob left.")


def test_a_single_paragraph_is_split_into_sentences() -> None:
    assert Story.parse("Anne came in. Did Bob leave? He did!").lines == ("Anne came in.", "Did Bob leave?", "He did!")


@pytest.mark.parametrize("text", ["", "  \n\t\n", "\n"])
def test_an_empty_story_is_an_error_that_says_what_to_write(text: str) -> None:
    with pytest.raises(StoryError, match="S7 holds no story: write an event a line"):
        Story.parse(text, "S7")


@given(st.lists(st.from_regex(r"[A-Z][a-z ]{1,20}[a-z]\.", fullmatch=True), min_size=1))
def test_what_is_numbered_is_read_back(lines: list[str]) -> None:
    story = Story("s", tuple(lines))
    assert Story.parse(story.numbered(), "s") == story


def test_numbers_within_a_story_do_not_hide_its_other_lines() -> None:
    story = Story.parse("Anne entered the hall.\n2 minutes later Anne exited the hall.\nThe ball is in the box.")
    assert len(story.lines) == 3
    story = Story.parse("Anne entered the hall.\n7 Anne moved the ball to the chest.")
    assert len(story.lines) == 2


def test_what_stands_around_numbered_lines_is_no_part_of_the_story() -> None:
    assert Story.parse("Read this:\n1 Anne entered the hall.\n2 Anne exited the hall.\n***").lines == (
        "Anne entered the hall.",
        "Anne exited the hall.",
    )


def test_a_line_without_a_number_between_numbered_ones_is_refused() -> None:
    with pytest.raises(StoryError, match=r"'Bob exited the hall\.' has no number"):
        Story.parse("1 Anne entered the hall.\nBob exited the hall.\n2 Anne exited the hall.")


def test_a_byte_order_mark_is_no_letter() -> None:
    assert Story.parse("\ufeffAnne entered the hall.\nAnne exited the hall.").lines[0] == "Anne entered the hall."
