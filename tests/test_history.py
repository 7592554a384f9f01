from __future__ import annotations

from collections.abc import Collection

import pytest

from rectom import grammar
from rectom.events import NOTHING, persistent, private_tell, public_claim, says
from rectom.facts import in_room, inside, said
from rectom.history import History, recurse, told
from rectom.story import Story

EVENTS = grammar.read_story(
    Story.parse(
        """
        1 Anne and Bob entered the hall.
        2 The ball is in the box.
        3 Anne likes the box.
        4 Anne exited the hall.
        5 Bob moved the ball to the bag.
        6 Bob privately told Anne that the ball is in the tin.
        """
    )
)
WHOLE = History(EVENTS)


def test_a_history_tells_its_events_by_their_steps_and_leaves_out_what_tells_nothing() -> None:
    assert WHOLE.entries() == {
        1: "+in_room(Anne,hall) +in_room(Bob,hall)",
        2: "+in(ball,box)",
        4: "-in_room(Anne,hall)",
        5: "+in(ball,bag) -in(ball,box)",
        6: "private_tell(Bob,Anne,in(ball,tin))",
    }


def test_who_observes_some_steps_has_them_alone_at_their_places() -> None:
    anne = WHOLE.seen_by("Anne", {1, 2, 4, 6})
    assert anne.chain == ("Anne",)
    assert anne.events == (EVENTS[0], EVENTS[1], None, EVENTS[3], None, EVENTS[5])
    assert list(anne.entries()) == [1, 2, 4, 6]


def test_what_the_outer_one_did_not_observe_the_inner_one_cannot_have_observed() -> None:
    bob = WHOLE.seen_by("Anne", {1, 2}).seen_by("Bob", range(1, 7))
    assert bob.chain == ("Anne", "Bob")
    assert list(bob.entries()) == [1, 2]


async def test_the_recursion_asks_of_each_history_what_the_next_one_observed_of_it() -> None:
    asked: list[tuple[tuple[str, ...], list[int], str]] = []

    async def witness(history: History, character: str) -> Collection[int]:
        asked.append((history.chain, list(history.entries()), character))
        return set(list(history.entries())[:-1])

    histories = await recurse(WHOLE, ["Anne", "Anne", "Bob"], witness)
    assert asked == [((), [1, 2, 4, 5, 6], "Anne"), (("Anne",), [1, 2, 4, 5], "Bob")]
    assert [history.chain for history in histories] == [(), ("Anne",), ("Anne",), ("Anne", "Bob")]
    # Whoever thinks about himself is not asked about twice.
    assert histories[1] is histories[2]
    assert list(histories[-1].entries()) == [1, 2, 4]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (NOTHING, "-"),
        (persistent([inside("ball", "bag")], [inside("ball", "box")]), "+in(ball,bag) -in(ball,box)"),
        (public_claim("Bob", inside("ball", "box")), "public_claim(Bob,in(ball,box))"),
        (private_tell("Bob", "Cy", inside("ball", "box")), "private_tell(Bob,Cy,in(ball,box))"),
    ],
)
def test_events_are_told_in_the_notation_of_the_paper(event: object, text: str) -> None:
    assert told(event) == text  # type: ignore[arg-type]


def test_an_utterance_is_told_once_and_in_one_line_with_who_comes_and_goes() -> None:
    words = said("Ann", 3, 'I "must"\ngo.')
    event = says("Ann", words, [in_room("Cy", "conversation"), words], [in_room("Ann", "conversation")])
    expected = r'says(Ann,"I \"must\"\ngo.") +in_room(Cy,conversation) -in_room(Ann,conversation)'
    assert told(event) == expected
