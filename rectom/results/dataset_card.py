"""The card of a dataset: the `README.md` that tells `datasets` where the tables are, and people what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from rectom.results.exported import Exported
from rectom.results.writing import grid

#: The tables, each a configuration of the dataset, and their files.
DATA_FILES: Final = {"results": "data/results-00000.parquet", "calls": "data/calls-00000.parquet"}

_HEADER: Final = ("run", "model", "method", "benchmark", "questions", "accuracy", "95 % interval", "failed")

_FRONT: Final = """\
---
license: other
pretty_name: {name}
tags:
- theory-of-mind
configs:
{configs}
---
"""

_CONFIG: Final = """\
- config_name: {name}
  default: {default}
  data_files:
  - split: test
    path: {path}"""

_TABLES: Final = """
## What is in it

`results` has a row a question: what was asked, the right answer, the one given, the character chain, and the step at
which a wrong answer went wrong, as far as that can be told. `calls` has a row a different call to the model, with its
messages and its reply; `questions` are the ids of all questions that rest on it. `label`, `setting` and `seed` tell
runs of one `method` apart.

Questions that failed count as wrong. The interval is Wilson's. Tokens are as the server counted them; in `results`, as
if no question had shared a call with another.

The stories and the questions are the benchmark's: see to its licence, and to whether its authors want its labels to
stay where no model is trained on them, before you publish this.
"""


def dataset_card(runs: Sequence[Exported], tables: Sequence[str]) -> str:
    """The card of a dataset of these runs, with these of the tables, of which the first is what opens by itself.

    Nothing in it comes from an address, a key or a place on this machine.
    """
    names = ", ".join(dict.fromkeys(run.benchmark for run in runs))
    configs = [_CONFIG.format(name=name, default=_json(name == tables[0]), path=DATA_FILES[name]) for name in tables]
    front = _FRONT.format(name=_json(f"RecToM on {names}"), configs="\n".join(configs))
    versions = ", ".join(dict.fromkeys(run.version for run in runs))
    settings = "\n".join(f"### {_text(run.name)}\n\n```json\n{_json(run.settings)}\n```\n" for run in runs)
    table = "\n".join(grid(_HEADER, map(_row, runs)))
    return (
        f"{front}\n# RecToM on {_text(names)}\n\nWritten by RecToM {versions}.\n\n"
        f"{table}\n{_TABLES}\n## Settings\n\n{settings}"
    )


def _row(run: Exported) -> tuple[str, ...]:
    low, high = run.interval
    said = (_text(name) for name in (run.name, run.model, run.method, run.benchmark))
    accuracy = f"{100 * run.accuracy:.2f}"
    return *said, str(run.questions), accuracy, f"{100 * low:.1f} to {100 * high:.1f}", str(run.failed)


def _text(name: str) -> str:
    """A name that a person chose, so that it is nothing but text in markdown."""
    return "".join(f"&#{ord(sign)};" if sign in "|<>&`*[]\\" else sign for sign in " ".join(name.split()))


def _json(value: str | bool | Mapping[str, Any]) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
