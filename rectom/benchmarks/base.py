"""What every benchmark file gives: stories and questions, under a name and a subset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from rectom.errors import DataError
from rectom.story import Question, Story


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Stories with their questions.

    `name` and `subset` are those of the command line (`hitom`, `400`). `note` are the assumptions that methods are
    told which take a text as it is. `digest` is that of the file's bytes; in a permuted benchmark it is another, and
    `plain` is that of the bytes. `warnings` are things a user should know about the data. `task` names the kind of
    text (see `rectom.task`); where it is empty, no question is about a nested belief that RecToM could read, and
    other methods answer. `scoring` is the official measure (see `rectom.results.scoring`).
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
    plain: str = ""

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

    def in_view(self) -> Benchmark:
        """The benchmark whose stories tell what is asked about them. Those of a part of it tell the same."""
        asked: dict[str, dict[str, None]] = {story.id: {} for story in self.stories}
        for question in self.questions:
            asked[question.story_id][question.text] = None
        return replace(self, stories=tuple(replace(story, asked=tuple(asked[story.id])) for story in self.stories))

    def first(self, count: int) -> Benchmark:
        """The benchmark cut to `count` questions: all those of the first story, then of the second, and so on."""
        places = {story.id: place for place, story in enumerate(self.stories)}
        return self._cut(sorted(self.questions, key=lambda q: places[q.story_id])[:count])

    def drawn(self, count: int, seed: int) -> Benchmark:
        """The benchmark cut to `count` stories drawn at random, with all their questions.

        With the same seed, the stories of a smaller sample are among those of a larger one, and those of a permuted
        benchmark are the same as those of the plain one.
        """
        told = {q.story_id for q in self.questions}
        mark = self.subset.removeprefix(self.subset.partition("+")[0])

        def drawn(story: str) -> bytes:
            return sha256(f"{seed} {story.removesuffix(mark)}".encode()).digest()

        chosen = sorted(told, key=drawn)[:count]
        return self._cut([q for q in self.questions if q.story_id in chosen])

    def _cut(self, chosen: Sequence[Question]) -> Benchmark:
        """The benchmark with these questions alone, in their order, and the stories that they are about."""
        ids, told = {q.id for q in chosen}, {q.story_id for q in chosen}
        questions = tuple(q for q in self.questions if q.id in ids)
        return replace(self, questions=questions, stories=tuple(s for s in self.stories if s.id in told))


def digest_of(data: bytes) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    return sha256(data).hexdigest()
