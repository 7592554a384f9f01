"""Small questions about texts of every kind, for the methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from rectom.story import Question, Story

#: A text, a question about it, and the kind of text.
Case: TypeAlias = tuple[Story, Question, str]

_ANNE_AND_BOB: Final = (
    "Anne, Bob and Cid entered the hall.",
    "The ball is in the box.",
    "Anne exited the hall.",
    "Bob moved the ball to the basket.",
    "Bob exited the hall.",
    "Cid moved the ball to the chest.",
    "Cid exited the hall.",
)


def case(
    text: str, task: str = "hitom", lines: Sequence[str] = _ANNE_AND_BOB, choices: str = "box basket chest"
) -> Case:
    """A question about a text of a kind; in Hi-ToM's story Anne leaves first, then Bob, then Cid."""
    return Story("s", tuple(lines)), Question("q", "s", text, tuple(choices.split())), task


#: A question of each order, by Hi-ToM's grammar, and of each other kind of text.
HITOM: Final = tuple(
    case(text)
    for text in (
        "Where is the ball really?",
        "Where does Bob really think the ball is?",
        "Where does Cid think Anne thinks the ball is?",
        "Where does Cid think Bob thinks Anne thinks the ball is?",
    )
)
_DEN: Final = ("Ann entered the den.", "Bo entered the den.", "The pen is in the cup.", "The cup is in the den.")
_DESK: Final = ("Ann exited the den.", "Bo moved the pen to the drawer.", "The drawer is in the den.")
TOMI: Final = tuple(
    case(text, "tomi", (*_DEN, *_DESK), "cup drawer")
    for text in (
        "Where is the pen really?",
        "Where was the pen at the beginning?",
        "Where will Ann look for the pen?",
        "Where does Bo think that Ann searches for the pen?",
    )
)
STORY: Final = case(
    "Does Ann believe that the pot is full?",
    "story",
    ("Ann, a cook, fills the pot.", "A guest empties it.", "Ann does not see the guest."),
    "full empty",
)
_TALK: Final = ("Ann: Back in a minute!", "Bo: The tea is cold.", "Cy & Bo: Too cold.", "Ann: Here I am.")
DIALOGUE: Final = tuple(
    case(text, "dialogue", _TALK, "cold unknown")
    for text in (
        "What did Bo say about the tea?",
        "What does Ann believe about the tea?",
        "What does Bo believe about Ann's belief about the tea?",
    )
)
GENERIC: Final = tuple(
    case(text, "", ("Ann goes out.", "Bo hides the pen in the cup."), "cup drawer")
    for text in (
        "What is in the cup?",
        "Where does Ann think the pen is?",
        "Where does Bo think Ann thinks the pen is?",
    )
)
