"""An OpenAI-compatible server that answers RecToM's prompts by rule: a model that never errs, or errs on purpose.

It reads nothing but the request, so that a run against it proves the prompts carry all that a step needs. Of natural
stories and conversations it knows those of `tests/cases`.
As a program it serves while a command runs, with OPENAI_BASE_URL set for it:

    python -m tests.fake_openai [--latency S] [--wrong STEP] -- rectom run hitom/400 --model fake
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Self

import click
from aiohttp import web

from rectom import grammar, prompts
from rectom.events import Event, Kind
from rectom.facts import Fact, printed
from rectom.llm import ChatRequest, Message, ModelId
from rectom.llm.rehearsal import imagined
from rectom.prompts import in_words
from rectom.rules import PRESETS, Rules
from rectom.schemas import EVERYBODY, NOT_OBSERVABLE, OBSERVABLE
from tests.cases import KINDS
from tests.fake_ablations import OF_TEXTS, answer_narrative, observe_narrative, update
from tests.fake_texts import REPLIES, Fields, kind_of


def entries(text: str) -> list[tuple[str, str]]:
    """The numbers and the texts of numbered lines."""
    return re.findall(r"^(\d+) (.*)$", text, re.MULTILINE)


def numbered(text: str) -> list[str]:
    """The texts of numbered lines."""
    return [line for _, line in entries(text)]


def sections(user: str) -> Fields:
    """`Name: value` parts of a user message; a value may start on the next line and span several.

    Only the names that the prompts give: `Ann: …` is an utterance.
    """
    parts = re.split(rf"^({_heads()}):[ \n]", user, flags=re.MULTILINE)
    return {name: value.strip() for name, value in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def _heads() -> str:
    users = (prompts.load(kind, step).user for kind in KINDS for step in prompts.digests(kind))
    return "|".join(sorted({name for user in users for name in re.findall(r"^(.+):[ \n]\$", user, re.MULTILINE)}))


def rules_of(system: str) -> Rules:
    """The rules that a system message says in words: the last preset of the ladder whose words it holds."""
    choices = ("trust", "depth", "speaker_convinces", "speaker_sincere")
    said = [rules for rules in PRESETS.values() if in_words(rules, choices) in system]
    return said[-1]


def abstract(system: str, given: Fields) -> Any:
    return {f"{number} {line}": _entry(grammar.read_line(line)) for number, line in entries(given["Lines"])}


def _entry(event: Event) -> Any:
    if event.kind is Kind.PERSISTENT:
        removed = [f"-{fact}" for fact in printed(event.delta.removed)]
        return [*(f"+{fact}" for fact in printed(event.delta.added)), *removed]
    how = f"{event.speaker} tells {event.listener or EVERYBODY}"
    return [f"{how} {event.proposition}"]


def chain(system: str, given: Fields) -> Any:
    return {"chain": list(grammar.read_question(given["Question"])[0])}


def observe_states(system: str, given: Fields) -> Any:
    return {n: NOT_OBSERVABLE if state == "-" else state for n, state in entries(given["States"])}


def observe_events(system: str, given: Fields) -> Any:
    return {n: _learnt(event, given["Character"]) for n, event in entries(given["Communications"])}


def _learnt(event: str, character: str) -> str:
    told = re.match(r"private_tell\((\w+),(\w+),", event)
    return OBSERVABLE if told is None or character in told.groups() else NOT_OBSERVABLE


def revise(system: str, given: Fields) -> Any:
    order = given["Order of leaving"].split(", then ")
    return {"left_first": min(given["Hearer"], given["Speaker"], key=order.index)}


def reduce(system: str, given: Fields) -> Any:
    return {"question": grammar.reduced_question(grammar.read_question(given["Question"])[1])}


def answer(system: str, given: Fields) -> Any:
    _, thing = grammar.read_question(given["Question"])
    options = re.findall(r"[A-Z]\. (\w+)", given["Options"])
    fact = next((f for f in given["Facts"].split() if f.startswith(f"in({thing},")), "none")
    place = str(Fact.parse(fact).args[1]) if fact != "none" else options[0]
    return {"fact": fact, "answer": place}


#: What is replied about texts in Hi-ToM's grammar, by the step.
BY_GRAMMAR: dict[str, Callable[[str, Fields], Any]] = {
    "abstract": abstract,
    "chain": chain,
    "observe_states": observe_states,
    "observe_events": observe_events,
    "revise": revise,
    "reduce": reduce,
    "answer": answer,
}


def reply(step: str, system: str, given: Fields) -> Any:
    """The right reply to a prompt of any kind of text."""
    kind = kind_of(step, system)
    return REPLIES[kind][step](given) if kind else BY_GRAMMAR[step](system, given)


#: What is replied, by the step.
STEPS: dict[str, Callable[[str, Fields], Any]] = {step: partial(reply, step) for step in BY_GRAMMAR}


def reply_ablated(step: str, system: str, given: Fields) -> Any:
    """The right reply to a prompt of an ablation."""
    kind = kind_of(step, system)
    if step == "update":
        return update(given)
    if kind:
        return OF_TEXTS[kind][step](given)
    return answer_narrative(rules_of(system), given) if step == "answer_history" else observe_narrative(system, given)


#: What is replied in the ablations, by the step.
ABLATED: dict[str, Callable[[str, Fields], Any]] = {
    step: partial(reply_ablated, step) for step in ("update", "observe_history", "answer_history")
}


def wrongly(step: str, given: Fields, right: Any) -> Any:
    """A reply of the right form that says the wrong thing."""
    match step:
        case "abstract" if "Asked about" in given:
            right.update(dict.fromkeys(right, "tells"))
        case "abstract":
            right.update({line: [] for line in right if " moved " in line})
        case "chain" if "Named" in given:
            right.update(dict.fromkeys([*right][1:], "world"))
        case "chain":
            right["chain"] = right["chain"][:1]
        case "update":
            right["state"] = right["state"][1:]
        case "observe_states" | "observe_events" | "observe_history":
            right.update(dict.fromkeys(right, NOT_OBSERVABLE))
        case "revise":
            right.update({"left_first": given["Speaker"]} if "left_first" in right else {"convinced": False})
        case "reduce":
            right["question"] = "Where is the nothing really?"
        case "answer" | "answer_history":
            options = re.findall(r"^[A-Z]\. (.*)$", given["Options"], re.MULTILINE)
            if right["answer"] not in options:
                options = re.findall(r"[A-Z]\. (\w+)", given["Options"])
            right["answer"] = options[(options.index(right["answer"]) + 1) % len(options)]
    return right


@dataclass
class FakeOpenAI:
    """The server. `wrong` names a step that is answered wrongly, `broken` one that is answered with nonsense."""

    latency_s: float = 0.0
    wrong: str = ""
    broken: str = ""
    model: str = "fake"
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keep_bodies: bool = False
    any_model: bool = False
    first: float = 0.0
    last: float = 0.0
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 24)
        app.add_routes([web.post("/v1/chat/completions", self._chat), web.get("/v1/models", self._models)])
        app.add_routes([web.get("/stats", self._stats)])
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=2048)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        names = [self.model, *(("scripted", "small", "qwen3.5-27b") if self.any_model else ())]
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    async def _stats(self, _: web.Request) -> web.Response:
        """Calls so far, and the seconds from the first one's arrival to the last one's reply."""
        return web.json_response({"calls": self.asked.total(), "span_s": self.last - self.first})

    async def _chat(self, request: web.Request) -> web.Response:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._completed(request)
        finally:
            self.in_flight -= 1

    async def _completed(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.first = self.first or time.monotonic()
        if self.keep_bodies:
            self.bodies.append(body)
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if not self.any_model and body["model"] not in {self.model, "scripted"}:
            error = {"message": f"The model `{body['model']}` does not exist", "code": "model_not_found"}
            return web.json_response({"error": error}, status=404)
        reply = self._completion(body, self._answer(body))
        self.last = time.monotonic()
        return web.json_response(reply)

    def _answer(self, body: dict[str, Any]) -> str:
        """The text of the reply to a request, which is counted by its step."""
        from tests import scripted_methods  # which asks this server itself

        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        request = ChatRequest(ModelId(body["model"]), messages)
        if scripted_methods.knows(request):
            self.asked[scripted_methods.step_of(request)[1]] += 1
            return scripted_methods.by_rule(request)
        form = body.get("response_format", {}).get("json_schema", {"name": "words"})
        step = form["name"]
        self.asked[step] += 1
        if step not in {*STEPS, *ABLATED}:
            return imagined(form.get("schema"))
        return json.dumps(self._reply(step, body))

    def _reply(self, step: str, body: dict[str, Any]) -> Any:
        system, user = body["messages"][0]["content"], body["messages"][1]["content"]
        given = sections(user)
        if step == self.broken:
            return {"nonsense": True}
        right = {**STEPS, **ABLATED}[step](system, given)
        return wrongly(step, given, right) if step == self.wrong else right

    def _completion(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        # Four characters a token: near enough for sums, and the same on every machine.
        prompt, completion = sum(len(m["content"]) for m in body["messages"]) // 4, len(text) // 4
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "model": self.model,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }


async def serve_while(server: FakeOpenAI, command: tuple[str, ...]) -> int:
    """Serve while a command runs; returns its exit status."""
    async with server:
        if not command:
            await asyncio.Event().wait()
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        process = await asyncio.create_subprocess_exec(*command, env=environment)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await process.wait()
            raise


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--latency", default=0.0, help="Seconds before each reply.")
@click.option("--wrong", default="", type=click.Choice(["", *STEPS, *ABLATED]), help="A step to answer wrongly.")
@click.option("--port", default=0, help="Port; a free one by default.")
@click.option("--any-model", is_flag=True, help="Answer for every model, whatever its name.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(latency: float, wrong: str, port: int, any_model: bool, command: tuple[str, ...]) -> None:
    """Serve while COMMAND runs, or until stopped if there is none."""
    server = FakeOpenAI(latency_s=latency, wrong=wrong, port=port, any_model=any_model)
    sys.exit(asyncio.run(serve_while(server, command)))


if __name__ == "__main__":
    main()
