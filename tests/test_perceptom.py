from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure
from rectom.methods.perceptom import in_words
from tests.laboratory import Scripted
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI, Case, case
from tests.scripted_methods import answers, ask, given, made, path, perfect, right, step_of


def perceivers(*who: str, first: int = 1) -> str:
    """A reply: the perceivers of each line, their names parted by blanks."""
    return json.dumps({"lines": [{"line": n, "perceivers": names.split()} for n, names in enumerate(who, first)]})


def kept(asked: Case, reply: str) -> Sequence[str]:
    """The lines over which the question is asked, given who perceives what."""
    client = perfect(perceivers_narrative=reply)
    ask("perceptom", asked, client)
    return given(client.requests[1])["events"].split("\n")


@pytest.mark.parametrize("asked", [HITOM[0], TOMI[0], TOMI[1], DIALOGUE[0], GENERIC[0]], ids=lambda c: c[1].text)
def test_a_question_about_nobodys_belief_is_one_call_over_the_whole_text(asked: Case) -> None:
    client = perfect()
    ask("perceptom", asked, client)
    (request,) = client.requests
    assert step_of(request) == ("perceptom", "answer")
    assert given(request)["story"] == "\n".join(asked[0].lines)


@pytest.mark.parametrize(
    ("asked", "step"),
    [
        *((one, "perceivers_narrative") for one in (*HITOM[1:], *TOMI[2:])),
        *((one, "perceivers_dialogue") for one in DIALOGUE[1:]),
        *((one, "perceivers") for one in GENERIC[1:]),
        (STORY, "perceivers_story"),
    ],
)
def test_any_other_is_two_calls_by_the_kind_of_text(asked: Case, step: str) -> None:
    assert path("perceptom", asked) == [step, "believe"]


ALL = "Anne Bob Cid"


@pytest.mark.parametrize(
    ("order", "numbers"),
    [(1, [1, 2, 3, 4]), (2, [1, 2, 5]), (3, [1, 2])],
)
def test_a_line_is_kept_that_everyone_in_the_chain_perceives(order: int, numbers: list[int]) -> None:
    # Bob; Cid and Anne; Cid, Bob and Anne.
    reply = perceivers(ALL, ALL, "Bob Anne", "Bob Cid", "Cid Anne", "Cid", "")
    assert kept(HITOM[order], reply) == [HITOM[order][0].lines[number - 1] for number in numbers]


def test_lines_may_be_told_in_any_order() -> None:
    reply = json.loads(perceivers(ALL, "Bob", "", "", "", "", ""))
    reply["lines"].reverse()
    assert kept(HITOM[1], json.dumps(reply)) == list(HITOM[1][0].lines[:2])


def test_nothing_may_be_left() -> None:
    assert kept(HITOM[3], perceivers(*[""] * 7)) == ["(nothing)"]


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (["Ann"], "what Ann knows about"),
        (["Ann", "Bo"], "what Ann thinks Bo knows about"),
        (["Ann", "Bo", "Cy"], "what Ann thinks Bo thinks Cy knows about"),
    ],
)
def test_what_is_left_is_presented_as_the_chains(chain: list[str], words: str) -> None:
    assert in_words(chain) == words


def test_the_prompt_presents_what_is_left_and_asks_the_question_as_it_is() -> None:
    client = perfect()
    assert ask("perceptom", HITOM[3], client) == "box"
    asked = given(client.requests[1])
    assert asked["perspective"] == "what Cid thinks Bob thinks Anne knows about"
    assert asked["question"] == HITOM[3][1].text


def test_the_right_perception_gives_the_right_belief() -> None:
    assert [ask("perceptom", one) for one in HITOM] == ["chest", "basket", "box", "box"]


@pytest.mark.parametrize(
    ("asked", "characters"),
    [
        (HITOM[1], "Anne, Bob, Cid"),
        (TOMI[2], "Ann, Bo"),
        (DIALOGUE[1], "Ann, Bo, Cy"),
        (GENERIC[1], "Ann, Bo"),
        (case("Where does Zed really think the ball is?"), "Anne, Bob, Cid, Zed"),
    ],
)
def test_who_may_perceive_is_who_is_in_the_text_or_asked_for(asked: Case, characters: str) -> None:
    client = perfect()
    ask("perceptom", asked, client)
    assert given(client.requests[0])["characters"] == characters
    perceiver = client.requests[0].schema["$defs"]["Perceived"]["properties"]["perceivers"]["items"]  # type: ignore[index]
    assert perceiver["enum"] == characters.split(", ")


def test_all_questions_of_a_story_share_the_perception() -> None:
    client = perfect()
    for one in HITOM[1:]:
        ask("perceptom", one, client)
    assert len({request.key for request in client.requests}) == 4


@pytest.mark.parametrize(
    "reply",
    [
        "Everyone.",
        perceivers(*[ALL] * 6),
        perceivers(*[ALL] * 8),
        perceivers(*[ALL] * 7, first=0),
        perceivers(*[ALL] * 6, "Zed"),
        json.dumps({"lines": [{"line": 1, "perceivers": ["Anne"]}] * 7}),
    ],
)
def test_a_perception_that_is_none_fails_by_its_name_after_the_repairs(reply: str) -> None:
    client = perfect(perceivers_narrative=reply)
    with pytest.raises(StepFailure) as caught:
        ask("perceptom", HITOM[1], client)
    assert caught.value.step == "perceivers_narrative"
    assert len(client.requests) == 2


@pytest.mark.parametrize(("asked", "step"), [(HITOM[0], "answer"), (HITOM[1], "believe")])
@pytest.mark.parametrize("reply", ["I cannot tell.", "Answer: A or B", '{"x": 1}'])
def test_an_answer_that_names_no_single_option_fails_by_its_name(asked: Case, step: str, reply: str) -> None:
    with pytest.raises(StepFailure) as caught:
        ask("perceptom", asked, perfect(**{step: reply}))
    assert caught.value.step == step


def test_its_answers_depend_on_the_kind_of_text_and_the_note() -> None:
    tasks = ("hitom", "tomi", "story", "dialogue", "")
    fields = [made("perceptom", perfect(), task, note).fields() for task in tasks for note in ("", "Lies.")]
    assert len({repr(one) for one in fields}) == 10
    assert {one["method"] for one in fields} == {"perceptom"}


def test_the_note_stands_in_every_prompt() -> None:
    client = perfect()
    asyncio.run(made("perceptom", client, note="Assume the best.").answer(*HITOM[1][:2]))
    assert [request.messages[1].content[:18] for request in client.requests] == ["Assume the best.\n\n"] * 2


@pytest.fixture(scope="module")
def reached(cotp: Benchmark) -> tuple[Scripted, dict[str, str | None]]:
    client = perfect()
    return client, answers("perceptom", cotp, client)


def test_what_presence_and_the_intersection_reach_on_hitom(
    cotp: Benchmark, hitom_file: Path, reached: tuple[Scripted, dict[str, str | None]]
) -> None:
    """568 of 600 and 387 of 400, 96.75 %, with a perfect model."""
    _, given = reached
    assert right(cotp, given) == [120, 114, 105, 116, 113]
    assert right(hitom.load(hitom_file, "400"), given) == [80, 78, 73, 78, 78]


def test_it_asks_two_calls_a_question_one_of_them_once_a_story(
    reached: tuple[Scripted, dict[str, str | None]],
) -> None:
    requests = reached[0].requests
    assert Counter(step_of(request)[1] for request in requests) == {
        "perceivers_narrative": 480,
        "believe": 480,
        "answer": 120,
    }
    once = {request.key: step_of(request)[1] for request in requests}
    assert Counter(once.values()) == {"perceivers_narrative": 120, "believe": 480, "answer": 120}
