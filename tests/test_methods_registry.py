from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rectom import prompts
from rectom.answers import extract
from rectom.errors import SettingsError, StepFailure
from rectom.llm import ChatRequest
from rectom.methods import registry
from rectom.methods.base import GROUP
from rectom.methods.registry import chosen
from rectom.prompts import Prompt
from rectom.task import TASKS
from tests import offered
from tests.laboratory import Scripted
from tests.method_cases import DIALOGUE, GENERIC, HITOM, STORY, TOMI
from tests.offered import site_in
from tests.scripted_methods import FOLDERS, ask, made, perfect, step_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "add-a-method.md"

#: What takes every way through every method of this package.
WAYS = [*registry.BUILT_IN, "timetom:solver=off", "cot:conclude=on"]
CASES = [*HITOM, *TOMI, STORY, *DIALOGUE, *GENERIC]
#: The prompts that begin a conversation.
PROMPTS = [
    (folder, step) for folder in FOLDERS for step in prompts.digests(folder) if prompts.load(folder, step).system
]

every_prompt = pytest.mark.parametrize(("folder", "step"), PROMPTS)


block = partial(offered.block, "add-a-method.md")


def offer(folder: Path, points: dict[str, str], **modules: str) -> None:
    offered.offer(folder, GROUP, points, **modules)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which Python finds packages."""
    with site_in(tmp_path / "site", monkeypatch) as folder:
        yield folder


@pytest.fixture
def diaries(site: Path) -> None:
    """The method of the document, installed."""
    points = tomllib.loads(block("toml"))["project"]["entry-points"]
    assert list(points) == [GROUP]
    offer(site, points[GROUP], diary_tom=block("python"))


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_every_method_of_this_package_calls_itself_by_its_name_and_has_its_prompts(name: str) -> None:
    kind = registry.kind(name)
    assert kind.name == name
    assert kind.title
    assert prompts.digests(kind.prompts)


def test_the_methods_of_this_package_come_first_and_none_is_imported_for_its_name(site: Path) -> None:
    offer(site, {"zen": "zoo:Z", "ark": "zoo:A"}, zoo="raise SystemExit")
    assert registry.names() == [*registry.BUILT_IN, "ark", "zen"]


def test_an_unknown_method_is_an_error_that_lists_the_known(site: Path) -> None:
    offer(site, {"zen": "zoo:Z"})
    with pytest.raises(SettingsError, match=r"there is no method 'tarot'; there are rectom, .*, direct, .*, zen"):
        registry.kind("tarot")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("import nothing_of_the_kind", "of zoo:K cannot be loaded: No module named 'nothing_of_the_kind'"),
        ("1 / 0", "of zoo:K cannot be loaded: division by zero"),
        ("", "of zoo:K cannot be loaded: module 'zoo' has no attribute 'K'"),
        ("K = 'kind'", "the method 'zen' is no Kind but str"),
    ],
)
def test_a_package_that_is_at_fault_is_named(module: str, words: str, site: Path) -> None:
    offer(site, {"zen": "zoo:K"}, zoo=module)
    with pytest.raises(SettingsError) as caught:
        registry.kind("zen")
    assert words in str(caught.value)


def test_no_package_takes_the_place_of_a_method_of_this_one(site: Path) -> None:
    offer(site, {"cot": "zoo:K"}, zoo="raise SystemExit")
    assert registry.names() == list(registry.BUILT_IN)
    assert registry.kind("cot").title.startswith("Chain of thought")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("timetom", {"solver": "on"}),
        ("timetom:solver=off", {"solver": "off"}),
        ("sc", {"n": "5", "seed": "0"}),
        ("sc:seed=3", {"n": "5", "seed": "3"}),
        ("sc: n = 9, seed = 3 ", {"n": "9", "seed": "3"}),
        ("cot", {"conclude": "off"}),
        ("direct", {}),
    ],
)
def test_options_that_are_not_given_are_as_usual(text: str, options: dict[str, str]) -> None:
    assert chosen(text)[1] == options


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("timetom:tempo=3", "timetom has no option 'tempo'; it has solver=on"),
        ("cot:n=3", "cot has no option 'n'; it has conclude=off"),
        ("direct:n=3", "direct has no option 'n'; it has none"),
        ("sc:n", "write options as NAME=VALUE"),
        ("sc:n=", "write options as NAME=VALUE"),
        ("sc:=5", "write options as NAME=VALUE"),
        ("tarot:n=5", "there is no method 'tarot'"),
    ],
)
def test_options_that_are_none_are_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        chosen(text)
    assert words in str(caught.value)


def test_the_document_shows_a_method_that_is_found(diaries: None) -> None:
    assert len(block("python").splitlines()) < 100
    assert registry.names()[-1] == "diaries"
    kind, options = chosen("diaries:sentences=3")
    assert (kind.name, options) == ("diaries", {"sentences": "3"})


def scribe(_: str, request: ChatRequest) -> str:
    """The document's two steps."""
    writes = "write a diary" in request.messages[0].content
    return "Anne: I saw the ball in the box." if writes else "She saw it there.\nAnswer: A"


def test_the_documents_method_answers_in_two_steps_and_shares_the_first(diaries: None) -> None:
    client = Scripted(scribe)
    assert [ask("diaries", asked, client) for asked in HITOM[2:]] == ["box", "box"]
    first, second, *_ = client.requests
    assert first.messages[1].content == f"Story:\n{HITOM[2][0].numbered()}"
    assert second.messages[1].content.startswith("Anne: I saw the ball in the box.\n\nQuestion: Where does Cid")
    assert [request.key for request in client.requests].count(first.key) == 2


def test_the_documents_method_fails_by_its_step_and_checks_its_option(diaries: None) -> None:
    with pytest.raises(StepFailure) as caught:
        ask("diaries", HITOM[1], Scripted(lambda *_: "A or B"))
    assert caught.value.step == "answer"
    with pytest.raises(SettingsError, match="diaries:sentences=0: give a whole number"):
        made("diaries:sentences=0", perfect())


def test_the_documents_method_keeps_answers_apart(diaries: None) -> None:
    fields = [
        made(name, perfect(), note=note).fields() for name in ("diaries", "diaries:sentences=3") for note in ("", "x")
    ]
    assert len({json.dumps(one) for one in fields}) == 4


def test_the_document_names_every_task_and_the_files_there_are() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert [name for name in TASKS if f"`{name}`" not in text] == []
    for file in re.findall(r"`((?:rectom|tests)/[a-z_/]+\.py)`", text):
        assert (DOCUMENT.parents[1] / file).is_file()


@pytest.fixture(scope="module")
def asked() -> list[ChatRequest]:
    """The requests of every method about a text of every kind, by every way through it."""
    client = perfect()
    for way in WAYS:
        for case in CASES:
            ask(way, case, client)
    return client.requests


def test_every_prompt_is_asked_and_none_is_left_over(asked: list[ChatRequest]) -> None:
    assert {registry.kind(name).prompts for name in registry.BUILT_IN} == set(FOLDERS)
    assert {step_of(request) for request in asked} == set(PROMPTS)


def test_every_placeholder_is_filled(asked: list[ChatRequest]) -> None:
    for request in asked:
        for message in request.messages:
            assert "$" not in message.content
            assert "===" not in message.content


@pytest.mark.parametrize("way", WAYS)
def test_a_methods_key_has_every_prompt_that_it_asks(way: str) -> None:
    """A prompt that changes must change the key of the answers that it was asked for."""
    for case in CASES:
        client = perfect()
        method = made(way, client, case[2])
        asyncio.run(method.answer(case[0], case[1]))
        known = method.fields()["prompts"]
        assert isinstance(known, dict)
        assert {step_of(request)[1] for request in client.requests} <= known.keys()


@every_prompt
def test_what_differs_is_in_the_users_message_and_the_systems_is_the_same_for_all(folder: str, step: str) -> None:
    prompt = prompts.load(folder, step)
    assert not Prompt("", prompt.system, "", "").placeholders
    assert "note" in prompt.placeholders
    assert prompt.user.startswith("${note}")


@every_prompt
def test_a_prompt_shows_the_form_of_its_reply(folder: str, step: str, asked: list[ChatRequest]) -> None:
    system = prompts.load(folder, step).system
    request = next(request for request in asked if step_of(request) == (folder, step))
    if request.schema is None:
        assert '"Answer: X"' in system
        assert extract("Answer: B", ("one", "two")) == "two"
        return
    assert "Reply with one JSON object and nothing else" in system
    (example,) = re.findall(r"^(\{.*\})$", system, re.MULTILINE)
    assert list(json.loads(example)) == list(request.schema["properties"])
    shown = re.findall(r"^(t?\d+):? ", system.partition("xample")[2], re.MULTILINE)
    entries = next(iter(json.loads(example).values()))
    named = [str(entry["line"]) if isinstance(entry, dict) else str(entry) for entry in entries]
    assert set(named) <= set(shown)
