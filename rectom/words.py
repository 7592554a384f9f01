"""The vocabulary of a story, which bounds what a model may write about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rectom import grammar
from rectom.errors import StoryError
from rectom.story import Vocabulary

_NAME = re.compile(r"\b[A-Z][a-z]\w*")

#: Capitalised words that begin sentences and name nobody.
_NO_NAMES = frozenset(
    """The This That These Those There Then They Their He Him His She Her It Its We You Your Our Who Where When
    While What Why How After Before Later Meanwhile Finally And But Now Next Both Everyone Nobody Somebody Someone All
    In On At From With To By For As If So Yet Because Although Once One Two Some Many Each Every Another Today Tomorrow
    Yesterday Suddenly Soon First Second Last Inside Outside Unknown Without During Since Until Upon Not No""".split()
)


def words_of(lines: Sequence[str], read: Callable[[Sequence[str]], Vocabulary] = grammar.vocabulary) -> Vocabulary:
    """The names in some lines, by what they name.

    In lines of a grammar, Hi-ToM's unless another is given to `read` them, that is known. In other text every
    capitalised word may be a character, and the vocabulary is open.
    """
    try:
        return read(lines)
    except StoryError:
        text = "\n".join(lines)
        names = dict.fromkeys(name for name in _NAME.findall(text) if name not in _NO_NAMES)
        return Vocabulary(tuple(names), open=True)


def check_question(question: str, words: Vocabulary) -> None:
    """Raise StoryError if a question of Hi-ToM's grammar names somebody or something that its story does not."""
    try:
        chain, thing = grammar.read_question(question)
    except StoryError:
        return
    for kind, name, known in [
        *(("character", name, words.characters) for name in chain),
        ("object", thing, words.objects),
    ]:
        if name not in known and not (kind == "object" and words.open):
            raise StoryError(f"the story has no {kind} {name!r}; it has {', '.join(known) or 'none'}")
