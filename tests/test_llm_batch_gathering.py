from __future__ import annotations

import asyncio
import time

import pytest

from rectom.errors import SettingsError
from rectom.llm.batch_gathering import Asked, Gathering
from rectom.llm.wire import NoResponse

DONE = NoResponse("done", unreachable=False)


class Sent(list[list[str]]):
    """Ends whatever is sent, and keeps the keys."""

    gathering: Gathering

    async def __call__(self, several: list[Asked]) -> None:
        self.append([asked.key for asked in several])
        for asked in several:
            self.gathering.end(asked, DONE)


def gathering(quiet_s: float = 0.03) -> tuple[Gathering, Sent]:
    sent = Sent()
    sent.gathering = Gathering(quiet_s, sent)
    return sent.gathering, sent


async def test_requests_go_out_together_after_a_quiet_time() -> None:
    together, sent = gathering()

    async def late(n: int) -> object:
        await asyncio.sleep(0.01 * n)
        return await together.outcome(b"", str(n))

    assert await asyncio.gather(*map(late, range(6))) == [DONE] * 6
    assert sent == [["0", "1", "2", "3", "4", "5"]]


async def test_a_loop_that_is_busy_is_not_quiet() -> None:
    together, sent = gathering()

    async def busy() -> object:
        await asyncio.sleep(0.01)
        time.sleep(0.2)  # noqa: ASYNC251
        for _ in range(5):
            await asyncio.sleep(0)
        return await together.outcome(b"", "b")

    await asyncio.gather(together.outcome(b"", "a"), busy())
    assert sent == [["a", "b"]]


async def test_one_key_is_asked_once() -> None:
    together, sent = gathering()
    await asyncio.gather(*(together.outcome(b"", "a") for _ in range(3)))
    assert sent == [["a"]]


async def test_who_leaves_is_not_sent_unless_another_waits() -> None:
    together, sent = gathering()
    tasks = [asyncio.create_task(together.outcome(b"", key)) for key in ("a", "a", "b", "c")]
    await asyncio.sleep(0)
    for task in tasks[1:3]:
        task.cancel()
    await asyncio.wait(tasks)
    assert sent == [["a", "c"]]
    assert together.pending == 0


async def test_a_fault_reaches_everyone_as_an_error_of_their_own() -> None:
    async def send(several: list[Asked]) -> None:
        raise SettingsError("no")

    together = Gathering(0.01, send)
    errors = await asyncio.gather(*(together.outcome(b"", str(n)) for n in range(3)), return_exceptions=True)
    assert [repr(error) for error in errors] == ["SettingsError('no')"] * 3
    assert len(set(map(id, errors))) == 3


async def test_it_goes_on_after_a_fault() -> None:
    together, sent = gathering(0.01)
    together._send = fail = Failing()
    with pytest.raises(ZeroDivisionError):
        await together.outcome(b"", "a")
    assert fail.asked == 1
    together._send = sent
    assert await together.outcome(b"", "a") == DONE


class Failing:
    asked = 0

    async def __call__(self, several: list[Asked]) -> None:
        self.asked += len(several)
        raise ZeroDivisionError


async def test_what_is_given_back_goes_out_again() -> None:
    rounds: list[list[str]] = []

    async def send(several: list[Asked]) -> None:
        rounds.append([asked.key for asked in several])
        together.end(several[0], DONE)
        together.hold(several[1:])

    together = Gathering(0.01, send)
    await asyncio.gather(*(together.outcome(b"", key) for key in "abc"))
    assert rounds == [["a", "b", "c"], ["b", "c"], ["c"]]


async def test_closing_sends_nothing_more() -> None:
    together, sent = gathering()
    task = asyncio.create_task(together.outcome(b"", "a"))
    await asyncio.sleep(0)
    await together.close()
    assert sent == []
    task.cancel()
    await asyncio.wait([task])
