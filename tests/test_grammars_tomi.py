"""The grammar of ToMi: its lines, its questions, its vocabulary, and where containers stand."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from rectom.errors import StoryError
from rectom.events import Event
from rectom.facts import EMPTY
from rectom.grammars.tomi import Asked, answer_to, read_line, read_question, read_story, reduced_question, vocabulary
from rectom.perspective import build_global
from rectom.story import Story, Vocabulary
from tests.test_tomi import opened

STORY = Story(
    "made-up",
    (
        "Zoe entered the shed.",
        "Kai is in the shed.",
        "Zoe hates the T-shirt",
        "The t-shirt is in the red_jar.",
        "Pat entered the loft.",
        "Zoe exited the shed.",
        "Kai moved the t-shirt to the urn.",
        "Pat likes the shed.",
    ),
)


def printed(story: Story) -> list[str]:
    return [str(event) for event in read_story(story)]


def places(events: tuple[Event, ...]) -> dict[str, str]:
    """The rooms of the containers, as the last facts about them say."""
    facts = [fact for event in events for fact in event.delta.added if fact.predicate == "at"]
    return {str(fact.args[0]): str(fact.args[1]) for fact in facts}


def test_every_kind_of_line_becomes_its_event() -> None:
    assert printed(STORY) == [
        "+in_room(Zoe,shed)",
        "+in_room(Kai,shed)",
        "-",
        "+began_in(t-shirt,red_jar) +in(t-shirt,red_jar)",
        "+in_room(Pat,loft)",
        "-in_room(Zoe,shed)",
        "+at(red_jar,shed) +at(urn,shed) +in(t-shirt,urn) -in(t-shirt,red_jar)",
        "-",
    ]


def test_a_line_about_a_container_that_holds_something_tells_its_room() -> None:
    lines = ("Zoe entered the pantry.", "The hat is in the urn.", "The urn is in the pantry.")
    moved = ("Zoe moved the hat to the pantry.", "The pantry is in the pantry.", "The urn is in the pantry.")
    assert printed(Story("s", lines + moved))[2:] == [
        "+at(urn,pantry)",
        "+at(pantry,pantry) +in(hat,pantry) -in(hat,urn)",
        "+at(pantry,pantry)",
        "+at(urn,pantry)",
    ]


def test_a_place_that_is_told_counts_and_not_that_of_the_mover() -> None:
    lines = (
        "Zoe entered the loft.",
        "The hat is in the urn.",
        "The urn is in the shed.",
        "Zoe moved the hat to the jar.",
    )
    assert places(read_story(Story("s", lines))) == {"urn": "shed", "jar": "loft"}
    assert places(read_story(Story("s", (*lines, "The jar is in the shed.")))) == {"urn": "shed", "jar": "shed"}


def test_a_mover_is_in_the_room_entered_last() -> None:
    rooms = [f"Zoe entered the {room}." for room in ("shed", "loft", "hall", "yard", "den", "barn")]
    assert places(read_story(Story("s", (*rooms, "Zoe moved the hat to the jar.")))) == {"jar": "barn"}


def test_a_mover_who_is_nowhere_tells_no_place() -> None:
    story = Story("s", ("The hat is in the urn.", "Zoe moved the hat to the jar."))
    assert printed(story)[1] == "+in(hat,jar) -in(hat,urn)"


def test_where_an_object_began_outlasts_its_moves() -> None:
    again = Story("s", (*STORY.lines, "The t-shirt is in the red_jar.", "Kai moved the t-shirt to the sack."))
    final = build_global(read_story(again)).final
    assert answer_to(Asked((), "t-shirt", beginning=True), final) == "red_jar"
    assert answer_to(Asked((), "t-shirt"), final) == "sack"
    assert answer_to(Asked((), "hat", beginning=True), final) is None


def test_an_object_that_is_first_moved_begins_where_it_is_moved_to() -> None:
    assert printed(Story("s", ("Zoe moved the hat to the jar.",))) == ["+began_in(hat,jar) +in(hat,jar)"]


@pytest.mark.parametrize(
    "line", ["Zoe ate the hat.", "Zoe entered the shed", "the hat is in the urn.", "", "Zoe moved."]
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(StoryError, match="no ToMi template fits the line"):
        read_line(line, EMPTY)


def test_a_line_that_does_not_fit_is_named() -> None:
    with pytest.raises(StoryError, match=r"^story odd, line 2: no ToMi template fits the line 'Zoe slept\.'"):
        read_story(Story("odd", ("Zoe entered the shed.", "Zoe slept.", "Kai slept.")))
    with pytest.raises(StoryError, match=r"^line 2: "):
        vocabulary(("Zoe entered the shed.", "Zoe slept."))


@pytest.mark.parametrize(
    ("text", "asked", "reduced"),
    [
        ("Where is the hat really?", Asked((), "hat"), "Where is the hat really?"),
        (
            "Where was the t-shirt at the beginning?",
            Asked((), "t-shirt", True),
            "Where was the t-shirt at the beginning?",
        ),
        (" Where will Zoe look for the hat?", Asked(("Zoe",), "hat"), "Where is the hat really?"),
        (
            "Where does Zoe think that Kai searches for the green_pepper?",
            Asked(("Zoe", "Kai"), "green_pepper"),
            "Where is the green_pepper really?",
        ),
    ],
)
def test_every_kind_of_question_is_read_and_reduced(text: str, asked: Asked, reduced: str) -> None:
    assert read_question(text) == asked
    assert reduced_question(asked) == reduced
    assert read_question(reduced) == Asked((), asked.thing, asked.beginning)


@pytest.mark.parametrize("text", ["Where is the hat?", "Where does Zoe look for the hat?", "", "Who is Zoe?"])
def test_other_questions_are_refused(text: str) -> None:
    with pytest.raises(StoryError, match="not a ToMi question"):
        read_question(text)


def test_the_vocabulary_names_things_by_what_they_are() -> None:
    assert vocabulary(STORY.lines) == Vocabulary(
        ("Zoe", "Kai", "Pat"), ("shed", "loft"), ("t-shirt",), ("red_jar", "urn")
    )


def test_the_vocabulary_of_a_part_of_a_story_has_who_leaves() -> None:
    assert vocabulary(["Zoe exited the shed."]) == Vocabulary(("Zoe",), ("shed",), (), ())


@pytest.mark.parametrize("subset", ["1000", "test"])
def test_every_story_of_the_files_is_read(subset: str) -> None:
    words = [vocabulary(story.lines) for story in opened(subset).stories]
    assert {(len(each.objects), len(each.containers)) for each in words} == {(1, 2)}
    assert Counter(len(each.characters) for each in words).keys() == {2, 3}
    assert max(len(each.rooms) for each in words) == 2


@pytest.mark.parametrize("subset", ["1000", "test"])
def test_every_question_of_the_files_is_about_its_story(subset: str) -> None:
    benchmark = opened(subset)
    words = {story.id: vocabulary(story.lines) for story in benchmark.stories}
    for question in benchmark.questions:
        asked = read_question(question.text)
        assert len(asked.chain) == question.order
        assert asked.beginning == (question.group == "memory")
        assert asked.thing in words[question.story_id].objects
        assert set(asked.chain) <= set(words[question.story_id].characters)


def test_in_the_files_containers_stand_in_the_room_of_the_mover() -> None:
    told = re.compile(r"The ([\w-]+) is in the ([\w-]+)\.")
    for story in opened("1000").stories:
        containers = set(vocabulary(story.lines).containers)
        found = {line: told.fullmatch(line) for line in story.lines}
        rooms = {match[1]: match[2] for match in found.values() if match and match[1] in containers}
        untold = tuple(line for line, match in found.items() if not match or match[1] not in containers)
        assert rooms.keys() == containers
        assert places(read_story(story)) == rooms
        assert places(read_story(Story("untold", untold))) == rooms
