"""Lines 5 and 13 of Algorithm 1: the reduced question, answered from the final state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rectom.codec import state_from_json
from tasks.run import Run
from tasks.stage import Stage


def _fields(run: Run, question: str) -> dict[str, Any]:
    facts = run.output("completion", question)["final"]
    return {
        "question": run.output("questions", question)["reduced"],
        "state": [fact for fact in facts if not fact.startswith("in_room(")],
        "choices": list(run.question(question).choices),
        "reader": run.reader.fields("answer"),
    }


async def _compute(run: Run, question: str) -> Any:
    fields = _fields(run, question)
    return await run.reader.answer(fields["question"], state_from_json(fields["state"]), fields["choices"])


ANSWERING = Stage("answering", 1, "answer", Run.questions, _fields, _compute)


async def answering(shard: Sequence[str]) -> dict[str, str]:
    """Answer the questions of a shard; an item is a question id."""
    return await ANSWERING.over(shard)
