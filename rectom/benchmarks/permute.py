"""Controls for contamination and for a liking of positions: the same questions with other names, in another order.

What a model has seen of a benchmark is its names, its containers and the order of its options. With others every
question keeps its meaning, so that a difference in accuracy is not one of reasoning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from rectom.story import Question, Story, Vocabulary
from rectom.words import words_of

#: What can be permuted, in the order in which it is named and done.
KINDS: Final = ("choices", "names", "containers")

#: Given names that are no words, no places, and in none of the benchmarks. `either` are given to women and men alike:
#: they go with every pronoun.
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
        "Akira Ashley Ayodele Corey Deniz Dominique Gurpreet Harpreet Hikaru Jaspreet Jocelyn Jyoti Kendall Kim "
        "Kiran Lior Makoto Manpreet Marion Nikita Rory Sacha Sonam Stevie Temitope Tenzin Tracy Tsering Vanja "
        "Yuki".split()
    ),
}

#: Names that are words or places as well.
_WORDS: Final = frozenset(
    "Alexandria Amber Angel April Art Asia Athena Aurora August Austin Autumn Bill Brooklyn Cadence Cali Camden Cash "
    "Chad Chance Chandler Charity Charlotte Chase Chelsea Cheyenne Christian Cliff Cole Colt Cooper Dakota Dallas Dawn "
    "Destiny Diamond Drew Eden Faith Flora Florence Frank Gene Genesis Georgia Grace Grant Guy Harmony Haven Hazel "
    "Holly Hope Hunter Iris Israel Ivy Jack Jackson Jade Jesus Jordan Journey Joy June Justice Kenya Lane Lily Lincoln "
    "London Luna Lyric Madison Mark Mason Max May Melody Mercedes Miles Nova Olive Orlando Paris Pat Pearl Penny Petra "
    "Phoenix Pierce Ray Reed Rich Rob Robin Rose Ruby Sage Salvador Santiago Savannah Serenity Sierra Sky Skip Sue "
    "Summer Sunny Sydney Tanner Trinity Troy Verona Victoria Vienna Violet Virginia Wade Walker Warren Will Zion".split()
)
#: What follows such a word at the beginning of a sentence where it names nobody: `Hope you are well`.
_WORD_AFTER = re.compile(
    r" (?:you|your|yours|we|us|our|I|it|its|he|she|they|their|this|that|these|those|there|the|an?|my|me|all|everyone"
    r"|to|for|of|not)\b"
)
#: What stands before such a word in a sentence where it names nobody: `in May`, `the Hope`, `moved to Paris`.
_WORD_BEFORE = re.compile(
    r"\b(?:an?|the|my|your|our|this|every|last|next|early|late|in|near|across|around|through|during|since|until"
    r"|(?:city|streets|people|capital|north|south) of|visit(?:ed|ing|s)?"
    r"|(?:go|goes|going|went|been|move[ds]?|moving|travel\w*|fly|flew|flying|drive|drove|trip|flight|way) (?:to|from)"
    r"|(?:am|is|are|was|were|'m|'re|’m|’re|come|comes|came|hail|hails) from) \Z",
    re.I,
)
_OWNS = re.compile(r"['’]| and [A-Z]")
_BEGINS = re.compile(r"(?:\A|[.!?:…\"“]\s*)\Z")
_PROPER_BEFORE = re.compile(r"(?:\A|.*[^.!?:…\"“\s]\s+)([A-Z][\w.]*) \Z", re.S)
_PROPER_AFTER = re.compile(r" ([A-Z][\w.]*)")
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_SHE, _HE = (re.compile(rf"\b(?:{words})\b", re.I) for words in ("she|her|hers|herself", "he|him|his|himself"))
