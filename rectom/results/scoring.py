"""The official measures of the benchmarks, over the outcomes of a run.

No outcome is ever left out: a question without an answer, because a step failed or for another reason, is a question
that was not answered right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final, TypeAlias

from rectom.errors import DataError
from rectom.results.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure: its `name`, with the group it is about after a colon; its `value`, 0 to 1; of how many `questions`.

    A question that is asked several times counts as one where the measure is the majority.
    """

    name: str
    value: float
    questions: int


Scorer: TypeAlias = Callable[[Sequence[Outcome]], list[Measure]]


def accuracy(outcomes: Sequence[Outcome]) -> list[Measure]:
    """The share of right answers, in each group and in all."""
    named = [_measure("accuracy", group, _accuracy(some), some) for group, some in _groups(outcomes).items() if group]
    return [*named, _measure("accuracy", "", _accuracy(outcomes), outcomes)]


def macro_f1(outcomes: Sequence[Outcome]) -> list[Measure]:
    """The macro-averaged F1 of each group, and over all the mean of the groups': each group counts the same.

    Outcomes of no named group are one more group in the mean.
    """
    groups = _groups(outcomes)
    values = {group: _f1(some) for group, some in groups.items()}
    named = [_measure("macro-f1", group, values[group], some) for group, some in groups.items() if group]
    return [*named, _measure("macro-f1", "", _mean(values.values()), outcomes)]


def majority(outcomes: Sequence[Outcome]) -> list[Measure]:
    """The share of questions whose most frequent answer is right, in each group and in all; see `winner`.

    The outcomes of one ballot are the tries of one question, in the order of their ids.
    """
    ballots: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.id):
        ballots.setdefault(outcome.ballot or outcome.id, []).append(outcome)
    decided = [replace(tries[0], correct=_is_won(tries)) for tries in ballots.values()]
    return [replace(measure, name=measure.name.replace("accuracy", "majority", 1)) for measure in accuracy(decided)]


def winner(tries: Sequence[Outcome]) -> str | None:
    """The answer that most tries of a question give; of equally many, the one that was given first.

    A try without an answer is a vote for nothing, which may win: then the result is None.
    """
    votes = Counter(map(_answer, tries))
    return max(votes, key=lambda answer: votes[answer])


#: The measures by the names that `Benchmark.scoring` may have.
SCORERS: Final[Mapping[str, Scorer]] = {"accuracy": accuracy, "macro-f1": macro_f1, "majority": majority}


def official(outcomes: Sequence[Outcome], scoring: str) -> list[Measure]:
    """A benchmark's official measure: groups in alphabetical order, then all. Raises DataError if there is no such."""
    if scoring not in SCORERS:
        raise DataError(f"there is no measure {scoring!r}; a benchmark's scoring is one of {', '.join(SCORERS)}")
    return SCORERS[scoring](outcomes)


def _accuracy(outcomes: Sequence[Outcome]) -> float:
    return _mean([float(outcome.correct) for outcome in outcomes])


def _is_won(tries: Sequence[Outcome]) -> bool:
    won = winner(tries)
    return won is not None and won == tries[0].gold


def _f1(outcomes: Sequence[Outcome]) -> float:
    """The mean F1 of the classes that are right somewhere or were given somewhere: answers, or what they count as.

    No answer is a class of its own that is never right: it costs the right answer's class its recall. It has no F1
    to be averaged, since then one failure among thousands of questions would weigh as much as a whole class.
    """
    pairs = [_classes(outcome) for outcome in outcomes]
    right = Counter(gold for gold, given in pairs if gold == given)
    golds = Counter(gold for gold, _ in pairs)
    given = Counter(given for _, given in pairs)
    classes = (golds.keys() | given.keys()) - {None}
    return _mean([2 * right[name] / (golds[name] + given[name]) for name in classes])


def _classes(outcome: Outcome) -> tuple[str | None, str | None]:
    """The classes of the right answer and of that given."""
    given = _answer(outcome)
    return outcome.gold_class or outcome.gold, (outcome.predicted_class or given) if given is not None else None


def _answer(outcome: Outcome) -> str | None:
    return None if outcome.failed_step else outcome.predicted


def _groups(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of each group, in alphabetical order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, []).append(outcome)
    return {group: groups[group] for group in sorted(groups)}


def _measure(name: str, group: str, value: float, of: Sequence[Outcome]) -> Measure:
    return Measure(f"{name}: {group}" if group else name, value, len(of))


def _mean(values: Collection[float]) -> float:
    """0 of nothing; the sum is exact, so that no order of the outcomes changes the figure."""
    return fsum(values) / len(values) if values else 0.0
