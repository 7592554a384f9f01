"""A model that answers the methods' prompts by rule, from nothing but the request.

Of texts in Hi-ToM's grammar it knows who perceives what by presence alone: who is in a room perceives what happens
there, and is nowhere in the waiting room; a public claim reaches everyone, a private one its two. As a reader it takes
the last place of the object in the lines that it is given. A claim counts only where it answers for one character's own
belief, if the speaker is another one whose leaving the lines do not show: who left before is not trusted.
Of other texts everyone perceives everything, and the first option is right.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

from rectom import grammar, prompts
from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure, StoryError
from rectom.events import Event
from rectom.llm import ChatRequest, ModelId
from rectom.methods.base import Method, Setup
from rectom.methods.registry import chosen
from rectom.reader.asking import Asker
from rectom.rules import WAITING_ROOM
from rectom.story import Question
from tests.laboratory import Scripted
from tests.method_cases import Case

#: The folders of the prompts that are known.
FOLDERS: Final = ("direct", "cot", "simtom", "timetom", "perceptom")

Fields: TypeAlias = Mapping[str, str]


def step_of(request: ChatRequest) -> tuple[str, str]:
    """The folder and the step whose prompt a request is."""
    return _steps()[request.messages[0].content]


def knows(request: ChatRequest) -> bool:
    """Whether a request is the prompt of a method."""
    return request.messages[0].content in _steps()


@cache
def _steps() -> dict[str, tuple[str, str]]:
    """Folder and step of every prompt, by its system message."""
    return {prompts.load(name, step).system: (name, step) for name in FOLDERS for step in prompts.digests(name)}


def given(request: ChatRequest) -> Fields:
    """What a request's prompt was filled with."""
    found = _form(*step_of(request)).fullmatch(request.messages[1].content)
    assert found, request.messages[1].content
    return found.groupdict()


@cache
def _form(method: str, step: str) -> re.Pattern[str]:
    parts = re.split(r"\$\{?(\w+)\}?", prompts.load(method, step).user)
    names = [f"(?P<{name}>.*?)" for name in parts[1::2]]
    return re.compile("".join(map(str.__add__, map(re.escape, parts[::2]), [*names, ""])), re.DOTALL)


def by_rule(request: ChatRequest) -> str:
    """The right reply."""
    method, step = step_of(request)
    return _REPLIES[method, step.partition("_")[0]](given(request))


def perfect(**wrong: str) -> Scripted:
    """A client that answers by rule; `wrong` are replies to some steps that are given instead."""
    return Scripted(lambda _, request: wrong.get(step_of(request)[1]) or by_rule(request))


def steps(asked: Sequence[ChatRequest]) -> list[str]:
    """The steps of requests."""
    return [step_of(request)[1] for request in asked]


def made(method: str, client: Scripted, task: str = "hitom", note: str = "") -> Method:
    """A method over a client, by its name and options."""
    kind, options = chosen(method)
    return kind.make(Setup(Asker(client, ModelId("m"), benchmark=kind.prompts, repairs=1), note, task, options))


def ask(method: str, case: Case, client: Scripted | None = None) -> str:
    """The answer of a method to a question about a text of some kind."""
    story, question, task = case
    return asyncio.run(made(method, client or perfect(), task).answer(story, question))


def path(method: str, case: Case) -> list[str]:
    """The steps that a method takes for a question, in the order in which they are asked."""
    client = perfect()
    ask(method, case, client)
    return steps(client.requests)


def answers(method: str, benchmark: Benchmark, client: Scripted) -> dict[str, str | None]:
    """The answer to each question of a benchmark, by id; None for a failed step."""
    stories = {story.id: story for story in benchmark.stories}
    asked = made(method, client, benchmark.task, benchmark.note)

    async def one(question: Question) -> str | None:
        try:
            return await asked.answer(stories[question.story_id], question)
        except StepFailure:
            return None

    async def every() -> list[str | None]:
        return [await one(question) for question in benchmark.questions]

    return dict(zip([q.id for q in benchmark.questions], asyncio.run(every()), strict=True))


def right(benchmark: Benchmark, given: Mapping[str, str | None]) -> list[int]:
    """How many answers are right, by order."""
    hits = [q for q in benchmark.questions if given[q.id] == q.gold]
    orders = sorted({q.order for q in benchmark.questions if q.order is not None})
    return [sum(q.order == order for q in hits) for order in orders]


@lru_cache
def perceived(lines: tuple[str, ...]) -> list[frozenset[str]]:
    """Who perceives each line, by presence. Raises StoryError for other texts than Hi-ToM's."""
    everyone = frozenset(grammar.vocabulary(lines).characters)
    where: dict[str, str] = {}
    scene, found = "", []
    for line in lines:
        event = grammar.read_line(line)
        before = dict(where)
        where |= {str(f.args[0]): str(f.args[1]) for f in event.delta.added if f.predicate == "in_room"}
        for fact in event.delta.removed:
            where.pop(str(fact.args[0]), None)
        room = _room(line, event, before, scene)
        if event.moves and room != WAITING_ROOM:
            scene = room
        there = {who for who in everyone for at in (before, where) if room != WAITING_ROOM and at.get(who) == room}
        told = {event.speaker, event.listener} if event.listener else everyone
        found.append(frozenset(filter(None, told if event.occurrence else there)))
    return found


def _room(line: str, event: Event, before: Mapping[str, str], scene: str) -> str:
    """Where a line happens: where it says, where its actor is, or in the room that was last entered."""
    if event.moves:
        return str(next(iter(event.moves)).args[1])
    stayed = re.search(r"stayed in the (\w+)", line)
    return stayed[1] if stayed else before.get(line.split(maxsplit=1)[0], scene)


def _perceivers(lines: Sequence[str], everyone: Sequence[str]) -> list[frozenset[str]]:
    try:
        return perceived(tuple(lines))
    except StoryError:
        return [frozenset(everyone)] * len(lines)


def _entries(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^(t?\d+):? (.*)$", text, re.MULTILINE)


def _aware(text: str, character: str) -> list[str]:
    """The numbers or stamps of the lines that a character perceives."""
    entries = _entries(text)
    perceivers = _perceivers([line for _, line in entries], [character])
    return [name for (name, _), who in zip(entries, perceivers, strict=True) if character in who]


def _perceiver_reply(fields: Fields) -> str:
    names = fields["characters"].split(", ")
    perceivers = _perceivers([line for _, line in _entries(fields["story"])], names)
    lines = [{"line": n, "perceivers": sorted(who)} for n, who in enumerate(perceivers, 1)]
    return json.dumps({"lines": lines})


def _compressed(fields: Fields) -> str:
    kept = [stamp for stamp, line in _entries(fields["events"]) if not re.search(r" (entered|exited|stayed) ", line)]
    return json.dumps({"stamps": kept})


def last_place(lines: Sequence[str], thing: str, believer: str | None = None) -> str | None:
    """The last place of an object in some lines; `believer` is who believes what he is told, if anyone."""
    place: str | None = None
    left: set[str] = set()
    for line in lines:
        event = grammar.read_line(line)
        left.update(str(fact.args[0]) for fact in event.delta.removed)
        trusted = believer is not None and event.speaker != believer and event.speaker not in left
        told = [event.proposition] if event.proposition and trusted else []
        for fact in [*event.delta.added, *told]:
            if fact.predicate == "in" and fact.args[0] == thing:
                place = str(fact.args[1])
    return place


def _option(fields: Fields, events: str, believer: Callable[[Sequence[str]], str | None]) -> str:
    """The option for the last place of what is asked for; the first where that is none, or there is no grammar."""
    options = dict(re.findall(r"^([A-Z])\. (.*)$", fields["options"], re.MULTILINE))
    lines = [re.sub(r"^t\d+: ", "", line) for line in events.split("\n") if line != "(nothing)"]
    try:
        chain, thing = grammar.read_question(fields["question"])
        place = last_place(lines, thing, believer(chain))
    except StoryError:
        place = None
    return f"I see. Answer: {next((letter for letter, text in options.items() if text == place), 'A')}"


def _whole(fields: Fields) -> str:
    return _option(fields, fields.get("story") or fields["events"], lambda chain: None)


def _as_believer(fields: Fields) -> str:
    """Claims count for the belief of the chain's only character."""
    return _option(fields, fields["events"], lambda chain: chain[0] if len(chain) == 1 else None)


def _innermost(fields: Fields) -> str:
    """The last chain decides, which is the innermost character's."""
    return _option(fields, fields["chains"].split(":\n")[-1], lambda chain: None)


def _choice(fields: Fields) -> str:
    """What all are aware of in common decides."""
    return f"Answer: {fields['common_answer']}"


_REPLIES: Final[dict[tuple[str, str], Callable[[Fields], str]]] = {
    ("direct", "answer"): _whole,
    ("cot", "answer"): _whole,
    ("simtom", "perspective"): lambda f: json.dumps({"lines": list(map(int, _aware(f["story"], f["character"])))}),
    ("simtom", "simulate"): _as_believer,
    ("simtom", "answer"): _whole,
    ("timetom", "chain"): lambda f: json.dumps({"stamps": _aware(f["timeline"], f["character"])}),
    ("timetom", "compress"): _compressed,
    ("timetom", "answer"): _whole,
    ("timetom", "believe"): _as_believer,
    ("timetom", "nested"): _innermost,
    ("timetom", "own"): _as_believer,
    ("timetom", "common"): _whole,
    ("timetom", "choose"): _choice,
    ("perceptom", "perceivers"): _perceiver_reply,
    ("perceptom", "believe"): _as_believer,
    ("perceptom", "answer"): _whole,
}
