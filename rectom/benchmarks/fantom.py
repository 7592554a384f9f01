"""FANToM (Kim et al. 2023): what people believe about a conversation that some of them missed a part of.

A file of this schema is a list of sets, each with a conversation and questions about one piece of information in it.
Read here are the belief questions, which have two options; the original file and re-issues that hold only these load
alike. The authors ask that the samples be used for evaluation only, never for training.

The options stand in the official order: one generator with seed 99 for the whole file, one draw a belief question, so
that a question's order is the same in every subset. The official score accepts `(a)` anywhere in an answer; we score
an answer that names both options wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import checked, json_of
from rectom.errors import DataError
from rectom.story import Question, Story

#: The most utterances of a short context in subset 324; no paper says so, but the two counts come out exactly.
SHORT: Final = 17

_FILE: Final = "fantom_v1.json"
_BELIEF_ONLY: Final = "fantom_v1.belief_only.json"
_BELIEF_ONLY_DIGEST: Final = "28c80461aeefdb743ffdbb8521c3ab7592867ff1a75d1f969669a285d7762b3d"

_WORD = r"(?![a-z])[^\W\d_][\w'’.-]*"
_NAME = rf"{_WORD}(?: {_WORD})*"
_SPEAKER = re.compile(rf"{_NAME}(?:(?:, and |, | and | & ){_NAME})*:(?:\s|$)")


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty")
    return text


Text = Annotated[str, AfterValidator(_filled)]


class BeliefQuestion(BaseModel):
    """A belief question of a set; `question_type` says whether the people it is about had access to what it asks."""

    model_config = ConfigDict(frozen=True)

    question: Text
    question_type: Literal["tom:belief:accessible", "tom:belief:inaccessible"]
    tom_type: str = Field(pattern=r"^(first|second)-order(:|$)")
    correct_answer: Text
    wrong_answer: Text

    @model_validator(mode="after")
    def _two_options(self) -> BeliefQuestion:
        if self.correct_answer.strip() == self.wrong_answer.strip():
            raise ValueError("the two answers are equal")
        return self

    @property
    def order(self) -> int:
        """How deep the belief is nested, 1 or 2."""
        return 1 if self.tom_type.startswith("first") else 2

    @property
    def access(self) -> str:
        """`accessible` or `inaccessible`."""
        return self.question_type.rpartition(":")[2]


class Set(BaseModel):
    """A set of the file; `fact` is the question that re-issues of the belief questions leave out."""

    model_config = ConfigDict(frozen=True)

    set_id: Text
    short_context: Text
    full_context: Text
    beliefs: tuple[BeliefQuestion, ...] = Field(alias="beliefQAs")
    fact: dict[str, Any] | None = Field(None, alias="factQA")


@dataclass(frozen=True, slots=True)
class Asked:
    """A belief question with its set, its place in it (from 1), and its options in the official order."""

    among: Set
    place: int
    belief: BeliefQuestion
    options: tuple[str, str]

    @property
    def is_short(self) -> bool:
        """Whether its short context is one of subset 324."""
        return len(utterances(self.among.short_context)) <= SHORT


#: Which questions a subset takes; each also exists as `…-full`, with the whole conversation for a story.
SUBSETS: Final[Mapping[str, tuple[str, Callable[[Asked], bool]]]] = {
    "324": ("181 first-order and 143 second-order, short contexts of at most 17 utterances", lambda q: q.is_short),
    "belief": ("all 1,540 belief questions", lambda q: True),
    "accessible": ("547 about what the people asked about heard", lambda q: q.belief.access == "accessible"),
    "inaccessible": ("993 about what one of them missed", lambda q: q.belief.access == "inaccessible"),
    "first": ("870 of first order", lambda q: q.belief.order == 1),
    "second": ("670 of second order", lambda q: q.belief.order == 2),
}
_FULL: Final = "-full"


def utterances(context: str) -> tuple[str, ...]:
    """The utterances of a conversation, each as `Name: text`.

    A line without a speaker goes on the utterance before it; none is dropped.
    """
    found: list[str] = []
    for line in filter(None, map(str.strip, context.splitlines())):
        if found and not _SPEAKER.match(line):
            found[-1] += f" {line}"
        else:
            found.append(line)
    return tuple(found)


def read_sets(data: bytes, file: str) -> list[Set]:
    """The checked sets of a file's bytes. Raises DataError with the first wrong set, counted from 1."""
    rows = json_of(data, file)
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{file} is no list of FANToM's sets: is it the right file?")
    sets = []
    numbers: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        one = checked(Set, row, file, number)
        if one.set_id in numbers:
            raise DataError(f"{file}, row {number}: row {numbers[one.set_id]} has the set_id {one.set_id!r} already")
        numbers[one.set_id] = number
        sets.append(one)
    return sets


def ask(sets: list[Set]) -> Iterator[Asked]:
    """The belief questions of a whole file, in file order."""
    chance = random.Random(99)  # noqa: S311
    for one in sets:
        for place, belief in enumerate(one.beliefs, 1):
            options = (belief.correct_answer, belief.wrong_answer)
            yield Asked(one, place, belief, options[::-1] if chance.choice([True, False]) else options)


def _question(asked: Asked, story_id: str) -> Question:
    return Question(
        id=f"{asked.among.set_id}/b{asked.place}",
        story_id=story_id,
        text=asked.belief.question,
        choices=asked.options,
        gold=asked.belief.correct_answer,
        order=asked.belief.order,
        group=f"{('first', 'second')[asked.belief.order - 1]}-order/{asked.belief.access}",
    )


def _warnings(sets: list[Set], file: str, digest: str) -> tuple[str, ...]:
    if all(one.fact is not None for one in sets):
        return ()
    unknown = sum(belief.tom_type.endswith(":unknown") for one in sets for belief in one.beliefs)
    borrowed = ", and 213 full contexts are borrowed from other sets of the same conversation"
    return (
        f"{Path(file).name} is a re-issue of FANToM: the questions about facts, answerability and access are missing, "
        f"{unknown} second-order questions are of unknown kind"
        f"{borrowed if digest == _BELIEF_ONLY_DIGEST else ''}",
    )


def _load(files: Files, subset: str) -> Benchmark:
    file = str(files.path(_FILE, _BELIEF_ONLY))
    sets = read_sets(files.read(_FILE, _BELIEF_ONLY), file)
    _, belongs = SUBSETS[subset.removesuffix(_FULL)]
    contexts = {one.set_id: one.full_context if subset.endswith(_FULL) else one.short_context for one in sets}
    # Sets that share a conversation share one story, under the id of the first of them in the file.
    names: dict[str, str] = {}
    for set_id, context in contexts.items():
        names.setdefault(context, set_id)
    chosen = [asked for asked in ask(sets) if belongs(asked)]
    if not chosen:
        raise DataError(f"{file} holds no questions of fantom/{subset}; take fantom/belief for all it has")
    told = dict.fromkeys(contexts[asked.among.set_id] for asked in chosen)
    return Benchmark(
        name="fantom",
        subset=subset,
        stories=tuple(Story(names[context], utterances(context)) for context in told),
        questions=tuple(_question(asked, names[contexts[asked.among.set_id]]) for asked in chosen),
        digest=files.digest,
        warnings=_warnings(sets, file, files.digest),
        task="dialogue",
    )


ADAPTER: Final = Adapter(
    name="fantom",
    title="FANToM: beliefs about a conversation that somebody missed a part of (Kim et al. 2023)",
    load=_load,
    subsets={name: about for name, (about, _) in SUBSETS.items()}
    | {f"{name}{_FULL}": f"the questions of {name}, with the whole conversation" for name in SUBSETS},
    default="324",
    licence="MIT",
    sources=(
        Source(
            file=_FILE,
            addresses=("https://storage.googleapis.com/ai2-mosaic-public/projects/fantom/fantom.tar.gz",),
            sha256="1d08dfa0ea474c7f83b9bc7e3a7b466eab25194043489dd618b4c5223e1253a4",
            size=0,
            member="fantom/fantom_v1.json",
        ),
    ),
)
