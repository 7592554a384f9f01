from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom import grammar
from rectom.benchmarks.base import Benchmark
from rectom.errors import StoryError
from rectom.events import NOTHING, Event, Kind, persistent, private_tell, public_claim
from rectom.facts import in_room, inside
from rectom.story import Story, Vocabulary
from tests.conftest import stories

NAMES = st.from_regex(r"[A-Z][a-z]{2,8}", fullmatch=True)


def _template(line: str, event: Event) -> str:
    if event.kind is Kind.TRANSIENT:
        return "private" if event.listener else "public"
    if event == NOTHING:
        return "stayed" if "made no movements" in line else "noise"
    if event.moves:
        return "entered" if event.delta.added else "exited"
    return "moved" if " moved " in line else "is in"


def test_all_lines_of_the_real_file_are_read(cotp: Benchmark) -> None:
    lines = [line for story in cotp.stories for line in story.lines]
    assert len(lines) == 3_150
    assert Counter(_template(line, grammar.read_line(line)) for line in lines) == {
        "entered": 480,
        "is in": 240,
        "moved": 487,
        "stayed": 513,
        "exited": 1000,
        "public": 57,
        "private": 103,
        "noise": 270,
    }


def test_the_real_stories_begin_with_noise_ten_times_and_move_nothing_three_times(cotp: Benchmark) -> None:
    events = [grammar.read_story(story) for story in cotp.stories]
    assert sum(sequence[0] == NOTHING for sequence in events) == 10
    idle = [
        event
        for story, sequence in zip(cotp.stories, events, strict=True)
        for line, event in zip(story.lines, sequence, strict=True)
        if " moved " in line and not event.delta.removed
    ]
    assert len(idle) == 3


def test_every_real_question_is_read_and_written_back(cotp: Benchmark) -> None:
    for question in cotp.questions:
        chain, thing = grammar.read_question(question.text)
        assert len(chain) == question.order
        assert grammar.belief_question(chain, thing) == question.text


BOX = inside("ball", "box")


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("Anne entered the hall.", persistent([in_room("Anne", "hall")])),
        ("Anne and Bob entered the hall.", persistent([in_room("Anne", "hall"), in_room("Bob", "hall")])),
        (
            "Anne, Bob and Cy entered the waiting_room.",
            persistent(in_room(name, "waiting_room") for name in ("Anne", "Bob", "Cy")),
        ),
        ("Anne exited the hall.", persistent(removed=[in_room("Anne", "hall")])),
        ("The ball is in the box.", persistent([BOX])),
        ("The ball is in the box now.", persistent([BOX])),
        ("Anne moved the ball to the box.", persistent([BOX])),
        ("Anne made no movements and stayed in the hall for 1 minute.", NOTHING),
        ("Anne publicly claimed that ball is in the box.", public_claim("Anne", BOX)),
        ("Anne publicly claimed that the ball is in the box now.", public_claim("Anne", BOX)),
        ("Anne privately told Bob that the ball is in the box.", private_tell("Anne", "Bob", BOX)),
        ("Anne privately told Bob that the ball is in the box now.", private_tell("Anne", "Bob", BOX)),
        ("Anne likes the red_box.", NOTHING),
        ("Anne dislikes the sweet_potato.", NOTHING),
        ("Anne saw a monkey.", NOTHING),
        ("Anne lost his gloves.", NOTHING),
        ("  Anne exited the hall. ", persistent(removed=[in_room("Anne", "hall")])),
    ],
)
def test_every_template_in_both_wordings(line: str, event: Event) -> None:
    assert grammar.read_line(line) == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Anne",
        "Anne entered hall.",
        "Anne and entered the hall.",
        "Anne went into the hall.",
        "Anne moved the ball.",
        "Anne moved the ball to the box",
        "Anne publicly claimed that Bob lies.",
        "Anne saw a monkey in the hall.",
        "Anne exited the hall. Bob exited the hall.",
    ],
)
def test_other_lines_are_an_error_that_says_what_to_do(line: str) -> None:
    with pytest.raises(StoryError, match=r"no Hi-ToM template fits|not a list of names"):
        grammar.read_line(line)


@given(st.text())
def test_any_line_is_read_or_a_story_error(line: str) -> None:
    with suppress(StoryError):
        grammar.read_line(line)


def test_the_faulty_line_is_named() -> None:
    with pytest.raises(StoryError, match=r"story s1, line 2: no Hi-ToM template fits the line 'Bob sang\.'"):
        grammar.read_story(Story("s1", ("Anne entered the hall.", "Bob sang.")))


@given(st.lists(NAMES, min_size=1, max_size=9, unique=True))
def test_lists_of_people_are_read(names: list[str]) -> None:
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    assert grammar.people(text) == names


@given(st.lists(NAMES.filter(lambda name: name != "The"), max_size=8), st.sampled_from(["ball", "sweet_potato"]))
def test_questions_of_any_order_are_written_and_read_back(chain: list[str], thing: str) -> None:
    text = grammar.belief_question(chain, thing)
    assert grammar.read_question(text) == (tuple(chain), thing)
    assert ("really" in text) == (len(chain) <= 1)
    assert text.count("think") == len(chain)


def test_the_actual_world_may_be_asked_for_plainly() -> None:
    assert grammar.read_question("Where is the ball?") == ((), "ball")


def test_the_last_of_several_people_may_follow_a_comma() -> None:
    assert grammar.people("Anne, Bob, and Cid") == ["Anne", "Bob", "Cid"]


@pytest.mark.parametrize(
    "text",
    ["", "Where is a ball?", "Where does the ball is?", "Where does Anne Bob thinks the ball is?", "Who is Anne?"],
)
def test_other_questions_are_an_error(text: str) -> None:
    with pytest.raises(StoryError, match="not a Hi-ToM question"):
        grammar.read_question(text)


def test_the_vocabulary_is_by_kind() -> None:
    lines = [
        "Anne likes the jar.",
        "Anne and Bob entered the hall.",
        "The ball is in the box.",
        "Anne privately told Cy that the ball is in the tin.",
    ]
    assert grammar.vocabulary(lines) == Vocabulary(("Anne", "Bob", "Cy"), ("hall",), ("ball",), ("box", "tin"))


@given(stories())
def test_generated_stories_are_read_whole(story: Story) -> None:
    events = grammar.read_story(story)
    assert len(events) == len(story.lines)
    words = grammar.vocabulary(story.lines)
    text = " ".join(story.lines)
    for name in (*words.characters, *words.rooms, *words.objects, *words.containers):
        assert re.search(rf"\b{name}\b", text)
