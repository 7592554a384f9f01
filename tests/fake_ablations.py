"""What the fake model replies in the ablations: it applies Eq. 1, and reads histories of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from rectom import grammar
from rectom.events import Event, Kind
from rectom.facts import Fact, printed, read_fact, superseded
from rectom.perspective import Hearing
from rectom.prompts import in_words
from rectom.reader.rules import convinces
from rectom.rules import WAITING_ROOM, Rules, Scope, Waiting
from rectom.schemas import NOT_OBSERVABLE, OBSERVABLE
from tests import cases
from tests.fake_texts import Fields, facts_in, perceived


def update(given: Fields) -> Any:
    """Eq. 1."""
    state, added, removed = (frozenset(facts_in(given[name])) for name in ("State", "Added", "Removed"))
    return {"state": printed((state - superseded(state, added) - removed) | added)}


def signed(event: str) -> Iterator[tuple[str, Fact]]:
    """The facts of an event, each with its sign; what happens has none."""
    place = 0
    while place < len(event):
        sign = event[place] if event[place] in "+-" else ""
        fact, place = read_fact(event, place + len(sign))
        place += 1
        yield sign, fact


def history(given: Fields) -> dict[str, list[tuple[str, Fact]]]:
    """The events of a history by their number."""
    lines = [] if given["History"] == "none" else given["History"].splitlines()
    return {number: list(signed(event)) for number, _, event in (line.partition(" ") for line in lines)}


def _verdicts(learnt: Mapping[str, bool]) -> Any:
    return {number: OBSERVABLE if yes else NOT_OBSERVABLE for number, yes in learnt.items()}


def _enter(where: Fields, event: list[tuple[str, Fact]]) -> None:
    """Move people about."""
    for sign, fact in sorted(event, reverse=True, key=lambda entry: entry[0]):
        if fact.predicate == "in_room" and sign == "-":
            where.pop(str(fact.args[0]), None)
        elif fact.predicate == "in_room":
            where[str(fact.args[0])] = str(fact.args[1])


# In Hi-ToM's grammar.


def observe_narrative(system: str, given: Fields) -> Any:
    """Where characters are is worked out from entries and exits, and with that what they see."""
    in_room = in_words(Rules(scope=Scope.ROOM), ("scope",)) in system
    absent = in_words(Rules(waiting=Waiting.ABSENT), ("waiting",)) in system
    who, where, scene = given["Character"], Fields(), ""
    learnt = {}
    for number, event in history(given).items():
        _enter(where, event)
        entered = (str(f.args[1]) for sign, f in event if sign == "+" and f.predicate == "in_room")
        scene = next((room for room in entered if room != WAITING_ROOM), scene)
        watching = where.get(who) == scene if in_room else who in where and not (absent and where[who] == WAITING_ROOM)
        learnt[number] = watching if any(f.predicate == "in" for _, f in event) else _told(event, who)
    return _verdicts(learnt)


def _told(event: list[tuple[str, Fact]], who: str) -> bool:
    return not any(f.predicate == "private_tell" and who not in f.args[:2] for _, f in event)


def answer_narrative(rules: Rules, given: Fields) -> Any:
    """The place where the object was put, or said to be, last; the first if the history is silent."""
    _, thing = grammar.read_question(given["Question"])
    place, exits = None, list[str]()
    for event in history(given).values():
        left = {str(f.args[0]) for sign, f in event if _leaves(sign, f)}
        exits = [name for name in exits if name not in left] + sorted(left)
        for sign, fact in event:
            said = fact if sign == "+" else fact.args[-1] if not sign and _believed(fact, rules, given, exits) else None
            if isinstance(said, Fact) and said.slot == ("in", thing):
                place = str(said.args[1])
    return _option(given, place)


def _leaves(sign: str, fact: Fact) -> bool:
    return sign == "-" and fact.predicate == "in_room" and fact.args[1] != WAITING_ROOM


def _believed(said: Fact, rules: Rules, given: Fields, exits: list[str]) -> bool:
    holder = _chain(given)
    return bool(holder) and convinces(
        Hearing(holder, Event(Kind.TRANSIENT, occurrence=said), frozenset(), tuple(exits)), rules
    )


def _chain(given: Fields) -> tuple[str, ...]:
    holder = given["Belief of"].removeprefix("what ").replace(" thinks", "")
    return () if holder == "nobody" else tuple(holder.split(" that "))


def _option(given: Fields, right: str | None) -> Any:
    options = [line.partition(". ")[2] for line in given["Options"].splitlines()]
    return {"reason": "it follows from the history", "answer": right if right in options else options[0]}


# Of natural stories and conversations.


def observe_story(given: Fields) -> Any:
    """As of states, once it is worked out who is where."""
    where, events = Fields(), []
    for line, event in zip(given["History"].splitlines(), history(given).values(), strict=True):
        _enter(where, event)
        events.append(f"{line} | {' '.join(f'in_room({name},{room})' for name, room in where.items())}")
    return perceived(given["Character"], "\n".join(events).replace(" | \n", "\n"))


def observe_dialogue(given: Fields) -> Any:
    """Those who take part, and those who leave with it."""
    here, learnt = Fields(), {}
    for number, event in history(given).items():
        before = set(here)
        _enter(here, event)
        learnt[number] = given["Person"] in before | set(here)
    return _verdicts(learnt)


def answer_text(kind: str, given: Fields) -> Any:
    """The option that fits what is known; the first, if none does."""
    options = [line.partition(". ")[2] for line in given["Options"].splitlines()]
    case = next(c for c in cases.of_kind(kind) if c.reduced == given["Question"] and list(c.choices) == options)
    known = _heard(given) if kind == "dialogue" else map(str, _believed_facts(given))
    return _option(given, next(iter(case.answers(frozenset(known))), None))


def _heard(given: Fields) -> Collection[str]:
    return [number for number, event in history(given).items() if any(f.predicate == "says" for _, f in event)]


def _believed_facts(given: Fields) -> frozenset[Fact]:
    belief, chain = frozenset[Fact](), _chain(given)
    for event in history(given).values():
        added = {fact for sign, fact in event if sign == "+"} | set(_news(event, chain))
        belief = belief - superseded(belief, added) - {fact for sign, fact in event if sign == "-"} | added
    return belief


def _news(event: list[tuple[str, Fact]], chain: tuple[str, ...]) -> Iterator[Fact]:
    for sign, fact in event:
        own_claim = fact.predicate in {"public_claim", "private_tell"} and chain == (fact.args[0],)
        news = fact.args[-1]
        if chain and not sign and fact.predicate != "misses" and not own_claim and isinstance(news, Fact):
            yield news


#: What is replied about natural stories and conversations, by the kind of text and the step.
OF_TEXTS: Final[dict[str, dict[str, Callable[[Fields], Any]]]] = {
    "story": {"observe_history": observe_story, "answer_history": lambda given: answer_text("story", given)},
    "dialogue": {"observe_history": observe_dialogue, "answer_history": lambda given: answer_text("dialogue", given)},
}
