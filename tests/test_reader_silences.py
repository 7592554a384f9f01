from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.reader.silences import MATTER, Silence, acts, comings, directed, silences
from rectom.reader.utterances import appearing, speakers
from tests.test_reader_dialogue import LINES

WHO = ("Ann", "Ben", "Cy", "Dr. Dee")
CONVERSATIONS = st.lists(
    st.tuples(st.sampled_from(WHO), st.sampled_from(["Hi.", *WHO])).map(": ".join)
    | st.sampled_from(["A dog barks.", "[Ann joins]", "[Ben and Cy leave]", "Ann & Ben: Bye!"]),
    max_size=12,
)


def there(lines: Sequence[str], done: dict[int, str]) -> list[str]:
    """Who is there after each line."""
    start, changes = comings(lines, done)
    here, found = set(start), []
    for number in range(1, len(lines) + 1):
        joins, leaves = changes.get(number, ((), ()))
        here = (here | {*joins} | {*appearing(lines[number - 1])}) - {*leaves}
        found.append(" ".join(sorted(here)))
    return found


# Silences.


def test_a_silence_lies_between_the_words_of_one_person() -> None:
    assert list(silences(LINES)) == [
        Silence("Ann", 3, 6),
        Silence("Ben", 2, 5),
        Silence("Ben", 5, 8),
        Silence("Cy", 0, 4),
        Silence("Cy", 4, 8),
        Silence("Dee", 0, 7),
    ]


def test_who_skips_one_line_was_there() -> None:
    assert not list(silences(("Ann: Hi.", "Ben: Hi.", "Ann: So.", "Ben: So.")))


def test_a_silence_that_a_stage_direction_begins_or_ends_is_settled() -> None:
    lines = ("Ann: Hi.", "[Ann leaves]", "Ben: So.", "Ben: Well.", "[Ann joins]", "Ben: Ah.", "Ben: Oh.", "Ann: What?")
    assert list(silences(lines)) == [Silence("Ben", 0, 3)]


@given(CONVERSATIONS)
def test_nobody_appears_in_his_own_silence(lines: list[str]) -> None:
    for silence in silences(lines):
        within = lines[silence.last : silence.next - 1]
        assert len(within) >= 2
        assert not any(silence.who in appearing(line) for line in within)


# Acts.


def test_what_a_line_can_do_hangs_on_who_is_silent_around_it() -> None:
    assert {number: can[len(MATTER) :] for number, can in acts(LINES).items()} == {
        2: ("leaves",),
        3: ("leaves", "welcomes Cy"),
        4: ("arrives", "leaves"),
        5: ("returns", "leaves"),
        6: ("returns", "welcomes Dee"),
        7: ("arrives",),
    }


def test_who_has_spoken_can_be_missed_and_bidden_farewell() -> None:
    lines = ("Ann: I am off.", "Ben: Bye, Ann!", "Cy: So.", "Ben: Where is Anna? And Ann?")
    assert acts(lines)[2] == (*MATTER, "bids farewell", "misses Ann")
    assert acts(lines)[4][-1] == "misses Ann"
    assert acts(lines)[3] == (*MATTER, "arrives")


@given(CONVERSATIONS)
def test_only_lines_of_or_about_the_silent_are_open(lines: list[str]) -> None:
    silent = {silence.who for silence in silences(lines)}
    for number, can in acts(lines).items():
        assert can[: len(MATTER)] == MATTER
        assert len(set(can)) == len(can) > len(MATTER)
        assert any(who in lines[number - 1] for who in silent)
        assert number not in directed(lines)


# Comings and goings.


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ({}, ["Ann Ben Cy Dee"] * 7),
        ({7: "arrives"}, [*["Ann Ben Cy"] * 6, "Ann Ben Cy Dee"]),
        ({6: "welcomes Dee"}, [*["Ann Ben Cy"] * 5, *["Ann Ben Cy Dee"] * 2]),
        ({6: "welcomes Dee", 7: "arrives"}, [*["Ann Ben Cy"] * 5, *["Ann Ben Cy Dee"] * 2]),
        ({2: "leaves"}, ["Ann Ben Cy Dee", *["Ann Cy Dee"] * 2, "Ann Cy Dee", *["Ann Ben Cy Dee"] * 3]),
        ({2: "leaves", 5: "returns"}, ["Ann Ben Cy Dee", *["Ann Cy Dee"] * 3, *["Ann Ben Cy Dee"] * 3]),
        ({5: "returns"}, ["Ann Ben Cy Dee", *["Ann Cy Dee"] * 3, *["Ann Ben Cy Dee"] * 3]),
        (
            {4: "misses Ben", 5: "returns"},
            [*["Ann Ben Cy Dee"] * 2, "Ann Cy Dee", "Ann Cy Dee", *["Ann Ben Cy Dee"] * 3],
        ),
        ({3: "bids farewell", 4: "agrees"}, ["Ann Ben Cy Dee"] * 7),
        ({4: "leaves"}, [*["Ann Ben Cy Dee"] * 3, *["Ann Ben Dee"] * 3, "Ann Ben Dee"]),
    ],
)
def test_from_what_lines_do_follows_who_is_there(done: dict[int, str], expected: list[str]) -> None:
    assert there(LINES, done) == expected


def test_stage_directions_are_such_acts() -> None:
    lines = ("[Ann joins]", "Ann: Hi.", "[Ben and Cy join]", "Ben: Hi.", "[Ann leaves]", "[Dee leaves]", "Cy: So.")
    assert directed(lines) == {1: "arrives", 3: "arrives", 5: "leaves", 6: "leaves"}
    assert there(lines, directed(lines)) == [
        *["Ann Dee"] * 2,
        *["Ann Ben Cy Dee"] * 2,
        "Ben Cy Dee",
        "Ben Cy",
        "Ben Cy",
    ]


@given(CONVERSATIONS, st.data())
def test_whatever_lines_do_only_who_appears_in_them_moves(lines: list[str], data: st.DataObject) -> None:
    done = {number: data.draw(st.sampled_from(can)) for number, can in acts(lines).items()} | directed(lines)
    start, changes = comings(lines, done)
    known = set(speakers(lines))
    assert {*start} <= known
    for number, (joins, leaves) in changes.items():
        assert 1 <= number <= len(lines)
        assert {*joins, *leaves} <= known
