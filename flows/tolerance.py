"""How many failed questions a run puts up with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rectom.errors import SettingsError, TooManyFailures
from tasks.run import Failure

#: So many reasons are told when a run stops.
_TOLD = 3


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The most questions that may fail: a number, or a share of all from 0 to 1; None for no bound."""

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Read `20` or `5%`. Raises SettingsError for anything else."""
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(%?)", text.strip())
        if not found or (not found[2] and "." in found[1]) or (found[2] and float(found[1]) > 100):
            raise SettingsError(f"--max-failures {text}: give a number of questions, or a share such as 5%")
        return cls(share=float(found[1]) / 100) if found[2] else cls(count=int(found[1]))

    def check(self, failures: Sequence[Failure], questions: int) -> None:
        """Raise TooManyFailures, with the kinds of failures, if there are more than may be."""
        most = self.count if self.share is None else int(self.share * questions)
        if most is not None and len(failures) > most:
            raise TooManyFailures(
                f"stopped: {len(failures)} of {questions} questions failed, {most} may: {kinds(failures)}; what was "
                "answered is kept: mend the cause and run the same command again, with --retry-failed"
            )


def kinds(failures: Sequence[Failure]) -> str:
    """The failures by step, the most frequent first, each with its most frequent reason."""
    steps = Counter(failure.step for failure in failures)
    told = []
    for step, count in steps.most_common(_TOLD):
        why = Counter(failure.why for failure in failures if failure.step == step).most_common(1)[0][0]
        told.append(f"{count} at {step} ({why})")
    return "; ".join(told)
