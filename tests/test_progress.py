from __future__ import annotations

import io

import pytest
from rich.console import Console

from flows import progress
from flows.progress import Bars, Calls, Standing

STANDING = Standing(400, 120, 3, 80, Calls(1870, 12, 64, 41.25, 855_665), "1.2345 USD", "2 jobs")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only the test moves on."""
    now = [1000.0]
    monkeypatch.setattr("flows.progress.time.monotonic", lambda: now[0])
    return now


def test_the_words_say_all_and_in_short_the_same() -> None:
    assert STANDING.words() == (
        "80 stories read, 120 of 400 questions answered, 3 failed · 1870 calls sent, 12 from the store, 855,665 tokens"
        " · 64 running, 41.2 a second · 1.2345 USD · 2 jobs"
    )
    assert STANDING.brief() == ("120/400 3 failed · 1870 sent, 64 running, 41.2/s · 856k tokens · 1.2345 USD · 2 jobs")
    assert Standing(4, 0, 0).words() == "0 of 4 questions answered"
    assert Standing(4, 1, 0).brief() == "1/4"


def test_where_there_is_no_terminal_a_line_is_printed_now_and_then(clock: list[float]) -> None:
    sink = io.StringIO()
    with Bars(Console(file=sink, width=200), named=True)("hitom/400 · cot · m") as line:
        for second in range(31):
            clock[0] = 1000.0 + second
            line.show(second / 60, lambda: Standing(400, 120, 0))
    told = sink.getvalue().splitlines()
    assert told == [
        f"hitom/400 · cot · m · {share} % · 120 of 400 questions answered · {left} left"
        for share, left in ((17, "0:50"), (33, "0:40"), (50, "0:30"))
    ]


def left(clock: list[float], *noted: tuple[float, float], stored: float = 0.0) -> list[float | None]:
    """What is told after each share, at its second; as much as `stored` takes no call."""
    found, so_far = [], progress._Left()
    for second, share in noted:
        clock[0] = 1000.0 + second
        so_far.note(share, at_once=share <= stored)
        found.append(so_far.seconds())
    return found


def test_the_time_left_does_not_grow_while_a_long_call_goes_on(clock: list[float]) -> None:
    assert left(clock, (0, 0.0), (100, 0.1), (400, 0.1), (900, 0.1), (1500, 0.1)) == [
        None,
        pytest.approx(900),
        pytest.approx(600),
        pytest.approx(100),
        0.0,
    ]


def test_what_was_in_the_store_does_not_make_the_rest_look_short(clock: list[float]) -> None:
    noted = [(0, 0.2), (5, 0.8), (65, 0.805), (605, 0.9)]
    assert left(clock, *noted, stored=0.8) == [None, None, None, pytest.approx(600)]


def test_in_a_terminal_each_run_has_a_line_while_it_goes_on() -> None:
    sink = io.StringIO()
    bars = Bars(Console(file=sink, force_terminal=True, width=120), named=True)
    with bars("first cell") as first, bars("second cell") as second:
        for line in (first, second):
            line.show(0.5, lambda: STANDING)
        bars._bars.refresh()
        shown = sink.getvalue()
    assert "first cell · 120/400 3 failed" in shown
    assert "second cell · 120/400 3 failed" in shown
    assert not bars._bars.tasks
    with bars("third cell") as third:
        third.show(0.1, lambda: STANDING)
        bars._bars.refresh()
    assert "third cell" in sink.getvalue()


def test_the_pace_is_that_of_late(clock: list[float]) -> None:
    pace = progress._Pace()
    assert pace.rate == 0.0
    for second in range(1, 61):
        clock[0] = 1000.0 + second
        pace.note(2 * second if second <= 30 else 60 + 10 * (second - 30))
    assert pace.rate == pytest.approx(10, rel=0.05)


def test_time_is_told_as_people_do() -> None:
    assert [progress._time(seconds) for seconds in (5, 65, 3_725)] == ["0:05", "1:05", "1:02:05"]
