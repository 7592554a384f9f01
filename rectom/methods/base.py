"""What a method is: a question about a story in, an option out; and how one joins RecToM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from rectom.errors import SettingsError
from rectom.reader.asking import Asker
from rectom.story import Question, Story

#: The entry point group in which other packages offer methods.
GROUP: Final = "rectom.methods"


class Method(Protocol):
    """Answers questions by calls to a model, with whatever steps between."""

    def fields(self) -> dict[str, object]:
        """What an answer depends on besides story and question, as JSON: part of the key of the cached result."""
        ...

    async def answer(self, story: Story, question: Question) -> str:
        """The option that the method chooses. Raises StepFailure where it comes to none."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a method is made of.

    `asker` asks the model, with the prompts of the method's folder. `note` are the benchmark's assumptions, `task` its
    kind of text (`hitom`, `tomi`, `story`, `dialogue`, or empty). `options` are the method's own, all of them.
    """

    asker: Asker
    note: str = ""
    task: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A method as RecToM knows it: `make` gives it for a run.

    `prompts` is the folder of its prompts in `rectom.prompts`; empty for a method that has its prompts in itself.
    `options` are its own settings with what each is unless it is given (`timetom:solver=off`).
    """

    name: str
    title: str
    make: Callable[[Setup], Method]
    prompts: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def switch(method: str, setup: Setup, option: str) -> bool:
    """Whether an option of a method is on; where it is not given it is off. Raises SettingsError for other values."""
    given = setup.options.get(option, "off")
    if given not in {"on", "off"}:
        raise SettingsError(f"--method {method}:{option}={given}: give on or off")
    return given == "on"
