"""What a client has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from rectom.llm.reply import Usage


@dataclass
class Stats:
    """Counters of requests: given to the server (`sent`, once each), sent again (`retried`), answered by the
    store (`cached`) or by an identical request in flight (`shared`), ended in an error (`failed`).

    `usage` sums the tokens of what was sent in this client's life; replays cost nothing and add nothing.
    """

    sent: int = 0
    retried: int = 0
    cached: int = 0
    shared: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
