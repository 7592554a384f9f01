"""A session: one call of the command that works on a run, as the run's manifest has it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from cache import Reason
from rectom.errors import Partial, RectomError
from rectom.llm.stats import Stats
from rectom.results.folder import RunFolder
from tasks.run import Run


class Session:
    """When it began and ended, how, and what it paid; the sessions before it stay as they were."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._stats = Stats()
        self._runs: Sequence[Run] = ()
        self.manifest: dict[str, Any] = {}
        self.ended = False

    def begin(self, told: dict[str, Any], stats: Stats, runs: Sequence[Run]) -> None:
        """Write the manifest: `told` of the run, and this session, which `stats` and `runs` belong to."""
        earlier = (self._folder.before() or {}).get("sessions", [])
        self._stats, self._runs = stats, runs
        self.manifest = {**told, "started": moment(), "sessions": [*earlier, {"started": moment()}]}
        self._folder.write_manifest(self.manifest)

    def answered(self) -> None:
        """Close the books, whatever happens from here on to what is made of the answers."""
        self._note("finished")
        self._folder.write_manifest(self.manifest)

    def finish(self, told: dict[str, Any]) -> None:
        """Write the manifest of a finished run, with what is told of it in the end: nothing changes it any more."""
        self._folder.write_manifest({**self.manifest, "state": "finished", "ended": moment(), **told})
        self.ended = True

    def break_off(self, error: BaseException) -> None:
        """Close the books of a session that `error` ends."""
        state = _state(error)
        self._note(state)
        self._folder.write_manifest({**self.manifest, "state": state})

    def _note(self, state: str) -> None:
        usage = self._stats.usage
        paid = {"sent": self._stats.sent, "retried": self._stats.retried}
        tokens = {"prompt": usage.prompt, "completion": usage.completion}
        told = {"ended": moment(), "state": state, **paid, **tokens, "schemas": dict(self._stats.schemas)}
        if again := self._asked_again():
            told["asked_again"] = again
        self.manifest["sessions"][-1] |= told

    def _asked_again(self) -> int:
        verdicts = [verdict for run in self._runs if run.retry_failed for verdict in run.verdicts.values()]
        return sum(verdict.reason is Reason.FAILED_BEFORE for verdict in verdicts)


@contextmanager
def session(folder: RunFolder) -> Iterator[Session]:
    """The session that works on a run's folder. However it ends, the manifest has it, with all that it paid.

    The client is to be opened and closed within: while it closes it waits for what is with the server.
    """
    begun = Session(folder)
    try:
        yield begun
    except BaseException as error:
        if begun.manifest and not begun.ended:
            with suppress(RectomError):  # a full disk must not hide what happened
                begun.break_off(error)
        raise


def _state(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "interrupted"
    return "stopped" if isinstance(error, Partial) else "failed"


def moment() -> str:
    """The present second, as manifests tell it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
