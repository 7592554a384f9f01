"""`rectom report RUN|SWEEP…`: the paper's tables from runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import orjson
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cell_table import width_of
from rectom import whole
from rectom.errors import SettingsError
from rectom.printable import shown
from rectom.results import grid, sweep
from rectom.results.named import run_or_sweep
from rectom.results.pairs import check
from rectom.results.paper_report import PaperReport
from rectom.results.regular import Irregular, refuse_links
from rectom.results.sheet import Mark, Sheet, Value
from rectom.results.writing import as_csv, latex, markdown, to_json

#: The columns of a terminal in which every cell has room for its interval, and the most figures in one line of it.
_ROOMY: Final = 160
_SIDE_BY_SIDE: Final = 6

#: What a name keeps where there is no room for all of it.
_NAME: Final = 10

_STYLES: Final = {Mark.BEST: "bold", Mark.SECOND: "underline", None: ""}


@click.command(name="report", short_help="The paper's tables from runs and sweeps.")
@click.argument("names", nargs=-1, required=True, metavar="RUN|SWEEP...")
@click.option("--beside-paper", is_flag=True, help="Put the paper's own numbers beside ours.")
@click.option("--against", metavar="METHOD", help="What others are tested against, if it is not RecToM, or else CoT.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The folder to write; a sweep's own, or one beside the runs."
)
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option("--no-figures", is_flag=True, help="Leave out figures: a report of many cells is then faster.")
@click.option(
    "--json", "form", flag_value="json", help="A line of JSON a table; writes no files unless --out is given."
)
@click.option("--markdown", "form", flag_value="markdown", help="The tables in markdown, likewise.")
@click.option("--latex", "form", flag_value="latex", help="The tables in LaTeX, likewise.")
@click.option("--csv", "form", flag_value="csv", help="Plain figures, a row each, likewise.")
def command(
    names: tuple[str, ...],
    beside_paper: bool,
    against: str | None,
    out: Path | None,
    place: Path,
    no_figures: bool,
    form: str | None,
) -> None:
    """Make the paper's Tables 1 to 5 from finished runs, and one like Table 1 for every other benchmark.

    RUN is the name of a run or of a sweep, or its folder; a sweep stands for all its cells, and those that are not
    finished are named. Runs that differ in their seeds alone are pooled. Written are index.html, report.md, report.tex,
    tables/ in markdown, CSV and LaTeX, figures/, and pages that show runs over the same questions side by side.
    """
    arranged = grid.read(names, place)
    if against is not None:
        check(arranged, against)
    folder = out or _folder(names, place)
    report = PaperReport.of(", ".join(names), arranged, folder, against=against, beside_paper=beside_paper)
    if out or not form:  # before anything is shown: whoever reads it may stop, as head does
        write(arranged, report, folder, figures=not no_figures)
    if form:
        click.echo(_FORMS[form](report.sheets), nl=False)
    else:
        _print(report, Console(highlight=False, markup=False))
    if out or not form:
        click.echo(folder / "index.html", err=bool(form))


def make(name: str, place: Path) -> Path:
    """Write the report of one run or sweep, and return its page. Raises DataError if nothing is finished."""
    arranged, folder = grid.read([name], place), _folder([name], place)
    write(arranged, PaperReport.of(name, arranged, folder), folder)
    return folder / "index.html"


def write(arranged: grid.Grid, report: PaperReport, folder: Path, *, figures: bool = True) -> None:
    """Write a report's files, with its figures and the pages of its runs. Raises SettingsError if there is no room."""
    from rectom.results.paper_figures import drawn
    from rectom.results.side_by_side import side_by_side

    pages = list(side_by_side(arranged))
    shown = replace(
        report,
        figures=tuple(drawn(arranged)) if figures else (),
        pages=tuple((page.title, next(iter(page.files))) for page in pages),
    )
    _write([*shown.files(), *(file for page in pages for file in page.files.items())], folder)


def _folder(names: Sequence[str], place: Path) -> Path:
    """Where the report goes: into the folder of a sweep that is alone, else into one of its own beside the runs."""
    first = run_or_sweep(names[0], place).resolve()
    if len(names) == 1 and (first / sweep.FILE).is_file():
        return first
    more = f"+{len(names) - 1}" if len(names) > 1 else ""
    return first.with_name(f"{first.name}{more}.report")


def _write(files: Sequence[tuple[str, bytes]], folder: Path) -> None:
    try:
        for name, data in files:
            path = folder / name
            refuse_links(path, folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            whole.write(path, data)
    except Irregular as error:
        raise SettingsError(f"cannot write to {error.filename}: {error}; remove it, or choose another --out") from None
    except OSError as error:
        raise SettingsError(f"cannot write to {folder}: {error.strerror}; choose another --out") from None


def _print(report: PaperReport, console: Console) -> None:
    """The tables in short: intervals are shown where there is room, and the paper's figures in parentheses."""
    paired = [sheet for sheet in report.more if sheet.name == "pairs"]
    wide = console.width >= _ROOMY
    for sheet in (*report.tables, *paired):
        _show(sheet, console, wide)
    failed = sum(row.values[0].number or 0 for sheet in report.more if sheet.name == "failures" for row in sheet.rows)
    if failed:
        console.print(f"failed answers, which count as wrong: {failed:.0f}; the report lists them by run and step")
    if any(value.paper for sheet in report.tables for row in sheet.rows for value in row.values):
        console.print("in parentheses: the paper's figures")
    if not wide:
        console.print(f"intervals: in the report, or in a terminal of {_ROOMY} columns")


def _show(sheet: Sheet, console: Console, wide: bool) -> None:
    groups = {column.group for column in sheet.columns}
    alone = [group for group in groups if len(groups) == 1 and group not in sheet.title]
    console.print(shown(" · ".join([sheet.title, *alone]), "italic"), soft_wrap=True)
    for part in _parts(sheet, console, wide):
        console.print(part)
    for note in sheet.notes:
        console.print(shown(note), soft_wrap=True)
    console.print()


def _parts(sheet: Sheet, console: Console, wide: bool) -> Iterator[Table | Text]:
    """The table; where there is no room for it, one for each group of columns, with as many of them as fit."""
    count, few = len(sheet.columns), len(sheet.columns) <= _SIDE_BY_SIDE
    loose, dense = (_table(sheet, wide, gap) for gap in (1, 0))
    if few and _fits(loose, sheet, console):
        yield loose
    elif len(sheet.spans) > 1:
        begin = 0
        for group, over in sheet.spans:
            yield shown(group, "italic")
            yield from _parts(_cut(sheet, begin, begin + over), console, wide)
            begin += over
    elif count == 1 or (few and _fits(dense, sheet, console)):
        yield dense
    else:
        middle = count // 2 if few else _SIDE_BY_SIDE
        for begin, end in ((0, middle), (middle, count)):
            yield from _parts(_cut(sheet, begin, end), console, wide)


def _cut(sheet: Sheet, begin: int, end: int) -> Sheet:
    rows = tuple(replace(row, values=row.values[begin:end]) for row in sheet.rows)
    return replace(sheet, columns=sheet.columns[begin:end], rows=rows)


def _fits(table: Table, sheet: Sheet, console: Console) -> bool:
    """Whether there is room for a table in which long names are folded."""
    names = (max(map(cell_len, heads)) for heads in zip(*(row.heads for row in sheet.rows), strict=True))
    folded = sum(max(0, width - _NAME) for width in names)
    return width_of(table, console) - folded <= console.width


def _table(sheet: Sheet, wide: bool, gap: int) -> Table:
    """A table for the terminal: names are folded where there is no room, figures never are."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, gap, 0, 0))
    for name in sheet.corner:
        table.add_column(name, overflow="fold")
    before = ""
    for column in sheet.columns:
        over = [column.group if column.group != before else ""] if len(sheet.spans) > 1 else []
        names = map(shown, [*over, column.name.removesuffix("-Order")])
        table.add_column(Text("\n").join(names), justify="right", no_wrap=True)
        before = column.group
    for row, heads, begins in sheet.shown():
        if begins:
            table.add_section()
        table.add_row(
            *map(shown, heads), *(_cell(value, wide) for value in row.values), style="dim" if row.paper else ""
        )
    return table


def _cell(value: Value, wide: bool) -> Text:
    text = Text()
    text.append(value.text, style=_STYLES[value.mark])
    text.append("†" * value.significant)
    if wide and value.span:
        text.append(f" [{value.span}]", style="dim")
    if value.paper:
        text.append(f"\n({value.paper})", style="dim")
    return text


def _json(sheets: Sequence[Sheet]) -> str:
    return "".join(orjson.dumps(to_json(sheet), option=orjson.OPT_APPEND_NEWLINE).decode() for sheet in sheets)


_FORMS: Final[Mapping[str, Callable[[Sequence[Sheet]], str]]] = {
    "json": _json,
    "markdown": lambda sheets: "\n".join(map(markdown, sheets)),
    "latex": lambda sheets: "\n".join(map(latex, sheets)),
    "csv": as_csv,
}
