"""The rule reader of ToMi: what its rules make of made-up stories, and of the published labels."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from rectom.benchmarks.base import Benchmark
from rectom.errors import StepFailure
from rectom.facts import EMPTY, inside
from rectom.grammars.tomi import began_in, vocabulary
from rectom.llm import ModelId
from rectom.perspective import Perspective, build_global, recurse
from rectom.reader.asking import Asker
from rectom.reader.base import Reader
from rectom.reader.model import ModelReader
from rectom.reader.rules import RuleReader
from rectom.reader.tomi import GRAMMAR, TomiModelReader, TomiReader
from rectom.rules import PRESETS, Rules
from rectom.story import Story
from tests.laboratory import Scripted, by_rule
from tests.test_tomi import TYPES, opened

HOME = ("Zoe entered the shed.", "Kai entered the shed.", "The hat is in the urn.")
AWAY = (*HOME, "Zoe exited the shed.", "Kai moved the hat to the jar.")


async def answered(benchmark: Benchmark, reader: Reader) -> Counter[str]:
    """How many questions of each type the reader answers as labelled, every step its own."""
    words = {story.id: vocabulary(story.lines) for story in benchmark.stories}
    worlds = {story.id: build_global(await reader.abstract(story)) for story in benchmark.stories}
    right: Counter[str] = Counter()
    for question in benchmark.questions:
        chain = await reader.chain(question.text, words[question.story_id])
        last = (await recurse(worlds[question.story_id], chain, reader))[-1]
        reduced = await reader.reduce(question.text, chain)
        answer = await reader.answer(reduced, last.final, question.choices)
        right[question.group] += answer == question.gold
    return right


def right(subset: str, rules: Rules = PRESETS["hitom"]) -> Counter[str]:
    return asyncio.run(answered(opened(subset), TomiReader(rules)))


def place(lines: Sequence[str], *chain: str) -> str:
    """Where the last of the chain is thought to look for the hat."""
    reader = TomiReader()
    last: Perspective = reader.world(Story("s", tuple(lines)))
    for name in chain:
        last = reader.perspective(last, name)
    return asyncio.run(reader.answer("Where is the hat really?", last.final, ("urn", "jar")))


def test_who_is_away_misses_the_move() -> None:
    assert place(AWAY, "Zoe") == "urn"
    assert place(AWAY, "Kai") == "jar"
    assert place(AWAY, "Kai", "Zoe") == place(AWAY, "Zoe", "Kai") == "urn"


def test_who_comes_back_sees_what_is_there() -> None:
    back = (*AWAY, "Zoe entered the shed.")
    assert place(back, "Zoe") == place(back, "Kai", "Zoe") == place(back, "Zoe", "Kai") == "jar"


def test_who_comes_back_alone_does_not_change_what_the_two_think_of_each_other() -> None:
    alone = (*AWAY, "Kai exited the shed.", "Zoe entered the shed.")
    assert place(alone, "Zoe") == "jar"
    assert place(alone, "Kai", "Zoe") == place(alone, "Zoe", "Kai") == "urn"


def test_another_room_shows_nothing() -> None:
    assert place((*AWAY, "Zoe entered the loft."), "Zoe") == "urn"
    assert (
        place((*AWAY, "Zoe entered the loft.", "Kai exited the shed.", "Kai entered the loft."), "Zoe", "Kai") == "urn"
    )


def test_somebody_else_who_enters_another_room_does_not_move_the_containers() -> None:
    """The room entered last before the hat is put into its containers is the loft."""
    lines = (*HOME[:2], "Pat entered the loft.", HOME[2], "Kai moved the hat to the jar.")
    assert TomiReader().world(Story("s", lines)).setting.places == {"urn": "shed", "jar": "shed"}
    assert place(lines, "Zoe") == "jar"
    told = (*HOME, "The urn is in the shed.", "Pat entered the loft.")
    assert TomiReader().world(Story("s", told)).setting.places == {"urn": "shed"}


def test_the_thousand_by_type() -> None:
    expected = dict.fromkeys([*TYPES, "first_order_0_tom"], 100) | {"first_order_1_no_tom": 99}
    assert right("1000") == expected


def test_the_authors_file_by_type() -> None:
    assert right("test") == TYPES | {"second_order_0_no_tom": 492, "second_order_1_no_tom": 492}


@pytest.mark.parametrize(("rules", "of_1000"), [("literal", 830), ("room-scope", 974), ("hitom", 999)])
def test_each_rule_earns_its_labels(rules: str, of_1000: int) -> None:
    assert right("1000", PRESETS[rules]).total() == of_1000


@pytest.mark.parametrize("chain", [(), ("Zoe",)])
def test_the_beginning_is_answered_from_the_final_state(chain: tuple[str, ...]) -> None:
    reader = TomiReader()
    world = reader.world(Story("s", AWAY))
    question = "Where was the hat at the beginning?"
    assert asyncio.run(reader.reduce(question, chain)) == question
    assert asyncio.run(reader.answer(question, world.final, ("urn", "jar"))) == "urn"


def test_what_the_state_does_not_say_is_a_failure() -> None:
    reader = TomiReader()
    with pytest.raises(StepFailure, match="the final state does not say where the hat is"):
        asyncio.run(reader.answer("Where is the hat really?", frozenset({began_in("hat", "urn")}), ()))
    with pytest.raises(StepFailure, match="does not say where the hat"):
        asyncio.run(reader.answer("Where was the hat at the beginning?", frozenset({inside("hat", "urn")}), ()))
    with pytest.raises(StepFailure, match="the hat is in the urn, which is not an option"):
        asyncio.run(reader.answer("Where is the hat really?", EMPTY | {inside("hat", "urn")}, ("jar", "box")))


def test_its_results_are_not_those_of_another_grammar() -> None:
    for step in ("abstract", "chain", "observe", "answer"):
        assert TomiReader().fields(step) == {**RuleReader().fields(step), "grammar": GRAMMAR}
        assert TomiModelReader(asker := Asker(Scripted(by_rule), ModelId("m"))).fields(step) == {
            **ModelReader(asker).fields(step),
            "grammar": GRAMMAR,
        }
