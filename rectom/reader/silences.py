"""Who comes and goes in a conversation, told from what its utterances do.

Whoever speaks is there. What is open is where somebody is silent for a while, and it shows in the words before and
after, or in what the others say of him: a goodbye, a greeting, that he is missed. Each such utterance is a question of
its own with few answers, which small models get right more often than they list comings and goings. An utterance does
one thing: who comes and goes with the same words is not told of, nor is who leaves unseen and is never spoken of.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rectom.reader.utterances import appearing, direction, speakers

#: Who says nothing for fewer lines than these was there.
SHORTEST: Final = 2

#: What most utterances do, so that a model has a name for it.
MATTER: Final = ("agrees", "asks", "answers", "tells")
ARRIVES: Final = "arrives"
RETURNS: Final = "returns"
LEAVES: Final = "leaves"
BIDS_FAREWELL: Final = "bids farewell"
WELCOMES: Final = "welcomes"
MISSES: Final = "misses"

#: Who joins and who leaves, by the line, from 1, at which it happens.
Changes = Mapping[int, tuple[Sequence[str], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Silence:
    """The lines between two in which somebody speaks; `last` is 0 before the first words, `next` past the end after
    the last.
    """

    who: str
    last: int
    next: int


def silences(lines: Sequence[str]) -> Iterator[Silence]:
    """The silences of a conversation that are long enough to have been away in, person by person.

    Those that begin or end with a stage direction are none: it says what they are.
    """
    for who in speakers(lines):
        spoken = [number for number, line in enumerate(lines, 1) if who in appearing(line)]
        for last, after in zip([0, *spoken], [*spoken, len(lines) + 1], strict=True):
            settled = any(direction(lines[n - 1]) for n in (last, after) if 0 < n <= len(lines))
            if after - last > SHORTEST and not settled:
                yield Silence(who, last, after)


def acts(lines: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """For each line that may show that somebody comes or goes, by its number, what it can do."""
    found: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for silence in silences(lines):
        if silence.last:
            found[silence.last][LEAVES] = None
        if silence.next <= len(lines):
            found[silence.next][RETURNS if silence.last else ARRIVES] = None
        for number in range(silence.last + 1, silence.next):
            if _names(lines[number - 1], silence.who):
                found[number].update(dict.fromkeys(_of_the_silent(silence)))
    return {number: (*MATTER, *found[number]) for number in sorted(found)}


def _of_the_silent(silence: Silence) -> tuple[str, ...]:
    return (BIDS_FAREWELL, f"{MISSES} {silence.who}") if silence.last else (f"{WELCOMES} {silence.who}",)


def _names(line: str, who: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(who)}(?!\w)", line) is not None


def directed(lines: Sequence[str]) -> dict[int, str]:
    """What the stage directions of a conversation say, by their lines."""
    verbs = {"join": ARRIVES, "leave": LEAVES}
    return {number: verbs[said] for number, line in enumerate(lines, 1) if (said := direction(line))}


def comings(lines: Sequence[str], done: Mapping[int, str]) -> tuple[list[str], Changes]:
    """Who is there as a conversation begins, and who joins and leaves when, by what its lines do."""
    watch = _Watch()
    for number, line in enumerate(lines, 1):
        verb, _, named = done.get(number, "").partition(" ")
        here = appearing(line)
        if verb in {ARRIVES, RETURNS, WELCOMES}:
            watch.come([named] if named else here, number)
        watch.speak(here, number)
        if verb == LEAVES:
            watch.go(here, number)
        if verb == MISSES:
            watch.go([named], number - 1)
    return [name for name in watch.last if name not in watch.late], watch.changes


class _Watch:
    """Follows who is there, line by line."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.late: set[str] = set()
        self.changes: defaultdict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
        self._gone: set[str] = set()

    def come(self, who: Sequence[str], number: int) -> None:
        """Whoever comes without having gone has gone with his last words."""
        self.late.update(name for name in who if name not in self.last)
        for name in who:
            if name in self.last and name not in self._gone:
                self.go([name], self.last[name])
        self.changes[number][0].extend(who)
        self._gone.difference_update(who)

    def speak(self, who: Sequence[str], number: int) -> None:
        """Whoever speaks is there."""
        self.last.update(dict.fromkeys(who, number))
        self._gone.difference_update(who)

    def go(self, who: Sequence[str], number: int) -> None:
        """Those who are gone after a line."""
        self.changes[number][1].extend(who)
        self._gone.update(who)
