r"""RecToM: Theory-of-Mind reasoning by recursive perspective construction.

The method alone, without Prefect and without a store: stories become events, events become the global
perspective, and each character's perspective is built from the one before it.

    story = Story.parse("Anne and Bob entered the hall.\nThe ball is in the box.\nAnne exited the hall.\n"
                        "Bob moved the ball to the basket.")
    reader = RuleReader()
    world = reader.world(story)
    holds(parse("B[Bob] B[Anne] in(ball,box)"), world, reader.perspective)  # True
"""

from rectom.errors import RectomError
from rectom.events import Delta, Event, Kind
from rectom.facts import Fact, State
from rectom.logic import Formula, holds, parse
from rectom.perspective import Perspective, build_global, complete, construct, observe, recurse
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS, Rules
from rectom.story import Question, Story

__all__ = [
    "PRESETS",
    "Delta",
    "Event",
    "Fact",
    "Formula",
    "Kind",
    "Perspective",
    "Question",
    "RectomError",
    "RuleReader",
    "Rules",
    "State",
    "Story",
    "build_global",
    "complete",
    "construct",
    "holds",
    "observe",
    "parse",
    "recurse",
]
