from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from rectom import prompts, schemas
from rectom.errors import EndpointDown, SettingsError, StepFailure, UnknownModel, WrongKey
from rectom.llm import ChatClient, MemoryReplies, ModelId, Retry, Sampling
from rectom.reader.asking import Asker, Call, asking_anew, recording
from tests.fault_server import LENGTH, NOT_UTF8, NULL, UNKNOWN_MODEL, WRONG_KEY, Fault, FaultServer, error, says

GOOD = json.dumps({"chain": ["Anne", "Bob"]})
BAD = json.dumps({"chain": ["Zoe"]})


@asynccontextmanager
async def asking(server: FaultServer, **options: Any) -> AsyncIterator[Asker]:
    replies = options.pop("replies", None)
    async with ChatClient(server.url, "none", replies=replies, retry=Retry(attempts=1)) as client:
        yield Asker(client, ModelId("small"), **options)


async def ask(asker: Asker) -> tuple[str, ...]:
    """The chain that the model names, refused if it begins with Bob."""

    def read(reply: Any) -> tuple[str, ...]:
        if reply.chain[:1] == ["Bob"]:
            raise ValueError("it does not begin with Bob")
        return tuple(reply.chain)

    model = schemas.chain(["Anne", "Bob"])
    return await asker.ask("chain", model, read, characters="Anne, Bob", question="Where does Anne think it is?")


async def test_the_filled_prompt_and_the_schema_are_sent_and_the_value_read() -> None:
    async with FaultServer([says(GOOD)]) as server, asking(server) as asker:
        assert await ask(asker) == ("Anne", "Bob")
    body = server.requests[0].body
    system, user = prompts.load("hitom", "chain").fill(characters="Anne, Bob", question="Where does Anne think it is?")
    assert [message["content"] for message in body["messages"]] == [system, user]
    sent = body["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("chain", True)
    assert sent["schema"] == schemas.json_schema(schemas.chain(["Anne", "Bob"]))
    assert body["temperature"] == 0


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (BAD, "chain.0: Input should be 'Anne' or 'Bob'"),
        (json.dumps({"chain": ["Bob"]}), "it does not begin with Bob"),
        ("I think it is Anne.", "no JSON object in it"),
        (json.dumps({"names": ["Anne"]}), "names: Extra inputs are not permitted"),
    ],
)
async def test_a_bad_reply_is_asked_again_with_its_fault_named(bad: str, fault: str) -> None:
    async with FaultServer([says(bad), says(GOOD)]) as server, asking(server) as asker:
        assert await ask(asker) == ("Anne", "Bob")
    first, second = (request.body["messages"] for request in server.requests)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": bad}
    assert second[3]["role"] == "user"
    assert fault in second[3]["content"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
async def test_a_step_that_stays_bad_fails_after_the_repairs_and_names_itself(repairs: int) -> None:
    async with FaultServer(usual=says(BAD)) as server, asking(server, repairs=repairs) as asker:
        with recording() as calls, pytest.raises(StepFailure, match=rf"{repairs + 1} tries: chain\.0") as failed:
            await ask(asker)
    assert failed.value.step == "chain"
    assert len(server.requests) == len(calls) == repairs + 1


async def test_a_bad_reply_is_noted_also_where_its_repair_is_refused() -> None:
    async with FaultServer([says(BAD), error(400, "the prompt is too long")]) as server, asking(server) as asker:
        with recording() as calls, pytest.raises(StepFailure, match="the prompt is too long"):
            await ask(asker)
    assert len(server.requests) == 2
    assert [(call.source, call.fault[:8]) for call in calls] == [("sent", "chain.0:")]


async def test_a_rerun_judges_the_bad_replies_again_for_nothing() -> None:
    replies = MemoryReplies()
    async with FaultServer(usual=says(BAD)) as server:
        for _ in range(2):
            async with asking(server, replies=replies) as asker:
                with pytest.raises(StepFailure):
                    await ask(asker)
    assert len(server.requests) == 3


@pytest.mark.parametrize(("reply", "fault"), [(LENGTH, "cut off"), (NULL, "empty")])
async def test_a_reply_that_is_no_answer_is_a_fault_of_the_step(reply: Fault, fault: str) -> None:
    async with FaultServer([reply, says(GOOD)]) as server, asking(server) as asker:
        assert await ask(asker) == ("Anne", "Bob")
    assert fault in server.requests[1].body["messages"][-1]["content"]


@pytest.mark.parametrize("fault", [NOT_UTF8, error(500, "out of memory"), error(429, "slow down"), error(400, "no")])
async def test_a_server_that_fails_one_request_fails_one_step(fault: Fault) -> None:
    async with FaultServer([fault, says(GOOD)]) as server, asking(server) as asker:
        with pytest.raises(StepFailure) as failed:
            await ask(asker)
        assert failed.value.step == "chain"
        assert await ask(asker) == ("Anne", "Bob")


@pytest.mark.parametrize(("fault", "kind"), [(WRONG_KEY, WrongKey), (UNKNOWN_MODEL, UnknownModel)])
async def test_a_server_that_is_no_use_at_all_ends_the_run(fault: Fault, kind: type[Exception]) -> None:
    async with FaultServer(usual=fault) as server, asking(server) as asker:
        with pytest.raises(kind):
            await ask(asker)


async def test_a_server_that_is_gone_ends_the_run() -> None:
    async with FaultServer() as server:
        pass
    async with asking(server) as asker:
        with pytest.raises(EndpointDown):
            await ask(asker)


async def test_every_call_is_noted_with_its_cost_and_its_source() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 2}}
    replies = MemoryReplies()
    plan = [Fault(text=BAD, usage=usage), Fault(text=GOOD, usage=usage)]
    async with FaultServer(plan) as server, asking(server, replies=replies) as asker:
        with recording() as first:
            await ask(asker)
        with recording() as second:
            await ask(asker)
    assert [call.source for call in first] == ["sent", "sent"]
    assert [call.source for call in second] == ["cached", "cached"]
    assert [call.key for call in first] == [call.key for call in second] == list(replies.records)
    call = first[0]
    assert (call.step, call.prompt, call.completion, call.reasoning, call.outcome) == ("chain", 30, 7, 2, "ok")
    assert Call(**call.to_json()) == call


async def test_a_call_tells_what_was_wrong_with_its_reply_and_whether_it_answers_a_complaint() -> None:
    plan = [says("I think it is Anne."), says(json.dumps({"chain": ["Bob"]})), says(GOOD)]
    async with FaultServer(plan) as server, asking(server) as asker:
        with recording() as calls:
            await ask(asker)
    assert [call.repair for call in calls] == [False, True, True]
    first, *others = [call.fault for call in calls]
    assert first.startswith("no JSON object in it")
    assert others == ["it does not begin with Bob", ""]
    assert [Call(**call.to_json()) for call in calls] == calls


async def test_where_no_reply_was_usable_every_call_has_its_fault() -> None:
    async with FaultServer([LENGTH], says(BAD)) as server, asking(server, repairs=2) as asker:
        with recording() as calls, pytest.raises(StepFailure) as failed:
            await ask(asker)
    assert [call.repair for call in calls] == [False, True, True]
    assert [call.outcome for call in calls] == ["truncated", "ok", "ok"]
    assert "cut off" in calls[0].fault
    assert [call.fault for call in calls[1:]] == ["chain.0: Input should be 'Anne' or 'Bob'"] * 2
    assert failed.value.why.endswith(calls[-1].fault)


async def test_a_fault_from_the_store_is_the_one_that_was_sent_for() -> None:
    replies = MemoryReplies()
    told = []
    async with FaultServer([says(BAD)], says(GOOD)) as server:
        for _ in range(2):
            async with asking(server, replies=replies) as asker:
                with recording() as calls:
                    await ask(asker)
            told.append([(call.repair, call.fault) for call in calls])
    assert told[0] == told[1] == [(False, "chain.0: Input should be 'Anne' or 'Bob'"), (True, "")]


async def test_a_long_fault_is_noted_by_its_beginning() -> None:
    def refuse(_: Any) -> None:
        raise ValueError("no, " + "x" * 5000)

    async with FaultServer(usual=says(GOOD)) as server, asking(server, repairs=0) as asker:
        with recording() as calls, pytest.raises(StepFailure):
            await asker.ask("chain", schemas.chain(["Anne", "Bob"]), refuse, characters="Anne, Bob", question="Where?")
    assert calls[0].fault == "no, " + "x" * 296


async def test_words_that_nobody_parses_have_no_fault() -> None:
    async with FaultServer([says("Well."), LENGTH]) as server, asking(server) as asker:
        with recording() as calls:
            await asker.tell("cot", "Think.", "Where?")
            with pytest.raises(StepFailure):
                await asker.tell("cot", "Think.", "Where then?")
    assert [(call.outcome, call.repair, call.fault) for call in calls] == [("ok", False, ""), ("truncated", False, "")]


def test_a_call_of_an_older_store_has_no_fault() -> None:
    fields = Call("chain", "k", "sent", 1, 2, 0, 0, 0.5, "ok").to_json()
    older = {name: value for name, value in fields.items() if name not in {"repair", "fault"}}
    assert Call(**older).to_json() == {**fields, "repair": False, "fault": ""}


@pytest.mark.parametrize(("step", "sent"), [("chain", 2), ("reduce", 1), ("answer", 0)])
async def test_what_is_asked_anew_begins_with_the_step_that_failed(step: str, sent: int) -> None:
    """The chain and then the reduced question are in the store."""
    replies = MemoryReplies()
    async with FaultServer([says(GOOD), says("Where is it?")] * 2) as server, asking(server, replies=replies) as asker:
        for _ in range(2):
            with asking_anew(step) if len(server.requests) == 2 else nullcontext():
                await ask(asker)
                await asker.tell("reduce", "Be brief.", "Where does Anne think it is?")
        assert len(server.requests) == 2 + sent


async def test_outside_of_a_recording_nothing_is_noted_and_recordings_nest() -> None:
    async with FaultServer(usual=says(GOOD)) as server, asking(server) as asker:
        await ask(asker)
        with recording() as outer:
            with recording() as inner:
                await ask(asker)
            await ask(asker)
    assert (len(inner), len(outer)) == (1, 1)


async def test_a_wrong_field_is_a_fault_of_the_program_and_sends_nothing() -> None:
    async with FaultServer() as server, asking(server) as asker:
        with pytest.raises(SettingsError, match="differ in"):
            await asker.ask("chain", schemas.chain(["Anne"]), str, question="Where?")
    assert not server.requests


def asker(model: ModelId, sampling: Sampling | None = None, *, repairs: int = 2, sample: int = 0) -> Asker:
    client = ChatClient("http://127.0.0.1:9", "planted-key")
    return Asker(client, model, sampling, repairs=repairs, sample=sample)


BASE = asker(ModelId("m")).fields("chain")


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (asker(ModelId("m", "weights")), "identity"),
        (asker(ModelId("m", revision="2")), "revision"),
        (asker(ModelId("m"), Sampling(0.7)), "sampling"),
        (asker(ModelId("m"), Sampling(None)), "sampling"),
        (asker(ModelId("m"), Sampling(max_tokens=100)), "sampling"),
        (asker(ModelId("m"), sample=1), "sample"),
        (asker(ModelId("m"), repairs=0), "repairs"),
    ],
)
def test_fields_tell_apart_all_that_a_result_depends_on(other: Asker, field: str) -> None:
    fields = other.fields("chain")
    assert {name for name in BASE if fields[name] != BASE[name]} == {field}


def test_fields_name_the_prompts_by_digest_and_neither_address_nor_key() -> None:
    fields = asker(ModelId("m")).fields("observe_states", "observe_events")
    names = ("observe_states", "observe_events")
    assert fields["prompts"] == {name: prompts.load("hitom", name).digest for name in names}
    assert "127.0.0.1" not in str(fields)
    assert "planted-key" not in str(fields)


def test_a_server_that_calls_the_model_otherwise_is_the_same_model() -> None:
    assert asker(ModelId("served-as", "m")).fields("chain") == BASE
