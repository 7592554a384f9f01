"""Lines 7-11 of Algorithm 1 in the ablation w/o-state: the histories along the chain of a question.

They take the place of perspectives. What is observable of a history is asked for each character of the chain in turn,
since it hangs on the history: there are no states that would tell presence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import history_to_json
from rectom.history import recurse
from rectom.reader.histories import OBSERVE, Historian, listed
from tasks.global_state import global_history
from tasks.run import WITHOUT_STATES, Run


def history_fields(run: Run, historian: Historian, story: str, chain: Sequence[str]) -> dict[str, Any]:
    """What the histories along a chain depend on."""
    return {
        "events": digest(run.output("abstraction", story)),
        "chain": list(chain),
        "observe": historian.fields(OBSERVE),
        **WITHOUT_STATES,
    }


async def histories(run: Run, historian: Historian, story: str, chain: Sequence[str]) -> dict[str, Any]:
    """`{"perspectives", "final"}`: the histories along a chain, and the last one as it is read for the answer."""
    found = await recurse(global_history(run, story), chain, historian.witness)
    return {
        "perspectives": [history_to_json(history) for history in found[1:]],
        "final": listed(found[-1].entries()),
    }
