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
    """Right answers among questions. Failed questions stay in the denominator."""

    questions: int
    correct: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Score:
        """Count outcomes."""
        return cls(len(outcomes), sum(outcome.correct for outcome in outcomes))

    @property
    def accuracy(self) -> float:
        """The share that is right, 0 to 1; 0 of no questions."""
        return self.correct / self.questions if self.questions else 0.0

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's interval for the accuracy; 95 % by default."""
        return wilson(self.accuracy, self.questions, z)


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


def by_order(outcomes: Iterable[Outcome]) -> dict[str, Score]:
    """The score of each order, lowest first; `-` where the benchmark states none."""
    groups: dict[int | None, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.order, []).append(outcome)
    orders = sorted(groups, key=lambda order: -1 if order is None else order)
    return {"-" if order is None else str(order): Score.of(groups[order]) for order in orders}


def by_group(outcomes: Iterable[Outcome]) -> dict[str, Score]:
    """The score of each kind of question that the benchmark names, in alphabetical order; empty if it names none."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, []).append(outcome)
    return {group: Score.of(groups[group]) for group in sorted(groups) if group}


def failures(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many questions failed, by the step that failed."""
    return dict(Counter(outcome.failed_step for outcome in outcomes if outcome.failed_step).most_common())


def summary_line(identity: Mapping[str, str], outcomes: Sequence[Outcome], cost: Cost, wall_s: float) -> dict[str, Any]:
    """The line of JSON that `rectom run --json` ends with."""
    score = Score.of(outcomes)
    return {
        **identity,
        "questions": score.questions,
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
