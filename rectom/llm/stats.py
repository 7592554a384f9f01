"""What a client has done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rectom.llm.reply import Usage


@dataclass
class Stats:
    """Counters of requests: given to the server (`sent`, once each), sent again (`retried`), answered by the
    store (`cached`) or by an identical request in flight (`shared`), ended in an error (`failed`).

    `usage` sums the tokens of what was sent in this client's life; replays cost nothing and add nothing.
    `outcomes` counts the replies that were sent for by `Outcome`, `errors` what failed by the name of the error.
    `schemas` counts those that had to follow a schema by how the server was given it.
    `in_flight` requests are with the server at present, of at most `limit` (0 before the first).
    """

    sent: int = 0
    retried: int = 0
    cached: int = 0
    shared: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    limit: int = 0
