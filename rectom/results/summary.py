"""The numbers of a run: accuracy by order with intervals, calls and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from rectom.results.outcome import Outcome
from rectom.results.statistics import wilson


@dataclass(frozen=True, slots=True)
class Score:
    """Right answers among questions. Failed questions stay in the denominator.

    `repeated` of the questions ask again what another one asks: as a further sample, or as a further try of its ballot.
    """

    questions: int
    correct: int
    repeated: int = 0

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], samples: int = 1) -> Score:
        """Count outcomes, of which there are so many samples of each question."""
        ballots = [outcome.ballot for outcome in outcomes if outcome.ballot]
        different = (len(outcomes) - len(ballots) + len({*ballots})) // samples
        return cls(len(outcomes), sum(outcome.correct for outcome in outcomes), len(outcomes) - different)

    @property
    def accuracy(self) -> float:
        """The share that is right, 0 to 1; 0 of no questions."""
        return self.correct / self.questions if self.questions else 0.0

    @property
    def different(self) -> int:
        """How many questions there are if those that were asked several times count once."""
        return self.questions - self.repeated

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's interval for the accuracy; 95 % by default. To ask a question again does not narrow it."""
        return wilson(self.accuracy, self.different, z)


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls and tokens of a run.

    `sent`, `retried`: requests to the server. `cached`: different replies that were in the store before. `shared`:
    further asks for a reply that another question of the run had asked for. `prompt`, `completion`, `reasoning` and
    `provider_cached` are tokens over the different replies, whenever they were paid; `billed` is what this run
    paid for; `standalone` what the questions would cost if none shared anything (the paper's measure).
    """

    sent: int = 0
    cached: int = 0
    shared: int = 0
    retried: int = 0
    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    provider_cached: int = 0
    billed: int = 0
    standalone: int = 0

    def calls(self) -> dict[str, int]:
        """The calls, under the names of the JSON line."""
        return {"sent": self.sent, "cached": self.cached, "shared": self.shared, "retried": self.retried}

    def tokens(self) -> dict[str, int]:
        """The tokens, under the names of the JSON line."""
        return {
            "prompt": self.prompt,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "cached": self.provider_cached,
            "billed": self.billed,
            "standalone": self.standalone,
        }


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one step of a run came to: different calls, how many of them repaired a bad reply, tokens, and the seconds
    that the replies took, one after the other.
    """

    calls: int = 0
    repairs: int = 0
    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0
    latency_s: float = 0.0

    def to_json(self) -> dict[str, float]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Money:
    """What a run cost: `billed` by it, and `whole`, over its different replies, whenever they were paid.

    None is an unknown price, which is not 0. `date` is the day of the prices.
    """

    billed: Decimal | None = None
    whole: Decimal | None = None
    currency: str = ""
    date: str = ""

    def to_json(self) -> dict[str, str | None]:
        """As JSON; amounts as text, so that no digit is lost."""
        amounts = {"billed": self.billed, "whole": self.whole}
        told = {name: None if amount is None else f"{amount:.6f}" for name, amount in amounts.items()}
        return {**told, "currency": self.currency or None, "date": self.date or None}


def by_order(outcomes: Iterable[Outcome], samples: int = 1) -> dict[str, Score]:
    """The score of each order, lowest first; `-` where the benchmark states none."""
    groups: dict[int | None, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.order, []).append(outcome)
    orders = sorted(groups, key=lambda order: -1 if order is None else order)
    return {"-" if order is None else str(order): Score.of(groups[order], samples) for order in orders}


def by_group(outcomes: Iterable[Outcome], samples: int = 1) -> dict[str, Score]:
    """The score of each kind of question that the benchmark names, in alphabetical order; empty if it names none."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, []).append(outcome)
    return {group: Score.of(groups[group], samples) for group in sorted(groups) if group}


def failures(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many questions failed, by the step that failed."""
    return dict(Counter(outcome.failed_step for outcome in outcomes if outcome.failed_step).most_common())


def summary_line(
    identity: Mapping[str, str], outcomes: Sequence[Outcome], cost: Cost, wall_s: float, samples: int = 1
) -> dict[str, Any]:
    """The line of JSON that `rectom run --json` ends with."""
    score = Score.of(outcomes, samples)
    return {
        **identity,
        "questions": score.questions,
        "different": score.different,
        "correct": score.correct,
        "failed": sum(failures(outcomes).values()),
        "accuracy": round(score.accuracy, 6),
        "by_order": {
            order: {"questions": group.questions, "correct": group.correct}
            for order, group in by_order(outcomes).items()
        },
        "calls": cost.calls(),
        "tokens": cost.tokens(),
        "wall_s": round(wall_s, 3),
    }


def different_of(line: Mapping[str, Any], samples: int = 1) -> int:
    """How many different questions the summary line of a run is about; older runs tell how many samples there are."""
    return int(line.get("different", int(line["questions"]) // samples))
