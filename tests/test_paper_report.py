from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rectom.results.grid import read
from rectom.results.paper_report import PaperReport, pairs_sheet
from rectom.results.sweep import Cell
from tests.reported import cell, outcome, write, write_sweep
from tests.test_writing import balanced

#: A name that is markup wherever it is not escaped.
ODD = "<img src=x onerror=alert(1)>_&%$#{}~^\\"


class Page(HTMLParser):
    """What a page holds: its tags, links, texts, and the elements that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag == "tr":
            self.cells.append([])
        if tag in {"td", "th"}:
            self.cells[-1] += [tag] * int(dict(attrs).get("colspan") or 1)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def report(tmp_path: Path) -> PaperReport:
    """A report on an odd model, with two methods, two seeds of one, failures, faults and a cell that is not done."""
    answers = [outcome(n, n % 3 > 0, fault="" if n % 3 else "answer") for n in range(40)]
    answers[1] = outcome(1, False, predicted=None, failed_step="chain")
    write(tmp_path, "a", answers)
    write(tmp_path, "b", "10" * 20, method="cot")
    write(tmp_path, "c", "11" * 20, method="cot", draw=1)

    def odd(run: str, method: str = "rectom", **more: Any) -> Cell:
        return cell(run, method, model=ODD, **more)

    write_sweep(
        tmp_path, "night", odd("a"), odd("b", "cot"), odd("c", "cot", seed=1), odd("x", "sc", state="failed", why=ODD)
    )
    return PaperReport.of(f"night {ODD}", read(["night"], tmp_path), tmp_path / "night", beside_paper=True)


def test_it_has_the_tables_the_pairs_and_what_went_wrong(report: PaperReport) -> None:
    assert [sheet.name for sheet in report.sheets] == ["table1", "table3", "pairs", "failures", "faults", "runs"]
    pooled = [note for note in report.notes if note.startswith("Pooled")]
    assert pooled == [
        "Pooled from 2 runs, where a question counts once, with the share of its tries that are right: "
        f"CoT with {ODD} on hitom/400."
    ]


def test_why_there_is_no_eff_is_told(tmp_path: Path) -> None:
    write(tmp_path, "alone", "1" * 10)
    report = PaperReport.of("alone", read(["alone"], tmp_path), tmp_path)
    (cost,) = (sheet for sheet in report.tables if sheet.name == "table3")
    assert cost.rows[0].values[1].text == "–"
    assert "none for a method that takes no more than CoT, or that has no CoT beside it." in report.markdown()


def test_every_table_is_a_file_in_each_form(report: PaperReport) -> None:
    files = dict(report.files())
    names = {f"tables/{sheet.name}.{form}" for sheet in report.sheets for form in ("md", "csv", "tex")}
    assert files.keys() == {"index.html", "report.md", "report.tex", *names}
    assert all(files.values())


def test_the_document_shows_every_table_and_is_balanced(report: PaperReport) -> None:
    text = report.latex()
    assert balanced(text)
    assert set(re.findall(r"\{tables/([\w-]+)\.tex\}", text)) == {sheet.name for sheet in report.sheets}
    assert r"\usepackage{booktabs}" in text
    assert r"\textless{}img src=x onerror=alert(1)\textgreater{}\_\&\%\$\#\{\}\textasciitilde{}" in text
    assert r"\textbackslash{}" in text


def test_the_page_escapes_names_and_needs_nothing_else(report: PaperReport) -> None:
    page = Page(report.html())
    assert page.open == []
    assert not {"script", "img", "link", "iframe"} & {*page.tags}
    assert any(ODD in text for text in page.texts)
    assert {link for link in page.links if not link.startswith("#")} <= {
        *("../a/report.html", "../b/report.html", "../c/report.html"),
        *(f"../a/report.html#fault=answer{order}" for order in ("", *(f"&order={n}" for n in range(5)))),
    }
    assert {link[1:] for link in page.links if link.startswith("#")} == {sheet.name for sheet in report.sheets}


def test_the_rows_of_each_table_of_the_page_are_equally_wide(report: PaperReport) -> None:
    tables = re.findall(r"<table>.*?</table>", report.html(), re.S)
    assert len(tables) == len(report.sheets)
    for table, sheet in zip(tables, report.sheets, strict=True):
        widths = {len(row) for row in Page(table).cells}
        assert widths == {len(sheet.corner) + len(sheet.columns)}


def test_marks_are_bold_and_underlined(report: PaperReport) -> None:
    html = report.html()
    assert re.search(r"<b>\d+\.\d\d</b>", html)
    assert re.search(r"<u>\d+\.\d\d</u>", html)


def test_pairs_tell_the_difference_and_its_p(tmp_path: Path) -> None:
    write(tmp_path, "a", "1" * 40)
    write(tmp_path, "b", "10" * 20, method="cot")
    report = PaperReport.of("x", read(["a", "b"], tmp_path), tmp_path)
    (row,) = next(sheet for sheet in report.sheets if sheet.name == "pairs").rows
    assert row.heads == ("hitom/400", "gpt-5.4", "CoT", "RecToM")
    assert [value.text for value in row.values] == ["-50.00", "0", "20", "2e-06", "2e-06"]
    assert row.values[0].significant
    assert pairs_sheet([]) is None


def test_runs_over_other_questions_are_no_pair(tmp_path: Path) -> None:
    write(tmp_path, "a", "1" * 40)
    write(tmp_path, "b", "10" * 10, method="cot")
    report = PaperReport.of("x", read(["a", "b"], tmp_path), tmp_path)
    (row,) = next(sheet for sheet in report.sheets if sheet.name == "pairs").rows
    assert row.values[0].text == "not the same questions"
