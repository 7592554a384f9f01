"""Sheets as markdown, LaTeX, comma-separated values and JSON; and plain rows as the first three.

Whatever stands in a cell stands for itself there, and does no harm: names are chosen by others.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rectom.printable import printable, printable_text
from rectom.results.sheet import Mark, Row, Sheet, Value

#: The columns of `as_csv`: a row a figure. Accuracies are in percent, `tok` in tokens.
CSV_HEADER: Final = (
    *("table", "head 1", "head 2", "head 3", "head 4", "group", "column", "value", "low", "high", "mark"),
    *("significant", "paper", "of the paper"),
)

_HEADS: Final = 4

#: What a spreadsheet takes for a formula: what begins so and goes on; a sign alone is none.
_FORMULA: Final = re.compile(r"[=+\-@\t\r].", re.DOTALL)

#: What stands for a character in LaTeX that is not itself there.
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "·": r"\textperiodcentered{}",
    "†": r"$^{\dagger}$",
    "Δ": r"$\Delta$",
    "×": r"$\times$",
    "’": "'",
    "…": r"\ldots{}",
}


def markdown(sheet: Sheet) -> str:
    """The table with its title over it and its notes below, as GitHub shows it; `<ins>` underlines."""
    header = [*sheet.corner, *(_joined(column.group, column.name) for column in sheet.columns)]
    rows = ([*_markdown_heads(row, heads), *map(_markdown, row.values)] for row, heads, _ in sheet.shown())
    lines = grid(list(map(_escaped, header)), rows, len(sheet.corner))
    notes = [f"\n{_escaped(note)}" for note in sheet.notes]
    return "\n".join([f"**{_escaped(sheet.title)}**", "", *lines, *notes, ""])


def rows_markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain rows as GitHub shows them; the first column is text, the others are numbers."""
    cells = ([_escaped(str(cell)) for cell in row] for row in rows)
    return "\n".join([*grid(list(map(_escaped, header)), cells), ""])


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> list[str]:
    """The lines of a GitHub table whose cells are markdown; the first `texts` columns are text, the others numbers."""
    rule = ["---"] * texts + ["---:"] * (len(header) - texts)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _markdown_heads(row: Row, heads: Sequence[str]) -> list[str]:
    *before, last = map(_escaped, heads)
    return [*before, f"[{last}]({row.link})" if row.link else last]


def _markdown(value: Value) -> str:
    text = _escaped(value.text)
    shown = {Mark.BEST: f"**{text}**", Mark.SECOND: f"<ins>{text}</ins>", None: text}[value.mark]
    if value.link:
        shown = f"[{shown}]({value.link})"
    told = " ".join(filter(None, [f"{shown}{'†' * value.significant}", value.span and f"\\[{value.span}\\]"]))
    return f"{told}<br>{beside(value)}" if value.paper else told


def beside(value: Value) -> str:
    """What the paper has in a cell, and how far ours is from it: `paper 97.75 (-0.25)`."""
    return f"paper {value.paper} ({value.apart})" if value.apart else f"paper {value.paper}"


def _escaped(text: str) -> str:
    """A text that stands for itself in markdown, and in one line."""
    plain = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\|`*_[]~#" else sign for sign in plain)


def latex(sheet: Sheet) -> str:
    """The table as a `tabular`, or a `longtable` where it is long, for booktabs; the paper's figures are below ours."""
    heads, count = len(sheet.corner), len(sheet.columns)
    kind = "longtable" if sheet.is_long else "tabular"
    header = _escaped_line([*sheet.corner, *(column.name for column in sheet.columns)])
    lines = [r"\endhead"] * sheet.is_long
    for row, shown, begins in sheet.shown():
        lines += [r"\midrule"] * begins
        lines.append(_line([*map(escape, shown), *map(_latex, row.values)]))
        if any(value.paper for value in row.values):
            lines[-1] += "*" * sheet.is_long  # the two lines stay on one page
            lines.append(_line([*[""] * heads, *map(_latex_beside, row.values)]))
    head = [*(_groups(sheet) if sheet.has_groups else []), header]
    return _booktabs(kind, "l" * heads + "r" * count, head, lines)


def rows_latex(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Plain rows as a `tabular` for booktabs; those for all, at the end, are set apart."""
    lines = list(map(_escaped_line, rows))
    others = sum(row[0] != "all" for row in rows)
    if 0 < others < len(rows):
        lines.insert(others, r"\midrule")
    return _booktabs("tabular", "l" + "r" * (len(header) - 1), [_escaped_line(header)], lines)


def _booktabs(kind: str, columns: str, head: Sequence[str], body: Sequence[str]) -> str:
    lines = [rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", *head, r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", rf"\end{{{kind}}}", ""])


def _groups(sheet: Sheet) -> list[str]:
    """The groups of the columns, with a rule below each."""
    cells, rules, at = [""] * len(sheet.corner), "", len(sheet.corner) + 1
    for group, over in sheet.spans:
        cells.append(rf"\multicolumn{{{over}}}{{c}}{{{escape(group)}}}")
        rules += rf"\cmidrule(lr){{{at}-{at + over - 1}}}" if group else ""
        at += over
    return [_line(cells), *filter(None, [rules])]


def _latex(value: Value) -> str:
    text = escape(value.text)
    text = f"$-${text[1:]}" if text.startswith("-") and text[1:2].isdigit() else text
    shown = {Mark.BEST: rf"\textbf{{{text}}}", Mark.SECOND: rf"\underline{{{text}}}", None: text}[value.mark]
    told = f"{shown}{escape('†') * value.significant}"
    # Braces, since a bracket after the end of a row would be read as its spacing.
    return rf"{told} {{\scriptsize [{_minus(value.span)}]}}" if value.span else told


def _latex_beside(value: Value) -> str:
    return rf"{{\scriptsize {_minus(escape(beside(value)))}}}" if value.paper else ""


def _minus(text: str) -> str:
    return text.replace("-", "$-$")


def _escaped_line(cells: Sequence[object]) -> str:
    return _line([escape(str(cell)) for cell in cells])


def _line(cells: Sequence[str]) -> str:
    # Braces, since the command before would take a bracket or a star for its own.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """A text that stands for itself in LaTeX; what the common fonts lack stands there by its number."""
    return "".join(map(_letter, " ".join(text.split())))


def _letter(sign: str) -> str:
    known = sign.isascii() or (sign.isalpha() and sign <= "ÿ" and sign not in "ªµº")
    return _LATEX.get(sign) or (sign if known and sign.isprintable() else rf"\texttt{{U+{ord(sign):04X}}}")


def as_csv(sheets: Sequence[Sheet]) -> str:
    """Plain figures, a row each, of one table or several; empty where there is none."""
    rows = (
        _csv_row(sheet, row, place) for sheet in sheets for row in sheet.rows for place in range(len(sheet.columns))
    )
    return rows_csv(CSV_HEADER, rows)


def rows_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain rows as comma-separated values with a header; None is an empty cell."""
    return "".join(_csv_line(list(map(_safe, row))) for row in (header, *rows))


def _csv_line(cells: Sequence[object]) -> str:
    sink = io.StringIO()
    # With the end of a line that RFC 4180 has, a carriage return within a cell is quoted, too.
    csv.writer(sink).writerow(cells)
    return sink.getvalue().removesuffix("\r\n") + "\n"


def _csv_row(sheet: Sheet, row: Row, place: int) -> list[object]:
    value, column = row.values[place], sheet.columns[place]
    heads = [*row.heads, *[""] * (_HEADS - len(row.heads))]
    low, high = value.ends or (None, None)
    figures = [_round(one) for one in (low, high)]
    shown = _round(value.number) if value.number is not None else value.text.replace("–", "")
    return [
        *(sheet.name, *heads, column.group, column.name, shown, *figures),
        *(value.mark.value if value.mark else "", "yes" if value.significant else ""),
        *(_round(value.paper_number), "yes" if row.paper else ""),
    ]


def _safe(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula, and no terminal for a command."""
    if not isinstance(cell, str):
        return cell
    shown = printable_text(cell)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def to_json(sheet: Sheet) -> Mapping[str, Any]:
    """The table as JSON: its columns, and a mapping a row with the heads and the figures."""
    return {
        "table": sheet.name,
        "title": sheet.title,
        "heads": sheet.corner,
        "columns": [{"group": column.group, "name": column.name} for column in sheet.columns],
        "rows": [
            {"heads": row.heads, "paper": row.paper, "values": list(map(_json, row.values))} for row in sheet.rows
        ],
        "notes": sheet.notes,
    }


def _json(value: Value) -> dict[str, Any]:
    ends = value.ends and [_round(end) for end in value.ends]
    return {
        "text": value.text,
        "value": _round(value.number),
        "interval": ends,
        "mark": value.mark and value.mark.value,
        "significant": value.significant,
        "paper": _round(value.paper_number),
    }


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def lines_of(notes: Sequence[str]) -> Iterator[str]:
    """Notes as the lines of a markdown list."""
    return (f"- {_escaped(note)}" for note in notes)
