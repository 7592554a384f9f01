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
