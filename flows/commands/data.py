"""`rectom data list|get|show|audit`: the benchmarks, their files, their questions, their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import orjson
from rich.console import Console
from rich.markup import escape

from flows.download import with_bars
from rectom.benchmarks import registry
from rectom.benchmarks.adapter import Adapter, data_folder, data_place
from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError
from rectom.story import Question

if TYPE_CHECKING:
    from rectom.benchmarks.fetch import Held

_ALL: Final = "all"

_data = click.option("--data", type=click.Path(path_type=Path), help="The benchmark's file or folder [RECTOM_DATA].")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")


@click.group(name="data")
def command() -> None:
    """The benchmarks: what there is, their files, their questions, their labels."""


@command.command(name="list")
@_json
def list_(as_json: bool) -> None:
    """List the benchmarks, and which of their files are here.

    A file whose checksum differs from that of the published one is said to differ.
    """
    from flows import exhibit
    from rectom.benchmarks.fetch import held

    console = Console(highlight=False)
    if not as_json:
        console.print(f"Benchmark files are looked for in {_place()}", soft_wrap=True)
    for name in registry.names():
        try:
            adapter = registry.adapter(name)
        except (DataError, ImportError) as error:
            if as_json:
                _print_json({"name": name, "error": str(error)})
            else:
                console.print()
                exhibit.fault(console, name, str(error))
            continue
        files = held(adapter)
        instead = any(file.path is None for file in files) and _loaded(adapter, adapter.default, None) is not None
        if as_json:
            _print_json(_line(adapter, files, instead))
        else:
            console.print()
            exhibit.entry(console, adapter, files, instead)


def _place() -> str:
    place = data_place()
    whose = "your data folder" if place == data_folder() else "RECTOM_DATA"
    what = "" if place.is_dir() else ", one file" if place.is_file() else ", which is not there yet"
    return escape(f"{place} ({whose}{what})")


def _line(adapter: Adapter, files: Sequence[Held], instead: bool) -> dict[str, Any]:
    """A benchmark in the list of all, for programs."""
    return {
        "name": adapter.name,
        "title": adapter.title,
        "subsets": dict(adapter.subsets),
        "default": adapter.default,
        "licence": adapter.licence,
        "files": [
            {
                **asdict(file.source),
                "path": file.path and str(file.path),
                "bytes": file.size,
                "condition": file.condition,
            }
            for file in files
        ],
        "instead": instead,
    }


def _print_json(value: object) -> None:
    click.echo(orjson.dumps(value).decode())


@command.command(name="get")
@click.argument("name", metavar="NAME|all")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to; by default your data folder.")
def get(name: str, folder: Path | None) -> None:
    """Download a benchmark, or all, and check it.

    The addresses are the official ones. Files that are there and do not differ are left alone.
    """
    where = folder or data_folder()
    paths: list[Path] = []
    failed: list[str] = []
    for one in registry.names() if name == _ALL else [name]:
        try:
            paths += _fetched(registry.adapter(one), where)
        except (DataError, ImportError) as error:
            if name != _ALL:
                raise
            failed.append(one)
            click.echo(f"rectom: {error}", err=True)
    for path in paths:
        click.echo(path)
    if paths and where.absolute() != data_place().absolute():
        click.echo(f"RecToM looks in {data_place()}; for it to find this, set RECTOM_DATA={where}", err=True)
    if failed:
        raise DataError(f"these failed, as said above: {', '.join(failed)}; the same command tries them again")


def _fetched(adapter: Adapter, folder: Path) -> tuple[Path, ...]:
    """The files of a benchmark, downloaded where need be, with a bar a file."""
    from rectom.benchmarks.fetch import fetch

    return with_bars(lambda show: fetch(adapter, folder, show))


@command.command(name="show")
@click.argument("target", metavar="NAME[/SUBSET]")
@click.argument("question", metavar="[ID]", required=False)
@_data
@click.option("--limit", type=click.IntRange(0), default=1, show_default=True, help="So many questions as examples.")
@_json
def show(target: str, question: str | None, data: Path | None, limit: int, as_json: bool) -> None:
    """Show what is in a benchmark, or one question.

    Without ID: the sizes of its subsets, its questions by order and group, and an example.
    """
    from flows import exhibit

    name, _, subset = target.partition("/")
    adapter = registry.adapter(name)
    benchmark = adapter.open(subset or adapter.default, data)
    questions = benchmark.questions[:limit] if question is None else [_named(benchmark, question)]
    subsets = [benchmark.subset] if subset or question else list(adapter.subsets)
    sizes = {name: benchmark if name == benchmark.subset else _loaded(adapter, name, data) for name in subsets}
    if as_json:
        lines = [_as_json(benchmark, one) for one in questions]
        _print_json({**_whole(benchmark, sizes), "examples": lines} if question is None else lines[0])
        return
    console = Console(highlight=False)
    if question is None:
        exhibit.overview(console, adapter, benchmark, sizes)
    for one in questions:
        exhibit.asked(console, benchmark, one)


def _named(benchmark: Benchmark, name: str) -> Question:
    found = next((question for question in benchmark.questions if question.id == name), None)
    if found is None:
        whole = f"{benchmark.name}/{benchmark.subset}"
        ends = f"{benchmark.questions[0].id} … {benchmark.questions[-1].id}"
        raise DataError(f"{whole} has no question {name!r}; its {len(benchmark.questions):,} are called {ends}")
    return found


def _loaded(adapter: Adapter, subset: str, data: Path | None) -> Benchmark | None:
    """A subset, or None where the files hold nothing of it."""
    try:
        return adapter.open(subset, data)
    except DataError:
        return None


def _whole(benchmark: Benchmark, sizes: Mapping[str, Benchmark | None]) -> dict[str, Any]:
    """A benchmark as a whole, for programs."""
    from flows.exhibit import counted

    return {
        "benchmark": benchmark.name,
        "subset": benchmark.subset,
        "stories": len(benchmark.stories),
        "questions": len(benchmark.questions),
        "counts": [{"order": k, "group": group, "questions": n} for (k, group), n in counted(benchmark).items()],
        "subsets": {name: len(loaded.questions) if loaded else None for name, loaded in sizes.items()},
        "scoring": benchmark.scoring,
        "digest": benchmark.digest,
        "warnings": benchmark.warnings,
    }


def _as_json(benchmark: Benchmark, question: Question) -> dict[str, Any]:
    story = next(story for story in benchmark.stories if story.id == question.story_id)
    return {**asdict(question), "story": story.lines}


@command.command(name="audit")
@click.argument("name")
@_data
def audit(name: str, data: Path | None) -> None:
    """List the labels that are in doubt, with the reason."""
    adapter = registry.adapter(name)
    if name == "hitom":
        _audit_hitom(adapter.files(data).path(adapter.sources[0].file))
    elif adapter.audit:
        for line in adapter.audit(adapter.files(data)):
            click.echo(line)
    else:
        raise click.UsageError(f"there is no audit of {name}; rectom data show {name} shows its questions")


def _audit_hitom(file: Path) -> None:
    from flows import exhibit
    from rectom.benchmarks import hitom
    from rectom.benchmarks.audit import audit as findings_of

    exhibit.doubted(Console(highlight=False), findings_of(hitom.read_rows(hitom.read_bytes(file), file)))
