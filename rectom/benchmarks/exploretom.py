"""ExploreToM (Sclar et al. 2025): stories that a search found hard for a model, about containers, rooms and knowledge.

The authors publish one sample, 13,309 questions that were searched against Llama-3.1-70B-Instruct; they advise to
search against the model that one tests. Read alike are re-issues in JSON lines, a question a line with the fields
`story`, `infilled_story`, `question` and `answer`. The stories are templates, a sentence an event; subsets that end in
`-infilled` have the same stories told at length by a model instead.

The questions follow templates, too, which tell the kind and the order of each (0 where no belief is asked for). The
file has no options: the official score looks for the right answer anywhere in a reply, so that a reply that names every
place is right. Here the options of a question about a place are all containers and rooms of its story's template, in
alphabetical order, and the others have those that they name. Most questions about rooms are asked of stories with a
single room; the questions about containers are the default. RecToM answers what asks for a belief about a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.rows import Numbered, checked, json_lines, records
from rectom.errors import DataError
from rectom.story import Question, Story, sentences

#: The templates of the questions: the kind of each, by the authors' names, and the order.
_TEMPLATES: Final = tuple(
    (re.compile(template), kind, order)
    for template, kind, order in (
        (r"In which (container|room) will .+ search for .+\?", "belief", 1),
        (r"In which (container|room) does .+ think that .+ will search for .+\?", "belief", 2),
        (r"In which (container|room) is .+ now\?", "ground_truth", 0),
        (r"In which (container|room) was .+ at the beginning\?", "memory", 0),
        (r"In which (container|room) was .+ before .+\?", "memory_before_event", 0),
        (r"Does .+ know about .+\? Answer yes or no\.", "knowledge", 1),
        (r"What does .+ think about .+'s belief on .+\? \(knows about it / does not know about it\)", "knowledge", 2),
        (r"Does .+ believe that .+\? Answer yes or no\.", "state", 1),
        (r"Does .+ think that .+ believes that .+\? Answer yes or no\.", "state", 2),
    )
)
# Names are bounded, so that no text takes long.
_NAME: Final = r"[^.]{1,200}?"
_CONTAINER: Final = re.compile(rf"moved the {_NAME} to the ({_NAME}), which is also located in ")
_ROOM: Final = re.compile(
    rf"(?:(?:entered|left) the |, which is also located in the )({_NAME})\.|"
    rf"moved the {_NAME} to the ({_NAME}), leaving the "
)
_FILE: Final = "ExploreToM-data-sample.csv"
_PART: Final = "exploretom_2266.jsonl"
_INFILLED: Final = "-infilled"


class Kind(NamedTuple):
    """A kind of question: its group, its order, and whether it asks for a `container`, a `room` or no place."""

    group: str
    order: int
    place: str


@lru_cache(maxsize=1 << 14)
def kind_of(question: str) -> Kind:
    """The kind of a question. Raises ValueError if it follows none of the templates."""
    for template, name, order in _TEMPLATES:
        if found := template.fullmatch(question):
            place = found[1] if found.re.groups else ""
            location = f"{place}_location" if place else ""
            return Kind("-".join(filter(None, [name, location])).removeprefix("belief-"), order, place)
    raise ValueError(f"the question {question[:60]!r} follows none of the templates")


@lru_cache(maxsize=1 << 10)
def places(story: str) -> dict[str, frozenset[str]]:
    """The containers and rooms that a template story names."""
    return {
        "container": frozenset(_CONTAINER.findall(story)),
        "room": frozenset(one or other for one, other in _ROOM.findall(story)),
    }


class Row(BaseModel):
    """A question of the file with its story. The names of the fields are those of the re-issues or of the authors."""

    model_config = ConfigDict(frozen=True)

    story: str = Field(validation_alias=AliasChoices("story", "story_structure"), pattern=r"\S")
    infilled_story: str | None = None
    question: str = Field(max_length=1_000)
    answer: str = Field(validation_alias=AliasChoices("answer", "expected_answer"))

    @model_validator(mode="after")
    def _answerable(self) -> Row:
        if self.answer not in self.options:
            raise ValueError(f"the answer {self.answer!r} is none of the options {', '.join(self.options) or '(none)'}")
        return self

    @property
    def kind(self) -> Kind:
        """The kind of question."""
        return kind_of(self.question)

    @property
    def options(self) -> tuple[str, ...]:
        """The options: the places of the story, or what the question names."""
        if self.kind.place:
            return tuple(sorted(frozenset().union(*places(self.story).values())))
        return ("knows about it", "does not know about it") if self.question.endswith(")") else ("yes", "no")

    @property
    def is_open(self) -> bool:
        """Whether more than one option is of the kind that is asked for."""
        return not self.kind.place or len(places(self.story)[self.kind.place]) > 1


#: The subsets: what they are, and the kinds of question that belong to them.
_SUBSETS: Final[dict[str, tuple[str, Callable[[Kind], bool]]]] = {
    "container": ("beliefs about containers", lambda kind: kind.order > 0 and kind.place == "container"),
    "room": ("beliefs about rooms", lambda kind: kind.order > 0 and kind.place == "room"),
    "belief": ("beliefs about containers and rooms", lambda kind: kind.order > 0 and kind.place != ""),
    "belief-1": ("those of order 1", lambda kind: kind.order == 1 and kind.place != ""),
    "belief-2": ("those of order 2", lambda kind: kind.order == 2 and kind.place != ""),
    "facts": ("where a thing is, was first, and was before an event", lambda kind: kind.order == 0),
    "yes-no": ("who knows of a topic or a thing's state; not in the re-issue", lambda kind: kind.place == ""),
    "all": ("every question", lambda kind: True),
}


def read_rows(data: bytes, file: str) -> dict[int, Row]:
    """The checked rows of a file's bytes, by their numbers. Raises DataError with the first wrong row."""
    rows: Iterator[Numbered] = (
        json_lines(data, file)
        if data[:64].lstrip().startswith(b"{")
        else records(data, file, ("story_structure", "infilled_story", "question", "expected_answer"))
    )
    return {number: checked(Row, row, file, number) for number, row in rows}


def _load(files: Files, subset: str) -> Benchmark:
    file = str(files.path(_FILE, _PART))
    rows = read_rows(files.read(_FILE, _PART), file)
    name = subset.removesuffix(_INFILLED)
    belonging = {number: row for number, row in rows.items() if _SUBSETS[name][1](row.kind)}
    told = _told(rows, "infilled" if name != subset else "story")
    chosen = {number: row for number, row in belonging.items() if number in told}
    if not chosen:
        raise DataError(f"{file} holds no rows of exploretom/{subset}: choose another subset, or is it the wrong file?")
    stories = {told[number].id: told[number] for number in chosen}
    return Benchmark(
        name="exploretom",
        subset=subset,
        stories=tuple(stories.values()),
        questions=tuple(_ask(number, row, told[number].id) for number, row in chosen.items()),
        digest=files.digest,
        warnings=tuple(_warnings(chosen, len(belonging) - len(chosen))),
        task="story" if name in {"container", "room", "belief", "belief-1", "belief-2"} else "",
    )


def _told(rows: dict[int, Row], form: str) -> dict[int, Story]:
    """The story of each row that has one in a form, numbered in the order of the file."""
    stories: dict[str, Story] = {}
    told = {}
    for number, row in rows.items():
        text = " ".join(((row.infilled_story or "") if form == "infilled" else row.story).split())
        if text:
            name = f"{form}-{len(stories) + 1:03d}"
            told[number] = stories.setdefault(text, Story(name, sentences(text)))
    return told


def _ask(number: int, row: Row, story_id: str) -> Question:
    return Question(str(number), story_id, row.question, row.options, row.answer, row.kind.order, row.kind.group)


def _warnings(chosen: dict[int, Row], missing: int) -> Iterator[str]:
    rows = chosen.values()
    repeated = len(rows) - len({(row.story, row.infilled_story, row.question) for row in rows})
    counts = {
        "questions ask for a room or a container where the story has only one": sum(not row.is_open for row in rows),
        "questions have a single option": sum(len(row.options) == 1 for row in rows),
        "questions repeat an earlier one": repeated,
        "more questions of this kind are left out, since their rows have no infilled story": missing,
    }
    yield from (f"{count} {what}" for what, count in counts.items() if count)


ADAPTER: Final = Adapter(
    name="exploretom",
    title="ExploreToM: places, knowledge and beliefs in stories made to be hard (Sclar et al. 2025)",
    load=_load,
    subsets={name: about for name, (about, _) in _SUBSETS.items()}
    | {f"{name}{_INFILLED}": f"{about}; infilled stories" for name, (about, _) in _SUBSETS.items()},
    default="container",
    licence="CC-BY-NC-4.0",
    sources=(
        Source(
            file=_FILE,
            addresses=(
                "https://huggingface.co/datasets/facebook/ExploreToM/resolve/"
                f"a4ac6f257e0034945f829716047ae6306dc625a0/{_FILE}",
            ),
            # As others report them of this revision.
            sha256="f8462b1a2199819a2baef5ab321b7b9240249fe229b94c86d8d06c2c47fc448b",
            size=31_848_634,
        ),
    ),
)
