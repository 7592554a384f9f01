"""Every command in the documentation, run as a reader would type it, on stories that are made on the spot.

A page is run from top to bottom in a folder of its own. Its commands ask a scripted model, which stands for every name,
and find a file of generated stories where Hi-ToM's is looked for. Runs and sweeps get `--plain`, since starting Prefect
takes long; what cannot be run here is listed with the reason.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import pytest

from rectom.benchmarks.generate import Recipe, generate
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, call, serving

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

#: Commands that are not run, by how they begin, each with the reason.
NOT_RUN: Final = {
    "make ": "makes an environment: CI runs it",
    "pip install": "installs from the network",
    ". .venv": "is the shell's own",
    "export ": "sets what the test sets",
    "vllm ": "needs a GPU",
    "nohup ": "is the command behind it, which is run by itself on the same page",
    "python -m tests": "is how the tests serve",
    "rectom serve ": "serves a model until it is stopped: tests/test_serving.py",
    "rectom run fresh --model local:": "needs the weights of a model: tests/test_local.py",
    "rectom server": "starts a server for the night: tests/test_prefect_server.py",
    "rectom data get": "downloads: tests/test_fetch.py does so from a server of its own",
    "rectom data audit": "is about the published files: tests/test_audit.py and tests/test_tomi_audit.py",
    "rectom data show kitchen": "is about the reader's own file: tests/test_registry.py",
    "rectom run kitchen": "is about the reader's own file: tests/test_registry.py",
    "rectom run hitom --method diaries": "is about the reader's own method: tests/test_methods_registry.py",
    "rectom run hitom/400 --model NAME --transport": "is asked in batches: tests/test_llm_batch.py and test_cli.py",
    "rectom data show fantom": "needs FanToM's file",
    "rectom run bigtom": "needs BigToM's file",
    "rectom run tomi": "needs ToMi's files",
}

#: The models that the pages declare in a models.toml of the reader's own.
DECLARED: Final = ("small", "qwen3.5-27b")

#: Placeholders, and what is put in their place; RUN is the run that the page made last.
PLACES: Final = {"NAME": "scripted", "FILE": "archive.tar"}


@dataclass(frozen=True)
class Command:
    """A command of a page, as it stands there, without what is said behind it."""

    page: str
    line: int
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run; None if it is."""
        return next((why for begin, why in NOT_RUN.items() if self.text.startswith(begin)), None)


def commands(page: Path) -> Iterator[Command]:
    """The commands in the indented blocks of a page."""
    lines = iter(enumerate(page.read_text("utf-8").splitlines(), 1))
    for number, line in lines:
        text = line.removeprefix("    ")
        if line == text or not re.match(r"(rectom|python -m|make|pip|export|printf|vllm|nohup|\.) ", text):
            continue
        while text.endswith("\\"):
            text = f"{text[:-1].rstrip()} {next(lines)[1].strip()}"
        bare = re.sub(r"\s{2,}#.*", "", text).strip()
        yield Command(page.name, number, bare)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file in Hi-ToM's schema: two stories of each length, with claims and without."""
    folder = tmp_path_factory.mktemp("data")
    rows = []
    for seed, (length, tell) in enumerate((length, tell) for length in (1, 2, 3) for tell in (False, True)):
        rows += orjson.loads(generate(Recipe(2, length, tell, 4, seed)))["data"]
    numbered = [{**row, "sample_id": number} for number, row in enumerate(rows)]
    (folder / "Hi-ToM_data.json").write_bytes(orjson.dumps({"data": numbered}))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with serving(FakeOpenAI(any_model=True)) as serves:
        yield serves


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_works(
    page: Path, tmp_path: Path, data: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ready(tmp_path)
    declared = (f'[models."{name}"]\nname = "{name}"\nbase_url = "{server.base_url}"\n' for name in DECLARED)
    (folder / "models.toml").write_text("".join(declared))
    monkeypatch.chdir(folder)
    assert run("rectom run fresh --model NAME --limit 10", folder, data, server).status == 0
    for command in commands(page):
        if command.reason is None:
            ended = run(command.text, folder, data, server)
            stopped = 3 if "--max-calls" in command.text else 0
            assert ended.status in {0, stopped}, f"{command.page}, line {command.line}: {command.text}\n{ended.err}"


def ready(folder: Path) -> Path:
    """A folder as a reader has it: the experiments, and a story."""
    (folder / "experiments").symlink_to(ROOT / "experiments")
    (folder / "story.txt").write_text(
        "Anne, Bob and Cid entered the hall.\nThe ball is in the box.\nAnne exited the hall.\n"
        "Bob moved the ball to the basket.\nBob exited the hall.\nCid moved the ball to the chest.\n"
    )
    return folder


def run(text: str, folder: Path, data: Path, server: FakeOpenAI) -> Ended:
    """Run a command line. `> FILE` and `|`-separated alternatives are taken as a reader takes them."""
    text, _, sink = text.partition(" > ")
    words = [PLACES.get(word, word) for word in shlex.split(text)]
    ended = Ended(0, "", "")
    for several in alternatives(words):
        ended = one(several, folder, data, server)
        if ended.status == 1:
            break
    if sink:
        (folder / sink.strip()).write_text(ended.out)
    return ended


def alternatives(words: list[str]) -> Iterator[list[str]]:
    """`stats|verify` is two commands."""
    place = next((place for place, word in enumerate(words) if re.fullmatch(r"\w+(\|\w+)+", word)), None)
    for choice in words[place].split("|") if place is not None else [""]:
        yield [choice if number == place else word for number, word in enumerate(words) if word != "…"]


def one(words: list[str], folder: Path, data: Path, server: FakeOpenAI) -> Ended:
    name, *arguments = words
    if name == "printf":
        return Ended(0, "".join(f"{line}\n" for line in arguments[1:]), "")
    known = sorted(file.parent.name for file in (folder / "runs").glob("*/results.jsonl"))
    latest = max(known, key=lambda run: (folder / "runs" / run / "results.jsonl").stat().st_mtime_ns, default="")
    runs = iter([latest, *(run for run in reversed(known) if run != latest)])
    told = [next(runs) if word == "RUN" else word for word in arguments]
    if told[0] in {"run", "sweep", "explain"} and "--plain" not in told and "--plan" not in told:
        told.append("--plain")
    if told[:2] == ["cache", "prune"] and "--replies" in told:
        told.append("--yes")
    if told[0] == "sweep" and "paper" in told[1]:
        chosen = told.index("--only") if "--only" in told else len(told)
        told = [*told[:chosen], *told[chosen + 2 :], "--only", "hitom/400 · cot · qwen"]
    told = [re.sub(r"http://\S+:8000/v1", server.base_url, word) for word in told]
    spoken = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "RECTOM_DATA": str(data)}
    ours = {**spoken, "XDG_CONFIG_HOME": str(folder), "COLUMNS": "100"}
    return call(*told, **ours)


def test_what_is_not_run_is_still_there() -> None:
    found = [command for page in PAGES for command in commands(page)]
    for begin in NOT_RUN:
        assert any(command.text.startswith(begin) for command in found), begin
    assert sum(command.reason is None for command in found) > 50


def test_the_story_is_drawn_as_the_program_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    monkeypatch.chdir(ready(tmp_path))
    drawn = call("ask", "story.txt", "Where does Cid think Anne thinks the ball is?", COLUMNS="96").out
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert shown
    assert [line.rstrip() for line in drawn.splitlines()] == shown[1].splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^()\s]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            file = (page.parent / target.partition("#")[0]).resolve()
            assert file.exists(), f"{page.name}: {target}"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        targets = re.findall(r"\]\(([^)\s#]+)", page.read_text("utf-8"))
        waiting += [Path(os.path.normpath(page.parent / target)) for target in targets if "://" not in target]
    assert set(PAGES) <= reached
