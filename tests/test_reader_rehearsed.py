from __future__ import annotations

import json

import pytest

from rectom.errors import StepFailure
from rectom.events import NOTHING
from rectom.llm import ChatRequest, MemoryReplies, ModelId, Outcome, Reply, Usage
from rectom.llm.rehearsal import Rehearsal
from rectom.perspective import build_global
from rectom.reader.asking import Asker, recording
from rectom.reader.base import STEPS, SharedReader
from rectom.reader.model import ModelReader
from rectom.reader.rehearsed import rehearsed
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS
from rectom.story import Story
from rectom.words import words_of
from tests.laboratory import by_rule

STORY = Story.parse("Anne and Bob entered the hall.\nThe ball is in the box.\nAnne exited the hall.")
QUESTION = "Where does Bob think Anne thinks the ball is?"


def made(store: MemoryReplies, *, repairs: int = 0) -> tuple[SharedReader, Rehearsal]:
    """The reader of a rehearsal over a store."""
    client = Rehearsal(store)
    by_model = ModelReader(Asker(client, ModelId("m"), repairs=repairs), PRESETS["hitom"])
    return rehearsed(SharedReader(dict.fromkeys(STEPS, by_model)), RuleReader()), client


class Taught(MemoryReplies):
    """A store that has a reply to everything that is looked for, once it was asked for by a request."""

    async def teach(self, requests: list[ChatRequest], text: str | None = None) -> None:
        """Keep the right reply to some requests, or another text."""
        for request in requests:
            told = text or by_rule(request.schema_name or "", request)
            reply = Reply(request.key, told, Outcome.OK, Usage(1, 1), 0.0, 1, "sent")
            await self.keep(request.key, reply.to_record(request))


async def test_the_rules_stand_in_for_replies_that_are_not_there() -> None:
    reader, client = made(MemoryReplies())
    events = await reader.abstract(STORY)
    assert list(map(str, events)) == [str(event) for event in RuleReader().world(STORY).events]
    assert await reader.chain(QUESTION, words_of(STORY.lines)) == ("Bob", "Anne")
    able = await reader.observability(build_global(events), "Anne")
    assert able.rooms == ("hall", "hall", None)
    assert sorted(wanted.step for wanted in client.wanted.values()) == ["abstract", "chain", "observe_states"]


async def test_a_guess_stands_in_where_no_rule_reads_the_text() -> None:
    reader, _ = made(MemoryReplies())
    story = Story("s", ("Noor is a barista.", "She pours the milk."))
    events = await reader.abstract(story)
    assert len(events) == 2
    assert NOTHING not in events
    talk = await reader.abstract(Story("t", ("Ann: Hello!", "Ben: Hello, Ann.")))
    assert [event.speaker for event in talk] == ["Ann", "Ben"]


async def test_a_reply_that_is_there_is_taken_and_noted() -> None:
    store, asked = Taught(), list[ChatRequest]()
    reader, client = made(store)
    ask = client.ask

    async def watched(request: ChatRequest, *, fresh: bool = False) -> Reply:
        asked.append(request)
        return await ask(request, fresh=fresh)

    client.ask = watched  # type: ignore[method-assign]
    await reader.chain(QUESTION, words_of(STORY.lines))
    await store.teach(asked, json.dumps({"chain": ["Anne"]}))
    client.wanted.clear()
    with recording() as calls:
        assert await reader.chain(QUESTION, words_of(STORY.lines)) == ("Anne",)
    assert [call.source for call in calls] == ["cached"]
    assert not client.wanted


async def test_a_step_that_failed_for_good_fails_in_the_rehearsal_as_well() -> None:
    store, asked = Taught(), list[ChatRequest]()
    reader, client = made(store)
    ask = client.ask

    async def watched(request: ChatRequest, *, fresh: bool = False) -> Reply:
        asked.append(request)
        return await ask(request, fresh=fresh)

    client.ask = watched  # type: ignore[method-assign]
    await reader.chain(QUESTION, words_of(STORY.lines))
    await store.teach(asked, "nonsense")
    with pytest.raises(StepFailure):
        await reader.chain(QUESTION, words_of(STORY.lines))


def test_what_results_are_found_by_is_that_of_the_reader_itself() -> None:
    client = Rehearsal(MemoryReplies())
    by_model = SharedReader(dict.fromkeys(STEPS, ModelReader(Asker(client, ModelId("m")), PRESETS["hitom"])))
    found = rehearsed(by_model, RuleReader())
    assert [found.fields(step) for step in STEPS] == [by_model.fields(step) for step in STEPS]
