from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure
from rectom.llm import ModelId
from rectom.methods.base import Setup
from rectom.methods.simtom import KIND, SimToM
from rectom.reader.asking import Asker
from tests.laboratory import Scripted
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI, Case, case
from tests.scripted_methods import answers, ask, given, made, path, perfect, right, step_of


@pytest.mark.parametrize("asked", [HITOM[0], TOMI[0], TOMI[1], DIALOGUE[0], GENERIC[0]], ids=lambda c: c[1].text)
def test_a_question_about_nobodys_belief_is_one_call_over_the_whole_text(asked: Case) -> None:
    client = perfect()
    ask("simtom", asked, client)
    (request,) = client.requests
    assert step_of(request) == ("simtom", "answer")
    assert given(request)["story"] == "\n".join(asked[0].lines)


@pytest.mark.parametrize(
    ("asked", "perspective"),
    [
        *((one, "perspective") for one in (*HITOM[1:], *DIALOGUE[1:], *GENERIC[1:])),
        *((one, "perspective_tomi") for one in TOMI[2:]),
        (STORY, "perspective_story"),
    ],
)
def test_any_other_is_two_calls_by_the_kind_of_text(asked: Case, perspective: str) -> None:
    assert path("simtom", asked) == [perspective, "simulate"]


@pytest.mark.parametrize(
    ("asked", "character"),
    [
        (HITOM[1], "Bob"),
        (HITOM[2], "Cid"),
        (HITOM[3], "Cid"),
        (TOMI[3], "Bo"),
        (STORY, "Ann"),
        (DIALOGUE[2], "Bo"),
        (GENERIC[2], "Bo"),
    ],
)
def test_the_perspective_is_the_outermost_characters_alone(asked: Case, character: str) -> None:
    client = perfect()
    ask("simtom", asked, client)
    assert [given(request)["character"] for request in client.requests] == [character] * 2


def test_the_question_is_asked_of_what_the_character_knows_and_of_nothing_else() -> None:
    client = perfect(perspective='{"lines": [5, 2, 2, 1]}')
    assert ask("simtom", HITOM[1], client) == "box"
    known = given(client.requests[1])
    assert known["events"].split("\n") == [HITOM[1][0].lines[number] for number in (0, 1, 4)]
    assert known["question"] == HITOM[1][1].text
    assert "basket." not in client.requests[1].messages[1].content


def test_who_knows_of_nothing_is_asked_all_the_same() -> None:
    client = perfect(perspective='{"lines": []}')
    ask("simtom", HITOM[1], client)
    assert given(client.requests[1])["events"] == "(nothing)"


def test_the_right_perspective_gives_the_right_belief() -> None:
    assert [ask("simtom", one) for one in HITOM] == ["chest", "basket", "chest", "chest"]


def test_the_questions_about_one_character_of_a_story_share_its_perspective() -> None:
    client = perfect()
    for one in HITOM[2:]:
        ask("simtom", one, client)
    assert len({request.key for request in client.requests}) == 3


def test_the_note_stands_in_every_prompt() -> None:
    client = perfect()
    method = made("simtom", client, note="Assume the best.")
    for one in (HITOM[0], HITOM[1]):
        asyncio.run(method.answer(one[0], one[1]))
    assert [request.messages[1].content[:18] for request in client.requests] == ["Assume the best.\n\n"] * 3


@pytest.mark.parametrize(
    "reply", ["No idea.", '{"lines": [8]}', '{"lines": [0]}', '{"lines": ["Ann"]}', '{"line": [1]}']
)
def test_a_perspective_that_is_none_fails_by_its_name_after_the_repairs(reply: str) -> None:
    client = perfect(perspective=reply)
    with pytest.raises(StepFailure) as caught:
        ask("simtom", HITOM[1], client)
    assert caught.value.step == "perspective"
    assert len(client.requests) == 2


@pytest.mark.parametrize(("asked", "step"), [(HITOM[0], "answer"), (HITOM[1], "simulate")])
@pytest.mark.parametrize(
    "reply", ["I cannot tell.", "Answer: A or B", "Answer: the box and the basket", '{"x": 1}', "\n"]
)
def test_an_answer_that_names_no_single_option_fails_by_its_name(asked: Case, step: str, reply: str) -> None:
    with pytest.raises(StepFailure) as caught:
        ask("simtom", asked, perfect(**{step: reply}))
    assert caught.value.step == step


def test_what_follows_the_last_colon_is_not_the_answer() -> None:
    reply = "Answer: B\nReason: he moved it there himself, whatever Cid did later: the chest"
    assert ask("simtom", HITOM[1], perfect(simulate=reply)) == "basket"


def test_its_answers_depend_on_the_kind_of_text_and_the_note() -> None:
    def fields(task: str, note: str) -> dict[str, object]:
        asker = Asker(Scripted(lambda *_: ""), ModelId("m"), benchmark=KIND.prompts)
        return SimToM(Setup(asker, note, task)).fields()

    different = [fields(task, note) for task in ("hitom", "tomi", "story", "dialogue", "") for note in ("", "Lies.")]
    assert len({repr(one) for one in different}) == 10
    assert {one["method"] for one in different} == {"simtom"}


@pytest.fixture(scope="module")
def reached(cotp: Benchmark) -> tuple[Scripted, dict[str, str | None]]:
    client = perfect()
    return client, answers("simtom", cotp, client)


def test_what_presence_and_the_first_characters_filter_reach_on_hitom(
    cotp: Benchmark, hitom_file: Path, reached: tuple[Scripted, dict[str, str | None]]
) -> None:
    """434 of 600 and 295 of 400, 73.75 %, with a perfect model."""
    _, given = reached
    assert right(cotp, given) == [120, 114, 77, 71, 52]
    assert right(hitom.load(hitom_file, "400"), given) == [80, 78, 54, 49, 34]


def test_it_asks_two_calls_a_question_and_one_at_order_nought(reached: tuple[Scripted, dict[str, str | None]]) -> None:
    steps = Counter(step_of(request)[1] for request in reached[0].requests)
    assert steps == {"perspective": 480, "simulate": 480, "answer": 120}


def test_a_name_that_the_story_does_not_have_is_no_fault() -> None:
    client = perfect()
    ask("simtom", case("Where does Zed really think the ball is?"), client)
    assert [given(request)["character"] for request in client.requests] == ["Zed", "Zed"]
