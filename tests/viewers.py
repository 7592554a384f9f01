"""The viewers that people have, inspect_ai and datasets: in an environment of their own, which `make viewers` makes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parents[1]


def ask(tmp_path: Path, script: str, *arguments: object) -> Any:
    """What a script prints as JSON that these viewers run, without network; skips where they are not installed."""
    python = Path(os.environ.get("RECTOM_VIEWERS") or _HERE / ".venv-viewers") / "bin" / "python"
    if not python.is_file():
        pytest.skip(f"no viewers at {python}: make viewers, or set RECTOM_VIEWERS to their environment")
    home = {name: str(tmp_path / "home") for name in ("HOME", "HF_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [python, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", **home},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
