"""`rectom compare RUN…`: runs over the same questions, each beside the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Final

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from flows.settings import Settings
from rectom.errors import SettingsError
from rectom.llm.request import Sampling
from rectom.printable import printable, shown
from rectom.results.comparison import Comparison, compare
from rectom.results.comparison_tables import (
    ACCURACY_HEADER,
    DIFFERENCE_HEADER,
    PAID_HEADER,
    Rows,
    accuracy_rows,
    difference_rows,
    figures_table,
    paid_rows,
)
from rectom.results.finished import Finished
from rectom.results.named import run_folders
from rectom.results.writing import rows_csv, rows_latex, rows_markdown

#: What the columns of the terminal's tables mean, as far as their names do not say it.
_NOTES: Final = (
    "95 % interval: Wilson's; of a difference, from a bootstrap that draws stories",
    "b: questions on which A is better; c: on which the run is; p: McNemar's exact",
    "p, Holm: adjusted over the rows for all, and apart from them over those by order",
    "Eff: points for each further 1,000 tokens a question; - if the run takes no more",
)


@click.command(name="compare", short_help="Compare runs over the same questions.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--against", metavar="RUN", help="The baseline, if it is not the first run.")
@click.option("--intersect", is_flag=True, help="Compare the questions that all runs share.")
@click.option(
    "--runs", "place", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs are."
)
@click.option(
    "--resamples", type=click.IntRange(100), default=2000, show_default=True, help="Times the stories are drawn anew."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of these draws.")
@click.option("--json", "form", flag_value="json", help="A line of JSON a comparison.")
@click.option("--markdown", "form", flag_value="markdown", help="The tables in markdown.")
@click.option("--latex", "form", flag_value="latex", help="The tables in LaTeX.")
@click.option("--csv", "form", flag_value="csv", help="One table of plain figures, comma-separated.")
def command(
    runs: tuple[str, ...],
    against: str | None,
    intersect: bool,
    place: Path,
    resamples: int,
    seed: int,
    form: str | None,
) -> None:
    """Compare finished runs, each with the first: accuracy by order, the difference to it, tokens and money.

    RUN is the name of a run, or its folder. Runs over different questions are refused, unless --intersect is given.
    """
    read = [Finished.read(folder) for folder in _folders([*([against] if against else []), *runs], place)]
    compared = compare(read, intersect=intersect, resamples=resamples, seed=seed)
    if form:
        for remark in _remarks(compared, _names(compared)):
            click.echo(printable(f"note: {remark}"), err=True)
        click.echo(_FORMS[form](compared), nl=False)
    else:
        _print(compared, Console(highlight=False, markup=False))


def _folders(names: Sequence[str], place: Path) -> list[Path]:
    """The folders of the runs, each once, in order. Raises SettingsError if that is no comparison."""
    folders = run_folders(names, place)
    if not 2 <= len(folders) <= len(ascii_uppercase):
        raise SettingsError(f"compare takes from 2 to {len(ascii_uppercase)} different runs, not {len(folders)}")
    return folders


def _print(compared: Comparison, console: Console) -> None:
    letters = ascii_uppercase[: len(compared.runs)]
    for letter, name, run in zip(letters, _names(compared), compared.runs, strict=True):
        baseline = "  (baseline)" if letter == letters[0] else ""
        console.print(shown(f"{letter}  {name}{baseline}  {_peculiar(run, compared.runs)}".rstrip()), soft_wrap=True)
    row = compared.rows[-1]
    benchmarks = ", ".join(dict.fromkeys(run.benchmark for run in compared.runs))
    console.print(shown(f"{benchmarks}: {row.figures[0].questions} questions about {row.stories} stories"))
    for remark in _remarks(compared, letters):
        console.print(remark)
    for title, header, rows in _tables(compared, letters):
        console.print("", _table(title, header, rows), sep="\n")
    console.print("", *_NOTES, sep="\n")


def _remarks(compared: Comparison, names: Sequence[str]) -> list[str]:
    """What else is to be known of the questions."""
    told = []
    if any(compared.left_out):
        left = ", ".join(f"{count} of {name}" for name, count in zip(names, compared.left_out, strict=True))
        told.append(f"left out, since not all runs have them: {left}; what was paid is for whole runs")
    if any(question.tries > 1 for run in compared.runs for question in run.questions):
        told.append("a question that was asked several times counts once, with the share of right answers")
    return told


def _names(compared: Comparison) -> list[str]:
    """The runs' names; where two share one, with a number."""
    names = [run.name for run in compared.runs]
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _peculiar(run: Finished, runs: Sequence[Finished]) -> str:
    """The settings in which the runs differ, as far as this run has them."""
    names = dict.fromkeys(name for one in runs for name in one.settings if name != "data")
    differing = [name for name in names if any(_setting(one, name) != _setting(run, name) for one in runs)]
    return ", ".join(f"{name}={_value(_setting(run, name))}" for name in differing if _has(run, name, runs))


def _setting(run: Finished, name: str) -> object:
    """A setting of a run: one that it does not name is the usual one."""
    return run.settings[name] if name in run.settings else getattr(Settings(), name, getattr(Sampling(), name, None))


def _has(run: Finished, name: str, runs: Sequence[Finished]) -> bool:
    """Whether a run has a setting: it names it, or leaves to be understood what another run of its method names."""
    alike = (one for one in runs if one.settings.get("method") == run.settings.get("method"))
    return name in run.settings or (bool(_setting(run, name)) and any(name in one.settings for one in alike))


def _value(setting: object) -> object:
    """A setting in words; of several that are alike (who reads each step) the one that they are."""
    if not isinstance(setting, Mapping):
        return setting
    alike = len(set(setting.values())) == 1
    return next(iter(setting.values())) if alike else " ".join(f"{name}:{one}" for name, one in setting.items())


def _tables(compared: Comparison, names: Sequence[str]) -> list[tuple[str, Sequence[str], Rows]]:
    return [
        (
            "accuracy; calls and tokens of a question, if it had shared nothing",
            ACCURACY_HEADER,
            accuracy_rows(compared, names),
        ),
        (f"difference to {names[0]}", DIFFERENCE_HEADER, difference_rows(compared, names)),
        ("calls and tokens an answer, money of the run", PAID_HEADER, paid_rows(compared, names)),
    ]


def _table(title: str, header: Sequence[str], rows: Rows) -> Table:
    """A table in which what repeats in the first columns is shown once."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name in header:
        table.add_column(name, justify="left" if name in {"order", "run"} else "right")
    for before, row in zip([("",), *rows], rows, strict=False):
        same = before[0] == row[0]
        cells = [
            "" if same and name in {"order", "questions"} else shown(cell)
            for name, cell in zip(header, row, strict=True)
        ]
        table.add_row(*cells)
    return table


def _written(write: Callable[[Sequence[str], Rows], str], compared: Comparison) -> str:
    return "\n".join(write(header, rows) for _, header, rows in _tables(compared, _names(compared)))


def _json(compared: Comparison) -> str:
    return "".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE).decode() for line in compared.to_json())


_FORMS: Final[Mapping[str, Callable[[Comparison], str]]] = {
    "json": _json,
    "markdown": lambda compared: _written(rows_markdown, compared),
    "latex": lambda compared: _written(rows_latex, compared),
    "csv": lambda compared: rows_csv(*figures_table(compared)),
}
