"""Where a wrong answer went wrong: the step of the model's that differs from the rule reader's, and led to it.

Steps are compared in the order of Algorithm 1, and by what they do: events by the states that they lead to, questions
by the objects that they name. Of events and perspectives that counts which the last perspective's final state comes of
(`rectom.results.origin`). What follows from a fact that an event states without need, since it held already, is put
down to the abstraction; so is what follows from the place of a container, which the rules tell of more lines than
a model is asked to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rectom.codec import events_from_json, is_history
from rectom.results.effects import Effect, effects, otherwise, stated_otherwise
from rectom.results.fault import FAULTS, UNTOLD, Fault, learnt
from rectom.results.origin import Level, Origins, everything, place_of
from rectom.results.outcome import Outcome
from rectom.setting import setting_of

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

#: What a reduced question may ask for besides objects.
_BEGINNING: Final = "beginning"

#: How the words of a check (see `rectom.reader.verify`) begin, and where they say what they are about. Other faults are
#: of a reply's form, and tell nothing of what another one says.
_CHECKED: Final = re.compile(r"(?:line|state|event) (\d+)\b|the fact .+ names ")
_WHO: Final = re.compile(r"does not (?:reach (.+?), who|place (.+?) in )")


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


def _differences(trace: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Fault]:
    """What differs, in the order of Algorithm 1, as far as the trace came: what comes first explains the rest."""
    predicted, gold = trace.get("predicted"), trace.get("gold")
    label = Fault("label", str(predicted), str(gold))
    if predicted is not None and predicted == right.get("predicted") != gold:
        yield label
    yield from _steps(trace, right)
    if predicted is not None:
        known = right.get("predicted")
        yield label if known in {predicted, None} else Fault("answer", predicted, str(known))


def _steps(trace: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Fault]:
    """The steps before the answer."""
    world, chain = trace.get("world"), trace.get("chain")
    if world is not None and not is_history(world) and chain in (None, right["chain"]):
        yield from filter(None, [_beliefs(trace, right)])
    else:
        found, expected = (effects(one.get("events") or ()) for one in (trace, right))
        yield from otherwise(found, expected)
        if chain not in (None, right["chain"]):
            yield Fault("chain", _chain(chain), _chain(right["chain"]))
        yield from _histories(trace.get("perspectives") or (), right.get("perspectives") or (), found)
    reduced, things = trace.get("reduced"), _things(right["events"])
    if reduced is not None and _named(reduced, things) != _named(right["reduced"], things):
        yield Fault("reduction", reduced, right["reduced"])


def _beliefs(trace: Mapping[str, Any], right: Mapping[str, Any]) -> Fault | None:
    """What led to another belief about what is asked for; to any other, where the trace has no answer."""
    seen, expected = ([one["world"], *(one.get("perspectives") or ())] for one in (trace, right))
    origins = Origins(
        [Level.of(*both) for both in zip(seen, expected, strict=False)],
        effects(trace["events"]),
        effects(right["events"]),
        _stated(trace["events"], right["events"]),
    )
    asked = _named(right["reduced"], _things(right["events"]))
    things = asked - {_BEGINNING}
    predicate = "began_in" if _BEGINNING in asked else "in"
    found = origins.of(place_of(things, predicate) if things else everything)
    if not found and trace.get("predicted") is None:
        found = origins.of_any(everything)
    return found


def _stated(events: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> Callable[[int], Fault | None]:
    """Which event's facts, stated without need, something at a line may follow from.

    Where containers seem to stand elsewhere for that, it shows at every line.
    """
    elsewhere = _places(events) != _places(right)
    faults = tuple(stated_otherwise(events, right, with_places=elsewhere))
    return lambda line: next((fault for fault in faults if elsewhere or (fault.line or 0) <= line), None)


def _places(events: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    return setting_of(events_from_json(events)).places


def _histories(
    found: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]], done: Sequence[Effect]
) -> Iterator[Fault]:
    """Where the last history has another event than by the rules, and from which of those before it that came."""
    levels = [(one["chain"][-1:], one["events"], other["events"]) for one, other in zip(found, right, strict=False)]
    for line in (line for line, effect in enumerate(done) if effect):
        apart = [level for level in levels if bool(level[1][line]) != bool(level[2][line])]
        if apart and apart[-1] is levels[-1]:
            (who,), seen, told = apart[0]
            yield Fault("event observability", learnt(seen[line]), learnt(told[line]), line + 1, who)


def _things(events: Iterable[Mapping[str, Any]]) -> set[str]:
    """The objects that events are about."""
    said = (" ".join([event.get("occurrence") or "", *event.get("added", ())]) for event in events)
    return {thing for words in said for thing in re.findall(r"\bin\(([^,()]+),", words)}


def _named(question: str, things: Iterable[str]) -> frozenset[str]:
    """The objects that a question asks for, and whether for the beginning: however it is worded."""
    words = re.findall(r"[\w'-]+", question.lower().replace("_", " "))
    spoken = f" {' '.join(words)} "
    return frozenset(name for name in (*things, _BEGINNING) if f" {name.lower().replace('_', ' ')} " in spoken)


def _chain(names: Sequence[str]) -> str:
    return " → ".join(["World", *names])
