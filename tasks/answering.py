"""Lines 5 and 13 of Algorithm 1: the reduced question, answered from the final state.

For another method than RecToM it is the whole of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import state_from_json
from rectom.task import task
from tasks.run import Run
from tasks.stage import Stage


def _fields(run: Run, question: str) -> dict[str, Any]:
    if run.method:
        asked = run.question(question)
        lines = digest(list(run.story(asked.story_id).lines))
        return {"question": asked.text, "lines": lines, "choices": list(asked.choices), "method": run.method.fields()}
    facts = run.output("completion", question)["final"]
    people_matter = task(run.benchmark.task).asks_for_people
    return {
        "question": run.output("questions", question)["reduced"],
        "state": [fact for fact in facts if people_matter or not fact.startswith("in_room(")],
        "choices": list(run.question(question).choices),
        "reader": run.reader.fields("answer"),
    }


async def _compute(run: Run, question: str) -> Any:
    if run.method:
        asked = run.question(question)
        return await run.method.answer(run.story(asked.story_id), asked)
    fields = _fields(run, question)
    return await run.reader.answer(fields["question"], state_from_json(fields["state"]), fields["choices"])


ANSWERING = Stage("answering", 1, "answer", Run.questions, _fields, _compute)


async def answering(shard: Sequence[str]) -> dict[str, str]:
    """Answer the questions of a shard; an item is a question id."""
    return await ANSWERING.over(shard)
