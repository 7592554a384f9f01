from __future__ import annotations

import pytest

from flows.tolerance import Tolerance, kinds
from rectom.errors import SettingsError, TooManyFailures
from tasks.run import Failure

CHAIN, ANSWER = Failure("chain", "no usable reply"), Failure("answer", "no fact")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0", Tolerance(count=0)),
        ("20", Tolerance(count=20)),
        ("5%", Tolerance(share=0.05)),
        ("0.5%", Tolerance(share=0.005)),
    ],
)
def test_a_number_or_a_share_is_read(text: str, meant: Tolerance) -> None:
    assert Tolerance.parse(text) == meant


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "101%", "5 %%", "9" * 40])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--max-failures"):
        Tolerance.parse(text)


@pytest.mark.parametrize(
    ("tolerance", "borne"),
    [(Tolerance(), 9), (Tolerance(count=3), 3), (Tolerance(share=0.25), 2), (Tolerance(count=0), 0)],
)
def test_one_more_than_may_be_stops_the_run(tolerance: Tolerance, borne: int) -> None:
    tolerance.check([CHAIN] * borne, 10)
    if tolerance != Tolerance():
        with pytest.raises(TooManyFailures, match=f"{borne + 1} of 10 questions failed, {borne} may"):
            tolerance.check([CHAIN] * (borne + 1), 10)


def test_the_kinds_are_told_most_frequent_first() -> None:
    told = kinds([ANSWER, CHAIN, Failure("chain", "once"), CHAIN])
    assert told == "3 at chain (no usable reply); 1 at answer (no fact)"
