"""The gate, in virtual time: what it lets through, when, and that it never stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rectom.errors import EndpointBusy, EndpointDown, SettingsError
from rectom.llm import Limits, Usage
from tests.virtual_time import now, run

ME = object()


async def hold(limits: Limits, seconds: float, entered: list[float] | None = None, owner: object = ME) -> None:
    place = await limits.enter(limits.turn(owner))
    if entered is not None:
        entered.append(now())
    try:
        await asyncio.sleep(seconds)
    finally:
        limits.leave(place)


@pytest.mark.parametrize("what", ["concurrency", "per_second", "per_minute", "tokens_per_minute"])
def test_a_limit_of_nothing_is_refused(what: str) -> None:
    with pytest.raises(SettingsError, match=f"a {what} of 0 .* give 1 or more"):
        Limits(**{what: 0})  # type: ignore[arg-type]


def test_it_starts_at_the_full_concurrency_first_come_first_served() -> None:
    async def main() -> None:
        limits, order = Limits(4), []

        async def ask(number: int) -> None:
            place = await limits.enter(limits.turn(ME))
            order.append((number, now()))
            await asyncio.sleep(1)
            limits.leave(place)

        await asyncio.gather(*map(ask, range(12)))
        assert order == [(number, number // 4) for number in range(12)]
        assert limits.in_flight == 0

    run(main())


def test_those_that_go_ahead_do_so_in_their_own_order() -> None:
    async def main() -> None:
        limits, entered = Limits(1), ""

        async def ask(name: str, ahead: bool) -> None:
            nonlocal entered
            place = await limits.enter(limits.turn(ME, ahead=ahead))
            entered += name
            await asyncio.sleep(1)
            limits.leave(place)

        await asyncio.gather(*(ask(name, name.isupper()) for name in "abAcBd"))
        assert entered == "aABbcd"

    run(main())


@pytest.mark.parametrize(("refused", "order"), [(False, "abcbdb"), (True, "abcdbb")])
def test_whoever_comes_back_keeps_its_turn_unless_there_was_no_room_for_it(refused: bool, order: str) -> None:
    async def main() -> None:
        limits, entered = Limits(1), ""

        async def ask(name: str, times: int) -> None:
            nonlocal entered
            turn = limits.turn(ME)
            for _ in range(times):
                place = await limits.enter(turn)
                entered += name
                await asyncio.sleep(1)
                if refused and name == "b":
                    limits.to_the_end(turn)
                limits.leave(place)

        await asyncio.gather(ask("a", 1), ask("b", 3), ask("c", 1), ask("d", 1))
        # While b is let out, c is already let in.
        assert entered == order

    run(main())


def test_waiters_that_leave_free_the_queue_and_their_places() -> None:
    async def main() -> None:
        limits = Limits(1)
        entered: list[float] = []
        held = await limits.enter(limits.turn(ME))
        waiting = [asyncio.create_task(hold(limits, 1.0, entered)) for _ in range(3)]
        await asyncio.sleep(0.5)
        waiting[0].cancel()
        await asyncio.sleep(0.5)
        limits.leave(held)
        waiting[1].cancel()  # it has been given the place, and does not know it yet
        await asyncio.wait(waiting)
        assert entered == [1.0]
        assert limits.in_flight == 0

    run(main())


def test_an_alarm_set_for_one_that_left_is_set_for_the_next() -> None:
    async def main() -> None:
        limits, entered = Limits(2, tokens_per_minute=100), []
        limits.leave(await limits.enter(limits.turn(ME, 3 * 90, 1)))
        large = asyncio.create_task(limits.enter(limits.turn(ME, 3 * 90, 1)))
        await asyncio.sleep(0)
        small = asyncio.create_task(limits.enter(limits.turn(ME, 3, 1)))
        small.add_done_callback(lambda _: entered.append(now()))
        await asyncio.sleep(1)
        large.cancel()
        await small
        assert entered == [1.0]

    run(main())


def test_whoever_is_dismissed_goes_with_an_error_of_its_own() -> None:
    async def main() -> None:
        limits, other = Limits(1), object()
        entered: list[float] = []
        holding = asyncio.create_task(hold(limits, 1.0))
        await asyncio.sleep(0)
        mine = [asyncio.create_task(hold(limits, 1.0)) for _ in range(3)]
        theirs = asyncio.create_task(hold(limits, 1.0, entered, other))
        await asyncio.sleep(0)
        limits.dismiss(ME, EndpointDown("gone"))
        got = await asyncio.gather(*mine, return_exceptions=True)
        assert [str(fault) for fault in got] == ["gone"] * 3
        assert len(set(map(id, got))) == 3
        assert now() == 0
        await asyncio.gather(holding, theirs)
        assert entered == [1.0]

    run(main())


@pytest.mark.parametrize(("limits", "span", "most"), [({"per_second": 5}, 1.0, 5), ({"per_minute": 30}, 60.0, 30)])
def test_no_second_and_no_minute_sees_more_requests(limits: dict[str, Any], span: float, most: int) -> None:
    async def main() -> None:
        entered: list[float] = []
        gate = Limits(64, **limits)
        await asyncio.gather(*(hold(gate, 0.3, entered) for _ in range(4 * most)))
        assert max(sum(at <= other < at + span for other in entered) for at in entered) == most
        assert entered[-1] < 3.3 * span

    run(main())


def test_tokens_are_guessed_first_and_put_right_by_the_reply() -> None:
    async def main() -> None:
        limits = Limits(64, tokens_per_minute=1000)
        entered: list[float] = []

        async def ask() -> None:
            place = await limits.enter(limits.turn(ME, 300, 300))  # a guess of 400
            entered.append(now())
            await asyncio.sleep(1)
            limits.replied(place, Usage(prompt=100, completion=100))
            limits.leave(place)

        await asyncio.gather(*(ask() for _ in range(10)))
        assert entered[:5] == [0, 0, 1, 1, 1]
        assert 60 < entered[5] < 60.2
        assert entered[9] < 62

    run(main())


def test_what_is_not_used_takes_nothing_of_the_rates() -> None:
    async def main() -> None:
        limits = Limits(64, per_minute=1, tokens_per_minute=10)
        for _ in range(20):
            limits.leave(await limits.enter(limits.turn(ME, 300, 300)), unused=True)
        assert now() == 0

    run(main())


def test_nothing_is_sent_before_a_named_time() -> None:
    async def main() -> None:
        limits = Limits(2)
        entered: list[float] = []
        holding = [asyncio.create_task(hold(limits, 1.0)) for _ in range(2)]
        await asyncio.sleep(0.5)
        limits.pause(10)
        limits.pause(2)  # a shorter one does not end a longer one
        await asyncio.gather(*holding, *(hold(limits, 1.0, entered) for _ in range(4)))
        assert all(10.5 <= at <= 11.1 for at in entered[:2])
        assert all(11.5 <= at <= 12.1 for at in entered[2:])

    run(main())


def test_a_place_given_just_before_the_gate_closed_is_given_back() -> None:
    async def main() -> None:
        limits = Limits(1)
        held = await limits.enter(limits.turn(ME))
        entered: list[float] = []
        waiting = asyncio.create_task(hold(limits, 1.0, entered))
        await asyncio.sleep(1)
        limits.leave(held)
        limits.pause(10)
        await waiting
        assert 11 <= entered[0] < 12

    run(main())


def test_under_lasting_refusals_it_tries_on_one_at_a_time() -> None:
    async def main() -> None:
        limits, entered = Limits(64), []

        async def ask() -> None:
            turn = limits.turn(ME)
            while now() < 600:
                place = await limits.enter(turn)
                entered.append(now())
                await asyncio.sleep(0.01)
                limits.overloaded(place)
                limits.leave(place)

        await asyncio.gather(*(ask() for _ in range(200)))
        # A rung, a rest of 0.125 s or more, the next rung.
        assert sum(at < 1 for at in entered) <= 64 + 44 + 31 + 21 + 15 + 10 + 7 + 5 + 3 + 2
        late = [at for at in entered if 60 < at < 600]
        gaps = [second - first for first, second in pairwise(late)]
        assert 2.4 < min(gaps) <= max(gaps) < 5.1  # a tenth of a minute and more is bounded
        assert limits.limit == 1

    run(main())


def test_after_them_it_is_back_at_the_ceiling_soon() -> None:
    async def main() -> None:
        limits = Limits(64)
        healthy_at: list[float] = []

        async def ask() -> None:
            turn = limits.turn(ME)
            while True:
                place = await limits.enter(turn)
                await asyncio.sleep(0.5)
                if now() < 300:
                    limits.overloaded(place)
                else:
                    limits.replied(place, Usage())
                limits.leave(place)
                if now() >= 300:
                    return

        async def watch() -> None:
            while now() < 300 or limits.limit < 64:  # noqa: ASYNC110  there is no event for it
                await asyncio.sleep(0.1)
            healthy_at.append(now())

        await asyncio.gather(watch(), *(ask() for _ in range(1000)))
        # At most 5 s of rest, 6 rounds of doubling, 8 of slow growth.
        assert healthy_at[0] < 300 + 5 + 15 * 0.5

    run(main())


def test_a_reply_ends_the_rest() -> None:
    async def main() -> None:
        limits = Limits(64)
        early = await limits.enter(limits.turn(ME))
        for _ in range(4):
            place = await limits.enter(limits.turn(ME))
            limits.overloaded(place)
            limits.leave(place)
        began = now()
        waiting = asyncio.create_task(limits.enter(limits.turn(ME)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        limits.replied(early, Usage())
        limits.leave(early)
        await waiting
        assert now() == began + 0.1

    run(main())


def test_a_fixed_limit_does_not_fall() -> None:
    async def main() -> None:
        limits = Limits(8, adaptive=False)
        for _ in range(5):
            place = await limits.enter(limits.turn(ME))
            limits.overloaded(place)
            limits.leave(place)
        assert limits.limit == 8

    run(main())


@dataclass(frozen=True)
class Story:
    """What becomes of one request: when it comes, how long an attempt takes, and how its attempts end."""

    at: float
    takes: float
    ends: tuple[str, ...]
    leaves_after: float | None


stories = st.builds(
    Story,
    at=st.floats(0, 5),
    takes=st.floats(0, 3),
    ends=st.lists(st.sampled_from(["busy", "named", "fault"]), max_size=4).map(tuple),
    leaves_after=st.none() | st.floats(0, 20),
)
gates = st.fixed_dictionaries(
    {
        "concurrency": st.integers(1, 6),
        "per_second": st.none() | st.integers(1, 5),
        "per_minute": st.none() | st.integers(5, 40),
        "tokens_per_minute": st.none() | st.integers(200, 1000),
        "adaptive": st.booleans(),
    }
)


@settings(max_examples=150)
@given(gate=gates, plot=st.lists(stories, max_size=25))
def test_whatever_happens_nobody_is_forgotten_and_no_ceiling_is_broken(gate: dict[str, Any], plot: list[Story]) -> None:
    limits = Limits(**gate)
    entered: list[float] = []
    pauses: list[tuple[float, float]] = []

    def check() -> None:
        assert 1 <= limits.limit <= limits.concurrency
        assert 1 <= limits.in_flight <= limits.concurrency
        assert all(not begun <= now() < ends for begun, ends in pauses)

    async def attempts(story: Story) -> None:
        turn = limits.turn(ME, 60, 40)
        for end in (*story.ends, "reply"):
            place = await limits.enter(turn)
            try:
                check()
                entered.append(now())
                await asyncio.sleep(story.takes)
                act(place, end)
            finally:
                limits.leave(place)

    def act(place: Any, end: str) -> None:
        if end == "reply":
            limits.replied(place, Usage(20, 30))
        elif end != "fault":
            limits.overloaded(place, named=end == "named")
        if end == "named":
            limits.pause(2.0)
            pauses.append((now(), now() + 2.0))

    async def play(story: Story) -> bool:
        await asyncio.sleep(story.at)
        try:
            async with asyncio.timeout(story.leaves_after):
                await attempts(story)
        except TimeoutError:
            return False
        return True

    async def main() -> list[bool]:
        return await asyncio.gather(*map(play, plot))

    done = run(main())  # which raises Standstill where somebody waits for nothing
    assert all(ended or story.leaves_after is not None for ended, story in zip(done, plot, strict=True))
    assert limits.in_flight == 0
    for span, most in ((1.0, gate["per_second"]), (60.0, gate["per_minute"])):
        if most is not None:
            assert all(sum(at <= other < at + span for other in entered) <= most for at in entered)


@settings(max_examples=100)
@given(
    ceiling=st.integers(100, 2000),
    asks=st.lists(st.tuples(st.integers(1, 600), st.integers(1, 200), st.integers(1, 300)), min_size=1, max_size=25),
    takes=st.floats(0.1, 5),
)
def test_no_minute_sees_more_tokens_but_for_the_errors_of_the_guesses(
    ceiling: int, asks: list[tuple[int, int, int]], takes: float
) -> None:
    limits = Limits(4, tokens_per_minute=ceiling)
    guessed: list[tuple[float, int, int]] = []

    async def ask(length: int, most: int, real: int) -> None:
        turn = limits.turn(ME, length, most)
        place = await limits.enter(turn)
        guess = place.charges[0][1].amount
        guessed.append((now(), guess, real))
        await asyncio.sleep(takes)
        limits.replied(place, Usage(0, real))
        limits.leave(place)

    async def main() -> None:
        await asyncio.gather(*(ask(*each) for each in asks))

    run(main())
    for start, guess, real in guessed:
        within = [(g, r) for at, g, r in guessed if start <= at < start + 60]
        errors = sorted((max(0, r - g) for g, r in within), reverse=True)
        alone = max(guess, real) if len(within) == 1 else 0
        # No more guesses are open at once than requests are in flight.
        assert sum(r for _, r in within) <= max(ceiling + sum(errors[:4]), alone) or oversize(ceiling, within)


def oversize(ceiling: int, within: list[tuple[int, int]]) -> bool:
    """Whether one alone was taken for more than the ceiling: it is let through when nothing else counts."""
    return any(guess > ceiling for guess, _ in within)


def test_clients_of_one_gate_share_all_of_it() -> None:
    async def main() -> None:
        limits = Limits(4, per_minute=10)
        entered: list[float] = []
        owners: list[Callable[[], object]] = [object, object]
        await asyncio.gather(*(hold(limits, 1.0, entered, owners[i % 2]()) for i in range(20)))
        assert sum(at < 60 for at in entered) == 10

    run(main())


def test_an_error_that_is_dismissed_with_is_of_the_same_kind() -> None:
    async def main() -> None:
        limits = Limits(1)
        held = await limits.enter(limits.turn(ME))
        waiting = asyncio.create_task(limits.enter(limits.turn(ME)))
        await asyncio.sleep(0)
        limits.dismiss(ME, EndpointBusy("still"))
        with pytest.raises(EndpointBusy, match="still"):
            await waiting
        limits.leave(held)

    run(main())
