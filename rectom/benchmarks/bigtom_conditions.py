"""The conditions of BigToM, made from the rows of `bigtom.csv` by the rules of its authors' script.

A row describes one situation in pieces. A condition picks the pieces that its story tells, one of two questions, and
which of the two answers is right:

    story      three sentences: the setting, a desire, a percept; the sentence with the initial belief only if asked for
    event      the change that makes the initial belief false; in a control, one that does not matter
    forward    … and whether it is noticed; the question asks for the belief or for the action
    backward   … and what is done then; the question asks for the belief

Only who knows of the change (`true_belief`) has the new belief. The two backward controls are therefore the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from rectom.benchmarks.rows import checked, table
from rectom.errors import DataError
from rectom.story import sentences


def _filled(cell: str) -> str:
    if not cell.strip():
        raise ValueError("the cell is empty")
    return cell


def _five_sentences(story: str) -> str:
    if (count := len(sentences(story))) != 5:
        raise ValueError(f"{count} sentences where there must be five: setting, desire, percept, belief, change")
    return story


Cell = Annotated[str, AfterValidator(_filled)]


class Row(BaseModel):
    """A row of `bigtom.csv`, its cells in order; the last two are not used.

    `aware` and `unaware` say whether the change is noticed, and `random_…` the same of the event that does not matter.
    """

    model_config = ConfigDict(frozen=True)

    story: Annotated[Cell, AfterValidator(_five_sentences)]
    aware: Cell
    unaware: Cell
    action_if_aware: Cell
    action_if_unaware: Cell
    belief_question: Cell
    desire_question: Cell
    action_question: Cell
    belief_aware: Cell
    desire_aware: Cell
    action_aware: Cell
    belief_unaware: Cell
    desire_unaware: Cell
    action_unaware: Cell
    random_event: Cell
    random_aware: Cell
    random_unaware: Cell
    author: str
    spare: str


def read_rows(data: bytes, file: str) -> list[Row]:
    """The checked rows of `bigtom.csv`, which has no header. Raises DataError with the first wrong row."""
    names = tuple(Row.model_fields)
    rows = []
    for number, cells in table(data, file, ";"):
        if len(cells) != len(names):
            raise DataError(
                f"{file}, row {number}: {len(cells)} cells between semicolons where bigtom.csv has {len(names)}: "
                "is it the right file?"
            )
        row = checked(Row, dict(zip(names, cells, strict=True)), file, number)
        for kind, answers in (
            ("belief", (row.belief_aware, row.belief_unaware)),
            ("action", (row.action_aware, row.action_unaware)),
        ):
            if answers[0].strip() == answers[1].strip():
                raise DataError(f"{file}, row {number}: the two {kind} answers are equal: {answers[0]!r}")
        rows.append(row)
    if not rows:
        raise DataError(f"{file} is empty: run: rectom data get bigtom")
    return rows


@dataclass(frozen=True, slots=True)
class Item:
    """What a condition makes of a row: the pieces of the story, the question, and its two answers."""

    story: tuple[str, ...]
    question: str
    correct: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition; `initial` says whether its stories tell the initial belief."""

    variable: Literal["forward_belief", "forward_action", "backward_belief", "percept_to_belief"]
    case: Literal["true_belief", "false_belief", "true_control", "false_control"]
    initial: bool = False

    @property
    def name(self) -> str:
        """What the command line calls it, as `forward_belief_false` or `forward_action_true_control-initial`."""
        if self.variable == "percept_to_belief":
            return self.variable
        return f"{self.variable}_{self.case.removesuffix('_belief')}{'-initial' if self.initial else ''}"

    @property
    def folder(self) -> str:
        """What the authors call it, as `0_forward_belief_false_belief`."""
        # They count the percept among the conditions with an initial belief, though its stories end before that.
        return f"{int(self.initial or self.variable == 'percept_to_belief')}_{self.variable}_{self.case}"

    def item(self, row: Row) -> Item:
        """What the condition makes of a row."""
        told = sentences(row.story)[: 4 if self.initial else 3]
        story = (*told, *self._ending(row))
        if self.variable == "forward_action":
            question, answers = row.action_question, (row.action_aware, row.action_unaware)
        else:
            question, answers = row.belief_question, (row.belief_aware, row.belief_unaware)
        correct, wrong = answers if self.case == "true_belief" else answers[::-1]
        return Item(story, question, correct, wrong)

    def _ending(self, row: Row) -> tuple[str, ...]:
        if self.variable == "percept_to_belief":
            return ()
        control = self.case.endswith("control")
        event = row.random_event if control else sentences(row.story)[4]
        if self.variable == "backward_belief":
            return event, row.action_if_aware if self.case == "true_belief" else row.action_if_unaware
        aware, unaware = (row.random_aware, row.random_unaware) if control else (row.aware, row.unaware)
        return event, aware if self.case.startswith("true") else unaware


#: Every condition of the authors; each of the first 24 once without and once with the initial belief.
CONDITIONS: Final = (
    *(
        Condition(variable, case, initial)
        for initial in (False, True)
        for variable in ("forward_belief", "forward_action", "backward_belief")
        for case in ("true_belief", "false_belief", "true_control", "false_control")
    ),
    Condition("percept_to_belief", "true_belief"),
)
