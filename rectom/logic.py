"""The belief language of the paper's appendix: parsed, printed, and evaluated on any perspective.

    φ, ψ ::= x | ¬φ | (φ → ψ) | B_a φ

written `in(ball,box)`, `~φ`, `φ -> ψ` and `B[Anne] φ`. `φ & ψ` abbreviates `~(φ -> ~ψ)`, and `φ | ψ` abbreviates
`~φ -> ψ`. `~` and `B[a]` bind most tightly, then `&`, then `|`, then `->`; each groups to the right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rectom.errors import FormulaError
from rectom.facts import Fact, read_fact
from rectom.perspective import Perspective


@dataclass(frozen=True, slots=True)
class Atom:
    """x: a fact, true iff the final state of the perspective holds it."""

    fact: Fact

    def __str__(self) -> str:
        return str(self.fact)


@dataclass(frozen=True, slots=True)
class Not:
    """¬φ."""

    body: Formula

    def __str__(self) -> str:
        return f"~{self.body}"


@dataclass(frozen=True, slots=True)
class Implies:
    """φ → ψ."""

    premise: Formula
    conclusion: Formula

    def __str__(self) -> str:
        return f"({self.premise} -> {self.conclusion})"


@dataclass(frozen=True, slots=True)
class Believes:
    """B_a φ: the character a believes φ."""

    character: str
    body: Formula

    def __str__(self) -> str:
        gap = "" if isinstance(self.body, Implies) else " "
        return f"B[{self.character}]{gap}{self.body}"


Formula: TypeAlias = Atom | Not | Implies | Believes

#: F: the perspective of a character, constructed from a source perspective.
Construct: TypeAlias = Callable[[Perspective, str], Perspective]


def both(left: Formula, right: Formula) -> Formula:
    """φ ∧ ψ, the abbreviation of ¬(φ → ¬ψ)."""
    return Not(Implies(left, Not(right)))


def either(left: Formula, right: Formula) -> Formula:
    """φ ∨ ψ, the abbreviation of ¬φ → ψ."""
    return Implies(Not(left), right)


def holds(formula: Formula, perspective: Perspective, construct: Construct) -> bool:
    """P ⊨ φ, with P ⊨ B_a φ iff F_a(P) ⊨ φ (Eq. 5 of the appendix) and closed-world atoms."""
    match formula:
        case Atom(fact):
            return fact in perspective.final
        case Not(body):
            return not holds(body, perspective, construct)
        case Implies(premise, conclusion):
            return not holds(premise, perspective, construct) or holds(conclusion, perspective, construct)
        case Believes(character, body):
            return holds(body, construct(perspective, character), construct)


def parse(text: str) -> Formula:
    """Read a formula. Raises FormulaError, with the place of the fault, for anything else."""
    formula, place = _implication(text, 0)
    if place < len(text):
        raise FormulaError(f"unexpected {text[place:]!r} at {place} in {text!r}")
    return formula


_TOKEN: Final = re.compile(r"\s*(->|[~&|()]|B\[\s*([\w'.-]+)\s*\])\s*")

#: Deeper nesting than this is refused, so that no text can exhaust the interpreter's stack.
_DEEPEST: Final = 100


def _implication(text: str, start: int, depth: int = 0) -> tuple[Formula, int]:
    premise, place = _disjunction(text, start, depth)
    if (found := _TOKEN.match(text, place)) and found[1] == "->":
        conclusion, place = _implication(text, found.end(), depth + 1)
        return Implies(premise, conclusion), place
    return premise, place


def _disjunction(text: str, start: int, depth: int) -> tuple[Formula, int]:
    left, place = _conjunction(text, start, depth)
    if (found := _TOKEN.match(text, place)) and found[1] == "|":
        right, place = _disjunction(text, found.end(), depth + 1)
        return either(left, right), place
    return left, place


def _conjunction(text: str, start: int, depth: int) -> tuple[Formula, int]:
    left, place = _unary(text, start, depth)
    if (found := _TOKEN.match(text, place)) and found[1] == "&":
        right, place = _conjunction(text, found.end(), depth + 1)
        return both(left, right), place
    return left, place


def _unary(text: str, start: int, depth: int) -> tuple[Formula, int]:
    if depth > _DEEPEST:
        raise FormulaError(f"nested more than {_DEEPEST} deep at {start}")
    found = _TOKEN.match(text, start)
    if found and found[1] == "~":
        body, place = _unary(text, found.end(), depth + 1)
        return Not(body), place
    if found and found[1].startswith("B"):
        body, place = _unary(text, found.end(), depth + 1)
        return Believes(found[2], body), place
    if found and found[1] == "(":
        return _bracketed(text, found.end(), depth)
    fact, place = read_fact(text, start)
    return Atom(fact), _blanks(text, place)


def _bracketed(text: str, start: int, depth: int) -> tuple[Formula, int]:
    formula, place = _implication(text, start, depth + 1)
    if text[place : place + 1] != ")":
        raise FormulaError(f"expected ')' at {place} in {text!r}")
    return formula, _blanks(text, place + 1)


def _blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
