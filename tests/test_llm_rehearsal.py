from __future__ import annotations

from typing import Any

import orjson
import pytest

from rectom import schemas
from rectom.llm import ChatRequest, MemoryReplies, Message, ModelId, Outcome, Reply, Sampling, Usage
from rectom.llm.rehearsal import IN_WORDS, Rehearsal, Wanted, imagined
from rectom.methods import replies
from rectom.words import words_of

WORDS = words_of(
    ("Anne and Bob entered the hall.", "The ball is in the box.", "Anne publicly claimed that ball is in the box.")
)

REQUEST = ChatRequest(ModelId("m"), (Message("user", "Where?"),), Sampling(max_tokens=30))


@pytest.mark.parametrize(
    "model",
    [
        schemas.abstraction(WORDS, 3),
        schemas.abstraction(words_of(("Anne likes the box.",)), 1),
        schemas.happenings(WORDS, 2),
        schemas.comings(["Ann", "Ben"], 4),
        schemas.chain(["Anne", "Bob"]),
        schemas.numbered({1: ["a", "b"], 3: ["c"]}),
        schemas.revision("in(ball,box)", ["in(ball,bag)"]),
        schemas.reduction(),
        schemas.answer(["in(ball,box)"], ["box", "bag"]),
        schemas.choice(["A", "B"]),
        replies.lines(5),
        replies.stamps(["t1", "t2"]),
        replies.perceivers(3, ["Anne", "Bob"]),
    ],
    ids=lambda model: model.__name__,
)
def test_an_imagined_reply_has_the_form_that_was_asked_for(model: Any) -> None:
    text = imagined(schemas.json_schema(model))
    assert model.model_validate(orjson.loads(text))


def test_the_lines_of_an_imagined_reply_count_on() -> None:
    found = orjson.loads(imagined(schemas.json_schema(replies.perceivers(3, ["Anne"]))))
    assert [entry["line"] for entry in found["lines"]] == [1, 2, 3]


async def test_what_would_be_sent_is_noted_once_and_answered() -> None:
    client = Rehearsal(MemoryReplies())
    first, again = await client.ask(REQUEST), await client.ask(REQUEST)
    assert (first.source, first.outcome) == ("sent", Outcome.OK)
    assert first == again
    assert client.wanted == {REQUEST.key: Wanted(IN_WORDS, 6, 30)}
    assert client.stats.sent == 0


async def test_a_stored_reply_is_given_and_not_wanted_unless_it_is_asked_anew() -> None:
    stored = Reply(REQUEST.key, "There.", Outcome.OK, Usage(3, 2), 0.1, 1, "sent")
    store = MemoryReplies()
    await store.keep(REQUEST.key, stored.to_record(REQUEST))
    client = Rehearsal(store)
    assert (await client.ask(REQUEST)).text == "There."
    assert not client.wanted
    await client.ask(REQUEST, fresh=True)
    assert list(client.wanted) == [REQUEST.key]


async def test_asking_again_after_an_imagined_reply_is_not_counted() -> None:
    client = Rehearsal(MemoryReplies())
    turns = (*REQUEST.messages, Message("assistant", "No."), Message("user", "Again."))
    await client.ask(ChatRequest(ModelId("m"), turns))
    assert not client.wanted
