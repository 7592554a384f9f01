from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.fault_server import FaultServer, says
from tests.laboratory import Ended, Lab, call, serving

LINES = [
    "Mina, Omar and Tess entered the kitchen.",
    "The cake is in the tin.",
    "Mina exited the kitchen.",
    "Omar moved the cake to the oven.",
    "Tess likes the tin.",
    "Omar privately told Mina that the cake is in the fridge.",
]
QUESTIONS = {
    "Where is the cake really?": "oven",
    "Where does Mina really think the cake is?": "tin",
    "Where does Tess think Mina thinks the cake is?": "tin",
    "Where does Tess really think the cake is?": "oven",
}
FREE = "In the kitchen, Mina puts her cake into the tin while Omar watches. Then Omar leaves."


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "plain.txt").write_text("\n".join(LINES) + "\n")
    (tmp_path / "numbered.txt").write_text("\n".join(f"{n}. {line}" for n, line in enumerate(LINES, 1)))
    (tmp_path / "sentences.txt").write_text(" ".join(LINES))
    (tmp_path / "free.txt").write_text(FREE)
    with serving(FakeOpenAI()) as server:
        yield Lab(tmp_path, tmp_path, server)


def ask(lab: Lab, story: str, question: str, *more: object, stdin: str = "") -> Ended:
    file = story if story == "-" else lab.folder / story
    return call("ask", file, question, "--cache", lab.store, *more, stdin=stdin, COLUMNS="160")


def model(lab: Lab) -> list[object]:
    return ["--model", "fake", "--base-url", lab.server.base_url, "--attempts", 1]


@pytest.mark.parametrize("story", ["plain.txt", "numbered.txt", "sentences.txt"])
@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_a_story_is_answered_by_rule_however_its_lines_are_written(
    lab: Lab, story: str, question: str, answer: str
) -> None:
    ended = ask(lab, story, question)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == answer
    assert "Omar moved the cake to the oven." in ended.out


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_a_model_gives_the_same_answers(lab: Lab, question: str, answer: str) -> None:
    for story in ("plain.txt", "numbered.txt"):
        ended = ask(lab, story, question, *model(lab))
        assert (ended.status, ended.out.splitlines()[-1]) == (0, answer)
    sent = lab.server.asked.total()
    ask(lab, "plain.txt", question, *model(lab))
    assert lab.server.asked.total() == sent
    assert lab.server.asked["abstract"] == 1


@pytest.mark.parametrize("choices", ["oven, tin, shelf", "A. oven, B. tin, C. shelf", "oven;tin;shelf"])
def test_choices_may_be_written_with_letters_or_without(lab: Lab, choices: str) -> None:
    ended = ask(lab, "plain.txt", "Where is the cake really?", "--choices", choices, *model(lab))
    assert ended.out.splitlines()[-1] == "oven"


def test_without_choices_the_containers_of_the_story_are_offered(lab: Lab) -> None:
    lab.server.keep_bodies = True
    ask(lab, "plain.txt", "Where is the cake really?", *model(lab))
    asked = [body["messages"][1]["content"] for body in lab.server.bodies]
    assert any("Options: A. tin, B. oven, C. fridge" in user for user in asked)


def test_the_story_may_come_from_standard_input(lab: Lab) -> None:
    ended = ask(lab, "-", "Where is the cake really?", stdin="\n".join(LINES))
    assert ended.out.splitlines()[-1] == "oven"


@pytest.mark.parametrize("by", ["rules", "model"])
@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where does Zoe really think the cake is?", "the story has no character 'Zoe'; it has Mina, Omar, Tess"),
        ("Where does Mina think Zoe thinks the cake is?", "the story has no character 'Zoe'"),
        ("Where is the kite really?", "the story has no object 'kite'; it has cake"),
    ],
)
def test_who_or_what_is_not_in_the_story_is_named_in_one_line(lab: Lab, question: str, words: str, by: str) -> None:
    ended = ask(lab, "plain.txt", question, *(model(lab) if by == "model" else []))
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert words in ended.errors[0]
    assert not lab.server.asked["chain"]


@pytest.mark.parametrize(
    ("story", "question", "more", "words"),
    [
        ("gone.txt", "Where is the cake really?", [], "cannot read the story"),
        ("free.txt", "Where is the cake really?", [], "natural stories follow no grammar: give --model"),
        ("free.txt", "Where is the cake really?", ["--text", "hitom"], "no Hi-ToM template fits the line"),
        ("plain.txt", "Who ate the cake?", [], "not a Hi-ToM question"),
        ("plain.txt", "Where is the cake really?", ["--choices", "tin, fridge"], "oven, which is not an option"),
        ("plain.txt", "Where is the cake really?", ["--model", "m"], "give --base-url URL or set OPENAI_BASE_URL"),
        ("plain.txt", "Where is the cake really?", ["--reader", "chain=model"], "needs a model"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    lab: Lab, story: str, question: str, more: list[str], words: str
) -> None:
    ended = ask(lab, story, question, *more)
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert words in ended.errors[0]


def test_a_story_that_is_no_text_is_said_in_one_line(lab: Lab) -> None:
    (lab.folder / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (lab.folder / "empty.txt").write_text(" \n\n")
    for story, words in (("binary.txt", "cannot read the story"), ("empty.txt", "holds no story")):
        ended = ask(lab, story, "Where is the cake really?")
        assert ended.status == 1
        assert len(ended.errors) == 1
        assert words in ended.errors[0]


def test_a_model_that_talks_nonsense_is_said_in_one_line(lab: Lab) -> None:
    lab.server.broken = "answer"
    ended = ask(lab, "plain.txt", "Where is the cake really?", *model(lab), "--repairs", 0)
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert "no answer: answer: no usable reply in 1 tries" in ended.errors[0]


def of_free(answer: str) -> FaultServer:
    """A server that knows the story `FREE`, and gives this answer."""

    def entry(added: list[str], removed: list[str]) -> list[str]:
        return [*(f"+{fact}" for fact in added), *(f"-{fact}" for fact in removed)]

    here = ["in_room(Mina,kitchen)", "in_room(Omar,kitchen)"]
    puts, leaves = FREE.rstrip(".").split(". ")
    replies: dict[str, Any] = {
        "abstract": {f"1 {puts}.": entry([*here, "in(cake,tin)"], []), f"2 {leaves}.": entry([], here[1:])},
        "chain": {"chain": ["Omar"]},
        "observe_states": {"1": here[1], "2": "not_observable"},
        "reduce": {"question": "Where is the cake?"},
        "answer": {"fact": "in(cake,tin)", "answer": answer},
    }
    return FaultServer(usual=lambda body: says(json.dumps(replies[body["response_format"]["json_schema"]["name"]])))


def test_an_answer_that_would_steer_the_terminal_does_not(lab: Lab) -> None:
    with serving(of_free("the \x1b]0;taken\x07tin")) as server:
        ended = ask(lab, "free.txt", "Where will Omar look for the cake?", "--model", "m", "--base-url", server.url)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == "the  ]0;taken tin"
    assert {sign for sign in ended.out if not sign.isprintable()} == {"\n"}


def test_a_story_of_other_grammar_goes_to_the_model_with_its_own_words(lab: Lab) -> None:
    server = of_free("the tin")
    with serving(server):
        ended = ask(lab, "free.txt", "Where will Omar look for the cake?", "--model", "m", "--base-url", server.url)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == "the tin"
    said = {seen.body["response_format"]["json_schema"]["name"]: seen.body for seen in server.requests}
    assert said.keys() == {"abstract", "chain", "observe_states", "reduce", "answer"}
    assert "1 In the kitchen, Mina puts her cake into the tin" in said["abstract"]["messages"][1]["content"]
    assert "asked about the story:\nWhere will Omar look for the cake?\n" in said["abstract"]["messages"][1]["content"]
    assert "Facts: in(cake,tin) in_room(Mina,kitchen)" in said["answer"]["messages"][1]["content"]
    assert "any answer in a few words" in said["answer"]["messages"][1]["content"]


def test_other_rules_give_other_answers(lab: Lab) -> None:
    """Read literally, every claim that is heard convinces."""
    question = "Where does Mina really think the cake is?"
    assert ask(lab, "plain.txt", question, "--rules", "literal").out.splitlines()[-1] == "fridge"
