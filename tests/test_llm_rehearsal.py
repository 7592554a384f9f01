from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.matrix import Planned
from flows.plan import Planner
from flows.purse import Purse
from flows.settings import Settings
from flows.shared import sharing
from rectom import schemas
from rectom.llm import ChatRequest, MemoryReplies, Message, ModelId, Outcome, Reply, Sampling, Usage
from rectom.llm.rehearsal import IN_WORDS, Rehearsal, Wanted, imagined
from rectom.methods import replies
from rectom.methods.registry import BUILT_IN
from rectom.results.sweep import Cell
from rectom.schemas import ReplyModel
from rectom.words import words_of
from tests import cases
from tests.cases import KINDS
from tests.conftest import stories

LINES = ("Anne and Bob entered the hall.", "Bob likes the box.", "Anne privately told Bob that the ball is in the box.")
WORDS = words_of(
    ("Anne and Bob entered the hall.", "The ball is in the box.", "Anne publicly claimed that ball is in the box.")
)

REQUEST = ChatRequest(ModelId("m"), (Message("user", "Where?"),), Sampling(max_tokens=30))


@pytest.mark.parametrize(
    "model",
    [
        schemas.abstraction(WORDS, LINES),
        schemas.abstraction(words_of(("Anne likes the box.",)), ["Anne likes the box."]),
        schemas.happenings(WORDS, LINES),
        schemas.acts({"2 Ben: So": ["tells", "leaves"], "3 Ann: Hi": ["asks"]}),
        schemas.chain(["Anne", "Bob"]),
        schemas.numbered({1: ["a", "b"], 3: ["c"]}),
        schemas.leaving("Anne", "Bob"),
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


NAMES = st.lists(st.sampled_from(["Anne", "Bob", "é\n", '"', "A" * 80]) | st.text(max_size=9), max_size=5)
MANY = st.sampled_from([[f"t{number}" for number in range(400)]])
COUNTS = st.integers(1, 40)

MODELS: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda count, more: schemas.abstraction(WORDS, LINES * count, more), COUNTS, NAMES | MANY),
    st.builds(lambda story: schemas.abstraction(words_of(story.lines), story.lines), stories()),
    st.builds(lambda names: schemas.abstraction(replace(WORDS, characters=tuple(names)), LINES), NAMES),
    st.builds(lambda names: schemas.happenings(replace(WORDS, characters=tuple(names)), LINES), NAMES),
    st.builds(schemas.acts, st.dictionaries(st.sampled_from(["1 Ann: Hi", '2 Ben: "é\n']), NAMES | MANY)),
    st.builds(schemas.chain, NAMES | MANY),
    st.builds(schemas.numbered, st.dictionaries(COUNTS, NAMES | MANY, max_size=5)),
    st.builds(schemas.revision),
    st.just(schemas.reduction()),
    st.builds(schemas.answer, NAMES | MANY, NAMES | MANY),
    st.builds(schemas.choice, NAMES | MANY),
    st.builds(replies.lines, COUNTS),
    st.builds(replies.stamps, NAMES | MANY),
    st.builds(replies.perceivers, COUNTS, NAMES | MANY),
)


@given(model=MODELS)
def test_an_imagined_reply_fits_whatever_was_asked_for(model: Any) -> None:
    model.model_validate(orjson.loads(imagined(schemas.json_schema(model))))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_imagined_reply_fits_whatever_readers_and_methods_ask(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ReplyModel] = []

    def noted(model: ReplyModel) -> dict[str, Any]:
        asked.append(model)
        return written(model)

    written = schemas.json_schema
    monkeypatch.setattr(schemas, "json_schema", noted)
    with sharing(tmp_path / "store", Purse(), []) as shared:
        shared.benchmarks["cases", kind, None, 0, None] = cases.benchmark(kind)
        for method in (*BUILT_IN, "rectom", "rectom-lite"):
            for more in ({}, {"update": "model"}, {"state": "off"}, {"verify": True})[: 4 if method == "rectom" else 1]:
                settings = Settings("cases", kind, method=method, model="m", runs=tmp_path, **more)
                estimate = await Planner(shared).estimate(Planned(Cell("m", method, "cases"), settings, ()))
                assert estimate.calls > 0, estimate.why
    assert len({model.__name__ for model in asked}) >= 8
    for model in {orjson.dumps(written(model)): model for model in asked}.values():
        model.model_validate(orjson.loads(imagined(written(model))))


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


def complaint(request: ChatRequest, reply: str) -> ChatRequest:
    """The request that asks again after a bad reply."""
    return replace(request, messages=(*request.messages, Message("assistant", reply), Message("user", "Again.")))


async def test_asking_again_after_an_imagined_reply_is_not_counted() -> None:
    client = Rehearsal(MemoryReplies())
    again = complaint(REQUEST, (await client.ask(REQUEST)).text)
    await client.ask(again)
    await client.ask(complaint(again, "No."))
    assert list(client.wanted) == [REQUEST.key]


async def test_asking_again_after_a_bad_reply_that_is_there_is_counted_once() -> None:
    bad = Reply(REQUEST.key, "No.", Outcome.OK, Usage(3, 2), 0.1, 1, "sent")
    store = MemoryReplies()
    await store.keep(REQUEST.key, bad.to_record(REQUEST))
    client = Rehearsal(store)
    again = complaint(REQUEST, (await client.ask(REQUEST)).text)
    await client.ask(complaint(again, (await client.ask(again)).text))
    assert list(client.wanted) == [again.key]
