"""A trace as rows and columns: a row a step of the story, a column a perspective along the character chain.

The page and the terminal show the same drawing. Its words: a cell says what the state holds of the object asked
for, what changed at that step, and how the holder came by it. Where there are no states, it says which events are in
the history so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from rectom.codec import events_from_json, is_history, states_from_json
from rectom.errors import DataError, FormulaError, StoryError
from rectom.events import Event, Kind
from rectom.facts import EMPTY, Fact, State
from rectom.grammar import read_question

#: What column 0 is called.
WORLD: Final = "World"


class Mark(StrEnum):
    """How a holder came by his state at a step."""

    WORLD = " "  #: nobody's belief: the world itself
    OBSERVED = "o"  #: saw it, from the room that he was in
    #: Learned of the event without a room to see it from, or heard a claim that did not change what he believes.
    HEARD = "h"
    REVISED = "!"  #: believes what he heard
    INHERITED = "."  #: observed nothing, and believes what he believed before; the event is not in his history


@dataclass(frozen=True, slots=True)
class Cell:
    """One perspective at one step.

    `holds` is what the state says of the object asked for; `changes` are the facts that came (`+`) and went (`-`)
    at this step, in short form; `where` is the room from which the step was observed. A history holds events by their
    numbers, and knows no rooms.
    """

    mark: Mark
    where: str
    holds: tuple[str, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One perspective: whose it is, a cell a step, and the facts of its final state in short form."""

    chain: tuple[str, ...]
    cells: tuple[Cell, ...]
    final: tuple[str, ...]

    @property
    def holder(self) -> str:
        """The character whose perspective it is, or the world."""
        return self.chain[-1] if self.chain else WORLD

    @property
    def answer(self) -> tuple[str, ...]:
        """What the final state says of the object asked for."""
        return self.cells[-1].holds if self.cells else ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A trace, drawn as far as it came.

    `lines` and `events` are parallel where there are events; an event is its facts in the paper's notation, signed.
    `thing` is the object asked for, None if the question does not say. `missing` are the characters whose
    perspectives were not built. `histories` tells that the perspectives are histories, without states. `rules` is what
    the rules make of the same question, drawn of the same object, where the trace tells it.
    """

    thing: str | None
    lines: tuple[str, ...]
    events: tuple[tuple[str, ...], ...]
    columns: tuple[Column, ...]
    missing: tuple[str, ...]
    histories: bool = False
    rules: Drawing | None = None

    def expected(self, column: Column) -> Column | None:
        """The rules' own column of the same chain, where there is one that can be compared, step by step."""
        if self.rules is None or self.rules.histories != self.histories:
            return None
        alike = (one for one in self.rules.columns if one.chain == column.chain)
        return next((one for one in alike if len(one.cells) == len(column.cells)), None)

    @classmethod
    def of(cls, trace: Mapping[str, Any]) -> Drawing:
        """Draw a line of `traces.jsonl`. Raises DataError if it is none."""
        try:
            return _draw(trace)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, FormulaError) as error:
            raise unreadable(trace, error) from None


def unreadable(trace: Mapping[str, Any], error: Exception) -> DataError:
    """What is said of a trace in which something is not as it was written."""
    return DataError(
        f"the trace of question {trace.get('id')} cannot be read ({type(error).__name__}: {error}); "
        "run the same command again to write it anew"
    )


def _draw(trace: Mapping[str, Any]) -> Drawing:
    thing = _thing(trace)
    events = events_from_json(trace.get("events") or ())
    world = trace.get("world")
    perspectives = [world, *(trace.get("perspectives") or ())] if world else []
    built = max(len(perspectives) - 1, 0)
    return Drawing(
        thing,
        tuple(trace["lines"]),
        tuple(map(_notation, events)),
        tuple(_history(data) if is_history(data) else _column(data, events, thing) for data in perspectives),
        tuple((trace.get("chain") or ())[built:]),
        is_history(world) if world else False,
        _draw_rules(trace, trace["oracle"]) if trace.get("oracle") else None,
    )


def _draw_rules(trace: Mapping[str, Any], oracle: Mapping[str, Any]) -> Drawing:
    """What the rules make of it, of the object that the trace itself asks for, so that cells can be compared."""
    return _draw({**trace, **oracle, "reduced": trace.get("reduced"), "oracle": None})


def _thing(trace: Mapping[str, Any]) -> str | None:
    """The object asked for: of the reduced question, or else of the question as it was put."""
    for text in (trace.get("reduced"), trace["question"]):
        try:
            return read_question(text or "")[1]
        except StoryError:
            continue
    return None


def _column(data: Mapping[str, Any], events: tuple[Event, ...], thing: str | None) -> Column:
    chain, states = tuple(data["chain"]), states_from_json(data)
    cells = []
    for step, (state, event) in enumerate(zip(states, events, strict=True)):
        before = states[step - 1] if step else EMPTY
        changes = _changes(state - before, before - state, thing)
        where = (data["vantage"][step] or "") if chain else ""
        noticed = bool(data["events"][step])
        mark = _mark(event.kind, noticed, where, changes) if chain else Mark.WORLD
        cells.append(Cell(mark, where, _holds(state, thing), changes))
    final = states[-1] if states else EMPTY
    return Column(chain, tuple(cells), tuple(_short(final, thing, most=len(final))))


def _history(data: Mapping[str, Any]) -> Column:
    """The history Ē_t at each step: the numbers of the events that are in it."""
    chain, cells, numbers = tuple(data["chain"]), [], list[int]()
    seen = Mark.OBSERVED if chain else Mark.WORLD
    for number, observed in enumerate(data["events"], 1):
        numbers += [number] if observed else []
        holds = (f"events {_ranges(numbers)}",) if numbers else ()
        cells.append(Cell(seen if observed else Mark.INHERITED, "", holds, ()))
    return Column(chain, tuple(cells), cells[-1].holds if cells else ())


def _mark(kind: Kind, noticed: bool, where: str, changes: tuple[str, ...]) -> Mark:
    if noticed and kind is Kind.TRANSIENT:
        return Mark.REVISED if changes else Mark.HEARD
    if where:
        return Mark.OBSERVED
    return Mark.HEARD if noticed else Mark.INHERITED


def _holds(state: State, thing: str | None) -> tuple[str, ...]:
    if thing is None:
        heard = [int(str(fact.args[1])) for fact in state if fact.predicate == "said"]
        told = [f"line{'s' if len(heard) > 1 else ''} {_ranges(sorted(heard))}"] if heard else []
        return (*_short((fact for fact in state if fact.predicate not in {"in_room", "said"}), None), *told)
    return tuple(sorted(str(fact.args[1]) for fact in state if fact.slot and str(fact.args[0]) == thing))


def _changes(added: State, removed: State, thing: str | None) -> tuple[str, ...]:
    return (*(f"+{text}" for text in _short(added, thing)), *(f"-{text}" for text in _short(removed, thing)))


def _short(facts: Iterable[Fact], thing: str | None, most: int = 2) -> list[str]:
    """Facts as people say them: `box`, `ball in box`, `Anne, Bob @hall`, or a number where there are more names."""
    rooms, other = _apart(facts)
    said = [_said(fact, thing) for fact in other]
    people = (f"{', '.join(names) if len(names) <= most else len(names)} @{room}" for room, names in rooms.items())
    return [*said, *people]


def _ranges(numbers: Sequence[int]) -> str:
    """`1-4, 6` for 1, 2, 3, 4, 6."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _said(fact: Fact, thing: str | None) -> str:
    if fact.predicate == "said":
        return f"line {fact.args[1]}"
    if not fact.slot:
        return str(fact)
    subject, value = map(str, fact.args)
    return value if subject == thing else f"{subject} {fact.predicate} {value}"


def _apart(facts: Iterable[Fact]) -> tuple[dict[str, list[str]], list[Fact]]:
    """The names in each room, and the facts that do not say who is where; both sorted."""
    rooms: dict[str, list[str]] = {}
    other = []
    for fact in sorted(facts, key=_by_number):
        if fact.slot and fact.predicate == "in_room":
            rooms.setdefault(str(fact.args[1]), []).append(str(fact.args[0]))
        else:
            other.append(fact)
    return rooms, other


@lru_cache(maxsize=10_000)
def _by_number(fact: Fact) -> tuple[tuple[int, str], ...]:
    """What sorts facts by their text, with the numbers in it as numbers; what was said by its line, whoever spoke."""
    text = f"said({fact.args[1]})" if fact.predicate == "said" else str(fact)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", text))


def _notation(event: Event) -> tuple[str, ...]:
    """The event facts, signed; entries into a room (and exits) written as one: `+in_room({Anne,Bob},hall)`."""
    # The words of an utterance stand in its line already.
    said = f"says({event.speaker})" if event.is_said_aloud else event.occurrence
    added = event.delta.added - {event.proposition} if event.is_said_aloud else event.delta.added
    signed = (("+", added), ("-", event.delta.removed))
    changes = (f"{sign}{text}" for sign, facts in signed for text in _joined(facts))
    return (*map(str, filter(None, [said])), *changes)


def _joined(facts: State) -> list[str]:
    rooms, other = _apart(facts)
    return [*map(str, other), *(f"in_room({_set(names)},{room})" for room, names in rooms.items())]


def _set(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{','.join(names)}}}"
