"""A stage over a shard: each item is found in the store, or computed, kept and explained."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from cache import Entry, Reason, Verdict, digest
from rectom.errors import StepFailure, StoryError
from rectom.llm import WouldSend
from rectom.reader.asking import Call, asking_anew, recording
from tasks.run import WENT_WELL, Blocked, Failure, Result, Run, current, place_of_failure

T = TypeVar("T")

#: An item of a stage, as JSON keeps it: a story id, a question id, or a story and a character.
Item = str


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pipeline.

    `version` is bumped when the stage changes its meaning. `step` is the reader's step to which a story that
    cannot be read is put down. `items` gives the items of a shard of stories; `fields` what an item's result
    depends on, which is digested into its key (raises Blocked if something is not there); `compute` the result.
    """

    name: str
    version: int
    step: str
    items: Callable[[Run, Sequence[str]], Iterable[Item]]
    fields: Callable[[Run, Item], dict[str, Any]]
    compute: Callable[[Run, Item], Awaitable[Any]]

    async def over(self, shard: Sequence[str]) -> dict[Item, str]:
        """Bring every item of a shard of stories into the run's results. Returns the key of each, or ""."""
        run = current()
        items = list(self.items(run, shard))
        # An item that is there already was brought by a call that did not come to its end.
        await together(self._settle(run, item) for item in items if (self.name, item) not in run.results)
        return {item: run.results[self.name, item].key for item in items}

    def keys(self, run: Run, shard: Sequence[str]) -> dict[Item, str] | None:
        """The key of each item; None if one cannot be told, since what it reads is not there."""
        try:
            return {item: digest(self._fields(run, item)) for item in self.items(run, shard)}
        except Blocked:
            return None

    def holds(self, run: Run, keys: Mapping[Item, str]) -> bool:
        """Whether the store has a result under every key, and none of them is to be computed again."""
        return self.name not in run.forced and all(run.store.contains("stage", key) for key in keys.values())

    def adopt(self, run: Run, keys: dict[Item, str]) -> bool:
        """Take results from the store that somebody else says are there; False if one is not."""
        for item, key in keys.items():
            if (self.name, item) not in run.results:
                result = run.stored(key) if key else None
                if result is None:
                    return False
                self._enter(run, item, result, Verdict(Reason.HIT))
        return True

    def _fields(self, run: Run, item: Item) -> dict[str, Any]:
        return {"stage": self.name, "version": self.version, **self.fields(run, item)}

    async def _settle(self, run: Run, item: Item) -> None:
        try:
            await self._bring(run, item)
        except Exception as error:
            run.broken(error)
            raise

    async def _bring(self, run: Run, item: Item) -> None:
        try:
            fields = self._fields(run, item)
        except Blocked as blocked:
            self._enter(run, item, Result(failure=blocked.failure), Verdict(Reason.UPSTREAM))
            return
        key = digest(fields)
        result = None if self.name in run.forced else run.stored(key)
        if result:
            self._enter(run, item, result, Verdict(Reason.HIT))
        else:
            verdict = run.verdict(self.name, item, fields)
            anew = run.retry_failed and verdict.reason is Reason.FAILED_BEFORE
            with asking_anew(_failed_step(verdict)) if anew else nullcontext():
                result = await self._compute(run, item, key, fields)
            if verdict.reason is Reason.FAILED_BEFORE and result.key and not run.dry:
                await self._forgive(run, key, fields)
            self._enter(run, item, result, verdict)

    async def _compute(self, run: Run, item: Item, key: str, fields: dict[str, Any]) -> Result:
        with recording() as calls:
            try:
                output = await self.compute(run, item)
            except StepFailure as error:
                return await self._failed(run, item, fields, calls, Failure(error.step, error.why))
            except StoryError as error:
                return await self._failed(run, item, fields, calls, Failure(self.step, str(error)))
            except WouldSend:
                if not run.dry:
                    raise
                return Result()
        made = [call.to_json() for call in calls]
        if not run.dry:
            await run.store.put_many(
                [
                    Entry("stage", key, {"fields": fields, "output": output, "calls": made}),
                    Entry("latest", run.place(self.name, item), {"fields": fields, "key": key, "outcome": WENT_WELL}),
                ]
            )
        return Result(output, key, tuple(made), computed=True)

    async def _failed(
        self, run: Run, item: Item, fields: dict[str, Any], calls: list[Call], failure: Failure
    ) -> Result:
        # Only noted, not stored as a result: the replies are kept, so that a rerun judges them again for nothing.
        if not run.dry:
            note = {"fields": fields, "key": "", "outcome": f"{failure.step}: {failure.why}"}
            places = run.place(self.name, item), place_of_failure(fields)
            await run.store.put_many([Entry("latest", place, note) for place in places])
        return Result(calls=tuple(call.to_json() for call in calls), failure=failure, computed=True)

    async def _forgive(self, run: Run, key: str, fields: dict[str, Any]) -> None:
        """Note that what failed has gone well since; or it would be asked again where its result gets lost."""
        note = {"fields": fields, "key": key, "outcome": WENT_WELL}
        await run.store.put_many([Entry("latest", place_of_failure(fields), note)])

    def _enter(self, run: Run, item: Item, result: Result, verdict: Verdict) -> None:
        run.results[self.name, item] = result
        run.verdicts[self.name, item] = verdict
        run.done[self.name] += 1
        run.ended(self.name, item)


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of concurrent work; the first error ends the rest and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(one)) for one in work]
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _first(errors: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _failed_step(verdict: Verdict) -> str:
    """The step at which an item failed before, of the note `step: why`."""
    step, _, _ = verdict.details[0].partition(": ")
    return step
