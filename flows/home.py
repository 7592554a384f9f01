"""Where RecToM keeps its things: `.rectom` in the working folder, or RECTOM_HOME."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder of the cache and of Prefect's data; not made here."""
    return Path(os.environ.get("RECTOM_HOME") or ".rectom").absolute()
