from __future__ import annotations

from hypothesis import given

from rectom import grammar
from rectom.events import persistent
from rectom.facts import in_room, inside
from rectom.perspective import Perspective
from rectom.rules import WAITING_ROOM
from rectom.setting import Setting, setting_of
from rectom.story import Story
from tests.conftest import stories

STORY = Story.parse(
    """
    1 Anne, Bob and Cy entered the hall.
    2 The ball is in the box.
    3 Anne moved the ball to the bag.
    4 Anne exited the hall.
    5 Bob exited the hall.
    6 Anne, Bob and Cy entered the waiting_room.
    7 Anne publicly claimed that ball is in the tin.
    8 Bob entered the den.
    9 The cup is in the jar.
    10 The pin is in the box.
    11 Cy privately told Bob that the ball is in the urn.
    12 Cy publicly claimed that ball is in the jar.
    """
)


def _setting(story: Story) -> Setting:
    return setting_of(grammar.read_story(story))


def test_a_container_stands_in_the_room_entered_last_when_something_was_put_into_it() -> None:
    places = _setting(STORY).places
    assert (places["bag"], places["jar"], places["box"]) == ("hall", "den", "den")


def test_a_container_that_is_only_spoken_of_stands_where_the_object_is() -> None:
    places = _setting(STORY).places
    assert (places["tin"], places["urn"]) == ("hall", "hall")


def test_talk_moves_no_container() -> None:
    assert _setting(STORY).places["jar"] == "den"


def test_who_is_said_to_be_in_many_rooms_is_in_the_same_one_in_every_process() -> None:
    rooms = [in_room("Anne", f"room{number}") for number in range(50)]
    assert setting_of([persistent(rooms), persistent([inside("ball", "box")])]).places == {"box": "room0"}


def test_exits_are_ordered_by_who_left_last() -> None:
    exits = _setting(STORY).exits
    assert exits[2] == ()
    assert exits[4] == ("Anne", "Bob")
    assert exits[5] == ("Anne", "Bob", "Cy")
    assert exits[-1] == ("Anne", "Bob", "Cy")


def test_leaving_the_waiting_room_is_no_exit() -> None:
    exits = _setting(STORY).exits
    assert exits[7] == exits[6]


@given(stories())
def test_everyone_regroups_so_everyone_has_left_and_nothing_stands_in_the_waiting_room(story: Story) -> None:
    setting = _setting(story)
    words = grammar.vocabulary(story.lines)
    assert set(setting.exits[-1]) == set(words.characters)
    assert set(setting.places) == set(words.containers)
    assert set(setting.places.values()) <= set(words.rooms) - {WAITING_ROOM}


def test_in_the_real_stories_every_container_has_a_room(worlds: dict[str, Perspective]) -> None:
    for world in worlds.values():
        assert "" not in world.setting.places.values()
        assert WAITING_ROOM not in world.setting.places.values()
        assert len(world.setting.exits) == len(world.states)
