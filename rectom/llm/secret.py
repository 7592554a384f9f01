"""The API key: it goes into one header and nowhere else."""

from __future__ import annotations

import re

from rectom.errors import WrongKey

_MASK = "[key]"
_SHORTEST_SECRET = 4
# Servers that want no key are given such as "none" and "EMPTY", which stand in replies by themselves.
_SHORTEST_HIDDEN = 12
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|hf|gsk|xai)[-_][A-Za-z0-9_*-]{8,}|(?i:\bbearer\s+)\S+")


class Secret:
    """An API key, or none. Neither its repr nor its str shows it."""

    __slots__ = ("_key",)

    def __init__(self, key: str | None) -> None:
        self._key = (key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise WrongKey("the API key holds characters that no header can carry; set OPENAI_API_KEY again")

    def headers(self) -> dict[str, str]:
        """The header that shows the key to the server."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def mask(self, text: str) -> str:
        """`text` without the key, and without what looks like another one."""
        if len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, _MASK)
        return _LOOKS_LIKE_A_KEY.sub(_MASK, text)

    def hide(self, text: str) -> str:
        """`text` of a reply without the very key; whatever else looks like one may be the model's own words."""
        return text.replace(self._key, _MASK) if len(self._key) >= _SHORTEST_HIDDEN else text

    def reveal(self) -> str | None:
        """The key itself, for a client that builds its own header."""
        return self._key or None

    def __repr__(self) -> str:
        return f"Secret({'set' if self._key else 'none'})"
