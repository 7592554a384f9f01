"""ToMBench (Chen et al. 2024): 2,860 multiple-choice questions in 20 files, each in English and in Chinese.

The official procedure, from the authors' scripts `run_api.py` and `get_results.py`: each question is put five times,
each time with its options shuffled, from one generator with seed 42, and the most frequent answer counts. That is what
the subsets do, with the figures by file (in subsets of one file, by ability). The generator starts anew with each
file, as it does where the scripts run one file at a time; over all files their order is that of a folder's listing.
Subsets that end in `-once` put each question once, with the options in the published order.

Where the scripts are not followed: of answers equally often given the scripts take that which arrived first, here it is
that of the earliest try; a reply that they cannot read is an A to them, here a try without an answer; options lose
their letters in all spellings (`A. `, `A.`, `A: `), where the scripts leave some standing and so show wrong letters.
484 questions have two options only; the scripts fail on them (they look for null, and the files hold NaN). An answer
that is published as `A. ` can never be right for them, and counts as A here. Row 293 of the strange stories asks in
English about another story.

RecToM reads the false beliefs in English; it finds people by their capital letters, and knows Xiao Hong as Hong.
Their stories are one sentence each, so that a line is a clause of it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import Numbered, checked
from rectom.errors import DataError
from rectom.story import Question, Story

#: The files without `.jsonl`: how many questions each has, its sha256 and its size.
_FILES: Final = {
    "False Belief Task": (600, "1a5c38362c4c883b219381e24d7b51c1f60abd959f39b6dc3e977ca11d7abff8", 574_548),
    "Unexpected Outcome Test": (300, "f4ee872c98e17480272c40d5406a8eca31eed29b455f4155b9684328bf6dbf9c", 337_138),
    "Scalar Implicature Test": (200, "4264d1842f556f8bcfd7fd56c5058aa8c55f6001931d27d253a85d7ecc19247e", 280_234),
    "Persuasion Story Task": (100, "aefef5b6beb7097370cf3bc0c6503ed8caa495530297a4b184c4c31002e23169", 152_968),
    "Ambiguous Story Task": (200, "c99f365b6d3d0e982228623d4328afbafe11cf9a8da3a2838ed6c846e4f154d0", 403_001),
    "Hinting Task Test": (103, "fd3a930403c7e0514e8730c48030da17d8bcd8a453e96001ca0795cbaee61afa", 140_148),
    "Strange Story Task": (407, "f0a1c6e12b9d9b8b5c936ea3383b24100ef28ed6610078c1fc7bd6769d7ef914", 585_391),
    "Faux-pas Recognition Test": (560, "374272690aedfe34529cb83fc4368a38960da288fb8d787a7bf50aba65dd349c", 883_265),
    "Completion of Failed Actions": (20, "cb68348ef3eb53d7c6bf0e426b9279856264748b94f181ce042c91dcf56ba5af", 34_388),
    "Discrepant Desires": (20, "73093d99923efac243e3610c393613c000b5dc04f88771c39a3b641b993a6b70", 31_122),
    "Discrepant Emotions": (40, "100b7f05ba5b76aeaa8d2daf3897c90c6a4f08dc23b75a0dd87be0e82db11bf4", 27_502),
    "Discrepant Intentions": (40, "d72c8353aa5b65f35073d72808996b6f8e980f7683539e25510a251ed8f1dac2", 88_188),
    "Emotion Regulation": (20, "553d0ee61733cddfa3a9c531c3f7306c40929edc9f0e1e1dda7088ed8804c96c", 47_505),
    "Hidden Emotions": (80, "57d0882eafddca8fb8d81148bf4291db0c5c6bbdd3a8ad5004c445d249b05124", 77_644),
    "Knowledge-Attention Links": (20, "9ea4c7bfc2086d4ebaa2a31cc1993ea2774f72e642d7415dbb9c9c0e21ead94f", 44_564),
    "Knowledge-Pretend Play Links": (30, "67e3d451089db0a3ac4a7702f4c6c58c2909dbe338aa53bda5e00e4cf9396242", 45_125),
    "Moral Emotions": (40, "fac3eb293d2901b35274eab8244515b7e138e9cb3311037d5c4a0bda3810dd51", 94_948),
    "Multiple Desires": (20, "7a49186ab802a2a199806ca191160019ae21d9ff85db9203799fb36b8960a914", 28_158),
    "Percepts-Knowledge Links": (40, "dda5b279b926eef0e0c440cef4ef68cbebbf82fc6c7b109b213c15c2f9d94804", 35_406),
    "Prediction of Actions": (20, "23c56589e459d253bafc2cdc0ea786fba1912c8bf388861a96042666f10b8a47", 33_204),
}
#: The names that a row's fields have in each language; the letters A to D follow that of the options.
_FIELDS: Final = {"en": ("STORY", "QUESTION", "OPTION-"), "zh": ("故事", "问题", "选项")}
_LETTERS: Final = "ABCD"
_TRIES: Final = 5
_ONCE: Final = "-once"
_FALSE_BELIEF: Final = "false-belief"

#: Where a line ends: after a sentence, but not after a title; and, in the false beliefs, after a clause.
_SENTENCE_END: Final = re.compile(
    r"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)(?<=[.!?])\s+|(?<=[.!?][”\"])\s+(?=[A-Z])"
    r"|(?<=[。！？])(?![。！？”’\"])|(?<=[。！？][”’\"])|\n"
)
_CLAUSE_END: Final = re.compile(r"(?<=,)\s(?=they |there |the (?:label|tag) |[A-Z])|(?<=，)")


class Row(BaseModel):
    """A row of a file in one language; `answer` is the letter of the right option."""

    model_config = ConfigDict(frozen=True)

    ability: str
    story: str = Field(pattern=r"\S")
    question: str = Field(pattern=r"\S")
    options: tuple[str, ...]
    answer: str

    @field_validator("options")
    @classmethod
    def _without_letters(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        lettered = zip(options, _LETTERS, strict=False)
        bare = tuple(re.sub(rf"^\s*{letter}\s*[.:：、]", "", option).strip() for option, letter in lettered)
        if len(bare) not in {2, 4} or not all(bare):
            raise ValueError("there must be two options or four, and none empty")
        return bare

    @field_validator("answer")
    @classmethod
    def _letter(cls, answer: str) -> str:
        return answer.strip().removesuffix(".")

    @model_validator(mode="after")
    def _answerable(self) -> Row:
        if self.answer not in tuple(_LETTERS[: len(self.options)]):
            raise ValueError(f"the answer {self.answer!r} is the letter of none of the {len(self.options)} options")
        return self

    @property
    def gold(self) -> str:
        """The right option."""
        return self.options[_LETTERS.index(self.answer)]


def read_rows(data: bytes, file: str, language: str) -> dict[int, Row]:
    """The checked rows of a file's bytes in a language, by their numbers. Raises DataError with the first wrong row."""
    story, question, option = _FIELDS[language]
    rows = {}
    for number, row in _lines(data, file):
        options = [row.get(option + letter) for letter in _LETTERS]
        fields = {
            "ability": row.get("能力\nABILITY"),
            "story": row.get(story),
            "question": row.get(question),
            "options": options[:2] if options[2:] == [None, None] else options,
            "answer": row.get("答案\nANSWER"),
        }
        rows[number] = checked(Row, fields, file, number)
    return rows


def _lines(data: bytes, file: str) -> Iterator[Numbered]:
    """The JSON objects of a file; what is no option is NaN there, which other readers of JSON do not take."""
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                row: Any = json.loads(line, parse_constant=lambda _: None)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{file}, row {number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise DataError(f"{file}, row {number}: no object; is it the right file?")
            yield number, row


def orders(rows: dict[int, Row]) -> dict[int, list[tuple[str, ...]]]:
    """The options of each row of a whole file in the orders of the five tries."""
    chance = random.Random(42)  # noqa: S311
    return {number: [_shuffled(row.options, chance) for _ in range(_TRIES)] for number, row in rows.items()}


def _shuffled(options: tuple[str, ...], chance: random.Random) -> tuple[str, ...]:
    shown = list(options)
    chance.shuffle(shown)
    return tuple(shown)


def name_of(file: str) -> str:
    """The name of a file in subsets and ids: `False Belief Task` is `false-belief`."""
    return re.sub(r"( Task| Test)+$", "", file).lower().replace(" ", "-")


def lines_of(story: str, *, clauses: bool = False) -> tuple[str, ...]:
    """The sentences of a story, or their clauses."""
    sentences = _SENTENCE_END.split(story)
    pieces = [piece for one in sentences for piece in (_CLAUSE_END.split(one) if clauses else [one])]
    return tuple(piece.strip() for piece in pieces if piece.strip())


def _ask(rows: dict[int, Row], name: str, *, once: bool, by_ability: bool) -> tuple[list[Story], list[Question]]:
    """The stories and questions of a file. A story bears the number of the first row that tells it."""
    stories: dict[str, Story] = {}
    questions = []
    tries = {number: [row.options] for number, row in rows.items()} if once else orders(rows)
    for number, row in rows.items():
        asked = f"{name}/{number:03d}"
        story = stories.setdefault(row.story, Story(asked, lines_of(row.story, clauses=name == _FALSE_BELIEF)))
        group = row.ability if by_ability else name
        for place, options in enumerate(tries[number], 1):
            question = Question(asked, story.id, row.question, options, row.gold, group=group)
            questions.append(question if once else replace(question, id=f"{asked}/{place}", ballot=asked))
    return list(stories.values()), questions


def _load(files: Files, subset: str) -> Benchmark:
    name, language = _SUBSETS[subset]
    stories: list[Story] = []
    questions: list[Question] = []
    once = subset.endswith(_ONCE)
    for file in _FILES:
        if name in {"", name_of(file)}:
            path = str(files.path(f"{file}.jsonl"))
            rows = read_rows(files.read(f"{file}.jsonl"), path, language)
            if not rows:
                raise DataError(f"{path} holds no questions: is it the right file?")
            told, asked = _ask(rows, name_of(file), once=once, by_ability=name != "")
            stories += told
            questions += asked
    return Benchmark(
        name="tombench",
        subset=subset,
        stories=tuple(stories),
        questions=tuple(questions),
        digest=files.digest,
        warnings=tuple(_warnings(questions)),
        task="story" if (name, language) == (_FALSE_BELIEF, "en") else "",
        scoring="accuracy" if once else "majority",
    )


def _warnings(questions: list[Question]) -> Iterator[str]:
    doubled = dict.fromkeys(one.ballot or one.id for one in questions if len({*one.choices}) < len(one.choices))
    if doubled:
        yield (
            f"{len(doubled)} questions have two equal options ({', '.join(doubled)}): an answer is judged by its "
            "words, so that either of them counts"
        )


#: The subsets: the name of a file, or none for all of them, and the language.
_SUBSETS: Final = {
    "-".join(filter(None, [name, language])) + once: (name, language)
    for name in ("", *map(name_of, _FILES))
    for once in ("", _ONCE)
    for language in _FIELDS
}


def _about(subset: str) -> str:
    name, language = _SUBSETS[subset]
    counts = {name_of(file): count for file, (count, *_) in _FILES.items()}
    times = "once each" if subset.endswith(_ONCE) else "five times each, options shuffled"
    tongue = {"en": "English", "zh": "Chinese"}[language]
    return f"{counts.get(name, sum(counts.values())):,} questions in {tongue}, {times}"


ADAPTER: Final = Adapter(
    name="tombench",
    title="ToMBench: eight tasks and thirty-one abilities, in English and Chinese (Chen et al. 2024)",
    load=_load,
    subsets={subset: _about(subset) for subset in _SUBSETS},
    default="en",
    licence="MIT (the authors ask that it be used for evaluation only)",
    sources=tuple(
        Source(
            file=f"{file}.jsonl",
            addresses=(f"https://raw.githubusercontent.com/zhchen18/ToMBench/main/data/{quote(file)}.jsonl",),
            sha256=sha256,
            size=size,
        )
        for file, (_, sha256, size) in _FILES.items()
    ),
)
