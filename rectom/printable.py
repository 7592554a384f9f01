"""Text of others for the terminal, which obeys some characters instead of showing them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.text import Text

#: What has to be looked at: nearly all signs of nearly all texts have not.
_UNCOMMON: Final = re.compile(r"[^\t\r\n -~]+")


def printable(text: str, instead: str = " ") -> str:
    """A text in which each character that cannot be printed, the end of a line among them, is another `instead`."""
    return "".join(sign if sign.isprintable() else instead for sign in text)


def printable_text(text: str) -> str:
    """The same for a text of several lines, which keeps their ends and its tabs."""
    return _UNCOMMON.sub(lambda found: printable(found[0]), text)


def shown(told: object, style: str = "") -> Text:
    """What is told, in printable characters and in a style: what looks like markup is shown as it is."""
    from rich.text import Text  # not where only strings are asked for

    return Text(printable(str(told)), style)
