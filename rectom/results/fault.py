"""What was found at fault in a wrong answer, and the steps that can be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

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

#: What that means, for whoever reads it.
UNTOLD_MEANS: Final = f"`{UNTOLD}`: no rule reads the text, and no check found anything, so that the step is not known."


def learnt(observed: object) -> str:
    """Whether an event was learnt of, in words."""
    return "observed" if observed else "not observed"


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
