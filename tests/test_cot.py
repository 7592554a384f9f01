from __future__ import annotations

import asyncio

import pytest

from rectom.benchmarks import hitom
from rectom.errors import StepFailure
from rectom.llm import ChatRequest, ModelId, Outcome, Reply, Usage
from rectom.methods.base import Setup
from rectom.methods.cot import KIND, ChainOfThought, digest_of, option_in
from rectom.reader.asking import Asker, recording
from rectom.story import Question
from tests.laboratory import Scripted
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI, Case
from tests.scripted_methods import ask, given, made, path, perfect


@pytest.mark.parametrize("asked", [*HITOM, *TOMI, STORY, *DIALOGUE, *GENERIC], ids=lambda c: c[1].text)
def test_it_is_one_call_whatever_the_text_and_the_order(asked: Case) -> None:
    assert path("cot", asked) == ["answer"]


def test_the_prompt_holds_the_note_the_whole_story_the_question_and_the_options() -> None:
    client = perfect()
    story, question, _ = HITOM[3]
    asyncio.run(made("cot", client, note=hitom.note()).answer(story, question))
    fields = given(client.requests[0])
    assert fields["note"] == f"{hitom.note()}\n\n"
    assert fields["story"] == "\n".join(story.lines)
    assert fields["question"] == question.text
    assert fields["options"] == "A. box\nB. basket\nC. chest"
    assert client.requests[0].schema is None
    assert "Think step by step" in client.requests[0].messages[0].content


def test_the_answer_is_what_the_reply_ends_in() -> None:
    reply = "Bob put it into the basket, and Cid into the chest.\nAnswer: B"
    assert ask("cot", HITOM[1], perfect(answer=reply)) == "basket"


@pytest.mark.parametrize(
    "reply", ["I cannot tell.", "Answer: A or B", "The box, the basket or the chest.", "Answer: D"]
)
def test_a_reply_that_names_no_single_option_is_a_failed_step(reply: str) -> None:
    with pytest.raises(StepFailure) as caught:
        ask("cot", HITOM[0], perfect(answer=reply))
    assert caught.value.step == "answer"
    assert "names no single option" in caught.value.why


def test_a_reply_that_was_cut_off_is_a_failed_step_and_paid_for() -> None:
    class Cut(Scripted):
        async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
            return Reply(request.key, "Answer: A", Outcome.TRUNCATED, Usage(7, 1), 0.0, 1, "sent")

    async def asked() -> None:
        await made("cot", Cut(lambda *_: "")).answer(*HITOM[0][:2])

    with recording() as calls, pytest.raises(StepFailure, match="answer: the reply is truncated"):
        asyncio.run(asked())
    assert [(call.step, call.prompt) for call in calls] == [("answer", 7)]


def test_an_option_is_as_it_stands_in_the_question() -> None:
    question = Question("q", "s", "Where?", ("the  Box", "a chest"))
    assert option_in("Answer: box", question) == "the  Box"


def test_the_answers_depend_on_the_note_by_its_digest() -> None:
    asker = Asker(perfect(), ModelId("m"), benchmark=KIND.prompts)
    plain, noted = ChainOfThought(Setup(asker)).fields(), ChainOfThought(Setup(asker, hitom.note())).fields()
    assert plain["method"] == "cot"
    assert (plain["note"], noted["note"]) == (digest_of(""), digest_of(hitom.note()))
    assert plain["prompts"] == noted["prompts"]
