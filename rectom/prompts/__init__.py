"""The prompts: text files, one a step, with `$placeholders`, in a folder a benchmark.

A file holds the system message, a line `=== user`, and the user message. What is the same for all stories comes
first and what differs most comes last, so that a server's prefix cache can keep the beginning.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from string import Template

from rectom.errors import SettingsError
from rectom.rules import Rules

_BREAK = "\n=== user\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt template. `digest` is that of the text, in hexadecimal: it tells versions apart."""

    name: str
    system: str
    user: str
    digest: str

    @property
    def placeholders(self) -> frozenset[str]:
        """The names that must be filled."""
        return frozenset(Template(self.system + self.user).get_identifiers())

    def fill(self, **fields: str) -> tuple[str, str]:
        """The system and the user message. Raises SettingsError unless exactly the placeholders are given."""
        if self.placeholders != fields.keys():
            wrong = ", ".join(sorted(self.placeholders ^ fields.keys()))
            raise SettingsError(f"prompt {self.name}: placeholders and fields differ in {wrong}")
        return Template(self.system).substitute(fields), Template(self.user).substitute(fields)


@cache
def load(benchmark: str, step: str) -> Prompt:
    """The prompt of a step. Raises SettingsError if there is none."""
    try:
        text = _folder(benchmark).joinpath(f"{step}.txt").read_text("utf-8")
    except OSError:
        raise SettingsError(f"there is no prompt for the step {step!r} of {benchmark!r}") from None
    system, _, user = text.partition(_BREAK)
    return Prompt(f"{benchmark}/{step}", system.strip(), user.strip(), sha256(text.encode()).hexdigest())


def digests(benchmark: str) -> dict[str, str]:
    """The digest of every prompt in a folder, by step; none of no folder."""
    if not benchmark:
        return {}
    files = sorted(file.name for file in _folder(benchmark).iterdir())
    steps = [name.removesuffix(".txt") for name in files if name.endswith(".txt")]
    return {step: load(benchmark, step).digest for step in steps}


def in_words(rules: Rules, choices: tuple[str, ...] = ()) -> str:
    """Choices of a rule set as sentences, a line each; all that there are unless some are named."""
    words = _words()
    fields = rules.fields()
    lines = [words[choice][str(fields[choice]).lower()] for choice in choices or words]
    return "\n".join(f"- {line}" for line in lines if line)


@cache
def _words() -> dict[str, dict[str, str]]:
    return tomllib.loads(_folder("hitom").joinpath("rules.toml").read_text("utf-8"))


def _folder(benchmark: str) -> resources.abc.Traversable:
    return resources.files("rectom.prompts").joinpath(benchmark)
