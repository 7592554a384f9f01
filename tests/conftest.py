"""The real Hi-ToM file, what the rules make of it, and strategies for stories that nobody wrote."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from xdist.scheduler import LoadScopeScheduling

from cache import Store
from rectom import grammar
from rectom.benchmarks import hitom
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import Recipe, generate
from rectom.benchmarks.hitom import Row
from rectom.facts import Fact, inside, value_of
from rectom.logic import Atom, Believes, Formula, Implies, Not
from rectom.perspective import Perspective
from rectom.reader.rules import RuleReader
from rectom.rules import Rules
from rectom.story import Story
from tests.laboratory import PrefectServer, call, execute
from tests.published import folders

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a script's background job. What the tests start would ignore it, too, and they interrupt some of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "rectom", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("rectom")

#: How the files begin whose tests share the Prefect server.
_WITH_PREFECT = "test_prefect_"

Missed: TypeAlias = Callable[[Rules], list[int]]


@pytest.fixture(scope="session", autouse=True)
def _data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A data folder of the tests' own: the key that commands are sealed with is made there."""
    with mock.patch.dict(os.environ, {"XDG_DATA_HOME": str(tmp_path_factory.mktemp("share"))}):
        yield


@pytest.fixture(scope="session")
def hitom_file() -> Path:
    """The published file, from RECTOM_DATA or ../shared/data; without it the test is skipped."""
    for folder in folders():
        for file in (folder, folder / "hitom" / "Hi-ToM_data.json", folder / "Hi-ToM_data.json"):
            if file.is_file():
                return file
    pytest.skip(f"no Hi-ToM file at {' or '.join(map(str, folders()))}: set RECTOM_DATA to it (rectom data get hitom)")


class _Together(LoadScopeScheduling):  # type: ignore[misc]
    """Of several processes one takes all tests of a file, and one all that share the Prefect server."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        return _WITH_PREFECT if _WITH_PREFECT in file else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest goes first: else one process would be left alone with it in the end."""
    items.sort(key=lambda item: _WITH_PREFECT not in item.path.name)


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """One Prefect server for all tests that need one."""
    home = tmp_path_factory.mktemp("prefect")
    started = execute("server", "start", timeout=150, RECTOM_HOME=str(home))
    assert started.status == 0, started.err
    yield PrefectServer(started.out.strip(), home)
    call("server", "stop", RECTOM_HOME=str(home))


@pytest.fixture(scope="session")
def rows(hitom_file: Path) -> list[Row]:
    return hitom.read_rows(hitom_file.read_bytes(), hitom_file)


@pytest.fixture(scope="session")
def cotp(hitom_file: Path) -> Benchmark:
    return hitom.load(hitom_file, "cotp")


@pytest.fixture(scope="session")
def worlds(cotp: Benchmark) -> dict[str, Perspective]:
    """The global perspective of each of the 120 stories."""
    return {story.id: RuleReader().world(story) for story in cotp.stories}


@pytest.fixture(scope="session")
def missed(cotp: Benchmark, worlds: dict[str, Perspective]) -> Missed:
    """The ids of the CoTP questions that a set of rules answers otherwise than their labels."""

    @lru_cache
    def ids(rules: Rules) -> list[int]:
        found = []
        construct = remembered(RuleReader(rules).perspective)
        for question in cotp.questions:
            chain, thing = grammar.read_question(question.text)
            perspective = along(construct, worlds[question.story_id], chain)
            if value_of(perspective.final, "in", thing) != question.gold:
                found.append(int(question.id))
        return found

    return ids


def along(
    construct: Callable[[Perspective, str], Perspective], source: Perspective, chain: Sequence[str]
) -> Perspective:
    """The last perspective of a chain."""
    for name in chain:
        source = construct(source, name)
    return source


def remembered(construct: Callable[[Perspective, str], Perspective]) -> Callable[[Perspective, str], Perspective]:
    """The same construction, made once for each source and character."""
    known: dict[tuple[int, str], tuple[Perspective, Perspective]] = {}

    def construct_once(source: Perspective, character: str) -> Perspective:
        if (id(source), character) not in known:
            known[id(source), character] = (source, construct(source, character))
        return known[id(source), character][1]

    return construct_once


@lru_cache(maxsize=4096)
def generated(recipe: Recipe) -> tuple[Row, ...]:
    """The rows of a recipe."""
    return tuple(hitom.read_rows(generate(recipe), Path("generated.json")))


@pytest.fixture(scope="session")
def dry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store to which dry runs add nothing."""
    with Store(tmp_path_factory.mktemp("oracle")) as opened:
        yield opened
        assert not list(opened.iterate("stage"))


def recipes() -> st.SearchStrategy[Recipe]:
    """Recipes of one story, of every kind."""
    return st.builds(
        Recipe,
        stories=st.just(1),
        chapters=st.integers(1, 3),
        tell=st.booleans(),
        max_order=st.integers(0, 8),
        seed=st.integers(0, 500),
        vocabulary=st.sampled_from(["hitom", "fresh"]),
        wording=st.sampled_from(["classic", "now"]),
    )


def stories() -> st.SearchStrategy[Story]:
    """Stories that nobody wrote."""
    return recipes().map(lambda recipe: Story.parse(generated(recipe)[0].story))


def characters_of(world: Perspective) -> tuple[str, ...]:
    return world.setting.exits[-1]


def places_of(world: Perspective) -> list[Fact]:
    """Every fact of the form in(object,container) that the words of a story allow."""
    things = sorted({str(fact.args[0]) for state in world.states for fact in state if fact.predicate == "in"})
    return [inside(thing, container) for thing in things for container in sorted(world.setting.places)]


def some_formula(below: Callable[[int], int], people: Sequence[str], facts: Sequence[Fact], depth: int) -> Formula:
    """A formula nested at most `depth` deep; `below(n)` makes the choices, each among n."""
    kind = below(6 if depth else 2)
    if kind == 0:
        return Atom(facts[below(len(facts))])
    if kind == 1:
        return Not(some_formula(below, people, facts, depth))
    inner = [some_formula(below, people, facts, depth - 1) for _ in range(2 if kind == 2 else 1)]
    return Implies(*inner) if kind == 2 else Believes(people[below(len(people))], inner[0])
