"""What every benchmark file gives: stories and questions, under a name and a subset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256

from rectom.errors import DataError
from rectom.story import Question, Story


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Stories with their questions.

    `name` and `subset` are those of the command line (`hitom`, `400`). `note` are the assumptions that every
    prompt carries. `digest` is that of the file's bytes. `warnings` are things a user should know about the data.
    `task` names the kind of text (see `rectom.task`); where it is empty, no question is about a nested belief
    that RecToM could read, and other methods answer. `scoring` is the official measure (see `rectom.results.scoring`).
    """

    name: str
    subset: str
    stories: tuple[Story, ...]
    questions: tuple[Question, ...]
    note: str = ""
    digest: str = ""
    warnings: tuple[str, ...] = ()
    task: str = "hitom"
    scoring: str = "accuracy"

    def __post_init__(self) -> None:
        doubled = [name for name, times in Counter(q.id for q in self.questions).items() if times > 1]
        if doubled:
            raise DataError(f"{self.name}: the question id {doubled[0]!r} occurs more than once")
        for question in self.questions:
            if question.gold is not None and question.gold not in question.choices:
                raise DataError(f"{self.name}: the answer {question.gold!r} of question {question.id} is no option")

    def of_story(self, story_id: str) -> tuple[Question, ...]:
        """The questions about one story."""
        return tuple(q for q in self.questions if q.story_id == story_id)

    def first(self, count: int) -> Benchmark:
        """The benchmark cut to `count` questions: all those of the first story, then of the second, and so on."""
        places = {story.id: place for place, story in enumerate(self.stories)}
        chosen = {q.id for q in sorted(self.questions, key=lambda q: places[q.story_id])[:count]}
        questions = tuple(q for q in self.questions if q.id in chosen)
        kept = {q.story_id for q in questions}
        return replace(self, questions=questions, stories=tuple(s for s in self.stories if s.id in kept))


def digest_of(data: bytes) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    return sha256(data).hexdigest()
