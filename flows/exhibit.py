"""Benchmarks and their questions as a person reads them in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from rich.columns import Columns
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from rectom.benchmarks.adapter import Adapter
from rectom.benchmarks.base import Benchmark
from rectom.printable import shown
from rectom.story import Question

if TYPE_CHECKING:
    from rectom.benchmarks.audit import Finding
    from rectom.benchmarks.fetch import Held

#: How the condition of files is said: the label and its colour, the words that follow the files.
_CONDITIONS: Final = {
    "ok": ("here", "green", "checksum ok"),
    "not checked": ("here", "green", "checksum not checked"),
    "differs": ("differs", "yellow", "not as published; to replace: rectom data get {}"),
    "missing": ("missing", "red", "rectom data get {}"),
}
#: The kinds of Hi-ToM's findings, each with the line that heads it.
_KINDS: Final = {
    "prompting-type": "questions are labelled differently in their VP and CoTP rows (VP label, CoTP label):",
    "structure": "pairs of questions have the same structure and contradicting labels:",
    "unreachable": "CoTP labels cannot be reached by the rules `hitom`:",
}
#: So many files and subsets are named in the list; of more, the number is told.
_FILES: Final = 2
_SUBSETS: Final = 6
#: Of more subsets than these, each gets one line.
_FEW: Final = 8


def entry(console: Console, adapter: Adapter, held: Sequence[Held], instead: bool) -> None:
    """Print a benchmark of the list; `instead` says that it can be read although files are missing."""
    lines = _lines()
    lines.add_row(Text(adapter.name, "bold"), shown(adapter.title))
    for condition, some in groupby(sorted(held, key=attrgetter("condition")), key=attrgetter("condition")):
        label, colour, words = _CONDITIONS[condition]
        lines.add_row(Text(f"  {label}", colour), shown(f"{_files(list(some))}: {words.format(adapter.name)}"))
    if instead:
        lines.add_row(Text("  instead", "green"), "another file, which is read in its place")
    lines.add_row("  subsets", shown(_subsets(adapter)))
    lines.add_row("  licence", shown(adapter.licence))
    console.print(lines)
    for address in _addresses(held):  # in one piece each, so that it can be copied
        console.print(shown(f"  from      {address}"), soft_wrap=True)


def fault(console: Console, name: str, words: str) -> None:
    """Print a benchmark of the list that cannot be loaded."""
    lines = _lines()
    lines.add_row(Text(name, "bold red"), shown(f"cannot be loaded: {words}"))
    console.print(lines)


def _lines() -> Table:
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(width=10)
    lines.add_column()
    return lines


def _files(held: Sequence[Held]) -> str:
    size = sum(one.size or (0 if one.source.member else one.source.size) for one in held)
    names = ", ".join(one.source.file for one in held) if len(held) <= _FILES else f"{len(held)} files"
    return f"{names} ({decimal(size)})" if size else names


def _subsets(adapter: Adapter) -> str:
    names = [f"{adapter.default} (default)", *(name for name in adapter.subsets if name != adapter.default)]
    more = len(names) - _SUBSETS
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_SUBSETS])} and {more} more"


def _addresses(held: Sequence[Held]) -> list[str]:
    """The best address of each file; if there are many, the folders in which they lie."""
    addresses = list(dict.fromkeys(one.source.addresses[0] for one in held))
    folders = list(dict.fromkeys(address.rpartition("/")[0] + "/" for address in addresses))
    return addresses if len(addresses) <= _FILES else folders


def overview(console: Console, adapter: Adapter, benchmark: Benchmark, sizes: Mapping[str, Benchmark | None]) -> None:
    """Print a benchmark as a whole: how large its subsets are, and the questions of one by group and order.

    `sizes` has subsets as they were loaded, and None where the files hold nothing of one.
    """
    console.print(
        shown(adapter.title, "bold"), "", _sizes(adapter, sizes, console.width), "", _counts(benchmark), "", sep="\n"
    )
    for warning in benchmark.warnings:
        console.print(shown(f"note: {warning}"), "", sep="\n")


def _sizes(adapter: Adapter, sizes: Mapping[str, Benchmark | None], width: int) -> Table:
    table = _table("subset", "questions", "stories")
    table.add_column("")
    names = {name: f"{name} (default)" if name == adapter.default else name for name in sizes}
    room = width - max(map(len, names.values())) - len("  questions  stories  ")
    for name, loaded in sizes.items():
        numbers = (f"{len(loaded.questions):,}", f"{len(loaded.stories):,}") if loaded else ("–", "–")
        about = shown(adapter.subsets[name])
        if len(sizes) > _FEW:
            about.truncate(max(1, room), overflow="ellipsis")
        table.add_row(names[name], *numbers, about)
    return table


def _counts(benchmark: Benchmark) -> Table:
    """The questions of a subset: a row a group, a column an order."""
    counts = counted(benchmark)
    orders = sorted({order for order, _ in counts}, key=lambda order: (order is None, order))
    groups = sorted({group for _, group in counts})
    headings = ["no order" if order is None else f"order {order}" for order in orders]
    table = _table(f"{benchmark.name}/{benchmark.subset}", *headings, "all")
    for group in groups if groups != [""] else []:
        row = [counts[order, group] for order in orders]
        table.add_row(shown(group), *(f"{count:,}" if count else "–" for count in [*row, sum(row)]))
    sums = [sum(counts[order, group] for group in groups) for order in orders]
    table.add_row("all questions", *(f"{count:,}" for count in [*sums, sum(sums)]))
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def counted(benchmark: Benchmark) -> Counter[tuple[int | None, str]]:
    """How many questions there are of each order and group."""
    return Counter((question.order, question.group) for question in benchmark.questions)


def asked(console: Console, benchmark: Benchmark, question: Question) -> None:
    """Print a question with its story, the options in the order shown, and the gold answer marked."""
    story = next(story for story in benchmark.stories if story.id == question.story_id)
    console.print(shown(f"Question {question.id} of {benchmark.name}/{benchmark.subset}", "bold"))
    order = "" if question.order is None else f", order {question.order}"
    group = f", {question.group}" if question.group else ""
    console.print(shown(f"story {story.id}{order}{group}", "dim"), "", sep="\n")
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(justify="right", style="dim")
    lines.add_column()
    for number, line in enumerate(story.lines, 1):
        lines.add_row(str(number), shown(line))
    lines.add_row("", "")
    lines.add_row("", shown(question.text, "bold"))
    for letter, option in enumerate(question.choices, ord("A")):
        gold = option == question.gold
        lines.add_row(chr(letter), shown(f"{option}  ← gold", "green") if gold else shown(option))
    console.print(lines, "", sep="\n")


def doubted(console: Console, findings: Sequence[Finding]) -> None:
    """Print what the audit of Hi-ToM's labels found."""
    for kind, title in _KINDS.items():
        found = [finding for finding in findings if finding.kind == kind]
        console.print(f"[bold]{len(found)}[/] {title}")
        console.print(_listed(found) if kind == "prompting-type" else _explained(found))


def _listed(findings: Sequence[Finding]) -> Columns:
    """Findings that are all of one reason: the label in doubt and the one that stands."""
    return Columns(shown(f"  {f.ids[0]}: {f.label}, {f.ids[1]}: {f.expected}") for f in findings)


def _explained(findings: Sequence[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    for f in findings:
        table.add_row(f"  {', '.join(map(str, f.ids))}", shown(f"labelled {f.label}, not {f.expected}: {f.reason}"))
    return table
