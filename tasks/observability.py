"""Line 9 of Algorithm 1: what each character of a chain is in a position to observe.

Asked once a story and character, of the world. In stories of rooms the presence facts are the same in every
perspective, since everyone learns of entries and exits; elsewhere they need not be, and a perspective's own then tell
where somebody is. Of the events a nested character learns those that everyone before him learns, too.
In the ablation w/o-state this does not hold, so that nothing is asked here (see `tasks.histories`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cache import digest
from rectom.codec import observability_from_json, observability_to_json
from rectom.facts import printed
from rectom.perspective import Observability
from tasks.global_state import global_perspective
from tasks.run import Blocked, Run
from tasks.stage import Stage

_BETWEEN = "/"


def item(story: str, character: str) -> str:
    """The item of a story and a character."""
    return f"{story}{_BETWEEN}{character}"


def observed(run: Run, story: str, character: str) -> Observability:
    """What a character can observe of a story. Raises Blocked if that is not known."""
    able: Observability = run.decoded("observability", item(story, character), observability_from_json)
    return able


def _items(run: Run, shard: Sequence[str]) -> Iterable[str]:
    pairs: dict[str, None] = {}
    for question in [] if run.historian else run.questions(shard):
        story = run.question(question).story_id
        try:
            chain = run.output("questions", question)["chain"]
        except Blocked:
            continue
        pairs.update(dict.fromkeys(item(story, character) for character in chain))
    return pairs


def _fields(run: Run, pair: str) -> dict[str, Any]:
    story, character = pair.rsplit(_BETWEEN, 1)
    world = global_perspective(run, story)
    return {
        # Whole, as they do not follow from the events where a model updates them.
        "states": digest([printed(state) for state in world.states]),
        "events": digest(list(map(str, world.events))),
        "character": character,
        "reader": run.reader.fields("observe"),
    }


async def _compute(run: Run, pair: str) -> Any:
    story, character = pair.rsplit(_BETWEEN, 1)
    return observability_to_json(await run.reader.observability(global_perspective(run, story), character))


OBSERVABILITY = Stage("observability", 3, "observe", _items, _fields, _compute)


async def observability(shard: Sequence[str]) -> dict[str, str]:
    """Judge the observability of a shard; an item is `story/character`."""
    return await OBSERVABILITY.over(shard)
