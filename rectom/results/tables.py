"""The tables of a run, accuracy by order and cost by step: for the terminal, and for `rectom.results.writing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rectom.results.outcome import Outcome
from rectom.results.scoring import Measure
from rectom.results.summary import Score, StepCost, by_group, by_order

HEADER = ("order", "questions", "correct", "accuracy", "95 % interval")

#: The same by kind of question.
GROUPS_HEADER = ("kind of question", *HEADER[1:])

#: The columns of the official measures.
OFFICIAL_HEADER = ("official measure", "questions", "value")

#: The columns of the costs by step: `StepCost`'s fields.
STEPS_HEADER = ("step", "calls", "repairs", "prompt", "completion", "reasoning", "cached", "latency_s")

Row = tuple[str, int, int, str, str]


def accuracy_rows(outcomes: Sequence[Outcome], samples: int = 1) -> list[Row]:
    """A row an order and one for all, with accuracy and Wilson's interval in percent."""
    rows = [_row(order, score) for order, score in by_order(outcomes, samples).items()]
    return [*rows, _row("all", Score.of(outcomes, samples))]


def group_rows(outcomes: Sequence[Outcome], samples: int = 1) -> list[Row]:
    """The same by kind of question; no rows where there is one kind."""
    groups = by_group(outcomes, samples)
    return [_row(name, score) for name, score in groups.items()] if len(groups) > 1 else []


def official_rows(measures: Sequence[Measure]) -> list[tuple[object, ...]]:
    """A row a measure, in percent."""
    return [(measure.name, measure.questions, f"{100 * measure.value:.2f}") for measure in measures]


def _row(name: str, score: Score) -> Row:
    low, high = score.interval()
    return name, score.questions, score.correct, f"{100 * score.accuracy:.2f}", f"{100 * low:.1f} to {100 * high:.1f}"


def step_rows(steps: Mapping[str, StepCost]) -> list[tuple[object, ...]]:
    """A row a step, in the order of Algorithm 1."""
    return [(name, *step.to_json().values()) for name, step in steps.items()]
