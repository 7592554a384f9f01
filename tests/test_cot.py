from __future__ import annotations

import asyncio

import pytest

from rectom.benchmarks import hitom
from rectom.errors import SettingsError, StepFailure
from rectom.llm import ChatRequest, ModelId, Outcome, Reply, Usage
from rectom.methods.base import Setup
from rectom.methods.cot import KIND, ChainOfThought, digest_of, option_in
from rectom.reader.asking import Asker, recording
from rectom.story import Question
from tests.laboratory import Scripted
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI, Case
from tests.scripted_methods import ask, given, made, path, perfect


class Thinking(Scripted):
    """Thinks, and concludes when it is asked to."""

    def __init__(self, thoughts: str, outcome: Outcome, conclusion: str = "Answer: B") -> None:
        super().__init__(lambda *_: "")
        self._thoughts, self._outcome, self._conclusion = thoughts, outcome, conclusion

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        self.requests.append(request)
        asked_on = len(request.messages) > 2
        text = self._conclusion if asked_on else self._thoughts
        outcome = Outcome.OK if asked_on else self._outcome
        return Reply(request.key, text, outcome, Usage(7, 1), 0.0, 1, "sent")


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


@pytest.mark.parametrize(
    ("thoughts", "outcome"),
    [
        ("The box, the basket or the chest.", Outcome.OK),
        ("So Bob thinks that Cid thinks that the answer is A. But Bob thinks that", Outcome.TRUNCATED),
    ],
    ids=["undecided", "cut off"],
)
async def test_what_does_not_end_in_an_option_is_concluded_if_that_is_wanted(thoughts: str, outcome: Outcome) -> None:
    client = Thinking(thoughts, outcome)
    with recording() as calls:
        assert await made("cot:conclude=on", client).answer(*HITOM[0][:2]) == "basket"
    assert [call.step for call in calls] == ["answer", "conclude"]
    *before, said, further = client.requests[1].messages
    assert tuple(before) == client.requests[0].messages
    assert (said.role, said.content) == ("assistant", thoughts)
    assert (further.role, further.content[:29]) == ("user", "Therefore, which option is it")


async def test_what_ends_in_an_option_is_not_asked_again() -> None:
    client = Thinking("So it is the chest.\nAnswer: C", Outcome.OK)
    assert await made("cot:conclude=on", client).answer(*HITOM[0][:2]) == "chest"
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    ("thoughts", "outcome", "conclusion", "step"),
    [("", Outcome.FILTERED, "Answer: B", "answer"), ("Hm.", Outcome.OK, "Answer: A or B", "answer")],
)
async def test_no_conclusion_is_a_failed_step(thoughts: str, outcome: Outcome, conclusion: str, step: str) -> None:
    with pytest.raises(StepFailure) as caught:
        await made("cot:conclude=on", Thinking(thoughts, outcome, conclusion)).answer(*HITOM[0][:2])
    assert caught.value.step == step


def test_an_option_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(SettingsError, match="--method cot:conclude=yes: give on or off"):
        made("cot:conclude=yes", perfect())


def test_answers_with_a_conclusion_are_others_and_those_without_are_what_they_were() -> None:
    with_one, without = (made(f"cot:conclude={value}", perfect()).fields() for value in ("on", "off"))
    assert isinstance(with_one["prompts"], dict)
    assert with_one == {**without, "prompts": with_one["prompts"]}
    assert list(with_one["prompts"]) == ["answer", "conclude"]


def test_an_option_is_as_it_stands_in_the_question() -> None:
    question = Question("q", "s", "Where?", ("the  Box", "a chest"))
    assert option_in("Answer: box", question) == "the  Box"


def test_the_answers_depend_on_the_note_by_its_digest() -> None:
    asker = Asker(perfect(), ModelId("m"), benchmark=KIND.prompts)
    plain, noted = ChainOfThought(Setup(asker)).fields(), ChainOfThought(Setup(asker, hitom.note())).fields()
    assert plain["method"] == "cot"
    assert (plain["note"], noted["note"]) == (digest_of(""), digest_of(hitom.note()))
    assert plain["prompts"] == noted["prompts"]
