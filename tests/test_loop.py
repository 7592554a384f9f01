from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import asyncio, resource
from flows import loop
resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))
loop.run(asyncio.sleep(0))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "after"),
    [(70, 70, "70 70"), (70, 200, "200 200"), (70, 5000, "4096 5000"), (4500, 5000, "4500 5000")],
)
def test_as_many_files_as_the_system_allows_may_be_open(soft: int, hard: int, after: str) -> None:
    code = CODE.replace("SOFT", str(soft)).replace("HARD", str(hard))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert ended.stdout.strip() == after
