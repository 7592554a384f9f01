"""`rectom generate hitom`: fresh stories that no model has seen."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from rectom import whole
from rectom.errors import SettingsError


@click.group(name="generate")
def command() -> None:
    """Write fresh stories that no model has seen, with gold answers by rule."""


@command.command(name="hitom")
@click.option("--stories", type=click.IntRange(1), default=20, show_default=True)
@click.option("--chapters", type=click.IntRange(1, 3), default=1, show_default=True)
@click.option("--tell/--no-tell", default=False, show_default=True, help="With claims and private communications.")
@click.option("--max-order", type=click.IntRange(0, 8), default=4, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--vocabulary", type=click.Choice(["hitom", "fresh"]), default="hitom", show_default=True)
@click.option("--wording", type=click.Choice(["classic", "now"]), default="classic", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
def hitom(
    stories: int,
    chapters: int,
    tell: bool,
    max_order: int,
    seed: int,
    vocabulary: Literal["hitom", "fresh"],
    wording: Literal["classic", "now"],
    out: Path,
) -> None:
    """Stories in Hi-ToM's schema and grammar, with questions of every order; the same seed gives the same bytes."""
    from rectom.benchmarks.generate import Recipe, generate

    data = generate(Recipe(stories, chapters, tell, max_order, seed, vocabulary, wording))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.is_file() or not out.exists():
            whole.write(out.resolve(), data)
        else:
            out.write_bytes(data)  # a pipe, whose place nothing could take
    except OSError as error:
        raise SettingsError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    click.echo(f"{out}: {stories} stories, {stories * (max_order + 1)} questions")
