from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rectom.benchmarks import registry
from rectom.benchmarks.adapter import GROUP
from rectom.errors import DataError
from rectom.results.scoring import SCORERS
from rectom.task import TASKS
from tests import offered
from tests.laboratory import call
from tests.offered import site_in

DOCUMENT = Path(__file__).parents[1] / "docs" / "add-a-benchmark.md"


block = partial(offered.block, "add-a-benchmark.md")


def offer(folder: Path, points: dict[str, str], **modules: str) -> None:
    offered.offer(folder, GROUP, points, **modules)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which Python finds packages."""
    with site_in(tmp_path / "site", monkeypatch) as folder:
        yield folder


@pytest.fixture
def kitchen(site: Path) -> Path:
    """The benchmark of the document, installed; its file."""
    points = tomllib.loads(block("toml"))["project"]["entry-points"]
    assert list(points) == [GROUP]
    offer(site, points[GROUP], kitchen_tom=block("python"))
    file = site.parent / "kitchen.csv"
    file.write_text(block("csv"), "utf-8")
    return file


def test_the_benchmarks_of_this_package_come_first() -> None:
    assert registry.names()[: len(registry.BUILT_IN)] == list(registry.BUILT_IN)
    assert registry.names()[0] == "hitom"


def test_no_benchmark_is_imported_for_its_name(site: Path) -> None:
    offer(site, {"zoo": "zoo:A", "ark": "ark:A"}, zoo="raise SystemExit", ark="raise SystemExit")
    assert registry.names() == [*registry.BUILT_IN, "ark", "zoo"]


def test_the_document_shows_a_benchmark_that_is_found(kitchen: Path) -> None:
    assert len(block("python").splitlines()) < 100
    assert registry.names()[-1] == "kitchen"
    adapter = registry.adapter("kitchen")
    benchmark = adapter.open("all", kitchen)
    assert [(q.text, q.gold, q.order, q.group) for q in benchmark.questions] == [
        ("Where is the milk?", "sink", 0, "reality"),
        ("Where does Anne think the milk is?", "fridge", 1, "false belief"),
        ("What does Dora think Cid does?", "He reads.", 1, "true belief"),
    ]
    assert [len(story.lines) for story in benchmark.stories] == [3, 2]
    assert [len(benchmark.of_story(story.id)) for story in benchmark.stories] == [2, 1]
    assert len(adapter.open("belief", kitchen).questions) == 2


def test_the_documents_benchmark_can_be_listed_and_shown(kitchen: Path, tmp_path: Path) -> None:
    shown = call("data", "show", "kitchen", "--data", kitchen, COLUMNS="80")
    assert (shown.status, shown.err) == (0, "")
    assert "belief (default)          2        2  what somebody thinks" in shown.out
    assert re.search(r"kitchen/belief +order 1 +all\n.*false belief +1 +1\n.*true belief +1 +1\n", shown.out)
    assert "A  fridge  ← gold" in shown.out
    listed = call("data", "list", "--json", RECTOM_DATA=str(tmp_path))
    line = json.loads(listed.out.splitlines()[-1])
    assert line["name"] == "kitchen"
    assert line["files"][0]["condition"] == "not checked"


def test_the_documents_benchmark_names_the_row_that_is_wrong(kitchen: Path) -> None:
    kitchen.write_text(kitchen.read_text("utf-8").replace("sink,1,", "sink,deep,"), "utf-8")
    shown = call("data", "show", "kitchen", "--data", kitchen)
    assert shown.errors == [
        f"rectom: {kitchen}, row 3: order: Input should be a valid integer, unable to parse string as an integer"
    ]


def test_the_document_names_every_task_and_measure() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert [name for name in (*TASKS, *SCORERS) if f"`{name}`" not in text] == []


def test_the_documents_commands_are_those_there_are() -> None:
    text = DOCUMENT.read_text("utf-8")
    for name in re.findall(r"^    rectom data (\w+)", text, re.MULTILINE):
        assert call("data", name, "--help").status == 0


def test_an_unknown_benchmark_is_an_error_that_lists_the_known(site: Path) -> None:
    offer(site, {"zoo": "zoo:A"})
    with pytest.raises(DataError, match=r"there is no benchmark 'tomato'; there are hitom, .*, zoo"):
        registry.adapter("tomato")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("import nothing_of_the_kind", "of zoo:A cannot be loaded: No module named 'nothing_of_the_kind'"),
        ("1 / 0", "of zoo:A cannot be loaded: division by zero"),
        ("", "of zoo:A cannot be loaded: module 'zoo' has no attribute 'A'"),
        ("A = 'adapter'", "the benchmark 'zoo' is no Adapter but str"),
        ("from rectom.benchmarks.hitom import ADAPTER as A", "the benchmark 'zoo' calls itself 'hitom'"),
    ],
)
def test_a_package_that_is_at_fault_is_named(module: str, words: str, site: Path) -> None:
    offer(site, {"zoo": "zoo:A"}, zoo=module)
    with pytest.raises(DataError) as caught:
        registry.adapter("zoo")
    assert words in str(caught.value)


def test_no_package_takes_the_place_of_a_benchmark_of_this_one(site: Path) -> None:
    offer(site, {"hitom": "zoo:A"}, zoo="raise SystemExit")
    assert registry.names() == list(registry.BUILT_IN)
    assert registry.adapter("hitom").title.startswith("Hi-ToM")
