from __future__ import annotations

import asyncio
import json
import re
from importlib import resources

import pytest

from rectom import grammar, prompts
from rectom.benchmarks.generate import Recipe
from rectom.errors import SettingsError
from rectom.llm import ChatRequest, ModelId
from rectom.perspective import build_global, recurse
from rectom.prompts import Prompt
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS
from rectom.reader.histories import ANSWER, OBSERVE
from rectom.reader.model import PROMPTS, ModelReader
from rectom.reader.updating import STEP
from rectom.rules import PRESETS, Rules
from rectom.schemas import world_facts
from rectom.story import Story
from rectom.task import TASKS
from rectom.words import words_of
from tests.conftest import generated
from tests.laboratory import Scripted, by_rule

NAMES = [name for names in PROMPTS.values() for name in names]
ABLATED = [STEP, OBSERVE, ANSWER]
FOLDER = resources.files("rectom.prompts").joinpath("hitom")

every_prompt = pytest.mark.parametrize(
    ("kind", "name"), [("hitom", name) for name in NAMES] + [(kind, name) for kind in TASKS for name in ABLATED]
)
every_preset = pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)


def requests_of(seed: int, rules: Rules, window: int | None = None) -> list[ChatRequest]:
    """What every step asks about one generated story with claims."""
    rows = generated(Recipe(stories=1, chapters=2, tell=True, max_order=3, seed=seed))
    story = Story.parse(rows[0].story)
    client = Scripted(by_rule)
    reader = ModelReader(Asker(client, ModelId("m"), repairs=0), rules, window=window)

    async def everything() -> None:
        world = build_global(await reader.abstract(story))
        for row in rows:
            chain = await reader.chain(row.question, words_of(story.lines))
            perspectives = await recurse(world, chain, reader)
            reduced = await reader.reduce(row.question, chain)
            await reader.answer(reduced, perspectives[-1].final, row.choices)

    asyncio.run(everything())
    return client.requests


@pytest.fixture(scope="module")
def asked() -> list[ChatRequest]:
    """The requests about several stories by the default rules."""
    return [request for seed in range(4) for request in requests_of(seed, PRESETS["hitom"])]


def test_there_is_a_prompt_for_each_step_and_no_other() -> None:
    files = {file.name.removesuffix(".txt") for file in FOLDER.iterdir() if file.name.endswith(".txt")}
    assert files == {*NAMES, *ABLATED}
    assert tuple(PROMPTS) == STEPS


@every_prompt
def test_every_prompt_has_both_messages_and_what_differs_is_in_the_users(kind: str, name: str) -> None:
    prompt = prompts.load(kind, name)
    assert prompt.system
    assert prompt.user
    assert "===" not in prompt.system + prompt.user
    constant = {"note", "rules"}
    user = Prompt("", "", prompt.user, "").placeholders
    assert user
    assert not user & constant
    assert Prompt("", prompt.system, "", "").placeholders <= constant


@every_prompt
def test_every_prompt_says_json_and_shows_an_example(kind: str, name: str) -> None:
    system = prompts.load(kind, name).system
    assert "Reply with one JSON object and nothing else" in system
    assert re.search(r"xample", system)
    assert len(re.findall(r"^\{", system, re.MULTILINE)) >= 1


def test_every_placeholder_is_filled_and_every_prompt_asked(asked: list[ChatRequest]) -> None:
    assert {request.schema_name for request in asked} == set(NAMES)
    for request in asked:
        for message in request.messages:
            assert "$" not in message.content


@pytest.mark.parametrize("name", NAMES)
def test_the_constant_part_comes_first_and_is_the_same_for_all_stories(name: str, asked: list[ChatRequest]) -> None:
    messages = [request.messages for request in asked if request.schema_name == name]
    assert {tuple(message.role for message in turn) for turn in messages} == {("system", "user")}
    assert len({system.content for system, _ in messages}) == 1
    assert len({user.content for _, user in messages}) > 1


def test_the_same_request_is_written_the_same_way_each_time(asked: list[ChatRequest]) -> None:
    again = [request for seed in range(4) for request in requests_of(seed, PRESETS["hitom"])]
    assert [request.key for request in again] == [request.key for request in asked]


def test_a_prompt_holds_no_more_than_its_step_needs(asked: list[ChatRequest]) -> None:
    for request in asked:
        user = request.messages[1].content
        match request.schema_name:
            case "observe_states":
                assert not re.search(r"\bin\(", user)
            case "answer":
                assert "in_room(" not in user
            case "revise":
                assert "in_room(" not in user


@every_preset
def test_the_rules_of_every_preset_have_words(rules: Rules) -> None:
    for choice in rules.fields():
        said = prompts.in_words(rules, (choice,))
        silent = rules.fields()[choice] is False
        assert bool(said) is not silent
        assert said in prompts.in_words(rules)


def test_equal_windows_are_equal_requests_in_whichever_story_they_stand() -> None:
    lines, keys = set(), set()
    for seed in range(3):
        rows = generated(Recipe(stories=1, chapters=2, tell=True, max_order=3, seed=seed))
        lines |= {line for line in Story.parse(rows[0].story).lines if any(world_facts(words_of([line])))}
        keys |= {request.key for request in requests_of(seed, PRESETS["hitom"], 1) if request.schema_name == "abstract"}
    assert len(keys) == len(lines)


@every_prompt
def test_fields_that_are_missing_or_unknown_are_named(kind: str, name: str) -> None:
    prompt = prompts.load(kind, name)
    fields = dict.fromkeys(prompt.placeholders, "x")
    assert all(prompt.fill(**fields))
    with pytest.raises(SettingsError, match="differ in zebra"):
        prompt.fill(**fields, zebra="x")
    lost = sorted(fields)[0]
    with pytest.raises(SettingsError, match=f"differ in {lost}"):
        prompt.fill(**{field: "x" for field in fields if field != lost})


def test_what_fills_a_prompt_is_not_read_as_a_template() -> None:
    prompt = Prompt("p", "s", "$question", "0")
    assert prompt.fill(question="costs $5, $note")[1] == "costs $5, $note"


def test_digests_tell_prompts_apart() -> None:
    every = [prompts.load("hitom", name).digest for name in [*NAMES, *ABLATED]]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize(("benchmark", "step"), [("hitom", "guess"), ("nosuch", "chain")])
def test_a_prompt_that_does_not_exist_is_named(benchmark: str, step: str) -> None:
    with pytest.raises(SettingsError, match=f"no prompt for the step '{step}' of '{benchmark}'"):
        prompts.load(benchmark, step)


def test_the_examples_of_the_abstraction_are_what_the_grammar_reads() -> None:
    system = prompts.load("hitom", "abstract").system
    (reply,) = re.findall(r"^\{.*\}$", system, re.MULTILINE)
    lines = [line.partition(" ")[2] for line in json.loads(reply)]
    assert len(lines) == 8
    client = Scripted(lambda _step, _request: reply)
    reader = ModelReader(Asker(client, ModelId("m"), repairs=0))
    story = Story("examples", tuple(lines))
    assert asyncio.run(reader.abstract(story)) == grammar.read_story(story)
