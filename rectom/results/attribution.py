"""Where a wrong answer went wrong: the first step of the model's that differs from the rule reader's.

Steps are compared in the order of Algorithm 1, and by what they do: events by the states that they lead to, questions
by the objects that they name. Perspectives are compared along the chain, outermost first, so that what a nested one
only took over is put down to the one that it came from; within a perspective the earliest step of the story counts, and
at one step what is seen of the state before what is learnt of the event, and both before the belief. What follows from
a fact that an event states without need, since it held already, is put down to the abstraction; so is what follows from
the place of a container, which the rules tell of more lines than a model is asked to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from rectom.codec import events_from_json, is_history
from rectom.results.outcome import Outcome
from rectom.setting import setting_of

#: The steps that can be at fault, in the order of Algorithm 1. `update` is Eq. 1 where a model applies it; `label`
#: says that the rules give the same answer, so that no step is to blame that it is not the label.
FAULTS: Final = (
    "abstraction",
    "update",
    "chain",
    "state observability",
    "event observability",
    "revision",
    "reduction",
    "answer",
    "label",
)

#: Wrong answers of which nothing tells where they went wrong.
UNTOLD: Final = "not told"

#: The steps of the model by the names of their prompts.
_STEPS: Final = {
    "abstract": "abstraction",
    "update": "update",
    "chain": "chain",
    "observe": "state observability",
    "observe_states": "state observability",
    "observe_events": "event observability",
    "observe_history": "event observability",
    "revise": "revision",
    "reduce": "reduction",
    "answer": "answer",
    "answer_history": "answer",
}

#: How facts begin that say where a container stands: no question asks for that.
_STANDS: Final = "at("

#: So many facts of a change are told.
_TOLD: Final = 6

#: What a reduced question may ask for besides objects.
_BEGINNING: Final = "beginning"

#: How the words of a check (see `rectom.reader.verify`) begin, and where they say what they are about. Other faults are
#: of a reply's form, and tell nothing of what another one says.
_CHECKED: Final = re.compile(r"(?:line|state|event) (\d+)\b|the fact .+ names ")
_WHO: Final = re.compile(r"does not (?:reach (.+?), who|place (.+?) in )")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was found at fault.

    `step` is one of `FAULTS`; `line` the step of the story (from 1) and `who` the character, where it is about one;
    `found` is what the model made of it and `expected` what the rules do; `by` says what tells it: `oracle`, the rule
    reader; `failure`, the step's own; or `verify`, a check that the model's reply violated.
    """

    step: str
    found: str
    expected: str
    line: int | None = None
    who: str | None = None
    by: str = "oracle"

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def attribute(
    trace: Mapping[str, Any],
    oracle: Mapping[str, Any] | None,
    by_rule: Collection[str] = (),
    *,
    verified: bool = False,
) -> Fault | None:
    """Where the wrong answer of a trace went wrong; None if nothing tells.

    `oracle` is the rules' trace of the same question, None where they cannot read it. Both are as `Trace.to_json`
    writes them. `by_rule` are the steps that the run gave to rules, too: if one failed, it was for what it was given.
    `verified` tells whether the replies were checked, so that without an oracle what a check found can serve.
    """
    failure = trace.get("failure")
    failed = _failed(failure) if failure else None
    if failure and not (oracle and failure["step"] in by_rule):
        return failed
    if oracle is None:
        return _violated(trace.get("calls") or ()) if verified else None
    return next(_differences(trace, oracle), failed)


def at_fault(outcome: Outcome) -> str:
    """The step at which an answer went wrong, `UNTOLD` where that is not known; empty for a right one."""
    return outcome.fault or ("" if outcome.correct else UNTOLD)


def fault_rows(outcomes: Sequence[Outcome]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """A header, and a row a step at fault: the wrong answers of each order, and of all. No rows if there are none."""
    wrong = [outcome for outcome in outcomes if not outcome.correct]
    orders = sorted({outcome.order for outcome in wrong}, key=lambda order: -1 if order is None else order)
    counts = Counter((at_fault(outcome), outcome.order) for outcome in wrong)
    steps = [step for step in (*FAULTS, UNTOLD) if any((step, order) in counts for order in orders)]
    header = ("went wrong at", *("-" if order is None else f"order {order}" for order in orders), "all")
    rows: list[tuple[object, ...]] = []
    for step in steps:
        each = [counts[step, order] for order in orders]
        rows.append((step, *each, sum(each)))
    return header, rows


def _failed(failure: Mapping[str, str]) -> Fault | None:
    step = _STEPS.get(failure["step"])
    return Fault(step, failure["why"], "a usable reply", by="failure") if step else None


def _violated(calls: Sequence[Mapping[str, Any]]) -> Fault | None:
    """The first reply in which a check found something wrong."""
    whole = sum(call["step"] == "abstract" and not call["repair"] for call in calls) == 1
    for call in calls:
        words = str(call.get("fault") or "")
        checked, who = _CHECKED.match(words), _WHO.search(words)
        if checked and call["step"] in _STEPS:
            # Of a story that was read in windows a check counts the lines of its window.
            line = checked[1] if whole or call["step"] != "abstract" else None
            place = int(line) if line else None, who[1] or who[2] if who else None
            return Fault(_STEPS[call["step"]], words, "a reply without that", *place, by="verify")
    return None


#: Facts as they are printed: equal facts are equal texts.
Facts: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class _Effect:
    """What an event does: what happens, and what of the world comes and goes by Eq. 1."""

    occurrence: str | None
    came: Facts
    went: Facts

    @property
    def is_judged(self) -> bool:
        """Whether it is asked who learns of it: of a communication, an entry, an exit."""
        return bool(self.occurrence) or any(fact.startswith("in_room(") for fact in self.came | self.went)

    def __bool__(self) -> bool:
        return bool(self.occurrence or self.came or self.went)


@dataclass(frozen=True, slots=True)
class _Stated:
    """The events of a trace: what each does, and at which lines the rules state other facts to the same effect.

    `elsewhere` tells whether containers stand elsewhere for that, which shows at every line.
    """

    effects: tuple[_Effect, ...]
    otherwise: tuple[Fault, ...]
    elsewhere: bool

    def before(self, line: int) -> Fault | None:
        """The first of those lines from which a difference at a line may follow."""
        return next((fault for fault in self.otherwise if self.elsewhere or (fault.line or 0) <= line), None)


def _differences(trace: Mapping[str, Any], oracle: Mapping[str, Any]) -> Iterator[Fault]:
    """What differs, in the order of Algorithm 1, as far as the trace came: what comes first explains the rest."""
    predicted, right, gold = trace.get("predicted"), oracle.get("predicted"), trace.get("gold")
    label = Fault("label", str(predicted), str(gold))
    if predicted is not None and predicted == right != gold:
        yield label
    events, by_rule = trace.get("events") or (), oracle.get("events") or ()
    effects = _effects(events)
    yield from _abstraction(effects, _effects(by_rule))
    yield from _world(trace.get("world"), effects)
    if trace.get("chain") is not None and trace["chain"] != oracle["chain"]:
        yield Fault("chain", _chain(trace["chain"]), _chain(oracle["chain"]))
    elsewhere = _places(events) != _places(by_rule)
    stated = _Stated(effects, tuple(_stated_otherwise(events, by_rule, Facts if elsewhere else _facts)), elsewhere)
    for found, expected in zip(trace.get("perspectives") or (), oracle.get("perspectives") or (), strict=False):
        yield from (_history if is_history(found) else _perspective)(found, expected, stated)
    reduced, asked = trace.get("reduced"), oracle["reduced"]
    things = {thing for event in by_rule for thing in _things(event)}
    if reduced is not None and _named(reduced, things) != _named(asked, things):
        yield Fault("reduction", reduced, asked)
    if predicted is not None:
        yield label if right in {predicted, None} else Fault("answer", predicted, str(right))


def _facts(printed: Iterable[str]) -> Facts:
    """The facts that are compared."""
    return Facts(fact for fact in printed if not fact.startswith(_STANDS))


def _places(events: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    return setting_of(events_from_json(events)).places


def _effects(events: Iterable[Mapping[str, Any]]) -> tuple[_Effect, ...]:
    """Eq. 1 along settled events."""
    state, effects = Facts(), []
    for event in events:
        now = (state - _facts(event.get("removed", ()))) | _facts(event.get("added", ()))
        effects.append(_Effect(event.get("occurrence"), now - state, state - now))
        state = now
    return tuple(effects)


def _abstraction(effects: Sequence[_Effect], right: Sequence[_Effect]) -> Iterator[Fault]:
    for line, (found, expected) in enumerate(zip(effects, right, strict=False), 1):
        if found != expected:
            yield Fault("abstraction", _event(found), _event(expected), line)


def _stated_otherwise(
    events: Iterable[Mapping[str, Any]], right: Iterable[Mapping[str, Any]], facts: Callable[[Iterable[str]], Facts]
) -> Iterator[Fault]:
    for line, both in enumerate(zip(events, right, strict=False), 1):
        found, expected = (
            _Effect(one.get("occurrence"), facts(one.get("added", ())), facts(one.get("removed", ()))) for one in both
        )
        if found != expected:
            yield Fault("abstraction", _event(found), _event(expected), line)


def _world(world: Mapping[str, Any] | None, effects: Sequence[_Effect]) -> Iterator[Fault]:
    """Where the states of the world are not those of Eq. 1 along the model's own events."""
    if world is None or is_history(world):
        return
    for line, (found, effect) in enumerate(zip(_changes(world), effects, strict=False), 1):
        if found != (effect.came, effect.went):
            yield Fault("update", _signed(*found), _signed(effect.came, effect.went), line)


def _history(found: Mapping[str, Any], expected: Mapping[str, Any], stated: _Stated) -> Iterator[Fault]:
    for line, effect in enumerate(stated.effects, 1):
        seen, visible = (bool(one["events"][line - 1]) for one in (found, expected))
        if effect and seen != visible:
            yield Fault("event observability", _learnt(seen), _learnt(visible), line, found["chain"][-1])


def _perspective(found: Mapping[str, Any], expected: Mapping[str, Any], stated: _Stated) -> Iterator[Fault]:
    who = found["chain"][-1]
    changes = zip(_changes(found), _changes(expected), strict=True)
    for line, (effect, (change, right)) in enumerate(zip(stated.effects, changes, strict=True), 1):
        place = line - 1
        learnt, told = (bool(one["events"][place]) for one in (found, expected))
        # A look that shows nothing new changes nothing, and whether somebody believes what was said is no matter of it.
        tells = learnt != told or (change != right and not effect.occurrence)
        if tells and found["vantage"][place] != expected["vantage"][place]:
            seen, visible = (_from(one["vantage"][place]) for one in (found, expected))
            yield Fault("state observability", seen, visible, line, who)
        if effect and learnt != told:
            # Other events are learnt of by looks at what they change: nobody is asked about them.
            judged = Fault("event observability", _learnt(learnt), _learnt(told), line, who)
            yield judged if effect.is_judged else stated.before(line) or judged
        if change != right:
            step = "revision" if effect.occurrence else "update"
            changed = Fault(step, _signed(*change), _signed(*right), line, who)
            yield changed if effect.occurrence else stated.before(line) or changed


def _changes(perspective: Mapping[str, Any]) -> Iterator[tuple[Facts, Facts]]:
    """What comes and goes at each step. As long as that is the same in two perspectives, their states are."""
    for added, removed in perspective["deltas"]:
        yield _facts(added), _facts(removed)


def _things(event: Mapping[str, Any]) -> list[str]:
    """The objects that an event is about."""
    return re.findall(r"\bin\(([^,()]+),", " ".join([event.get("occurrence") or "", *event.get("added", ())]))


def _named(question: str, things: Iterable[str]) -> frozenset[str]:
    """The objects that a question asks for, and whether for the beginning: however it is worded."""
    words = re.findall(r"[\w'-]+", question.lower().replace("_", " "))
    spoken = f" {' '.join(words)} "
    return frozenset(name for name in (*things, _BEGINNING) if f" {name.lower().replace('_', ' ')} " in spoken)


def _chain(names: Sequence[str]) -> str:
    return " → ".join(["World", *names])


def _event(effect: _Effect) -> str:
    changes = [_signed(effect.came, effect.went)] if effect.came or effect.went or not effect.occurrence else []
    return " ".join([*filter(None, [effect.occurrence]), *changes])


def _signed(came: Facts, went: Facts) -> str:
    signs = [*(f"+{fact}" for fact in sorted(came)), *(f"-{fact}" for fact in sorted(went))]
    return " ".join([*signs[:_TOLD], *["…"][: len(signs) > _TOLD]]) or "nothing"


def _from(room: str | None) -> str:
    return f"observed from {room}" if room else "not observed"


def _learnt(observed: bool) -> str:
    return "observed" if observed else "not observed"
