"""Controls for contamination and for a liking of positions: the same questions with other names, in another order.

What a model may know of a benchmark are its names, its containers and the order of its options. Every question keeps
its meaning, so that an accuracy that falls with them was not one of reasoning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Final

import orjson

from rectom import grammar
from rectom.benchmarks.base import Benchmark, digest_of
from rectom.benchmarks.generate import VOCABULARIES, Dice
from rectom.chains import belief_chain
from rectom.errors import SettingsError, StoryError
from rectom.grammars import tomi
from rectom.reader.utterances import people, speakers, utterance
from rectom.story import Question, Story, Vocabulary
from rectom.words import words_of

#: What can be permuted, in the order in which it is named.
KINDS: Final = ("choices", "names", "containers")

#: The controlled texts, by task, and what names the words of their lines.
_GRAMMARS: Final = {"hitom": grammar.vocabulary, "tomi": tomi.vocabulary}

#: Given names of nobody in these benchmarks, which are no words and no places, by the pronoun that goes with them.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "she": tuple(
        "Agathe Annika Astrid Beatriz Birgit Brigid Danuta Dorothea Eleni Elif Eszter Freya Ginevra Gudrun Hanako "
        "Henrietta Ilse Ines Irina Jadwiga Katarina Keiko Lakshmi Ludmila Margit Matilda Mireille Nadine Oksana "
        "Radhika Roswitha Saoirse Sigrid Solveig Svetlana Tamsin Ulrike Wilhelmina Yolanda Zuzana".split()
    ),
    "he": tuple(
        "Aleksander Anders Arjun Arvid Baptiste Bogdan Casimir Cedric Dieter Eamon Edmund Fergus Florian Georgios "
        "Gregor Harald Henrik Igor Jarek Karsten Kenneth Klaus Laszlo Leopold Lorenzo Ludwig Mikhail Mustafa Nikhil "
        "Olaf Piotr Pranav Reinhard Rupert Sergei Stefan Sven Tadeusz Vikram Wolfgang".split()
    ),
    "either": tuple(
        "Akira Ayodele Corey Deniz Dominique Evren Gurpreet Hikaru Hollis Ilkay Jyoti Kaoru Kendall Kim Kiran Lior "
        "Makoto Navdeep Nikita Olamide Phuong Rory Sacha Shinobu Simcha Sonam Stevie Temitope Tenzin Thanh Tsering "
        "Umut Vanja Yuki".split()
    ),
}

#: Names that are ordinary words or places as well.
_WORDS: Final = frozenset(
    "Alexandria Amber Angel April Art Asia Athena Aurora August Austin Autumn Bill Brooklyn Cadence Cali Camden Cash "
    "Chad Chance Charity Charlotte Chase Chelsea Cheyenne Christian Cliff Dakota Dallas Dawn Destiny Diamond Eden "
    "Faith Florence Frank Genesis Georgia Grace Grant Guy Harmony Haven Hazel Holly Hope Hunter Iris Israel Ivy Jack "
    "Jackson Jade Jesus Jordan Journey Joy June Justice Kenya Lane Lily Lincoln London Luna Lyric Madison Mark Mason "
    "Max May Melody Mercedes Miles Nova Olive Orlando Paris Pat Pearl Petra Phoenix Ray Reed Rich Rob Robin Rose Ruby "
    "Sage Salvador Santiago Savannah Serenity Sierra Sky Skip Sue Summer Sydney Trinity Troy Victoria Vienna Violet "
    "Virginia Wade Walker Will Zion".split()
)
_BEGINNING = re.compile(r"(?:\A|[.!?:…\"“]\s*)\Z")
#: What shows such a word to name nobody: `Hope you are well`, `in May`, `the Hope`, `moved to Paris`.
_WORD_AFTER = re.compile(
    r" (?:you|your|we|us|our|I|it|its|he|she|they|their|this|that|these|those|there|the|an?|my|me|all|to|for|of|not)\b"
)
_WORD_BEFORE = re.compile(
    r"\b(?:an?|the|my|your|our|this|every|last|next|early|late|in|near|across|around|through|during|since|until"
    r"|(?:city|streets|people|capital) of|visit(?:ed|ing|s)?"
    r"|(?:go|goes|going|went|been|move[ds]?|moving|travel\w*|fly|flew|flying|drive|drove|trip|flight|way) (?:to|from)"
    r"|(?:am|is|are|was|were|['’]m|['’]re|comes?|came|hails?) from) \Z",
    re.I,
)
_OWNER = re.compile(r"['’]| and [A-Z]")
#: The words beside a name that make it the name of somebody else: `Ariana Grande`, `Michael Jackson`.
_NAME_BEFORE = re.compile(r"(?:[^.!?:…\"“\s]\s+(?!(?:I|Hi|Hello|Hey)\b)(?=\w+ )|(?=\w+-))\b([A-Z]\w*)[ -]\Z")
_NAME_AFTER = re.compile(r" (?!I\b)([A-Z][\w.]*)")

_CAPITALISED = re.compile(r"(?<!\w)[A-Z]\w+")
_RELATIVE = re.compile(
    r"\b(?:friend|colleague|coworker|neighbou?r|partner|teammate|roommate|brother|sister|cousin|son|daughter|husband"
    r"|wife|boss|assistant),? ([A-Z]\w+)"
)
#: Somebody else who only has a name like that: `my sister Erika`, where Erik speaks.
_THEIRS = re.compile(r"\b(?:[Mm]y|[Yy]our|[Hh]is|[Hh]er|[Oo]ur|[Tt]heir)(?: [a-z]+){1,2} ([A-Z]\w+)")
_EVERYBODY: Final = frozenset({"All", "Everyone", "Everybody", "Both", "Group", "Narrator"})
_SHE, _HE = (re.compile(rf"\b(?:{words})\b", re.I) for words in ("she|hers?|herself", "he|him|his|himself"))

#: How alike two spellings of one name are at least, by difflib's ratio: as `Micheal` and `Michael`.
_ALIKE: Final = 0.79
_SHORTEST: Final = 5  #: letters of a word that can be a misspelt name


def permute(benchmark: Benchmark, what: Collection[str], seed: int) -> Benchmark:
    """A benchmark with other `choices` (another order), `names` (of people) and `containers`, as `what` asks for.

    The same seed gives the same benchmark: options are ordered by seed and question, and words drawn by seed and story
    with its questions, so that a benchmark is permuted before it is cut. The subset's name and every id end in
    `+choices.7+names.7`: what is permuted, and the seed. Raises SettingsError for an unknown kind, and where names or
    containers cannot be told for sure.
    """
    if unknown := sorted(set(what) - set(KINDS)):
        raise SettingsError(f"cannot permute {unknown[0]!r}; choose from {', '.join(KINDS)}")
    kinds = [kind for kind in KINDS if kind in what]
    if not kinds:
        return benchmark
    mark = "".join(f"+{kind}.{seed}" for kind in kinds)
    asked: dict[str, list[Question]] = defaultdict(list)
    for question in benchmark.questions:
        asked[question.story_id].append(_reordered(question, seed) if "choices" in kinds else question)
    stories: list[Story] = []
    renamed: dict[str, Question] = {}
    for story in benchmark.stories:
        renaming = _renaming(benchmark, story, asked[story.id], kinds, seed)
        stories.append(Story(story.id + mark, tuple(map(renaming.line, story.lines))))
        renamed |= {question.id: _renamed(question, renaming, mark) for question in asked[story.id]}
    questions = [renamed[question.id] for question in benchmark.questions]
    content = [benchmark.digest, mark, [s.lines for s in stories], [(q.text, q.choices, q.gold) for q in questions]]
    return replace(
        benchmark,
        subset=benchmark.subset + mark,
        stories=tuple(stories),
        questions=tuple(questions),
        digest=digest_of(orjson.dumps(content)),
        plain=benchmark.digest,
    )


def _dice(seed: int, kind: str, id: str) -> Dice:  # noqa: A002
    return Dice(int(sha256(f"{seed} {kind} {id}".encode()).hexdigest(), 16))


def _reordered(question: Question, seed: int) -> Question:
    """A question with its options in another order than before."""
    places = range(len(question.choices))
    dice = _dice(seed, "choices", question.id)
    order = dice.some(places, len(places))
    while len(places) > 1 and order == list(places):
        order = dice.some(places, len(places))
    classes = tuple(question.classes[place] for place in order) if question.classes else ()
    return replace(question, choices=tuple(question.choices[place] for place in order), classes=classes)


def _renamed(question: Question, renaming: _Renaming, mark: str) -> Question:
    return replace(
        question,
        id=question.id + mark,
        story_id=question.story_id + mark,
        text=renaming(question.text),
        choices=tuple(map(renaming, question.choices)),
        gold=question.gold and renaming(question.gold),
    )


@dataclass(frozen=True, slots=True)
class _Renaming:
    """New words by old ones, in a text of some `kind`: controlled, where a word names one thing; story; dialogue."""

    words: Mapping[str, str]
    kind: str

    def __call__(self, text: str) -> str:
        """A question or an option with the new words."""
        if self.kind == "controlled":
            return re.sub(r"[\w-]+", lambda word: self.words.get(word[0], word[0]), text)
        return self._replaced(text, lambda name: not (_is_word(text, name) or self._goes_on(text, name)))

    def line(self, line: str) -> str:
        """A line of the story with the new words."""
        if self.kind != "dialogue":
            return self(line)
        return self._replaced(
            line, lambda name: not (_is_word(line, name) or self._goes_on(line, name) or self._ends(line, name))
        )

    def _replaced(self, text: str, chosen: Callable[[re.Match[str]], bool]) -> str:
        spelt = "|".join(map(re.escape, sorted(self.words, key=len, reverse=True))) or r"\Z\A"
        name = re.compile(rf"(?<!\w)({spelt})(?!\w|-[A-Z])(['’](?= \w))?")
        return name.sub(lambda match: self._new(match) if chosen(match) else match[0], text)

    def _new(self, name: re.Match[str]) -> str:
        new, owns = self.words[name[1]], name[2] or ""
        # `Miles' idea`, but `Klaus' idea` and `Emil's idea`.
        return f"{new}{owns}s" if owns and name[1].endswith("s") and not new.endswith("s") else new + owns

    def _goes_on(self, text: str, name: re.Match[str]) -> bool:
        """Whether a name in a dialogue begins a longer one, of somebody who does not take part."""
        after = _NAME_AFTER.match(text, name.end(1)) if self.kind == "dialogue" else None
        return after is not None and after[1] not in self.words

    def _ends(self, text: str, name: re.Match[str]) -> bool:
        """Whether a name in an utterance ends a longer one, of somebody who does not take part."""
        before = _NAME_BEFORE.search(text[max(0, name.start() - 60) : name.start()])
        return before is not None and before[1] not in self.words


def _is_word(text: str, name: re.Match[str]) -> bool:
    """Whether a name that is a word or a place as well is just that here."""
    before, after = text[max(0, name.start() - 60) : name.start()], text[name.end(1) :]
    if name[1] not in _WORDS:
        return False
    if _BEGINNING.search(before):
        return bool(_WORD_AFTER.match(after))
    return bool(_WORD_BEFORE.search(before)) and not _OWNER.match(after)


def _renaming(
    benchmark: Benchmark, story: Story, questions: Sequence[Question], kinds: Collection[str], seed: int
) -> _Renaming:
    texts = [text for question in questions for text in (question.text, *question.choices)]
    words: dict[str, str] = {}
    if "names" in kinds:
        spelt, pronouns = _cast(benchmark, story, texts, [question.text for question in questions])
        words |= _new_names(spelt, pronouns, [*story.lines, *texts], _dice(seed, "names", story.id))
    if "containers" in kinds:
        words |= _new_containers(benchmark, story, texts, _dice(seed, "containers", story.id))
    return _Renaming(words, "controlled" if benchmark.task in _GRAMMARS else benchmark.task)


def _vocabulary(benchmark: Benchmark, story: Story) -> Vocabulary:
    try:
        return _GRAMMARS[benchmark.task](story.lines)
    except StoryError as error:
        raise SettingsError(
            f"cannot permute the words of story {story.id}, which follows no grammar: {error}"
        ) from None


def _new_containers(benchmark: Benchmark, story: Story, texts: Sequence[str], dice: Dice) -> dict[str, str]:
    """Other containers for those in a story and those that its questions offer."""
    if benchmark.task not in _GRAMMARS:
        raise SettingsError(f"no grammar tells the containers of {benchmark.name}; they can be permuted in hitom, tomi")
    known = _vocabulary(benchmark, story)
    pool = [container for words in VOCABULARIES.values() for container in words.containers]
    there = dict.fromkeys(re.findall(r"[\w-]+", "\n".join([*story.lines, *texts])))
    # What likes and dislikes are about may be containers of which nothing else is told; texts hold the options.
    containers = {*known.containers, *texts, *pool}
    # ToMi has pantries that are rooms and containers in one story; they stay.
    others = {*known.rooms, *known.characters, *known.objects}
    old = [word for word in there if word in containers and word not in others]
    new = [container for container in pool if container not in there]
    if len(new) < len(old):
        raise SettingsError(f"story {story.id} has {len(old)} containers, more than the {len(new)} other ones known")
    return dict(zip(old, dice.some(new, len(old)), strict=True))


def _new_names(
    spelt: Mapping[str, str], pronouns: Mapping[str, str], texts: Iterable[str], dice: Dice
) -> dict[str, str]:
    """Another name for every spelling of each person's, which goes with the pronoun."""
    there = set(re.findall(r"\w+", "\n".join(texts).casefold()))
    free = [name for name in (*NAMES["she"], *NAMES["he"], *NAMES["either"]) if name.casefold() not in there]
    new: dict[str, str] = {}
    for person, pronoun in pronouns.items():
        fitting = [name for name in free if pronoun == "any" or name in NAMES[pronoun]] or free
        if not fitting:
            raise SettingsError(f"more people ({len(pronouns)}) than names to give them: permute something else")
        new[person] = dice.pick(fitting)
        free.remove(new[person])
    words = {spelling: new[person] for spelling, person in spelt.items()}
    return words | {old.upper(): new.upper() for old, new in words.items() if len(old) > 3 and old not in _WORDS}


def _cast(
    benchmark: Benchmark, story: Story, texts: Sequence[str], asked: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Who takes part, by every spelling of the name; and the pronoun of each: she, he, either, or any."""
    if benchmark.task in _GRAMMARS:
        idle = (re.match(r"(\w+) (?:likes|dislikes|loves|hates|saw|lost|made) ", line) for line in story.lines)
        names = [*_vocabulary(benchmark, story).characters, *(found[1] for found in idle if found)]
        return {name: name for name in names}, dict.fromkeys(names, "any")
    holders = [name for text in asked for name in belief_chain(text, words_of([text]).characters)]
    if benchmark.task == "dialogue":
        lines = Counter(name for line in story.lines if (said := utterance(line)) for name in people(said[0]))
        heard = [name for name in speakers(story.lines) if name not in _EVERYBODY]
        # A name that speaks once may be a slip for one that speaks more often.
        sure = [name for name in heard if lines[name] != 1]
        spelt = _spellings(sure, [*heard, *holders], [*story.lines, *texts])
        sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text)]
        return spelt, {person: _pronoun(_about(person, sentences, spelt)) for person in spelt.values()}
    if benchmark.name == "bigtom":
        whole = " ".join([*story.lines, *texts])
        first = [word for word in re.findall(r"\w+", whole)[:1] if word in words_of([whole]).characters]
        spelt = _spellings(first, [*holders, *_RELATIVE.findall(whole)], [whole])
        return spelt, {person: _pronoun([whole]) if person in first else "either" for person in spelt.values()}
    raise SettingsError(
        f"cannot tell the names of people in {benchmark.name}; they can be permuted in hitom, tomi, bigtom and fantom"
    )


def _spellings(sure: Iterable[str], likely: Iterable[str], texts: Iterable[str]) -> dict[str, str]:
    """Whom each spelling in some texts means, such as `Micheal` and `Michael`, or `Vic`.

    Names that are `sure` are people's; those that are `likely` are so, too, unless they misspell one of them.
    """
    spelt = {name: name for name in sure}
    for name in likely:
        spelt[name] = spelt.get(name) or _alike(name, spelt.values()) or name
    whole = "\n".join(texts)
    small = set(re.findall(r"(?<!\w)[a-z]\w*", whole))
    called = set(re.findall(r", ([A-Z]\w\w+)[,.!?]", whole))
    for word in sorted(set(_CAPITALISED.findall(whole)) - set(spelt) - set(_THEIRS.findall(whole))):
        nicknamed = {person for person in spelt.values() if word in called and person.startswith(word)}
        person = nicknamed.pop() if len(nicknamed) == 1 else _alike(word, spelt.values())
        if person and word != f"{person}s" and word.casefold() not in small and not word.isupper():
            spelt[word] = person
    return spelt


def _alike(word: str, names: Iterable[str]) -> str | None:
    """The name that a word is most like, if it can be a spelling of it."""
    likeness = {
        name: SequenceMatcher(None, word.casefold(), name.casefold()).ratio()
        for name in names
        if name[0] == word[0] and len(word) >= _SHORTEST
    }
    best = max(likeness, key=lambda name: likeness[name], default=None)
    return best if best is not None and likeness[best] >= _ALIKE else None


def _about(person: str, sentences: Iterable[str], spelt: Mapping[str, str]) -> list[str]:
    """The sentences that name this person alone."""
    named = ((text, {spelt[word] for word in _CAPITALISED.findall(text) if word in spelt}) for text in sentences)
    return [text for text, names in named if names == {person}]


def _pronoun(texts: Iterable[str]) -> str:
    """The pronoun that most of some texts use: she or he; either if neither prevails."""
    more = sum(len(_SHE.findall(text)) - len(_HE.findall(text)) for text in texts)
    return "she" if more > 0 else "he" if more < 0 else "either"
