"""Lines 5 and 13 of Algorithm 1: the reduced question, answered from the final state, or the last history.

For another method than RecToM it is the whole of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.codec import state_from_json
from rectom.reader.histories import ANSWER, Historian
from rectom.task import task
from tasks.run import WITHOUT_STATES, Run
from tasks.stage import Stage


def _fields(run: Run, question: str) -> dict[str, Any]:
    if run.method:
        asked = run.question(question)
        lines = digest(list(run.story(asked.story_id).lines))
        return {"question": asked.text, "lines": lines, "choices": list(asked.choices), "method": run.method.fields()}
    if run.historian:
        return _history_fields(run, run.historian, question)
    facts = run.output("completion", question)["final"]
    people_matter = task(run.benchmark.task).asks_for_people
    return {
        "question": run.output("questions", question)["reduced"],
        "state": [fact for fact in facts if people_matter or not fact.startswith("in_room(")],
        "choices": list(run.question(question).choices),
        "reader": run.reader.fields("answer"),
    }


def _history_fields(run: Run, historian: Historian, question: str) -> dict[str, Any]:
    completed = run.output("completion", question)
    return {
        "question": run.output("questions", question)["reduced"],
        "history": completed["final"],
        "chain": completed["perspectives"][-1]["chain"] if completed["perspectives"] else [],
        "choices": list(run.question(question).choices),
        "reader": historian.fields(ANSWER),
        **WITHOUT_STATES,
    }


async def _compute(run: Run, question: str) -> Any:
    if run.method:
        asked = run.question(question)
        return await run.method.answer(run.story(asked.story_id), asked)
    fields = _fields(run, question)
    if run.historian:
        return await run.historian.answer(fields["question"], fields["history"], fields["chain"], fields["choices"])
    return await run.reader.answer(fields["question"], state_from_json(fields["state"]), fields["choices"])


ANSWERING = Stage("answering", 1, "answer", Run.questions, _fields, _compute)


async def answering(shard: Sequence[str]) -> dict[str, str]:
    """Answer the questions of a shard; an item is a question id."""
    return await ANSWERING.over(shard)
