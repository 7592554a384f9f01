"""The report over runs: all its tables, and the files that it is written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rectom.results.comparison_tables import p_text
from rectom.results.grid import Grid
from rectom.results.pairs import Pairs, Trial
from rectom.results.paper_tables import Tables
from rectom.results.sheet import Column, Row, Sheet, Value
from rectom.results.troubles import failures_sheet, faults_sheet, runs_sheet
from rectom.results.values import count, percent
from rectom.results.wording import line_name, pooled
from rectom.results.writing import as_csv, beside, escape, latex, lines_of, markdown

if TYPE_CHECKING:  # drawing takes long to import, and tables alone need none of it
    from rectom.results.paper_figures import Drawn

#: How to read the figures.
NOTES: Final = (
    "Bold is the best of a model and column, underlined the second; equal figures share the mark.",
    "A failed question is a wrong one: no denominator shrinks.",
    "In brackets are 95 % intervals. Those of accuracies are Wilson's, which take questions as independent; those of "
    "differences, Δ, Tok and Eff come from a bootstrap that draws whole stories 2,000 times.",
    "Tok is the prompt and completion tokens of a question alone, as if it had shared nothing with others. Eff is in "
    "points of accuracy for each further 1,000 tokens a question; there is none for a method that takes no more than "
    "CoT, or that has no CoT beside it.",
)


@dataclass(frozen=True)
class PaperReport:
    """The tables: the paper's and those like them; the paired tests, what went wrong, the runs; and notes on all.

    `figures` are drawn; `pages` show runs side by side, each with its title and file.
    """

    title: str
    tables: tuple[Sheet, ...]
    more: tuple[Sheet, ...]
    notes: tuple[str, ...]
    figures: tuple[Drawn, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """All tables, in their order."""
        return (*self.tables, *self.more)

    @classmethod
    def of(cls, title: str, grid: Grid, out: Path, *, against: str | None = None, beside_paper: bool = False) -> Self:
        """The report on a grid, for the folder `out`; the other methods are tested against `against`."""
        pairs = Pairs(grid)
        trials = pairs.trials(against)
        tables = Tables(grid, pairs, trials, beside_paper)
        more = [pairs_sheet(trials), failures_sheet(grid), faults_sheet(grid, out), runs_sheet(grid, out)]
        notes = (*NOTES, *pooled(grid.cells.values()))
        return cls(title, tuple(tables.sheets()), tuple(filter(None, more)), notes)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file of the report, by its place in the report's folder."""
        for sheet in self.sheets:
            yield f"tables/{sheet.name}.md", markdown(sheet).encode()
            yield f"tables/{sheet.name}.csv", as_csv([sheet]).encode()
            yield f"tables/{sheet.name}.tex", latex(sheet).encode()
        yield "report.md", self.markdown().encode()
        yield "report.tex", self.latex().encode()
        yield "index.html", self.html().encode()
        for figure in self.figures:
            yield from ((f"figures/{name}", data) for name, data in figure.files.items())

    def markdown(self) -> str:
        """The whole report in markdown."""
        return "\n".join([f"# {self.title}", "", *map(markdown, self.sheets), *lines_of(self.notes), ""])

    def latex(self) -> str:
        """A document that shows the tables, which stand in files of their own."""
        parts = [
            _PART.format(
                title=escape(sheet.title),
                shown=(_LONG if sheet.is_long else _SHORT).format(name=sheet.name),
                notes="".join(map(_note, sheet.notes)),
            )
            for sheet in self.sheets
        ]
        notes = "\n".join(rf"\item {escape(note)}" for note in self.notes)
        return _DOCUMENT.format(title=escape(self.title), parts="\n".join(parts), notes=notes)

    def html(self) -> str:
        """The whole report as a page that needs no other file."""
        return _template().render(report=self, beside=beside)


def pairs_sheet(trials: Sequence[Trial]) -> Sheet | None:
    """Each method against its baseline; None where there is nothing to test."""
    rows = tuple(Row(_heads(one), _figures(one)) for one in trials)
    columns = tuple(map(Column, ("Difference", "Better", "Worse", "p", "p, Holm")))
    notes = (
        "Difference: points of accuracy. Better, worse: on how many questions the method is. p: McNemar's exact test, "
        "which takes questions as independent; Holm's correction is over all rows of a benchmark.",
    )
    corner = ("Benchmark", "Model", "Method", "Against")
    return Sheet("pairs", "Methods over the same questions, in pairs", corner, columns, rows, notes) if rows else None


def _heads(one: Trial) -> tuple[str, ...]:
    labels = one.cell.labels
    return labels.benchmark, labels.model, line_name(labels.line), line_name(one.baseline.labels.line)


def _figures(one: Trial) -> tuple[Value, ...]:
    found = one.difference
    if found is None:
        return Value("not the same questions"), *[Value()] * 4
    ps = [Value(p_text(p), p) for p in (found.p, found.holm)]
    return percent(found.accuracy, found.interval, one.is_significant), count(found.c), count(found.b), *ps


def _note(note: str) -> str:
    return rf"\par\smallskip\noindent\footnotesize {escape(note)}" + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("rectom.results", "paper_page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (files("rectom.results") / "paper_page" / "style.css").read_text("utf-8")
    environment.globals["style"] = Markup(style)  # noqa: S704  our own file
    return environment.get_template("index.html.j2")


_PART: Final = r"""\subsection*{{{title}}}
{{\noindent
{shown}
{notes}\par}}
"""

_SHORT: Final = r"\fitted{{tables/{name}.tex}}"
_LONG: Final = r"\small\input{{tables/{name}.tex}}"

_DOCUMENT: Final = r"""\documentclass[10pt,a4paper,landscape]{{article}}
\usepackage[T1]{{fontenc}}
\usepackage[utf8]{{inputenc}}
\usepackage[margin=2cm]{{geometry}}
\usepackage{{booktabs}}
\usepackage{{longtable}}
\usepackage{{graphicx}}
\newsavebox{{\tablebox}}
% A table in its own size, or made smaller where the page is too narrow for it.
\newcommand{{\fitted}}[1]{{\sbox{{\tablebox}}{{\input{{#1}}}}%
  \ifdim\wd\tablebox>\linewidth\resizebox{{\linewidth}}{{!}}{{\usebox{{\tablebox}}}}\else\usebox{{\tablebox}}\fi}}
\begin{{document}}
\section*{{{title}}}
{parts}
\begin{{itemize}}
{notes}
\end{{itemize}}
\end{{document}}
"""
