"""Stories, questions, and the words that occur in a story."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rectom.errors import StoryError

_NUMBERED = re.compile(r"(\d+)[.):]?\s+(.*)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, one or more, with their words unchanged."""
    return tuple(_SENTENCE_END.split(text.strip()))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that facts about a story may use, each in order of appearance.

    In an `open` vocabulary only the characters are known; rooms, objects and containers may bear any name.
    """

    characters: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    open: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """An event sequence E = (e_1, …, e_T) in words, a line an event, without line numbers.

    `asked` are the questions that readers of some texts have in view (see `rectom.task`).
    """

    id: str
    lines: tuple[str, ...]
    asked: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, id: str = "story") -> Story:  # noqa: A002
        """Read a story from text: its numbered lines if it has such, else every line, else every sentence.

        What stands before and after numbered lines (instructions, a rule) is no part of the story. Raises StoryError
        if nothing is left, or if lines without a number stand between numbered ones.
        """
        written = [line.strip() for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
        lines = _numbered(written) or (written if len(written) > 1 else list(sentences(" ".join(written))))
        if not any(lines):
            raise StoryError(f"{id} holds no story: write an event a line")
        return cls(id, tuple(lines))

    def numbered(self) -> str:
        """The story as prompts show it: `1 …`, `2 …`, a line an event."""
        return "\n".join(f"{number} {line}" for number, line in enumerate(self.lines, 1))


@dataclass(frozen=True, slots=True)
class Question:
    """A question q about a story, its options in the order shown, and the gold answer y (one of the options).

    `order` is the belief-nesting order K that the benchmark states; None if it states none. `group` is the kind of
    question that the benchmark reports by. Questions with one `ballot` are one question asked several times, with its
    options in other orders; the majority counts. `classes`, in the order of the options, are what the official measure
    counts the options as where that is not their words.
    """

    id: str
    story_id: str
    text: str
    choices: tuple[str, ...]
    gold: str | None = None
    order: int | None = None
    group: str = ""
    ballot: str = ""
    classes: tuple[str, ...] = ()

    def class_of(self, answer: str | None) -> str:
        """What the official measure counts an answer as; empty where it counts the answer's words."""
        return dict(zip(self.choices, self.classes, strict=False)).get(answer or "", "")


def _numbered(written: list[str]) -> list[str]:
    """The texts of lines that are numbered one after the other; nothing if they are not."""
    worded = [line for line in written if any(map(str.isalnum, line))]
    found = [_NUMBERED.match(line) for line in worded]
    texts = [match for match in found if match]
    numbers = [int(match[1]) for match in texts]
    if (
        not texts
        or (len(texts) == 1 and len(worded) > 1)
        or numbers != list(range(numbers[0], numbers[0] + len(texts)))
    ):
        return []
    begin, end = found.index(texts[0]), found.index(texts[-1])
    for line, match in zip(worded[begin:end], found[begin:end], strict=True):
        if not match:
            raise StoryError(f"the line {line[:60]!r} has no number, the others have: number every line or none")
    return [match[2].strip() for match in texts]
