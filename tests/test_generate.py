from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings

from rectom import grammar
from rectom.benchmarks import generate as module
from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import VOCABULARIES, Dice, Recipe, generate
from rectom.benchmarks.hitom import Row
from rectom.errors import SettingsError
from rectom.facts import value_of
from rectom.reader.rules import RuleReader
from rectom.story import Story, Vocabulary
from tests.conftest import along, generated, recipes

WORDS = re.compile(r"\w+")


def _by_story(rows: Sequence[Row]) -> list[list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.story].append(row)
    return list(found.values())


@given(recipes())
@settings(max_examples=40)
def test_the_same_recipe_gives_the_same_bytes(recipe: Recipe) -> None:
    assert generate(recipe) == generate(recipe)


def test_the_order_of_sets_does_not_matter() -> None:
    script = "import sys; from rectom.benchmarks.generate import *; sys.stdout.buffer.write(generate(Recipe(3, 3)))"
    written = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert written == [generate(Recipe(3, 3))] * 2


def test_another_seed_gives_other_stories() -> None:
    first, second = ({row.story for row in generated(Recipe(stories=20, seed=seed))} for seed in (0, 1))
    assert len(first) == len(second) == 20
    assert not first & second


def test_a_seed_gives_the_same_draws_on_every_machine() -> None:
    dice = Dice(7)
    assert dice.some("abcdefgh", 8) == list("cbfagedh")
    assert [dice.pick(range(100)) for _ in range(4)] == [3, 43, 6, 9]


@given(recipes())
def test_every_row_is_what_the_recipe_says(recipe: Recipe) -> None:
    rows = generated(recipe)
    assert [row.question_order for row in rows] == list(range(recipe.max_order + 1))
    assert [row.sample_id for row in rows] == list(range(len(rows)))
    assert {(row.deception, row.story_length) for row in rows} == {(recipe.tell, recipe.chapters)}
    assert {row.prompting_type for row in rows} == {"CoTP"}
    assert len({(row.story, row.choices) for row in rows}) == 1
    assert all(len(set(row.choices)) == 15 and row.answer in row.choices for row in rows)


@given(recipes())
def test_every_answer_is_what_the_rules_say(recipe: Recipe) -> None:
    reader = RuleReader()
    for row in generated(recipe):
        chain, thing = grammar.read_question(row.question)
        assert len(chain) == len(set(chain)) == row.question_order
        world = reader.world(Story.parse(row.story))
        assert value_of(along(reader.perspective, world, chain).final, "in", thing) == row.answer


@given(recipes())
def test_chains_are_suffixes_of_one_another_and_ask_for_chapter_1s_object(recipe: Recipe) -> None:
    rows = generated(recipe)
    asked = [grammar.read_question(row.question) for row in rows]
    longest = asked[-1][0]
    assert all(chain == longest[len(longest) - len(chain) :] for chain, _ in asked)
    assert {thing for _, thing in asked} == {_vocabulary(rows).objects[0]}


def _vocabulary(rows: Sequence[Row]) -> Vocabulary:
    return grammar.vocabulary(Story.parse(rows[0].story).lines)


@given(recipes())
def test_the_stories_are_made_of_hitoms_chapters(recipe: Recipe) -> None:
    lines = Story.parse(generated(recipe)[0].story).lines
    entries = [grammar.people(line.split(" entered ")[0]) for line in lines if " entered " in line]
    cast = max(5, recipe.max_order)
    assert [len(people) for people in entries] == [n for n in (cast, 3, 4)[: recipe.chapters] for _ in range(2)]
    assert all(set(people) <= set(entries[0]) for people in entries)
    left = [line.split()[0] for line in lines if " exited " in line]
    assert left == [name for people in entries[::2] for name in people]
    assert all("waiting_room" in line for line in [line for line in lines if " entered " in line][1::2])
    claims = [line for line in lines if " claimed " in line or " told " in line]
    assert len(claims) == (0 if not recipe.tell else 4 if recipe.chapters == 3 else 2)
    if recipe.tell:
        assert list(lines[-2:]) == claims[-2:]


@given(recipes())
def test_a_container_stands_in_one_room(recipe: Recipe) -> None:
    rooms = defaultdict(set)
    room = ""
    for line in Story.parse(generated(recipe)[0].story).lines:
        room = line.split()[-1] if " entered " in line and "waiting_room" not in line else room
        for container in re.findall(r"(?:is in|moved the \w+ to) the (\w+)", line):
            rooms[container].add(room)
    assert all(len(found) == 1 for found in rooms.values())


@pytest.mark.parametrize("wording", ["classic", "now"])
def test_both_wordings(wording: Any) -> None:
    rows = generated(Recipe(stories=20, chapters=3, wording=wording))
    lines = [line for row in rows for line in Story.parse(row.story).lines if " is in " in line]
    assert {line.endswith(" now.") for line in lines} == {wording == "now"}
    public = [line for line in lines if " publicly claimed " in line]
    assert {" claimed that the " in line for line in public} == {wording == "now"}


def test_a_story_that_is_drawn_again_is_not_kept_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = module._draw
    drawn: list[Any] = []

    def stuttering(recipe: Recipe, dice: Dice) -> Any:
        drawn.append(drawn[0] if 0 < len(drawn) < 6 else draw(recipe, dice))
        return drawn[-1]

    monkeypatch.setattr(module, "_draw", stuttering)
    rows = orjson.loads(generate(Recipe(stories=2, max_order=0)))["data"]
    assert len(rows) == len({row["story"] for row in rows}) == 2


def test_fresh_words_occur_nowhere_in_hitom(hitom_file: Path) -> None:
    known = set(WORDS.findall(hitom_file.read_text().casefold()))
    fresh = VOCABULARIES["fresh"]
    words = [*fresh.names, *fresh.rooms, *fresh.objects, *fresh.containers, *fresh.animals, *fresh.belongings]
    parts = {part for word in words for part in word.casefold().split("_")}
    assert len(words) == len(set(words))
    assert not {word.casefold() for word in words} & known
    assert not parts & {part for word in known for part in word.split("_")}


def test_fresh_stories_use_fresh_words() -> None:
    rows = generated(Recipe(stories=20, chapters=3, vocabulary="fresh"))
    words, fresh = _vocabulary(rows), VOCABULARIES["fresh"]
    assert set(words.characters) <= set(fresh.names)
    assert set(words.rooms) <= {*fresh.rooms, "waiting_room"}
    assert set(words.objects) <= set(fresh.objects)
    assert set(words.containers) <= set(fresh.containers)


def test_hitoms_own_words_are_all_of_hitoms(cotp: Benchmark) -> None:
    words = grammar.vocabulary(line for story in cotp.stories for line in story.lines)
    ours = VOCABULARIES["hitom"]
    assert set(ours.names) == set(words.characters)
    assert set(ours.rooms) == set(words.rooms) - {"waiting_room"}
    assert set(ours.containers) == {option for question in cotp.questions for option in question.choices}
    assert set(words.objects) <= set(ours.objects)


@pytest.mark.parametrize("tell", [False, True])
@pytest.mark.parametrize("chapters", [1, 2, 3])
def test_stories_tell_the_orders_apart(chapters: int, tell: bool) -> None:
    stories = _by_story(generated(Recipe(stories=60, chapters=chapters, tell=tell)))
    assert len(stories) == 60
    answers = [[row.answer for row in rows] for rows in stories]
    for order in (1, 2, 3, 4):
        assert 0.4 < sum(found[order] != found[0] for found in answers) / 60 < 1, order
    changes = [sum(found[order] != found[order - 1] for found in answers) / 60 for order in (2, 3, 4)]
    assert all(share > least for share, least in zip(changes, (0.3, 0.15, 0.05), strict=True)), changes


def test_noise_moves_and_claims_are_as_frequent_as_in_hitom(cotp: Benchmark) -> None:
    made = [
        line
        for tell in (False, True)
        for chapters in (1, 2, 3)
        for rows in _by_story(generated(Recipe(stories=60, chapters=chapters, tell=tell)))
        for line in Story.parse(rows[0].story).lines
    ]
    real = [line for story in cotp.stories for line in story.lines]
    for word in ("entered", "moved", "movements", "exited", "publicly", "privately", "likes", "lost"):
        shares = [sum(word in line for line in lines) / len(lines) for lines in (made, real)]
        assert shares[0] == pytest.approx(shares[1], rel=0.35), word


def test_letters_are_evenly_right() -> None:
    rows = generated(Recipe(stories=60))
    letters = Counter(row.choices.index(row.answer) for row in rows)
    assert len(letters) == 15
    assert max(letters.values()) < 60


def test_a_generated_file_loads(tmp_path: Path) -> None:
    file = tmp_path / "made.json"
    file.write_bytes(generate(Recipe(stories=9, chapters=3, max_order=8)))
    benchmark = hitom.load(file, "cotp")
    assert (len(benchmark.stories), len(benchmark.questions)) == (9, 81)
    assert benchmark.warnings == ()
    assert len({story.lines for story in benchmark.stories}) == 9


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stories", 0),
        ("chapters", 0),
        ("chapters", 4),
        ("max_order", -1),
        ("max_order", 9),
        ("seed", -1),
        ("vocabulary", "old"),
        ("wording", "new"),
    ],
)
def test_a_recipe_that_makes_no_story_is_refused(field: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"cannot generate such stories; choose {field}: "):
        Recipe(**{field: value})
