"""OpenToM (Xu et al. 2024): where a thing is, what follows from that, and how somebody takes it, in 596 narratives.

Each narrative tells how a mover takes a thing from one place to another, with or without an observer seeing it. A
coarse question about the location asks whether the thing is where it was first, a fine one where it is; multihop
questions ask how full a container or how accessible the thing has become; the attitude is the observer's.

The options are those of the authors' prompts and evaluation: Yes and No; the two places of the plot, here in
alphabetical order; more, equally or less full or accessible; positive, neutral or negative, where their prompts add
"assuming that you observed the action" to the question. The official measure is the macro-averaged F1 of each kind
of question; the classes of fine locations are the first place and the destination. Their evaluation leaves out answers
that it cannot read; here those count as wrong.

The location questions are about beliefs that follow from who observed the move: RecToM answers them, and they are the
default. As in the official evaluation, 1,192 of the fine ones are the narrator's, about no belief: where the thing is
in the end, and where it was in the beginning. The 100 long narratives are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import checked, json_of
from rectom.errors import DataError
from rectom.story import Question, Story, sentences

#: The files of questions, without `.json`: the kind of question, and the order of its belief.
_KINDS: Final[dict[str, tuple[str, int | None]]] = {
    "location_cg_fo": ("location-coarse-fo", 1),
    "location_cg_so": ("location-coarse-so", 2),
    "location_fg_fo_new": ("location-fine-fo", 1),
    "location_fg_so_new": ("location-fine-so", 2),
    "multihop_fo": ("multihop-{}-fo", 1),
    "multihop_so": ("multihop-{}-so", 2),
    "attitude": ("attitude", None),
}
#: The sha256 and size of each file of questions.
_FILES: Final = {
    "location_cg_fo": ("4486b3a7dcc029c3e2c05a242d9e6f2e8175a08590253c4ebecc228fe4b394da", 253_450),
    "location_cg_so": ("ef3a711096b660a3a23bf9103d1a2b9babf9b57ed516f233d46f65fd8079f2b3", 280_955),
    "location_fg_fo_new": ("957b153a8dd55aa1495a82bda59397004bbf83c87c1039bd917ee6d02f7f29c2", 506_305),
    "location_fg_so_new": ("cddb5437c2697be99ce3642240b96af513f69ee06be7fe975b5ce02f8bfcfeb8", 290_089),
    "multihop_fo": ("fcd394c8aa4d080d0d5a8298dd62504dea7435935db7c7887792cd623f6dc121", 770_404),
    "multihop_so": ("f7fdc822dc5cc806b07735013a89a2e1879484010661523defbdcd8ef13d9561", 830_157),
    "attitude": ("8c1d0cdd68d60ea6534700ae3d67436fb9a5b6c9cfab84c0d70185c9222e4047", 145_859),
}
#: The subsets: what they are, and the files that belong to them.
_SUBSETS: Final = {
    "location": ("where the thing is, coarse and fine, both orders, 5,960", r"location_.*"),
    "location-fo": ("first order, 3,576", r"location_.*_fo.*"),
    "location-so": ("second order, 2,384", r"location_.*_so.*"),
    "location-coarse": ("whether the thing is where it was first, 2,384", r"location_cg_.*"),
    "location-fine": ("in which of two places the thing is, 3,576", r"location_fg_.*"),
    "multihop": ("how full and how accessible things have become, 7,152", r"multihop_.*"),
    "multihop-fo": ("first order, 3,576", r"multihop_fo"),
    "multihop-so": ("second order, 3,576", r"multihop_so"),
    "attitude": ("how the observer takes it, 596", r"attitude"),
    "all": ("every question, 13,708", r".*"),
}
M = TypeVar("M", bound=BaseModel)

_META: Final = "meta_data.json"


class Plot(BaseModel):
    """The two places of a plot."""

    model_config = ConfigDict(frozen=True)

    original_place: str = Field(pattern=r"\S")
    move_to_place: str = Field(pattern=r"\S")

    @property
    def places(self) -> tuple[str, str]:
        """Where the thing was first, and where it is then."""
        return self.original_place, self.move_to_place

    def destination(self, answer: str) -> str:
        """Where the thing is then, as an answer spells it: two answers do so otherwise than the plot."""
        shared = {*answer.split()} & {*self.move_to_place.split()} - {"a", "an", "the"}
        return answer if shared and answer not in self.places else self.move_to_place


class Narrative(BaseModel):
    """What the file of narratives holds under the id of a story."""

    model_config = ConfigDict(frozen=True)

    narrative: str = Field(pattern=r"\S")
    plot_info: Plot

    @property
    def lines(self) -> tuple[str, ...]:
        """Its sentences."""
        return sentences(" ".join(self.narrative.split()))


class Asked(BaseModel):
    """A question of a file, with the right answer."""

    model_config = ConfigDict(frozen=True)

    question: str = Field(pattern=r"\S")
    answer: str = Field(pattern=r"\S")


class Questions(RootModel[list[Asked]]):
    """What a file of questions holds under the id of a story."""


def read(model: type[M], data: bytes, file: str) -> dict[str, M]:
    """What a file holds under each story's id. Raises DataError with the first wrong story, counted from 1."""
    value = json_of(data, file)
    if not isinstance(value, dict) or not value:
        raise DataError(f"{file} maps no ids of stories to anything: is it the right file?")
    rows = enumerate(value.items(), 1)
    return {story: checked(model, row, f"{file}, story {story}", number) for number, (story, row) in rows}


def options(kind: str, asked: Asked, plot: Plot) -> tuple[str, ...]:
    """The options of a question of a kind."""
    if kind.startswith("location-coarse"):
        return "Yes", "No"
    if kind.startswith("location-fine"):
        return tuple(sorted((plot.original_place, plot.destination(asked.answer))))
    if kind == "attitude":
        return "positive", "neutral", "negative"
    adjective = "full" if "fullness" in kind else "accessible"
    return tuple(f"{degree} {adjective}" for degree in ("more", "equally", "less"))


def _questions(file: str, files: Files, narratives: dict[str, Narrative]) -> Iterator[Question]:
    """The questions of a file, which is named without `.json`."""
    path = str(files.path(f"{file}.json"))
    for story_id, questions in read(Questions, files.read(f"{file}.json"), path).items():
        if story_id not in narratives:
            raise DataError(f"{path}: there is no narrative of story {story_id} in {_META}; are they of one release?")
        numbers: dict[str, int] = {}
        for number, asked in enumerate(questions.root, 1):
            question = _ask(file, story_id, number, asked, narratives[story_id].plot_info)
            if question.gold not in question.choices:
                fault = f"the answer {question.gold!r} is none of the options {', '.join(question.choices)}"
                raise DataError(f"{path}, story {story_id}, row {number}: {fault}")
            if numbers.setdefault(asked.question, number) != number:
                fault = f"row {numbers[asked.question]} asks the same"
                raise DataError(f"{path}, story {story_id}, row {number}: {fault}")
            yield question


def _ask(file: str, story_id: str, number: int, asked: Asked, plot: Plot) -> Question:
    """A question as it is put; `number` is its place among those that the file holds about the story, from 1."""
    kind, order = _KINDS[file]
    kind = kind.format("fullness" if "fullness" in asked.question else "accessibility")
    choices = options(kind, asked, plot)
    text = asked.question
    if kind == "attitude":
        text = f"{text.split('?')[0].strip()}, assuming that you observed the action?"
    return Question(
        id=f"{story_id}/{file}/{number}",
        story_id=story_id,
        text=text,
        choices=choices,
        gold=asked.answer,
        order=0 if text.startswith("From narrator's perspective") else order,
        group=kind,
        classes=tuple("first" if one == plot.original_place else "then" for one in choices) if "fine" in kind else (),
    )


def _load(files: Files, subset: str) -> Benchmark:
    names = (_META, "metadata.json")
    path = str(files.path(*names))
    narratives = read(Narrative, files.read(*names), path)
    chosen = [file for file in _KINDS if re.fullmatch(_SUBSETS[subset][1], file)]
    questions = [question for file in chosen for question in _questions(file, files, narratives)]
    asked = {question.story_id for question in questions}
    return Benchmark(
        name="opentom",
        subset=subset,
        stories=tuple(Story(name, one.lines) for name, one in narratives.items() if name in asked),
        questions=tuple(questions),
        digest=files.digest,
        warnings=tuple(_warnings(questions, narratives)),
        task="story" if subset.startswith("location") else "",
        scoring="macro-f1",
    )


def _warnings(questions: Iterable[Question], narratives: dict[str, Narrative]) -> Iterator[str]:
    fine = [question for question in questions if question.group.startswith("location-fine")]
    respelt = [question.id for question in fine if question.gold not in narratives[question.story_id].plot_info.places]
    if respelt:
        yield (
            f"{len(respelt)} answers spell the place otherwise than the plot ({', '.join(respelt)}): they stand among "
            "the options as the answers have them"
        )


def _source(file: str, sha256: str, size: int, published: str = "") -> Source:
    return Source(
        file=file,
        addresses=(
            f"https://huggingface.co/datasets/SeacowX/OpenToM/resolve/main/opentom_data/{published or file}",
            f"https://raw.githubusercontent.com/seacowx/OpenToM/main/data/opentom_data/{file}",
        ),
        sha256=sha256,
        size=size,
    )


ADAPTER: Final = Adapter(
    name="opentom",
    title="OpenToM: locations, what follows from them, and attitudes, in longer narratives (Xu et al. 2024)",
    load=_load,
    subsets={name: about for name, (about, _) in _SUBSETS.items()},
    default="location",
    licence="CC-BY-NC-4.0",
    sources=(
        _source(_META, "db3a568059c665fcf924f67af00d77bcce8a6a587b034fa0476b954a66e259c8", 1_361_968, "metadata.json"),
        *(_source(f"{name}.json", *of) for name, of in _FILES.items()),
    ),
)
