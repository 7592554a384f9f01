"""Packages that offer something by entry points, installed into a temporary folder, out of a document's code blocks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def block(document: str, language: str) -> str:
    """The one code block of a language in a document of `docs/`."""
    text = (Path(__file__).parents[1] / "docs" / document).read_text("utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def offer(folder: Path, group: str, points: dict[str, str], **modules: str) -> None:
    """Install a package: its modules, and what pip would note of its entry points."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    noted = folder / "offered-1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    lines = [f"{name} = {place}" for name, place in points.items()]
    (noted / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))


@contextmanager
def site_in(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which Python finds packages; what was imported from it is forgotten afterwards."""
    folder.mkdir()
    patch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
