"""Sheets as markdown, LaTeX, comma-separated values and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rectom.results.sheet import Mark, Row, Sheet, Value

#: The columns of `as_csv`: a row a figure. Accuracies are in percent, `tok` in tokens.
CSV_HEADER: Final = (
    *("table", "head 1", "head 2", "head 3", "head 4", "group", "column", "value", "low", "high", "mark"),
    *("significant", "paper", "of the paper"),
)

_HEADS: Final = 4

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
    rule = [*("---" for _ in sheet.corner), *("---:" for _ in sheet.columns)]
    rows = [[*map(_escaped, heads), *map(_markdown, row.values)] for row, heads, _ in sheet.shown()]
    lines = [f"| {' | '.join(cells)} |" for cells in ([*map(_escaped, header)], rule, *rows)]
    notes = [f"\n{_escaped(note)}" for note in sheet.notes]
    return "\n".join([f"**{_escaped(sheet.title)}**", "", *lines, *notes, ""])


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
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\|`*_[]~#" else sign for sign in plain)


def latex(sheet: Sheet) -> str:
    """The table as a `tabular`, or a `longtable` where it is long, for booktabs; the paper's figures are below ours."""
    heads, count = len(sheet.corner), len(sheet.columns)
    kind = "longtable" if sheet.is_long else "tabular"
    lines = [rf"\begin{{{kind}}}{{{'l' * heads}{'r' * count}}}", r"\toprule"]
    if sheet.has_groups:
        lines += _groups(sheet)
    lines += [_line([*map(escape, sheet.corner), *(escape(column.name) for column in sheet.columns)]), r"\midrule"]
    lines += [r"\endhead"] * sheet.is_long
    for row, shown, begins in sheet.shown():
        lines += [r"\midrule"] * begins
        lines.append(_line([*map(escape, shown), *map(_latex, row.values)]))
        if any(value.paper for value in row.values):
            lines[-1] += "*" * sheet.is_long  # the two lines stay on one page
            lines.append(_line([*[""] * heads, *map(_latex_beside, row.values)]))
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


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """A text that stands for itself in LaTeX; what the common fonts lack stands there by its number."""
    return "".join(map(_letter, " ".join(text.split())))


def _letter(sign: str) -> str:
    known = sign.isascii() or (sign.isalpha() and sign <= "ÿ" and sign not in "ªµº")
    return _LATEX.get(sign) or (sign if known and sign.isprintable() else rf"\texttt{{U+{ord(sign):04X}}}")


def as_csv(sheets: Sequence[Sheet]) -> str:
    """Plain figures, a row each, of one table or several; empty where there is none."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for sheet in sheets:
        writer.writerows(_csv_row(sheet, row, place) for row in sheet.rows for place in range(len(sheet.columns)))
    return sink.getvalue()


def _csv_row(sheet: Sheet, row: Row, place: int) -> list[object]:
    value, column = row.values[place], sheet.columns[place]
    heads = [*map(_safe, row.heads), *[""] * (_HEADS - len(row.heads))]
    low, high = value.ends or (None, None)
    figures = [_round(one) for one in (low, high)]
    shown = _round(value.number) if value.number is not None else _safe(value.text.replace("–", ""))
    return [
        *(sheet.name, *heads, _safe(column.group), column.name, shown, *figures),
        *(value.mark.value if value.mark else "", "yes" if value.significant else ""),
        *(_round(value.paper_number), "yes" if row.paper else ""),
    ]


def _safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


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
