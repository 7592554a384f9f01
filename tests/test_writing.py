from __future__ import annotations

import csv
import io
import re

import pytest

from rectom.results.sheet import Column, Mark, Row, Sheet, Value
from rectom.results.tables import HEADER, accuracy_rows
from rectom.results.writing import (
    CSV_HEADER,
    as_csv,
    escape,
    latex,
    markdown,
    rows_csv,
    rows_latex,
    rows_markdown,
    to_json,
)
from tests.test_tables import ROWS

ODD = r"a_b & 100% #1 ${x} ~^\ <i> | *y* [z]"
CELL = Value("97.50", 97.5, "94.9, 98.8", (94.93, 98.81), Mark.BEST, True, "97.75", 97.75, "-0.25")
LOSS = Value("-1.50", -1.5, "-2.0, 1.0", (-2.0, 1.0), Mark.SECOND)
SHEET = Sheet(
    "table1",
    f"Title of {ODD}",
    ("Model", "Method"),
    (Column("Overall", "Hi-ToM"), Column("Δ", "Big_ToM")),
    (
        Row((ODD, "CoT"), (CELL, LOSS)),
        Row((ODD, "RecToM"), (Value("12", 12, link="../a%20b/report.html#fault=answer&order=1"), Value())),
        Row(("=cmd()", "SimToM (paper)"), (Value("90.00", 90.0), Value()), paper=True),
    ),
    ("†: a note on 5 %.",),
)
LONG = Sheet("long", "Long", ("A",), (Column("x"),), (Row(("a",), (CELL,)),) * 30)


def cells_of(line: str) -> int:
    """The cells of a line: those between ampersands that are not escaped, each over as many columns as it says."""
    cells = re.split(r"(?<!\\)&", line)
    return sum(int(over[0]) if (over := re.findall(r"\\multicolumn\{(\d+)\}", cell)) else 1 for cell in cells)


def balanced(text: str) -> bool:
    """Whether braces and environments close in the order in which they open."""
    open_ = []
    for found in re.finditer(r"\\(begin|end)\{(\w+\*?)\}|\\[\\{}&%$#_]|([{}])", text):
        kind, name, brace = found.groups()
        if kind == "begin":
            open_.append(name)
        elif brace == "{":
            open_.append("{")
        elif (kind or brace) and (not open_ or open_.pop() != (name or "{")):
            return False
    return not open_


# LaTeX.


def test_latex_has_as_many_cells_a_line_as_columns_and_is_balanced() -> None:
    for sheet in (SHEET, LONG):
        table = latex(sheet)
        width = len(sheet.corner) + len(sheet.columns)
        lines = [line.strip() for line in table.splitlines() if line.rstrip("*").endswith(r"\\")]
        assert {cells_of(line) for line in lines} == {width}
        assert len(lines) == sheet.has_groups + 1 + len(sheet.rows) + sum(
            any(value.paper for value in row.values) for row in sheet.rows
        )
        assert balanced(table)
        assert f"}}{{{'l' * len(sheet.corner)}{'r' * len(sheet.columns)}}}\n" in table


def test_latex_shows_marks_intervals_and_the_papers_figures() -> None:
    table = latex(SHEET)
    assert r"\textbf{97.50}$^{\dagger}$ {\scriptsize [94.9, 98.8]}" in table
    assert r"\underline{$-$1.50} {\scriptsize [$-$2.0, 1.0]}" in table
    assert r"{\scriptsize paper 97.75 ($-$0.25)}" in table
    assert r"\multicolumn{1}{c}{Hi-ToM} & \multicolumn{1}{c}{Big\_ToM}" in table
    assert r"\cmidrule(lr){3-3}\cmidrule(lr){4-4}" in table
    assert r"$\Delta$" in table
    assert table.count(r"\midrule") == 2  # below the header, and where another model begins


def test_a_long_table_goes_on_over_pages() -> None:
    table = latex(LONG)
    assert table.startswith(r"\begin{longtable}{lr}")
    assert r"\endhead" in table
    assert "\\\\*\n" in table
    assert r"\endhead" not in latex(SHEET)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b&c%d#e$f", r"a\_b\&c\%d\#e\$f"),
        ("{x}", r"\{x\}"),
        (r"~^\ ".strip(), r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ('<|>"', r"\textless{}\textbar{}\textgreater{}\textquotedbl{}"),
        ("é – †", r"é -- $^{\dagger}$"),
        ("通\u200b", r"\texttt{U+901A}\texttt{U+200B}"),
        ("two\nlines", "two lines"),
    ],
)
def test_what_latex_takes_for_a_command_is_escaped(text: str, written: str) -> None:
    assert escape(text) == written


# Markdown.


def test_markdown_shows_marks_intervals_and_the_papers_figures() -> None:
    lines = markdown(SHEET).splitlines()
    assert lines[2] == "| Model | Method | Hi-ToM Overall | Big\\_ToM Δ |"
    assert lines[3] == "| --- | --- | ---: | ---: |"
    assert lines[4].endswith(
        r"| CoT | **97.50**† \[94.9, 98.8\]<br>paper 97.75 (-0.25) | <ins>-1.50</ins> \[-2.0, 1.0\] |"
    )
    assert lines[5] == "|  | RecToM | [12](../a%20b/report.html#fault=answer&order=1) | – |"
    assert lines[-1] == "†: a note on 5 %."


def test_the_last_head_of_a_row_leads_where_the_row_does() -> None:
    sheet = Sheet("t", "T", ("a", "b"), (Column("c"),), (Row(("x", "y_z"), (Value("1"),), link="../y/report.html"),))
    assert r"| x | [y\_z](../y/report.html) | 1 |" in markdown(sheet)


def test_nothing_of_a_name_is_markup_in_markdown() -> None:
    text = markdown(SHEET)
    assert "<i>" not in text
    assert r"\*y\*" in text
    # Five bars enclose four cells, however many the names have.
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")} == {5}


# CSV and JSON.


def test_csv_is_a_row_a_figure_without_formulas() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv([SHEET, LONG]))))
    assert tuple(rows[0]) == CSV_HEADER
    assert len(rows) == 6 + 30
    first = rows[0]
    assert (first["table"], first["head 1"], first["head 2"], first["column"]) == ("table1", ODD, "CoT", "Overall")
    assert (first["value"], first["low"], first["high"], first["mark"]) == ("97.5", "94.93", "98.81", "best")
    assert (first["significant"], first["paper"], first["of the paper"]) == ("yes", "97.75", "")
    assert (rows[3]["value"], rows[3]["low"]) == ("", "")
    assert (rows[4]["head 1"], rows[4]["of the paper"]) == ("'=cmd()", "yes")


def test_json_has_the_figures() -> None:
    told = to_json(SHEET)
    assert told["rows"][0]["values"][0] == {
        "text": "97.50",
        "value": 97.5,
        "interval": [94.93, 98.81],
        "mark": "best",
        "significant": True,
        "paper": 97.75,
    }
    assert told["rows"][1]["values"][1]["value"] is None
    assert told["columns"][1] == {"group": "Big_ToM", "name": "Δ"}


# Plain rows.


@pytest.mark.parametrize("rows", [ROWS, accuracy_rows([])])
def test_markdown_has_a_head_a_rule_and_as_many_cells_in_every_line(rows: list[tuple[str, int, int, str, str]]) -> None:
    lines = rows_markdown(HEADER, rows).splitlines()
    assert len(lines) == 2 + len(rows)
    assert {line.count("|") for line in lines} == {len(HEADER) + 1}
    assert set(lines[1]) <= set("|-: ")
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)


def test_csv_reads_back() -> None:
    text = rows_csv(HEADER, ROWS)
    assert "\r" not in text
    assert list(csv.reader(text.splitlines())) == [list(HEADER), *([str(cell) for cell in row] for row in ROWS)]


def test_latex_sets_the_row_for_all_apart() -> None:
    lines = rows_latex(HEADER, ROWS).splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{lrrrr}", r"\end{tabular}")
    assert lines[-4:-2] == [r"\midrule", r"all & 5 & 4 & 80.00 & " + ROWS[-1][4] + r" \\"]
    bodies = [line for line in lines if line.endswith(r"\\")]
    assert len(bodies) == 1 + len(ROWS)
    assert {line.count("&") for line in bodies} == {len(HEADER) - 1}


def test_latex_of_rows_for_all_alone_has_one_rule_below_the_header() -> None:
    lines = rows_latex(HEADER, [ROWS[-1], ROWS[-1]]).splitlines()
    assert lines.count(r"\midrule") == 1
    assert [line.startswith("all &") for line in lines[4:6]] == [True, True]


def test_latex_escapes_what_means_something_to_it() -> None:
    text = rows_latex(HEADER, [("50 % of a_b & c", 1, 1, "1", "1")])
    assert r"50 \% of a\_b \& c & 1" in text
    assert not re.search(r"(?<!\\)[%_]", text)
    assert r"95 \% interval" in text


def test_nothing_of_a_name_breaks_a_table_of_plain_rows() -> None:
    rows = [(ODD, 1, 2), ("C# a|b", 3, 4)]
    shown = rows_markdown(("kind | of", "b", "c"), rows)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in shown.splitlines()} == {4}
    assert r"C\# a\|b" in shown
    assert "<i>" not in shown
    typeset = rows_latex(("kind | of", "b", "c"), rows)
    assert {cells_of(line) for line in typeset.splitlines() if line.endswith(r"\\")} == {3}
    assert r"C\# a\textbar{}b & 3 & 4" in typeset
    assert balanced(typeset)


def test_a_first_cell_is_no_argument_of_the_command_before_it() -> None:
    lines = rows_latex(("[a]", "b"), [("*", 1), ("[2cm]", 2), ("all", 3)]).splitlines()
    assert [line for line in lines if line.startswith("{}")] == [r"{}[a] & b \\", r"{}* & 1 \\", r"{}[2cm] & 2 \\"]
    sheet = Sheet("odd", "Odd", ("A",), (Column("x"),), (Row(("[2cm]",), (Value("1", 1.0),)),))
    assert r"{}[2cm] & 1 \\" in latex(sheet)


def test_a_carriage_return_begins_no_row() -> None:
    text = rows_csv(("a", "b"), [("x\r=cmd()", 1)])
    assert text == 'a,b\n"x\r=cmd()",1\n'


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1+1", "@x", "\t=x", "\r\n=x"])
def test_no_plain_row_holds_a_formula(text: str) -> None:
    told = csv.reader(io.StringIO(rows_csv((text, "b"), [(text, -1.5), ("-", None)]), newline=""))
    assert list(told) == [[f"'{text}", "b"], [f"'{text}", "-1.5"], ["-", ""]]
