"""The paper's Tables 1 to 5 from a grid of runs, and one like Table 1 for every other benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rectom.results.comparison import Difference
from rectom.results.finished import Answered
from rectom.results.grid import ABLATIONS, COT, Filled, Grid, Labels
from rectom.results.pairs import Pairs, Trial
from rectom.results.paper import BENCHMARKS, PaperTable, paper
from rectom.results.readers import RECTOM
from rectom.results.sheet import Column, Row, Sheet, Value, ranked
from rectom.results.values import accuracy, beside, eff, official, official_of, percent, printed, thousands
from rectom.results.wording import (
    counts,
    labels_of_paper,
    line_name,
    missing,
    narrowed,
    not_of_paper,
    order_name,
    other_questions,
    titled,
)

#: The most kinds of question that have a column each, and the most benchmarks in a table that has two for each.
_MOST_KINDS: Final = 8
_MOST_BENCHMARKS: Final = 3

_TRUE, _FALSE = "forward_belief_true", "forward_belief_false"


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of a table: of which benchmark, and what makes a cell of its questions.

    `key` is the column's name in `paper.toml`; `is_ranked` says that more is better.
    """

    benchmark: str
    column: Column
    key: str
    value: Callable[[Filled], Value]
    is_ranked: bool = True


@dataclass(frozen=True)
class Tables:
    """Makes the tables of a grid. `beside_paper` puts the paper's numbers beside ours."""

    grid: Grid
    pairs: Pairs
    trials: Sequence[Trial]
    beside_paper: bool = False

    def sheets(self) -> Iterator[Sheet]:
        """The tables that there are runs for: accuracies, other benchmarks after the paper's, then the rest."""
        slots = {family: self._slot(family) for family in BENCHMARKS}
        hitom, bigtom, fantom = slots.values()
        others = [name for name in self.grid.benchmarks if name not in slots.values()]
        groups = [list(filter(None, slots.values()))]
        groups += [others[at : at + _MOST_BENCHMARKS] for at in range(0, len(others), _MOST_BENCHMARKS)]
        if hitom:
            yield from self._of_methods("table1", "Table 1: accuracy (%) by question order", self._by_order(hitom))
        scenarios = [*(self._overall(bigtom) if bigtom else []), *(self._by_order(fantom) if fantom else [])]
        yield from self._of_methods("table2", "Table 2: accuracy (%) in other scenarios", scenarios)
        for number, name in enumerate(others, 1):
            yield from self._of_methods(f"other{number}", f"Accuracy (%) on {name}", self._shape(name))
        yield from _in_turn("table3", groups, self._cost)
        yield from _in_turn("table4", groups, self._ablations)
        beliefs = [*(self._forward(bigtom) if bigtom else []), *(self._access(fantom) if fantom else [])]
        yield from self._of_methods("table5", "Table 5: accuracy (%) on true and false beliefs", beliefs)

    def _slot(self, family: str) -> str | None:
        """The benchmark that takes the place of the paper's: the same subset if there are runs over it."""
        found = [name for name in self.grid.benchmarks if self.grid.family(name) == family]
        return BENCHMARKS[family] if BENCHMARKS[family] in found else next(iter(found), None)

    # Columns.

    def _by_order(self, benchmark: str) -> list[Figure]:
        family = self.grid.family(benchmark)
        orders = {one.order for one in self._questions(benchmark)}
        figures = [
            self._accuracy(benchmark, order_name(order), f"{family} {order}", _of_order(order))
            for order in sorted(orders, key=lambda order: -1 if order is None else order)
            if len(orders) > 1
        ]
        return [*figures, *self._overall(benchmark)]

    def _shape(self, benchmark: str) -> list[Figure]:
        """By order; where there is one order alone, by kind of question."""
        figures = self._by_order(benchmark)
        kinds = sorted({one.group for one in self._questions(benchmark)})
        by_order = len({one.order for one in self._questions(benchmark)}) > 1
        if by_order or not 1 < len(kinds) <= _MOST_KINDS:
            return figures
        return [*(self._accuracy(benchmark, kind or "other", "", _of_group(kind)) for kind in kinds), *figures]

    def _forward(self, benchmark: str) -> list[Figure]:
        if not {_TRUE, _FALSE} <= {one.group for one in self._questions(benchmark)}:
            return []
        kinds = {"True belief": "bigtom true", "False belief": "bigtom false", "Overall": "bigtom forward"}
        takes = (_of_group(_TRUE), _of_group(_FALSE), _of_group(_TRUE, _FALSE))
        return [
            self._accuracy(benchmark, name, key, some, "forward belief")
            for (name, key), some in zip(kinds.items(), takes, strict=True)
        ]

    def _access(self, benchmark: str) -> list[Figure]:
        """In FanToM's terms: whoever had access to all that is asked about believes what is true."""
        ends = {"True belief": "/accessible", "False belief": "/inaccessible", "Overall": ""}
        return [self._accuracy(benchmark, name, "", _of_ending(end)) for name, end in ends.items()]

    def _overall(self, benchmark: str) -> list[Figure]:
        """All questions, and the official measure over them where it is not the accuracy."""
        found = [
            Figure(benchmark, Column("Overall", self._group(benchmark)), self._key(benchmark, "all"), self._in_all)
        ]
        folders = [folder for cell in self.grid.of(benchmark) for _, folder in cell.finished]
        if measure := next((measure for folder in folders if (measure := official_of(folder))), None):
            found.append(Figure(benchmark, Column(measure[0], self._group(benchmark)), "", official))
        return found

    def _accuracy(
        self, benchmark: str, name: str, key: str, takes: Callable[[Answered], bool], group: str = ""
    ) -> Figure:
        column = Column(name, f"{self._group(benchmark)} {group}".strip())
        return Figure(benchmark, column, key, lambda cell: accuracy([one for one in cell.questions if takes(one)]))

    def _group(self, benchmark: str) -> str:
        """What a benchmark's columns share; its label, where that is not the paper's."""
        family = self.grid.family(benchmark)
        known = titled(family)
        if benchmark == BENCHMARKS.get(family):
            return known
        return benchmark if known == family else f"{known} ({benchmark})"

    def _key(self, benchmark: str, what: str) -> str:
        return f"{self.grid.family(benchmark)} {what}"

    def _questions(self, benchmark: str) -> Iterator[Answered]:
        return (question for cell in self.grid.of(benchmark) for question in cell.questions)

    # Tables.

    def _of_methods(self, name: str, title: str, figures: Sequence[Figure]) -> Iterator[Sheet]:
        """A table with a row for each method that is no ablation."""
        yield from self._sheet(name, title, figures, [line for line in self.grid.lines if not self._is_ablation(line)])

    def _cost(self, name: str, number: str, benchmarks: Sequence[str]) -> Iterator[Sheet]:
        figures = [
            figure
            for benchmark in benchmarks
            for figure in (
                Figure(
                    benchmark, Column("Tok", self._group(benchmark)), self._key(benchmark, "tok"), self._tokens, False
                ),
                Figure(benchmark, Column("Eff", self._group(benchmark)), self._key(benchmark, "eff"), self._eff),
            )
        ]
        if any(question.tokens for benchmark in benchmarks for question in self._questions(benchmark)):
            title = f"Table 3{number}: tokens a question, alone, and points of accuracy for each 1,000 more"
            yield from self._of_methods(name, title, figures)

    def _ablations(self, name: str, number: str, benchmarks: Sequence[str]) -> Iterator[Sheet]:
        figures = [
            figure
            for benchmark in benchmarks
            for figure in (
                Figure(benchmark, Column("Acc", self._group(benchmark)), self._key(benchmark, "acc"), self._in_all),
                Figure(benchmark, Column("Δ", self._group(benchmark)), self._key(benchmark, "drop"), self._drop, False),
            )
        ]
        if any(cell.role in ABLATIONS for benchmark in benchmarks for cell in self.grid.of(benchmark)):
            lines = [line for line in self.grid.lines if self._is_ablation(line) or self._role(line) == RECTOM]
            title = f"Table 4{number}: ablations, accuracy (%) and its decrease relative to RecToM"
            yield from self._sheet(name, title, figures, lines)

    def _sheet(
        self, name: str, title: str, figures: Sequence[Figure], lines: Sequence[tuple[str, str]]
    ) -> Iterator[Sheet]:
        """The table, unless there is nothing in it."""
        benchmarks = {figure.benchmark for figure in figures}
        some = set(lines)
        cells = [
            cell for labels, cell in self.grid.cells.items() if labels.benchmark in benchmarks and labels.line in some
        ]
        if any(cell.questions for cell in cells):
            rows = [row for model in self.grid.models for row in self._block(name, model, cells, figures)]
            columns = tuple(figure.column for figure in figures)
            notes = tuple(self._notes(cells, rows, figures))
            yield Sheet(name, title, ("Model", "Method"), columns, tuple(rows), notes)

    def _block(self, name: str, model: str, cells: Sequence[Filled], figures: Sequence[Figure]) -> list[Row]:
        """The rows of a model: ours, and the paper's for methods that have none of ours."""
        found = {cell.labels.line for cell in cells if cell.labels.model == model}
        lines = [line for line in self.grid.lines if line in found]
        table, known = paper().tables.get(name) if self.beside_paper else None, self._in_paper(model)
        rows = [Row((model, line_name(line)), self._values(model, line, figures, table, known)) for line in lines]
        if table and known and lines:
            ours = {self._role(line) for line in lines}
            others = [method for method in table.methods(known) if method not in ours]
            rows += [_row_of_paper(table, model, known, method, figures) for method in others]
        return ranked(rows, [place for place, figure in enumerate(figures) if figure.is_ranked])

    def _values(
        self, model: str, line: tuple[str, str], figures: Sequence[Figure], table: PaperTable | None, known: str | None
    ) -> tuple[Value, ...]:
        found = []
        for figure in figures:
            cell = self.grid.at(model, line, figure.benchmark)
            value = figure.value(cell) if cell and cell.questions else Value()
            theirs = table.value(known, self._role(line), figure.key) if table and known else None
            found.append(beside(value, theirs, figure.key))
        return tuple(found)

    def _in_paper(self, model: str) -> str | None:
        """What the paper calls a model."""
        cells = [cell for labels, cell in self.grid.cells.items() if labels.model == model]
        return paper().model({name for cell in cells for name in cell.model_names})

    def _is_ablation(self, line: tuple[str, str]) -> bool:
        return self._role(line) in ABLATIONS

    def _role(self, line: tuple[str, str]) -> str:
        return self._roles[line]

    @cached_property
    def _roles(self) -> dict[tuple[str, str], str]:
        """What each method is: as its runs tell, or else its label."""
        cells = sorted(self.grid.cells.values(), key=lambda cell: bool(cell.questions))
        return {cell.labels.line: cell.role for cell in cells}

    # Cells.

    def _in_all(self, cell: Filled) -> Value:
        return accuracy(cell.questions, cell.labels in self._significant)

    def _tokens(self, cell: Filled) -> Value:
        return thousands(cell.figures.tokens, self.pairs.tokens(cell)) if cell.figures else Value()

    def _eff(self, cell: Filled) -> Value:
        cot = self.grid.peer(cell, COT)
        gain = self._gain(cell, cot)
        return eff(gain.eff, self.pairs.eff(cell, cot)) if cot and gain and gain.eff is not None else Value()

    def _drop(self, cell: Filled) -> Value:
        full = self.grid.peer(cell, RECTOM)
        less = self.pairs.difference(full, cell) if full and full is not cell else None
        return percent(less.accuracy, less.interval) if less else Value()

    def _gain(self, cell: Filled, baseline: Filled | None) -> Difference | None:
        return self.pairs.difference(cell, baseline) if baseline and baseline is not cell else None

    @cached_property
    def _significant(self) -> set[Labels]:
        return {test.cell.labels for test in self.trials if test.is_significant}

    def _paper_notes(self, cells: Sequence[Filled], rows: Sequence[Row], figures: Sequence[Figure]) -> Iterator[str]:
        """How ours are beside the paper's numbers, of the benchmarks and models for which there are any."""
        beside = {
            (row.heads[0], figure.benchmark)
            for row in rows
            for figure, value in zip(figures, row.values, strict=True)
            if value.paper or (row.paper and value.number is not None)
        }
        shown = [cell for cell in cells if (cell.labels.model, cell.labels.benchmark) in beside]
        yield from not_of_paper(shown)
        yield from labels_of_paper(shown)
        unknown = [model for model in dict.fromkeys(row.heads[0] for row in rows) if not self._in_paper(model)]
        if unknown:
            yield f"The paper has no numbers for {', '.join(unknown)}."

    def _notes(self, cells: Sequence[Filled], rows: Sequence[Row], figures: Sequence[Figure]) -> Iterator[str]:
        yield f"{counts(cells)}."
        if any(value.significant for row in rows for value in row.values):
            marked = {cell.labels for cell in cells} & self._significant
            names = dict.fromkeys(
                line_name(one.baseline.labels.line) for one in self.trials if one.cell.labels in marked
            )
            yield f"†: differs from {' or '.join(names)} on the same questions (McNemar's p < 0.05, after Holm)."
        yield from narrowed(cells)
        yield from other_questions(cells)
        yield from self._paper_notes(cells, rows, figures) if self.beside_paper else ()
        yield from missing(cells)


def _in_turn(
    name: str, groups: Iterable[Sequence[str]], make: Callable[[str, str, Sequence[str]], Iterator[Sheet]]
) -> Iterator[Sheet]:
    """A table for each group of benchmarks; those after the first have a number more."""
    made = 0
    for benchmarks in groups:
        number = f" ({made + 1})" if made else ""
        for sheet in make(f"{name}-{made + 1}" if made else name, number, benchmarks):
            made += 1
            yield sheet


def _row_of_paper(table: PaperTable, model: str, known: str, method: str, figures: Sequence[Figure]) -> Row:
    values = (printed(table.value(known, method, one.key), one.key) for one in figures)
    return Row((model, f"{titled(method)} (paper)"), tuple(values), paper=True)


def _of_order(order: int | None) -> Callable[[Answered], bool]:
    return lambda one: one.order == order


def _of_group(*names: str) -> Callable[[Answered], bool]:
    return lambda one: one.group in names


def _of_ending(end: str) -> Callable[[Answered], bool]:
    return lambda one: one.group.endswith(end)
