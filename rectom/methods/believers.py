"""Whose belief a question asks for, and who is in a text: read by rule, without a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from rectom import grammar
from rectom.chains import belief_chain
from rectom.errors import StoryError
from rectom.grammars import tomi
from rectom.reader.utterances import speakers
from rectom.story import Story
from rectom.words import words_of

#: How the questions of a controlled text are read.
_GRAMMARS: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    "hitom": lambda text: grammar.read_question(text)[0],
    "tomi": lambda text: tomi.read_question(text).chain,
}


def chain_of(story: Story, question: str, task: str) -> tuple[str, ...]:
    """C(q): the characters whose beliefs a question asks for, outermost first; empty if it asks for nobody's.

    In controlled texts (`task` is `hitom` or `tomi`) the grammar tells, in others what a question says of believing
    and of what somebody will do. In a conversation speakers count; the names in the question if it asks for none of
    them, as names are misspelt. In BigToM that is the first word of each story, whom its authors' programs take.
    """
    if task in _GRAMMARS:
        try:
            return _GRAMMARS[task](question)
        except StoryError:
            pass
    characters = characters_of(story, task)
    if task == "story":
        # It may spell a name in another way than a question about it: `Xiaoming`, `Xiao Ming`.
        _, _, behind_the_first = question.partition(" ")
        characters += words_of([behind_the_first]).characters
    chain = belief_chain(question, (*_full_names(question, characters), *characters))
    return chain or (belief_chain(question, words_of([question]).characters) if task == "dialogue" else ())


def _full_names(question: str, characters: tuple[str, ...]) -> list[str]:
    """The names of several words in a question, each of them a name by itself: `Han Meimei`."""
    known = "|".join(map(re.escape, characters))
    return re.findall(rf"\b(?:{known})(?: (?:{known})\b)+", question) if known else []


def characters_of(story: Story, task: str) -> tuple[str, ...]:
    """Who is in a text: its speakers if it is a conversation; where no grammar tells, every name."""
    if task == "dialogue":
        return speakers(story.lines)
    return words_of(story.lines, tomi.vocabulary if task == "tomi" else grammar.vocabulary).characters
