"""Character chains of questions in natural language: `What does A believe about B's belief regarding …?`"""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERB = (
    r"(?:really |actually |still |first |also )*"
    r"(?:(?:believe|think|know|assume|expect|suppose|feel|view|understand|imagine)s?|thought|believed)\b"
)
_NOUN = (
    r"(?:current |own )?(?:belief|thought|thinking|understanding|perception|perspective|perceived|view|viewpoint"
    r"|opinion|knowledge|awareness|interpretation|impression|take|idea|stance)s?\b"
)
_ACT = r"(?:will (?:look|search|go|do)|(?:looks?|search(?:es)?) for)\b"


def belief_chain(question: str, names: Iterable[str], *, acting: bool = True) -> tuple[str, ...]:
    """C(q): those of `names` whose beliefs a question asks for, outermost first; nobody stands in it twice.

    A name counts where a verb of belief follows it (`Anne thinks`), or a noun of belief that is hers
    (`Anne's understanding`). With `acting` it counts as well where it is asked what she will do or looks for, which
    follows from what she believes.
    """
    known = "|".join(map(re.escape, names))
    if not known:
        return ()
    # `Anne and Bob's views` are what is talked about.
    believer = rf"(?<!and )\b({known})(?: {_VERB}|['’]s? {_NOUN})"
    actor = rf"|\b({known}) {_ACT}|\bwill ({known})\b" if acting else ""
    found = re.finditer(believer + actor, question)
    return tuple(dict.fromkeys(next(filter(None, match.groups())) for match in found))


def mentions(question: str, names: Iterable[str]) -> dict[str, str]:
    """The names in a question in their order, each by itself and the word that follows: `Anne thinks`, `Bob's view`."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known:
        return {}
    found = re.finditer(rf"\b({known})(?!\w)(?:['’]s?)?(?: (?!(?:{known})(?!\w))[\w'’-]+)?", question)
    return {match[0]: match[1] for match in found}
