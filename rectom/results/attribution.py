"""Where a wrong answer went wrong: the first step of the model's that differs from the rule reader's.

Steps are compared in the order of Algorithm 1, and by what they do: events by the states that they lead to, questions
by the object that they ask for. Perspectives are compared along the chain, outermost first, so that what a nested one
only took over is put down to the one that it came from; within a perspective the earliest step of the story counts, and
at one step what is seen of the state before what is learnt of the event, and both before the belief.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rectom.codec import events_from_json, is_history, states_from_json
from rectom.errors import StoryError
from rectom.events import Event
from rectom.facts import State, printed
from rectom.grammar import read_question
from rectom.perspective import build_global
from rectom.results.outcome import Outcome

#: The steps that can be at fault, in the order of Algorithm 1. `update` is Eq. 1 where a model applies it; `label`
#: says that every step agrees with the rules, which do not reach the label.
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

#: So many facts of a state are told of those that differ.
_TOLD: Final = 4


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


def attribute(trace: Mapping[str, Any], oracle: Mapping[str, Any] | None) -> Fault | None:
    """Where the wrong answer of a trace went wrong; None if nothing tells.

    `oracle` is the rules' trace of the same question. Both are as `Trace.to_json` writes them.
    """
    if trace.get("failure"):
        return _failed(trace["failure"])
    if oracle is None:
        return _violated(trace.get("calls") or ())
    return next(_differences(trace, oracle), None)


def fault_rows(outcomes: Sequence[Outcome]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """A header, and a row a step at fault: the wrong answers of each order, and of all. No rows if there are none."""
    wrong = [outcome for outcome in outcomes if not outcome.correct]
    orders = sorted({outcome.order for outcome in wrong}, key=lambda order: -1 if order is None else order)
    counts = Counter((outcome.fault or UNTOLD, outcome.order) for outcome in wrong)
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


def _violated(calls: Iterable[Mapping[str, Any]]) -> Fault | None:
    """The first reply in which a check found something wrong."""
    for call in calls:
        if call.get("fault") and call["step"] in _STEPS:
            return Fault(_STEPS[call["step"]], str(call["fault"]), "a reply without that", by="verify")
    return None


def _differences(trace: Mapping[str, Any], oracle: Mapping[str, Any]) -> Iterator[Fault]:
    """What differs, in the order of Algorithm 1."""
    events, right = (events_from_json(one.get("events") or ()) for one in (trace, oracle))
    yield from _abstraction(events, right)
    yield from _world(trace.get("world"), events)
    if trace.get("chain") != oracle.get("chain"):
        yield Fault("chain", _chain(trace.get("chain")), _chain(oracle.get("chain")))
        return  # perspectives along another chain are others
    yield from _perspectives(trace, oracle, events)
    if not _ask_the_same(trace.get("reduced") or "", oracle.get("reduced") or ""):
        yield Fault("reduction", str(trace.get("reduced")), str(oracle.get("reduced")))
    if trace.get("predicted") != oracle.get("predicted"):
        # What was stated once more than the rules do changes no state, but may change what is seen of it.
        yield from _deltas(events, right)
        yield Fault("answer", str(trace.get("predicted")), str(oracle.get("predicted")))
    yield Fault("label", str(trace.get("predicted")), str(trace.get("gold")))


def _abstraction(events: Sequence[Event], right: Sequence[Event]) -> Iterator[Fault]:
    worlds = (build_global(one).states for one in (events, right))
    for line, (found, expected, state, world) in enumerate(zip(events, right, *worlds, strict=True), 1):
        if state != world or found.occurrence != expected.occurrence:
            yield Fault("abstraction", str(found), str(expected), line)


def _deltas(events: Sequence[Event], right: Sequence[Event]) -> Iterator[Fault]:
    for line, (found, expected) in enumerate(zip(events, right, strict=True), 1):
        if found != expected:
            yield Fault("abstraction", str(found), str(expected), line)


def _world(world: Mapping[str, Any] | None, events: Sequence[Event]) -> Iterator[Fault]:
    """Where the states of the world are not those of Eq. 1 along the model's own events."""
    if world is None or is_history(world):
        return
    for line, (found, expected) in enumerate(zip(states_from_json(world), build_global(events).states, strict=True), 1):
        if found != expected:
            yield Fault("update", *_apart(found, expected), line)


def _perspectives(trace: Mapping[str, Any], oracle: Mapping[str, Any], events: Sequence[Event]) -> Iterator[Fault]:
    both = zip(trace.get("perspectives") or (), oracle.get("perspectives") or (), strict=False)
    for found, expected in both:
        yield from (_history(found, expected) if is_history(found) else _perspective(found, expected, events))


def _history(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Fault]:
    for line, (seen, visible) in enumerate(zip(found["events"], expected["events"], strict=True), 1):
        if bool(seen) != bool(visible):
            yield Fault("event observability", _noticed(seen), _noticed(visible), line, _holder(found))


def _perspective(found: Mapping[str, Any], expected: Mapping[str, Any], events: Sequence[Event]) -> Iterator[Fault]:
    who, states = _holder(found), (states_from_json(found), states_from_json(expected))
    for line, event in enumerate(events, 1):
        place = line - 1
        seen, visible = found["vantage"][place], expected["vantage"][place]
        if seen != visible:
            yield Fault("state observability", _from(seen), _from(visible), line, who)
        heard, audible = found["events"][place], expected["events"][place]
        if bool(heard) != bool(audible):
            yield Fault("event observability", _noticed(heard), _noticed(audible), line, who)
        believed, right = states[0][place], states[1][place]
        if believed != right:
            step = "revision" if event.proposition and not event.is_said_aloud else "update"
            yield Fault(step, *_apart(believed, right), line, who)


def _holder(perspective: Mapping[str, Any]) -> str:
    return str(perspective["chain"][-1]) if perspective["chain"] else "World"


def _chain(names: Sequence[str] | None) -> str:
    return " → ".join(["World", *(names or ())])


def _ask_the_same(one: str, other: str) -> bool:
    """Whether two reduced questions ask for the same: by the object, or by the words where no grammar reads one."""
    try:
        return read_question(one) == read_question(other)
    except StoryError:
        return _words(one) == _words(other)


def _words(question: str) -> list[str]:
    return question.lower().strip(" ?.").split()


def _apart(found: State, expected: State) -> tuple[str, str]:
    """The facts that only one of two states has."""
    return _some(found - expected), _some(expected - found)


def _some(facts: State) -> str:
    told = printed(facts)
    more = " …" if len(told) > _TOLD else ""
    return (", ".join(told[:_TOLD]) or "nothing else") + more


def _from(room: str | None) -> str:
    return f"observed from {room}" if room else "not observed"


def _noticed(observed: object) -> str:
    return "observed" if observed else "not observed"
