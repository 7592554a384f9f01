"""README.md and docs/ as a reader takes them: commands, files to write, links, options, and what the program says.

Conventions of the pages: an indented block, or one fenced as `sh`, is of commands, a line each unless it ends in a
backslash. A block fenced as `console` has commands behind `$ `, each with what it prints; there `…` stands for anything
and a line of it alone for any lines. A comment behind a command may say `exit status N`. A block fenced as `toml` whose
first line is `# NAME.toml` is a file. Everything else is not for the shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

#: Every page, the README first.
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

#: Indented blocks that show something instead of commands, by the word that they begin with.
_SHOWN: Final = ("World",)

_FENCE: Final = "```"
_INDENT: Final = "    "


@dataclass(frozen=True)
class Block:
    """A block of code: the number of its first line, its language (empty if it is indented), its lines."""

    line: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command of a page; `printed` are the lines that the page shows of it, None where it shows none."""

    page: str
    line: int
    text: str
    printed: tuple[str, ...] | None = None

    @property
    def words(self) -> list[str]:
        """The words of the shell, without the comment."""
        return shlex.split(self.text, comments=True)

    @property
    def status(self) -> int:
        """The exit status that the page tells; 0 unless it tells another."""
        told = re.search(r"#.*exit status (\d+)", self.text)
        return int(told[1]) if told else 0

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}: {self.text}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of code of a page, in order."""
    lines = page.read_text("utf-8").split("\n")
    number = 0
    while number < len(lines):
        line, start = lines[number], number
        number += 1
        if line.startswith(_FENCE):
            number = lines.index(_FENCE, number) + 1
            yield Block(start + 2, line.removeprefix(_FENCE).strip(), tuple(lines[start + 1 : number - 1]))
        elif line.startswith(_INDENT) and not lines[start - 1].strip():
            while number < len(lines) and lines[number].startswith(_INDENT):
                number += 1
            yield Block(start + 1, "", tuple(line.removeprefix(_INDENT) for line in lines[start:number]))


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    text = re.sub(rf"^{_FENCE}.*?^{_FENCE}$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(rf"^{_INDENT}.*$", "", text, flags=re.MULTILINE)


def spoken(page: Path) -> list[str]:
    """What stands between backticks in the prose of a page."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def commands(page: Path) -> list[Command]:
    """The commands of a page, in order."""
    return [command for block in blocks(page) for command in _commands(page.name, block)]


def _commands(page: str, block: Block) -> Iterator[Command]:
    if block.language == "console":
        yield from _printing(page, block)
    elif block.language in {"", "sh"} and not block.lines[0].startswith(_SHOWN):
        for line, text in _whole(block):
            yield Command(page, line, text)


def _whole(block: Block) -> Iterator[tuple[int, str]]:
    """Commands with the lines on which they go on; a loop is one command."""
    held, start = "", block.line
    for number, line in enumerate(block.lines, block.line):
        start = start if held else number
        held += line
        if held.startswith("while ") and line != "done":
            held += "\n"
        elif line.endswith("\\"):
            held = held.removesuffix("\\")
        else:
            yield start, held
            held = ""


def _printing(page: str, block: Block) -> Iterator[Command]:
    numbered = list(enumerate(block.lines, block.line))
    starts = [place for place, (_, line) in enumerate(numbered) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(numbered)], strict=True):
        line, text = numbered[start]
        printed = tuple(shown for _, shown in numbered[start + 1 : end])
        yield Command(page, line, text.removeprefix("$ "), printed)


def files(page: Path) -> dict[str, str]:
    """The files that a page has the reader write, by name."""
    found = {}
    for block in blocks(page):
        named = re.match(r"# ([\w-]+\.toml)\b", block.lines[0]) if block.language == "toml" else None
        if named:
            found[named[1]] = "\n".join(block.lines)
    return found


def agrees(printed: Sequence[str], out: str) -> bool:
    """Whether an output is what a page shows of it."""
    bare = "".join(f"{line.rstrip()}\n" for line in out.rstrip("\n").split("\n"))
    return re.fullmatch("".join(map(_pattern, printed)), bare) is not None


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.rstrip().split("…"))) + r"\n"


def links(page: Path) -> list[str]:
    """What a page links to on this machine, as it is written."""
    return [target for target in re.findall(r"\]\(([^()\s]+)\)", prose(page)) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return set(slugs)
