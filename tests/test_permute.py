from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rectom import grammar
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import VOCABULARIES, Recipe
from rectom.benchmarks.permute import KINDS, NAMES, permute
from rectom.benchmarks.registry import adapter
from rectom.errors import DataError, SettingsError
from rectom.facts import value_of
from rectom.grammars import tomi
from rectom.reader.rules import RuleReader
from rectom.story import Question, Story
from tests.conftest import along, generated, recipes, remembered
from tests.published import published

TOKEN = re.compile(r"[\w-]+")
POOL = [name for names in NAMES.values() for name in names]
CONTAINERS = {container for words in VOCABULARIES.values() for container in words.containers}


def _open(name: str, subset: str) -> Benchmark:
    try:
        return adapter(name).open(subset, published(name))
    except DataError as error:
        pytest.skip(str(error))


def _made(recipe: Recipe) -> Benchmark:
    rows = generated(recipe)
    story = Story.parse(rows[0].story, "made")
    asked = [Question(str(r.sample_id), "made", r.question, r.choices, r.answer, r.question_order) for r in rows]
    return Benchmark("hitom", "made", (story,), tuple(asked))


def _dialogue(lines: Sequence[str], question: str = "What does Ann believe?", *choices: str) -> Benchmark:
    asked = Question("q", "s", question, choices or ("yes", "no"), (choices or ("yes",))[0])
    return Benchmark("fantom", "made", (Story("s", tuple(lines)),), (asked,), task="dialogue")


def _situation(text: str, question: str, *choices: str) -> Benchmark:
    asked = Question("q", "s", question, choices, choices[0])
    return Benchmark("bigtom", "made", (Story.parse(text, "s"),), (asked,), task="story")


def _changes(plain: Benchmark, other: Benchmark, token: re.Pattern[str] = TOKEN) -> list[dict[str, str]]:
    """What each token of a story and its questions became, a story at a time; it is one and the same everywhere."""
    found = []
    for before, after in zip(plain.stories, other.stories, strict=True):
        pairs = list(zip(before.lines, after.lines, strict=True))
        for old, new in zip(plain.of_story(before.id), other.of_story(after.id), strict=True):
            assert new.story_id == after.id
            pairs += [(old.text, new.text), *zip(old.choices, new.choices, strict=True)]
            pairs += [(old.gold, new.gold)] if old.gold and new.gold else []
        became: dict[str, str] = {}
        for one, another in pairs:
            for word, new_word in zip(token.findall(one), token.findall(another), strict=True):
                assert became.setdefault(word, new_word) == new_word, (one, another)
        found.append(became)
    return found


def _changed(became: dict[str, str]) -> dict[str, str]:
    return {old: new for old, new in became.items() if old != new}


# --- The order of options


@given(st.integers(0, 9), st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_options_stand_in_another_order_and_the_gold_stays_right(seed: int, sizes: list[int]) -> None:
    questions = [
        Question(f"q{n}", "s", "Where?", tuple(f"place {i}" for i in range(size)), "place 0" if size else None)
        for n, size in enumerate(sizes)
    ]
    plain = Benchmark("socialiqa", "dev", (Story("s", ("A line.",)),), tuple(questions), task="")
    other = permute(plain, {"choices"}, seed)
    assert other.stories == (Story(f"s+choices.{seed}", ("A line.",)),)
    for old, new in zip(plain.questions, other.questions, strict=True):
        assert new == replace(old, id=new.id, story_id=new.story_id, choices=new.choices)
        assert sorted(new.choices) == sorted(old.choices)
        assert (new.choices != old.choices) == (len(old.choices) > 1)


def test_the_order_of_a_questions_options_hangs_on_seed_and_question_alone(cotp: Benchmark) -> None:
    whole = {q.id: q.choices for q in permute(cotp, {"choices"}, 7).questions}
    assert {q.id: q.choices for q in permute(cotp.first(7), {"choices"}, 7).questions}.items() <= whole.items()
    both = {q.gold: q.choices for q in permute(cotp.first(1), ["names", "choices"], 7).questions}
    assert both == {q.gold: q.choices for q in permute(cotp.first(1), ["choices"], 7).questions}
    other = permute(cotp, {"choices"}, 8)
    assert sum(new.choices != old for new, old in zip(other.questions, whole.values(), strict=True)) > 590


def test_right_options_stand_everywhere(cotp: Benchmark) -> None:
    places = [q.choices.index(q.gold or "") for q in permute(cotp, {"choices"}, 0).questions]
    assert set(places) == set(range(15))
    assert max(map(places.count, range(15))) < 80


# --- What every permuting keeps


@given(st.sets(st.sampled_from(KINDS), min_size=1), st.integers(0, 9))
@settings(max_examples=20)
def test_a_permuted_benchmark_has_names_of_its_own(what: set[str], seed: int) -> None:
    plain = _made(Recipe(stories=1))
    other = permute(plain, what, seed)
    mark = "".join(f"+{kind}.{seed}" for kind in KINDS if kind in what)
    assert other.subset == f"made{mark}"
    assert [story.id for story in other.stories] == [f"made{mark}"]
    assert [(q.id, q.order) for q in other.questions] == [(f"{q.id}{mark}", q.order) for q in plain.questions]
    assert (other.name, other.note, other.task, other.scoring) == (plain.name, plain.note, plain.task, plain.scoring)
    digests = {permute(plain, {kind}, s).digest for kind in KINDS for s in (1, 2)} | {plain.digest}
    assert len(digests) == 7
    assert len({other.digest, permute(replace(plain, digest="another file"), what, seed).digest}) == 2


def test_nothing_permuted_is_the_benchmark_itself() -> None:
    plain = _made(Recipe(stories=1))
    assert permute(plain, (), 7) is plain


@given(recipes(), st.sets(st.sampled_from(KINDS)), st.integers(0, 99))
@settings(max_examples=20)
def test_permuting_is_deterministic(recipe: Recipe, what: set[str], seed: int) -> None:
    assert permute(_made(recipe), what, seed) == permute(_made(recipe), sorted(what, reverse=True), seed)


def test_the_order_of_sets_does_not_matter() -> None:
    script = (
        "from rectom.benchmarks.permute import *\n"
        "lines = ('Ann: Hi Ben, Cy and Deb!', 'Ben: Hello.', 'Cy: Ann, he and she?', 'Deb: Vic, Ann.', 'Victor: Yes')\n"
        "q = Question('q', 's', 'What does Ann believe?', ('Ben', 'Cyy', 'Deborah'))\n"
        "print(permute(Benchmark('x', 'y', (Story('s', lines * 2),), (q,), task='dialogue'), {'names', 'choices'}, 3))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(printed)) == 1
    assert b"names.3" in printed[0]


@pytest.mark.parametrize(
    ("what", "name", "task", "message"),
    [
        ("rooms", "hitom", "hitom", "cannot permute 'rooms'; choose from choices, names, containers"),
        ("containers", "bigtom", "story", "no grammar tells the containers of bigtom; .* hitom, tomi"),
        ("containers", "fantom", "dialogue", "no grammar tells the containers of fantom"),
        ("names", "socialiqa", "", "cannot tell the names of people in socialiqa; .* hitom, tomi, bigtom and fantom"),
        ("names", "opentom", "story", "cannot tell the names of people in opentom"),
        ("names", "hitom", "hitom", "cannot permute the words of story s, which follows no grammar: .*'It rained.'"),
    ],
)
def test_what_cannot_be_permuted(what: str, name: str, task: str, message: str) -> None:
    plain = Benchmark(name, "x", (Story("s", ("It rained.",)),), (), task=task)
    with pytest.raises(SettingsError, match=message):
        permute(plain, [what], 0)


def test_more_people_than_names_and_more_containers_than_known() -> None:
    crowd = [f"{a}{b}{c}" for a in "BCDF" for b in "aeiou" for c in "lmnrstv"]
    entered = (f"{', '.join(crowd)} and Zed entered the hall.",)
    with pytest.raises(SettingsError, match="more people"):
        permute(Benchmark("hitom", "x", (Story("s", entered),), ()), ["names"], 0)
    lines = tuple(f"The thing{n} is in the urn{n}." for n in range(len(CONTAINERS) + 1))
    with pytest.raises(SettingsError, match=f"has {len(lines)} containers, more than the {len(CONTAINERS)} other"):
        permute(Benchmark("hitom", "x", (Story("s", lines),), ()), ["containers"], 0)


# --- Controlled stories


@given(recipes(), st.integers(0, 99))
def test_names_and_containers_are_exchanged_and_nothing_else(recipe: Recipe, seed: int) -> None:
    plain = _made(recipe)
    words = grammar.vocabulary(plain.stories[0].lines)
    for what in (["names"], ["containers"], ["names", "containers"]):
        (became,) = _changes(plain, permute(plain, what, seed))
        changed = _changed(became)
        options = {option for question in plain.questions for option in question.choices}
        assert set(words.characters if "names" in what else ()) <= set(changed)
        assert (options if "containers" in what else set()) <= set(changed)
        assert not set(changed) & {*words.rooms, *words.objects}
        assert all(old[0].isupper() or old in CONTAINERS for old in changed)
        assert all(new in (POOL if old[0].isupper() else CONTAINERS) for old, new in changed.items())
        assert len(set(changed.values())) == len(changed)
        assert not set(changed.values()) & set(became)


@pytest.mark.parametrize("what", [["names"], ["containers"], ["names", "containers"]])
def test_rules_read_permuted_stories_as_they_read_the_others(cotp: Benchmark, what: list[str]) -> None:
    plain = replace(cotp, questions=cotp.questions[::7])
    other = permute(plain, what, 7)
    given_answers = [_by_rule(benchmark) for benchmark in (plain, other)]
    became = _changes(plain, other)
    places = {story.id: place for place, story in enumerate(plain.stories)}
    for question, answer, new in zip(plain.questions, *given_answers, strict=True):
        assert new == (answer and became[places[question.story_id]][answer])
    right = [
        [answer == question.gold for question, answer in zip(benchmark.questions, answers, strict=True)]
        for benchmark, answers in zip((plain, other), given_answers, strict=True)
    ]
    assert right[0] == right[1]
    assert 80 < sum(right[0]) < len(plain.questions)


def _by_rule(benchmark: Benchmark) -> list[str | None]:
    construct = remembered(RuleReader().perspective)
    worlds = {story.id: RuleReader().world(story) for story in benchmark.stories}
    answers = []
    for question in benchmark.questions:
        chain, thing = grammar.read_question(question.text)
        answers.append(value_of(along(construct, worlds[question.story_id], chain).final, "in", thing))
    return answers


@pytest.mark.parametrize("what", ["names", "containers"])
@pytest.mark.parametrize(("name", "subset"), [("hitom", "cotp"), ("tomi", "1000")])
def test_no_permuted_story_is_one_of_the_benchmark(name: str, subset: str, what: str) -> None:
    plain = _open(name, subset)
    other = permute(plain, [what], 7)
    assert not {story.lines for story in plain.stories} & {story.lines for story in other.stories}
    assert all(len(set(question.choices)) == len(question.choices) for question in other.questions)


def test_tomi_keeps_what_its_grammar_reads() -> None:
    plain = _open("tomi", "1000")
    other = permute(plain, ["names", "containers"], 7)
    for before, after, became in zip(plain.stories, other.stories, _changes(plain, other), strict=True):
        old, new = tomi.vocabulary(before.lines), tomi.vocabulary(after.lines)
        assert new.rooms == old.rooms
        assert set(new.objects) == set(old.objects)
        assert set(new.containers) == {became[container] for container in old.containers}
        assert set(new.characters) == {became[person] for person in old.characters}
        assert all(became[container] != container for container in set(old.containers) - set(old.rooms))
        assert all(became[person] != person for person in old.characters)


def test_a_room_that_is_a_container_stays_and_so_do_likes_of_other_things() -> None:
    lines = (
        "Mila likes the pantry.",
        "Owen entered the pantry.",
        "The peas is in the pantry.",
        "Owen likes the peas.",
        "Owen moved the peas to the red_box.",
        "Mila likes the blue_crate.",
        "Mila saw a cat.",
    )
    question = Question("q", "s", "Where is the peas really?", ("pantry", "red_box"), "red_box")
    other = permute(Benchmark("hitom", "x", (Story("s", lines),), (question,)), ["names", "containers"], 1)
    text = other.stories[0].lines
    mila, owen = text[0].split()[0], text[1].split()[0]
    box, crate = text[4].split()[-1].strip("."), text[5].split()[-1].strip(".")
    assert {mila, owen} <= set(POOL)
    assert {box, crate} <= CONTAINERS - {"red_box", "blue_crate"}
    assert text == tuple(
        line.replace("Mila", mila).replace("Owen", owen).replace("red_box", box).replace("blue_crate", crate)
        for line in lines
    )
    assert other.questions[0].choices == ("pantry", box)
    assert other.questions[0].gold == box


# --- Conversations


def _speakers(benchmark: Benchmark) -> list[str]:
    return list(dict.fromkeys(line.split(":")[0] for line in benchmark.stories[0].lines))


def _renamed(lines: Sequence[str], *old: str) -> tuple[list[str], Callable[[str], str]]:
    """A conversation of those who speak with new names, and what a text with the old ones reads then."""
    lines = [*lines, *(f"{name}: So be it." for name in old), *(f"{name}: Yes." for name in old)]
    other = permute(_dialogue(lines), ["names"], 5)
    names = dict(zip(_speakers(_dialogue(lines)), _speakers(other), strict=True))
    assert set(map(names.get, old)) <= set(POOL)

    def expected(text: str) -> str:
        return re.sub(r"<(\w+)>", lambda name: names[name[1]], text)

    return list(other.stories[0].lines), expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Anna: Hi Hope!", "<Anna>: Hi <Hope>!"),
        ("Hope: Hope you are well, Anna.", "<Hope>: Hope you are well, <Anna>."),
        ("Anna: I hope so. Hope, what is Hope's idea?", "<Anna>: I hope so. <Hope>, what is <Hope>'s idea?"),
        ("Anna: The Hope is gone. Hope and I saw it.", "<Anna>: The Hope is gone. <Hope> and I saw it."),
        ("Paris: I moved to Paris in May.", "<Paris>: I moved to Paris in May."),
        ("Anna: Paris’s view of Paris, you know.", "<Anna>: <Paris>’s view of <Paris>, you know."),
        ("Anna: As in Paris's case, I gave it to Paris.", "<Anna>: As in <Paris>'s case, I gave it to <Paris>."),
        ("Miles: Miles' walk was miles long.", "<Miles>: <Miles>{} walk was miles long."),
        ("Anna: 'Hope' is a name.", "<Anna>: '<Hope>' is a name."),
        ("Anna & Miles: Bye.", "<Anna> & <Miles>: Bye."),
        ("Anna, Miles and Hope: Bye, Paris.", "<Anna>, <Miles> and <Hope>: Bye, <Paris>."),
        ("All: Annas, Annabel and Anna-Lena, joanna.", "All: Annas, Annabel and Anna-Lena, joanna."),
        ("Anna: I like Anna Karenina.", "<Anna>: I like Anna Karenina."),
        ("Anna: We heard Rosa Miles sing.", "<Anna>: We heard Rosa Miles sing."),
        ("Anna: Oh. Hello Miles I said.", "<Anna>: Oh. Hello <Miles> I said."),
        ("Anna: I was in Georgia, PARIS or HOPE.", "<Anna>: I was in Georgia, PARIS or HOPE."),
        ("Paris: ANNA!", "<Paris>: {}!"),
    ],
)
def test_names_in_conversations(line: str, expected: str) -> None:
    lines, renamed = _renamed([line], "Anna", "Hope", "Paris", "Miles")
    miles = renamed("<Miles>")
    fill = renamed("<Anna>").upper() if "ANNA" in line else "'" if miles.endswith("s") else "'s"
    assert lines[0] == renamed(expected).format(fill)


def test_misspelt_names_nicknames_and_slips_mean_the_same_person() -> None:
    said = ["Micheal: Hi.", "Micheal: Yes, Vic, so it is.", "Victor: No.", "Victor: Vic it is.", "Micheel: Bye."]
    other = permute(
        _dialogue(said, "What does Michael believe about Victor?", "Michael believes it.", "Michael Jordan does."),
        ["names"],
        2,
    )
    one, two = _speakers(other)
    assert {one, two} <= set(POOL)
    assert other.stories[0].lines == (
        f"{one}: Hi.",
        f"{one}: Yes, {two}, so it is.",
        f"{two}: No.",
        f"{two}: {two} it is.",
        f"{one}: Bye.",
    )
    assert other.questions[0].text == f"What does {one} believe about {two}?"
    assert other.questions[0].choices == (f"{one} believes it.", "Michael Jordan does.")


def test_alike_names_of_two_people_stay_two() -> None:
    said = ["Marina: Hi.", "Marisa: Hi.", "Marina: How are you, Marisa?", "Marisa: Well. My big sister Mariza is ill."]
    other = permute(_dialogue(said), ["names"], 2)
    assert len(set(_speakers(other))) == 2
    assert other.stories[0].lines[-1].endswith("My big sister Mariza is ill.")


def test_who_is_only_asked_about_has_a_new_name_as_well() -> None:
    said = ["Ann: Hi.", "Ben: Zoe is late.", "Ann: So she is, Ben.", "Ben: Ann!"]
    other = permute(_dialogue(said, "What does Zoe believe?", "Zoe believes nothing.", "no"), ["names"], 2)
    zoe = other.questions[0].text.split()[2]
    assert zoe in set(POOL) - set(_speakers(other))
    assert other.stories[0].lines[1].endswith(f": {zoe} is late.")
    assert other.questions[0].gold == f"{zoe} believes nothing."


def test_names_go_with_the_pronouns_of_the_questions() -> None:
    said = ["Ann: Hi.", "Ben: Hi.", "Cy: Hi.", "Ann: Yes.", "Ben: Yes.", "Cy: Yes."]
    asked = (
        "Ann does not know, as she was not there. Ann thinks that Cy has his own bag, his own hat and his own coat.",
        "Ben does not know, as he was not there.",
    )
    for seed in range(9):
        names = _speakers(permute(_dialogue(said, "What does Ann believe?", *asked), ["names"], seed))
        assert [name in NAMES[kind] for name, kind in zip(names, ("she", "he", "either"), strict=True)] == [True] * 3


@pytest.mark.parametrize("subset", ["324", "324-full"])
def test_fantom_has_other_names_and_is_otherwise_as_it_was(subset: str) -> None:
    plain = _open("fantom", subset)
    other = permute(plain, ["names"], 7)
    leaks = 0
    for before, after in zip(plain.stories, other.stories, strict=True):
        people = {name for line in before.lines for name in re.split(r", | and | & ", line.split(":")[0])} - {
            "All",
            "Everyone",
        }
        pairs = list(zip(before.lines, after.lines, strict=True))
        for old, new in zip(plain.of_story(before.id), other.of_story(after.id), strict=True):
            pairs += [(old.text, new.text), *zip(old.choices, new.choices, strict=True)]
            assert len(set(new.choices)) == 2
            assert new.choices.index(new.gold or "") == old.choices.index(old.gold or "")
        for one, another in pairs:
            words = [re.sub(r"['’]s?(?!\w)", "", text) for text in (one, another)]
            tokens = [re.findall(r"\w+", text) for text in words]
            changed = [(old, new) for old, new in zip(*tokens, strict=True) if old != new]
            assert all(old[0].isupper() and new in POOL for old, new in changed), (one, another)
            leaks += len(people & set(tokens[1]))
    # `Hope your delivery …` and `Ariana Grande` name nobody who takes part.
    assert leaks <= 3


# --- Situations


def test_a_situation_has_another_person_of_the_same_pronoun() -> None:
    plain = _situation(
        "Priya Rao is in Egypt. She thinks Priya's friend Ahmed, an Egyptian, is there. Preya sees the priyas of Rao.",
        "Does Priya believe it?",
        "Priya believes that he is.",
        "Ahmed’s priya does not see her.",
    )
    for seed in range(9):
        other = permute(plain, ["names"], seed)
        one = other.stories[0].lines[0].split()[0]
        two = other.questions[0].choices[1].split("’")[0]
        assert one in NAMES["she"]
        assert two in NAMES["either"]
        assert other.stories[0].lines == (
            f"{one} Rao is in Egypt.",
            f"She thinks {one}'s friend {two}, an Egyptian, is there.",
            f"{one} sees the priyas of Rao.",
        )
        assert other.questions[0].text == f"Does {one} believe it?"
        assert other.questions[0].choices == (f"{one} believes that he is.", f"{two}’s priya does not see her.")
        assert other.questions[0].gold == other.questions[0].choices[0]


def test_bigtom_has_other_people_and_is_otherwise_as_it_was() -> None:
    plain = _open("bigtom", "400")
    other = permute(plain, ["names"], 7)
    assert not {story.lines for story in plain.stories} & {story.lines for story in other.stories}
    kinds = []
    for before, after, became in zip(
        plain.stories, other.stories, _changes(plain, other, re.compile(r"\w+")), strict=True
    ):
        changed = _changed(became)
        person = re.findall(r"\w+", before.lines[0])[0]
        new = changed.pop(person)
        assert set(changed) <= {"Ahmed", "Nkiry", "Dalia"}
        kinds.append(next(kind for kind, names in NAMES.items() if new in names))
        assert after.lines[0].startswith(new)
        said = {word for line in before.lines for word in re.findall(r"\w+", line.casefold())}
        she, he = bool(said & {"she", "her"}), bool(said & {"he", "his"})
        assert she == he or kinds[-1] == ("she" if she else "he")
    assert {kind: kinds.count(kind) for kind in NAMES} == {"she": 222, "he": 150, "either": 28}


# --- The names


def test_no_new_name_occurs_in_the_text() -> None:
    others = " ".join(POOL[:-1])
    said = [f"Ann: I know {others[:300]}.", f"Ann: And {others[300:].casefold()}."]
    assert _speakers(permute(_dialogue(said), ["names"], 2)) == POOL[-1:]


def test_the_names_are_different_and_of_nobody_in_the_benchmarks() -> None:
    assert len(POOL) == len(set(POOL))
    assert all(re.fullmatch(r"[A-Z][a-z]+", name) for name in POOL)
    taken = {word for words in VOCABULARIES.values() for word in words.names}
    for name, subset in (("hitom", "cotp"), ("tomi", "1000"), ("bigtom", "400"), ("fantom", "belief-full")):
        for story in _open(name, subset).stories:
            taken |= {word for line in story.lines for word in re.findall(r"\w+", line)[:1]}
    assert len(taken) > 700
    assert not taken & set(POOL)


def test_what_the_official_measure_counts_an_option_as_moves_along() -> None:
    plain = _dialogue(["Ann: Hi."], "Where is it?", "box", "bag", "jar")
    (asked,) = plain.questions
    classed = replace(plain, questions=(replace(asked, classes=("first", "then", "else")),))
    (other,) = permute(classed, {"choices"}, 3).questions
    assert other.choices != asked.choices
    assert {choice: other.class_of(choice) for choice in other.choices} == {
        "box": "first",
        "bag": "then",
        "jar": "else",
    }
