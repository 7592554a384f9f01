"""Lines 3 and 12 of Algorithm 1: the character chain of each question, and the question it reduces to.

Both need the question alone, so they run beside the abstraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache import digest
from rectom.words import check_question
from tasks.run import Run
from tasks.stage import Stage


def _fields(run: Run, question: str) -> dict[str, Any]:
    asked = run.question(question)
    words = run.words(asked.story_id)
    return {
        "question": asked.text,
        "words": digest([list(words.characters), list(words.objects)]),
        "chain": run.reader.fields("chain"),
        "reduce": run.reader.fields("reduce"),
    }


async def _compute(run: Run, question: str) -> Any:
    asked = run.question(question)
    words = run.words(asked.story_id)
    check_question(asked.text, words)
    chain = await run.reader.chain(asked.text, words)
    return {"chain": list(chain), "reduced": await run.reader.reduce(asked.text, chain)}


QUESTIONS = Stage("questions", 1, "chain", Run.questions, _fields, _compute)


async def questions(shard: Sequence[str]) -> dict[str, str]:
    """Read the questions about the stories of a shard; an item is a question id."""
    return await QUESTIONS.over(shard)
