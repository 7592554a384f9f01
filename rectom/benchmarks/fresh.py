"""Stories generated on the spot, in Hi-ToM's grammar and with names that its file does not have: they need no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, Final

import orjson

from rectom.benchmarks.adapter import Adapter, Files
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import LONGEST, Recipe, generate
from rectom.benchmarks.hitom import Row, benchmark, name_stories


def _recipes(each: int, *, chapters: Sequence[int] = (1, 2), max_order: int = 4) -> tuple[Recipe, ...]:
    """As many stories of every length, without claims and with them."""
    return tuple(
        Recipe(each, length, tell, max_order, seed=length, vocabulary="fresh")
        for length in chapters
        for tell in (False, True)
    )


#: What each subset is made of. The same recipe gives the same stories, so that a subset is the same everywhere.
RECIPES: Final = {
    "small": _recipes(2),
    "400": _recipes(20),
    "deep": _recipes(5, max_order=LONGEST),
}


def _load(_: Files, subset: str) -> Benchmark:
    rows = list(_rows(RECIPES[subset]))
    data = orjson.dumps(rows)
    read = [Row.model_validate(row) for row in rows]
    return benchmark("fresh", subset, read, name_stories(read), data)


@cache
def _generated(recipe: Recipe) -> bytes:
    return generate(recipe)


def _rows(recipes: Sequence[Recipe]) -> Iterator[dict[str, Any]]:
    numbers = count()
    for recipe in recipes:
        for row in orjson.loads(_generated(recipe))["data"]:
            yield {**row, "sample_id": next(numbers)}


ADAPTER: Final = Adapter(
    name="fresh",
    title="fresh: stories in Hi-ToM's grammar, generated on the spot, that no model has seen",
    load=_load,
    subsets={
        "small": "8 stories of one and two chapters, half of them with claims, 40 questions of orders 0 to 4",
        "400": "80 such stories, 400 questions, as many of each kind as hitom/400 has",
        "deep": f"20 such stories, 180 questions of orders 0 to {LONGEST}",
    },
    default="small",
    licence="MIT",
)
