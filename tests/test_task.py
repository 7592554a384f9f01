from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from rectom import prompts
from rectom.errors import DataError, SettingsError
from rectom.llm import ChatRequest, ModelId
from rectom.perspective import build_global, recurse
from rectom.prompts import Prompt
from rectom.reader.asking import Asker
from rectom.reader.base import STEPS
from rectom.reader.dialogue import DialogueReader, DialogueRules
from rectom.reader.model import ModelReader
from rectom.reader.perception import unsettled
from rectom.reader.rules import RuleReader
from rectom.reader.silences import acts
from rectom.reader.story import StoryReader, StoryRules
from rectom.reader.tomi import TomiModelReader, TomiReader
from rectom.rules import PRESETS, Scope
from rectom.story import Story
from rectom.task import TASKS, in_view, task
from tests import cases
from tests.laboratory import Scripted, by_rule

#: The prompts of each kind of text, by its folder.
NAMES = {
    "hitom": {"abstract", "chain", "observe_states", "observe_events", "revise", "reduce", "answer"},
    "tomi": {"abstract", "chain", "observe_states", "observe_events", "revise", "reduce", "answer"},
    "story": {"abstract", "chain", "observe_states", "observe_events", "revise", "reduce", "answer"},
    "dialogue": {"abstract", "chain", "observe_states", "reduce", "answer"},
}

every_task = pytest.mark.parametrize("name", TASKS)
every_kind_of_case = pytest.mark.parametrize("name", cases.KINDS)
every_prompt = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ("story", "dialogue") for name in sorted(NAMES[kind])]
)


async def requests_of(kind: str) -> list[ChatRequest]:
    """What every step asks about the cases of a kind."""
    client, described = Scripted(by_rule), TASKS[kind]
    asker = Asker(client, ModelId("m"), benchmark=described.prompts, repairs=0)
    reader = described.by_model(asker, described.rules, None)
    for case in cases.of_kind(kind):
        world = build_global(await reader.abstract(case.story))
        chain = await reader.chain(case.question, described.words(case.lines))
        perspectives = await recurse(world, chain, reader)
        await reader.answer(await reader.reduce(case.question, chain), perspectives[-1].final, case.choices)
    return client.requests


@pytest.mark.parametrize(
    ("name", "asked"), [("story", True), ("hitom", False), ("tomi", False), ("dialogue", False), ("", False)]
)
def test_natural_stories_are_read_with_the_questions_in_view(name: str, asked: bool) -> None:
    benchmark = replace(cases.benchmark("story"), task=name)
    assert all(bool(story.asked) is asked for story in in_view(benchmark).stories)


@every_task
def test_a_task_has_readers_of_its_kind(name: str) -> None:
    described = task(name)
    kinds = {
        "hitom": (RuleReader, ModelReader, PRESETS["hitom"]),
        "tomi": (TomiReader, TomiModelReader, PRESETS["hitom"]),
        "story": (StoryRules, StoryReader, None),
        "dialogue": (DialogueRules, DialogueReader, None),
    }
    rules, model, usual = kinds[name]
    client = Scripted(by_rule)
    by_model = described.by_model(Asker(client, ModelId("m"), benchmark=described.prompts), described.rules, None)
    assert type(described.by_rule(described.rules)) is rules
    assert type(by_model) is model
    assert by_model.rules == described.by_rule(described.rules).rules == described.rules
    assert usual is None or described.rules == usual
    assert (described.rules.scope is Scope.PRESENCE) == (name in {"story", "dialogue"})


@every_task
def test_every_step_has_fields_so_that_its_results_can_be_kept(name: str) -> None:
    described = task(name)
    asker = Asker(Scripted(by_rule), ModelId("m"), benchmark=described.prompts)
    for reader in (described.by_rule(described.rules), described.by_model(asker, described.rules, None)):
        assert all(reader.fields(step)["by"] in {"rules", "model"} for step in STEPS)


@every_task
def test_other_rules_reach_both_readers(name: str) -> None:
    described, rules = task(name), PRESETS["literal"]
    asker = Asker(Scripted(by_rule), ModelId("m"), benchmark=described.prompts)
    assert described.by_rule(rules).rules == described.by_model(asker, rules, None).rules == rules


@pytest.mark.parametrize("name", ["poem", "HiToM"])
def test_an_unknown_kind_is_named_with_what_to_do(name: str) -> None:
    with pytest.raises(DataError, match=f"of the kinds {', '.join(TASKS)}, not '{name}': choose another --method"):
        task(name)
    with pytest.raises(DataError, match=r"these questions ask for no belief .*: choose a --method such as cot"):
        task("")


@every_kind_of_case
async def test_every_prompt_of_a_task_is_asked(name: str) -> None:
    assert {request.schema_name for request in await requests_of(name)} == NAMES[name]


@every_task
def test_there_is_a_prompt_for_all_that_a_task_asks(name: str) -> None:
    assert prompts.digests(task(name).prompts).keys() >= NAMES[name]
    assert len({prompts.load(task(name).prompts, step).digest for step in NAMES[name]}) == len(NAMES[name])


@every_kind_of_case
async def test_every_placeholder_is_filled_and_the_constant_part_comes_first(name: str) -> None:
    asked = await requests_of(name)
    assert not [message for request in asked for message in request.messages if "$" in message.content]
    for step in NAMES[name]:
        turns = [request.messages for request in asked if request.schema_name == step]
        assert {tuple(message.role for message in turn) for turn in turns} == {("system", "user")}
        assert len({system.content for system, _ in turns}) == 1
        # The one claim of Hi-ToM's case reaches one hearer.
        assert len({user.content for _, user in turns}) > (0 if (name, step) == ("hitom", "revise") else 1)


@every_prompt
def test_what_differs_is_in_the_users_message_alone(kind: str, name: str) -> None:
    prompt = prompts.load(kind, name)
    assert "===" not in prompt.system + prompt.user
    assert not Prompt("", prompt.system, "", "").placeholders
    assert Prompt("", "", prompt.user, "").placeholders


@every_prompt
def test_every_prompt_says_json_and_shows_an_example(kind: str, name: str) -> None:
    system = prompts.load(kind, name).system
    assert "Reply with one JSON object and nothing else" in system
    assert re.search(r"xample", system)
    assert len(re.findall(r"^\{", system, re.MULTILINE)) >= 1


@every_prompt
def test_fields_that_are_missing_or_unknown_are_named(kind: str, name: str) -> None:
    prompt = prompts.load(kind, name)
    fields = dict.fromkeys(prompt.placeholders, "x")
    assert all(prompt.fill(**fields))
    with pytest.raises(SettingsError, match="differ in zebra"):
        prompt.fill(**fields, zebra="x")


async def test_the_example_of_the_storys_abstraction_is_a_reply() -> None:
    system = prompts.load("story", "abstract").system
    first, second = re.findall(r"^\{.*\}$", system, re.MULTILINE)
    assert await _read(second) == [
        "-",
        "-",
        "+is(oven,hot_and_dry)",
        "+is(oven,cold_and_flooded) -is(oven,hot_and_dry)",
        "misses(Cid,is(oven,cold_and_flooded))",
    ]
    assert await _read(first) == [
        "-",
        "+contains(can,rain_water)",
        "+contains(can,lemonade) -contains(can,rain_water)",
        "misses(Ada,contains(can,lemonade))",
        "perceives(Ben,contains(can,lemonade))",
        "private_tell(Ben,Ada,contains(can,ink))",
    ]


async def test_the_example_of_the_storys_events_is_what_the_rules_say() -> None:
    system = prompts.load("story", "observe_events").system
    events = re.findall(r"^\d+ ([^|\n]*) \|", system, re.MULTILINE)
    [reply] = re.findall(r"^\{\"2\".*\}$", system, re.MULTILINE)
    [asked] = re.findall(r"^Asked about: (.*)$", system, re.MULTILINE)
    world = build_global(list(map(cases.event, events)))
    able = await StoryRules().observability(world, "Ada")
    assert [step + 1 for step in unsettled(world, "Ada")] == list(map(int, asked.split(", ")))
    said = re.findall(r'"(\d+)": "(\w+)"', reply)
    assert said == [(n, "observable" if able.events[int(n) - 1] else "not_observable") for n in asked.split(", ")]
    # The example must not be of what is the same for everyone.
    assert {value for _, value in said} == {"observable", "not_observable"}


async def test_the_example_of_the_dialogues_abstraction_is_a_reply() -> None:
    system = prompts.load("dialogue", "abstract").system
    lines = tuple(re.findall(r"^\d+ (\w+: .*)$", system, re.MULTILINE))
    [reply] = re.findall(r"^\{\"1 Ada.*\}$", system, re.MULTILINE)
    [asked] = re.findall(r"^Asked about: (.*)$", system, re.MULTILINE)
    assert asked == ", ".join(map(str, acts(lines)))
    world = build_global(await DialogueReader(_asker("dialogue", reply)).abstract(Story("example", lines)))
    assert [len(state) for state in world.presence()] == [2, 2, 2, 2, 2, 3, 3, 4, 4, 4]


def _asker(kind: str, reply: str) -> Asker:
    return Asker(Scripted(lambda _step, _request: reply), ModelId("m"), benchmark=kind, repairs=0)


async def _read(reply: str) -> list[str]:
    """The events that an example of the story's abstraction states."""
    lines = tuple(line.partition(" ")[2] for line in json.loads(reply))
    return list(map(str, await StoryReader(_asker("story", reply)).abstract(Story("examples", lines))))
