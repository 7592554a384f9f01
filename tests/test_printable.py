from __future__ import annotations

import pytest
from rich.console import Console

from rectom.printable import printable, printable_text, shown


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Änne → „Box“ 箱", "Änne → „Box“ 箱"),
        ("\x1b]0;title\x07red", " ]0;title red"),
        ("a\r\nb\tc\x00\x7f\x9b2J", "a  b c   2J"),
        ("left\u202eright\u200b", "left right "),
        ("", ""),
    ],
)
def test_nothing_is_left_that_a_terminal_obeys(text: str, left: str) -> None:
    assert printable(text) == left
    assert printable(left) == left


def test_what_stands_instead_may_be_seen() -> None:
    assert printable("a\x1b[2J", "?") == "a?[2J"


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as caught:
        console.print(shown("[/INST] [red]not red[/red] :smile: \x1b[2J", "bold"), shown(3))
    assert caught.get() == "[/INST] [red]not red[/red] :smile:  [2J 3\n"


def test_a_text_of_several_lines_keeps_them() -> None:
    text = "one\ttwo\r\nthree \x1b[2J é\u202e"
    assert printable_text(text) == "one\ttwo\r\nthree  [2J é "
    assert printable(text) == "one two  three  [2J é "
