"""Where the published files of benchmarks are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def folders() -> list[Path]:
    """Where they are looked for: RECTOM_DATA, which may itself be a file, and then ../shared/data."""
    said = [Path(place) for place in [os.environ.get("RECTOM_DATA")] if place]
    return [*said, Path(__file__).parents[2] / "shared" / "data"]


def published(name: str, *below: str) -> Path:
    """The data folder that has a benchmark, or a file of it (`"bigtom", "bigtom.csv"`); else the test is skipped."""
    for folder in folders():
        if folder.joinpath(name, *below).exists():
            return folder
    wanted = "/".join((name, *below))
    pytest.skip(f"no {wanted} at {' or '.join(map(str, folders()))}: set RECTOM_DATA (rectom data get {name})")
