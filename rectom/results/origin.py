"""Where a wrong belief came from: back through the perspectives to the step that let it in.

What counts is what the last perspective holds in the end of what is asked for. From the line since which that is not
what the rules say, the way goes back: what was taken over from the perspective before, or was judged by what that one
says of who is where, is put down to it, and in the end to the world. What differs and comes to nothing is no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rectom.results.effects import Effect, Facts, compared, signed
from rectom.results.fault import Fault, learnt

#: Which facts are looked at.
About: TypeAlias = Callable[[str], bool]


def everything(_: str) -> bool:
    """Every fact."""
    return True


def whereabouts(fact: str) -> bool:
    """Whether a fact says in which room somebody is."""
    return fact.startswith("in_room(")


def place_of(things: Iterable[str], predicate: str = "in") -> About:
    """Whether a fact says where one of the things is; by another predicate where it was at the beginning."""
    begins = tuple(f"{predicate}({thing}," for thing in things)
    return lambda fact: fact.startswith(begins)


@dataclass(frozen=True, slots=True)
class _Side:
    """A perspective: the facts after each line, whether each event was learnt of, and from where each line was seen."""

    states: Sequence[Facts]
    learnt: Sequence[bool]
    vantage: Sequence[str | None]

    @classmethod
    def of(cls, perspective: Mapping[str, Any]) -> _Side:
        states = [Facts()]
        for added, removed in perspective["deltas"]:
            states.append((states[-1] | compared(added)) - compared(removed))
        return cls(states, [bool(one) for one in perspective["events"]], perspective["vantage"])

    def change(self, line: int) -> tuple[Facts, Facts]:
        """What came and went at a line."""
        before, now = self.states[line - 1 : line + 1]
        return now - before, before - now


@dataclass(frozen=True, slots=True)
class Level:
    """A perspective of a trace beside that of the rules. `who` holds it; nobody the world."""

    who: str
    found: _Side
    right: _Side

    @classmethod
    def of(cls, found: Mapping[str, Any], right: Mapping[str, Any]) -> Level:
        """From what `perspective_to_json` writes of both."""
        return cls("".join(found["chain"][-1:]), _Side.of(found), _Side.of(right))

    def learns_otherwise(self, line: int) -> bool:
        """Whether it learns of the event of a line, and not by the rules, or the other way round."""
        return self.found.learnt[line - 1] != self.right.learnt[line - 1]

    def sees_otherwise(self, line: int) -> bool:
        """Whether it sees a line from elsewhere."""
        return self.found.vantage[line - 1] != self.right.vantage[line - 1]

    def differs(self, line: int, about: About = everything) -> bool:
        """Whether it holds other facts after a line than by the rules."""
        return any(map(about, self.found.states[line] ^ self.right.states[line]))

    def first(self, about: About, until: int) -> int | None:
        """The first line up to one after which it holds others."""
        return next((line for line in range(1, until + 1) if self.differs(line, about)), None)

    def since(self, about: About, until: int) -> int | None:
        """The line since which it holds others, up to and after a line; None if it does not then."""
        line = until
        while self.differs(line, about):
            line -= 1
        return line + 1 if line < until else None


@dataclass(frozen=True, slots=True)
class Origins:
    """The levels of a trace, the world first, with what its events do, what the rules' do, and `stated`: the fault of
    an event that states facts without need from which something at a line may follow, if there is one.
    """

    levels: Sequence[Level]
    effects: Sequence[Effect]
    expected: Sequence[Effect]
    stated: Callable[[int], Fault | None]

    def of(self, about: About) -> Fault | None:
        """Why the last of them ends with other facts than by the rules; None if it does not."""
        return self._since(len(self.levels) - 1, about, len(self.effects))

    def of_any(self, about: About) -> Fault | None:
        """Why it held others at any line, whatever it ends with."""
        last = len(self.levels) - 1
        line = self.levels[last].first(about, len(self.effects))
        return self._at(last, line, about) if line else None

    def _since(self, depth: int, about: About, until: int) -> Fault | None:
        line = self.levels[depth].since(about, until)
        return self._at(depth, line, about) if line else None

    def _at(self, depth: int, line: int, about: About) -> Fault:
        """What let a perspective take another turn at a line: in what it holds, or in whether it learnt of it."""
        effect, expected = self.effects[line - 1], self.expected[line - 1]
        if effect != expected:
            return Fault("abstraction", str(effect), str(expected), line)
        level = self.levels[depth]
        if not depth:
            return Fault("update", signed(*level.found.change(line)), signed(effect.came, effect.went), line)
        learns = level.learns_otherwise(line)
        # A look changes nothing about whether somebody believes what was said.
        if level.sees_otherwise(line) and (learns or not effect.occurrence):
            return self._seen(depth, line)
        return self._learnt(depth, line) if learns else self._believed(depth, line, about)

    def _seen(self, depth: int, line: int) -> Fault:
        """Why a line was seen from elsewhere, or not."""
        level = self.levels[depth]
        if self.levels[depth - 1].sees_otherwise(line):
            return self._seen(depth - 1, line)
        seen, visible = (_from(side.vantage[line - 1]) for side in (level.found, level.right))
        own = Fault("state observability", seen, visible, line, level.who)
        return self._by_place(depth - 1, line, [level.who]) or own

    def _learnt(self, depth: int, line: int) -> Fault:
        """Why an event was learnt of, or not."""
        level, effect = self.levels[depth], self.effects[line - 1]
        if self.levels[depth - 1].learns_otherwise(line):
            return self._at(depth - 1, line, whereabouts)
        seen, told = (learnt(side.learnt[line - 1]) for side in (level.found, level.right))
        own = Fault("event observability", seen, told, line, level.who)
        # Other events are learnt of by looks at what they change: nobody is asked about them.
        stated = None if effect.is_judged else self.stated(line)
        return self._by_place(depth - 1, line, [level.who, *effect.people]) or stated or own

    def _believed(self, depth: int, line: int, about: About) -> Fault:
        """Why a belief changed otherwise, although the same was seen and learnt of."""
        level, effect = self.levels[depth], self.effects[line - 1]
        took_over = None
        if not effect.occurrence or level.found.vantage[line - 1]:
            took_over = self._since(depth - 1, about, line)
        if took_over:
            return took_over
        changed = signed(*level.found.change(line)), signed(*level.right.change(line))
        if not effect.occurrence:
            return self.stated(line) or Fault("update", *changed, line, level.who)
        # Whom a claim convinces hangs on who left when.
        left = self.levels[0].first(whereabouts, line)
        return self._at(0, left, whereabouts) if left else Fault("revision", *changed, line, level.who)

    def _by_place(self, depth: int, line: int, people: Iterable[str]) -> Fault | None:
        """Why somebody was, by a perspective, in another room at a line; None if all were where they are."""
        begins = tuple(f"in_room({who}," for who in people)

        def about(fact: str) -> bool:
            return fact.startswith(begins)

        return self._since(depth, about, line) or self._since(depth, about, line - 1)


def _from(room: str | None) -> str:
    return f"observed from {room}" if room else "not observed"
