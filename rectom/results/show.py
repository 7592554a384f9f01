"""One question in the terminal: how its answer came about, step by step, along the character chain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rectom.printable import printable, shown
from rectom.results.drawing import WORLD, Cell, Column, Drawing, Mark, unreadable
from rectom.results.readers import has_steps

_STYLES: Final = {
    Mark.WORLD: "",
    Mark.OBSERVED: "cyan",
    Mark.HEARD: "",
    Mark.REVISED: "bold magenta",
    Mark.INHERITED: "dim",
}
_SIGNS: Final = {"+": "green", "-": "red"}
#: Blanks between two columns.
_GAP: Final = 2
#: Columns are set below one another where fewer characters are left for each, besides those for the story.
_NARROWEST: Final = 14
_STORY: Final = 28
_LEGEND: Final = (
    "o observed (from the room named)   h noticed, or heard of   . inherited\n"
    "! revised by what was heard   + came   - went   @room who is there"
)
_LEGEND_OF_RULES: Final = "\n✗ what the rules have instead"
_LEGEND_OF_HISTORIES: Final = "o observed: the event is in the history   . not observed: the history is as before"


def table(trace: Mapping[str, Any], method: str = "rectom") -> RenderableType:
    """All that a trace tells: the question and its answer, a row a step and a column a perspective, the calls.

    What only RecToM has, the chain and the perspectives, is not spoken of for another `method`. As wide as the console
    is, 80 columns at least; without colour it says the same. Raises DataError for a trace that cannot be read.
    """
    drawing = Drawing.of(trace)
    try:
        return Group(*_parts(trace, drawing, has_steps(method)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(trace, error) from None


def _parts(trace: Mapping[str, Any], drawing: Drawing, steps: bool) -> list[RenderableType]:
    legend = _LEGEND_OF_HISTORIES if drawing.histories else _LEGEND
    legend += _LEGEND_OF_RULES if drawing.rules else ""
    parts: list[RenderableType] = [_header(trace, steps), "", _Steps(drawing)]
    if drawing.columns or steps:
        parts.append(Text(legend, style="dim"))
    if drawing.missing:
        parts.append(shown(f"Not built: the perspectives of {', '.join(drawing.missing)}.", "bold red"))
    calls = trace.get("calls") or ()
    return [*parts, "", _calls(calls) if calls else Text(_uncalled(trace), style="dim")]


def _header(trace: Mapping[str, Any], steps: bool) -> Table:
    failure, choices = trace.get("failure"), trace.get("choices") or ()
    chain = trace.get("chain")
    reading = {
        "Chain": "not read" if chain is None else " → ".join([WORLD, *chain]),
        "Reduced": trace.get("reduced") or "not reduced",
    }
    fields = {
        f"Question {trace['id']}": f"{trace['question']}  (story {trace['story_id']})",
        # Names go into one line; sentences would run together there.
        "Choices": ("\n" if any(map(_is_sentence, choices)) else ", ").join(choices),
        **(reading if steps or chain is not None else {}),
        "Answer": _verdict(trace),
        "Failed at": f"{failure['step']}: {failure['why']}" if failure else "",
        "Went wrong": _fault(trace["fault"]) if trace.get("fault") else "",
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in fields.items():
        if text:
            style = "bold red" if name in {"Failed at", "Went wrong"} else ""
            grid.add_row(shown(name), Text("\n").join(shown(line, style) for line in text.split("\n")))
    return grid


def _is_sentence(option: str) -> bool:
    return " " in option


def _quoted(option: str) -> str:
    """An option in a sentence: in quotes if it is one itself."""
    return f"“{option}”" if _is_sentence(option) else option


def _verdict(trace: Mapping[str, Any]) -> str:
    predicted, gold = trace.get("predicted"), trace.get("gold")
    if predicted is None or trace.get("failure"):
        return f"none; the label is {_quoted(gold)}" if gold else "none"
    said = _quoted(predicted)
    if gold is None:
        return f"{said}; there is no label"
    return f"{said}, right" if predicted == gold else f"{said}, wrong: the label is {_quoted(gold)}"


def _fault(fault: Mapping[str, Any]) -> str:
    """Where a wrong answer went wrong, in words."""
    line, who = fault.get("line"), fault.get("who")
    place = ", ".join(filter(None, [f"at {fault['step']}", f"line {line}" if line else "", who]))
    told = "the check asks for" if fault.get("by") == "verify" else "the rules say"
    return f"{place}: {fault['found']}; {told} {fault['expected']}"


@dataclass(frozen=True)
class _Steps:
    """The table of the steps. Knows its width when it is printed, and breaks long names to fit."""

    drawing: Drawing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.drawing.columns
        side_by_side = max(1, (options.max_width - _STORY) // _NARROWEST)
        for start in range(0, max(1, len(columns)), side_by_side):
            if start:
                yield ""
            yield self._grid(columns[start : start + side_by_side], options.max_width)

    def _grid(self, columns: Sequence[Column], width: int) -> Table:
        number = max(2, len(str(len(self.drawing.lines))))
        room = width - number - _GAP * (len(columns) + 1)
        each = min(24, int(room * 0.72) // len(columns)) if columns else 0
        story = min(60, room - each * len(columns))
        grid = _table()
        grid.show_footer = bool(columns)
        grid.add_column("#", "", width=number, justify="right", style="dim")
        final = "Final history" if self.drawing.histories else "Final state"
        grid.add_column("Story", final, width=story, overflow="fold")
        for column in columns:
            grid.add_column(_head(column, each), _foot(column, each), width=each, overflow="fold")
        for step, line in enumerate(self.drawing.lines):
            grid.add_row(str(step + 1), self._line(step, line, story), *self._cells(columns, step, each))
        return grid

    def _cells(self, columns: Sequence[Column], step: int, width: int) -> Iterator[Text]:
        for column in columns:
            cells, rules = column.cells, (self.drawing.expected(column) or column).cells
            before = cells[step - 1] if step else None
            yield _cell(cells[step], before, rules[step], width) if step < len(cells) else Text("")

    def _line(self, step: int, line: str, width: int) -> Text:
        """The line, and its event where the changes of the world do not show it."""
        event = self.drawing.events[step] if step < len(self.drawing.events) else ()
        if self.drawing.columns and not self.drawing.histories:
            event = tuple(fact for fact in event if fact[0] not in _SIGNS)
        return _lines([(line, ""), *((fact, _SIGNS.get(fact[0], "magenta")) for fact in event)], width)


def _table() -> Table:
    # The line between two columns is itself a blank.
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False)


def _head(column: Column, width: int) -> Text:
    above = [(f"{name} thinks", "dim") for name in column.chain[:-1]]
    return _lines([*above, (column.holder, "bold")], width)


def _foot(column: Column, width: int) -> Text:
    return _lines([(", ".join(column.answer) or "nothing", "bold")], width)


def _cell(cell: Cell, before: Cell | None, rule: Cell, width: int) -> Text:
    """A cell, and below it what the rules' cell holds, where they differ in that."""
    style = _STYLES[cell.mark]
    indent = "" if cell.mark is Mark.WORLD else f"{cell.mark} "
    lines = [(f"{indent}{', '.join(cell.holds) or 'nothing'}", style)]
    if cell.where and not (before and before.where == cell.where):
        lines.append((f"  from {cell.where}", style))
    lines += [(f"  {change}", _SIGNS[change[0]]) for change in cell.changes]
    if rule.holds != cell.holds:
        lines.append((f"✗ {', '.join(rule.holds) or 'nothing'}", "red"))
    return _lines(lines, width)


def _lines(texts: Iterable[tuple[object, str]], width: int) -> Text:
    """Styled lines, each broken to the width behind blanks and the joints of names, and hanging as it began."""
    broken = [(part, style) for text, style in texts for part in _broken(printable(str(text)), width)]
    return Text("\n").join(Text(part, style) for part, style in broken)


def _broken(text: str, width: int) -> Iterator[str]:
    line, hang = "", "  " if text[1:2] == " " or text[:1] == " " else ""
    for piece in re.findall(r"[^\s_,(]*[\s_,(]*", text):
        if line.strip() and len(line) + len(piece.rstrip()) > width:
            yield line.rstrip()
            line = hang
        line += piece
    yield line.rstrip()


def _uncalled(trace: Mapping[str, Any]) -> str:
    return "No call ended with a reply." if trace.get("failure") else "No model was asked."


def _calls(calls: Sequence[Mapping[str, Any]]) -> Table:
    grid = _table()
    grid.add_column("call", no_wrap=True)
    for name in ("prompt", "completion", "cached", "seconds"):
        grid.add_column(name, justify="right")
    for name in ("source", "outcome", "key"):
        grid.add_column(name)
    for call in calls:
        numbers = (call["prompt"], call["completion"], call["cached"], f"{call['latency_s']:.2f}")
        words = (call["source"], call["outcome"], call["key"][:8])
        grid.add_row(*map(shown, (call["step"], *numbers, *words)))
    return grid
