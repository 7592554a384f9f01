"""Every command in README.md and docs/, run on data made on the spot, and what the pages point to.

A page is followed from top to bottom in a folder of its own, as a new user would. The model is a scripted one, which
answers for every name, at the address in the environment and at that of every declared model. So that this takes
seconds:

- `--plain` is added to `rectom run` and `rectom sweep`, since starting Prefect takes ten seconds and more
  (tests/test_prefect_flow.py and tests/test_prefect_sweep.py start it);
- `fresh/400` is asked as `fresh/small`; that and `fresh/deep` have fewer stories, unless a page shows what is printed;
  `experiments/paper.toml` has one of its four models; reports are made without figures (tests/test_paper_figures.py
  draws them);
- the published files are stood for by some rows in their schemas.

`RUN` is the page's latest run, a second one the run before. `NAME` and the like are names as good as any. What cannot
be run is in NOT_RUN, with the reason; of that the `rectom` commands are parsed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
import orjson
import pytest

from flows.cli import _joined, rectom
from rectom.benchmarks import fresh
from rectom.benchmarks.generate import Recipe, generate
from tests.documented import PAGES, ROOT, Command, agrees, anchors, commands, files, links, spoken
from tests.fake_openai import FakeOpenAI
from tests.laboratory import Ended, call, environment, serving
from tests.offered import block, offer, site_in

#: How commands begin that are not run, and why.
NOT_RUN: Final = {
    "make ": "builds an environment, or runs these tests",
    "pip install ": "needs the package index",
    ". .venv/bin/activate": "is for a shell",
    "vllm ": "needs a GPU and vLLM",
    "while rectom run": "waits for vLLM",
    "rectom data get ": "downloads",
    "rectom models get ": "downloads",
    "rectom sweep experiments/demo.toml ": "needs Hi-ToM's own stories",
    "rectom sweep experiments/smaller.toml": "needs a model's weights",
    "rectom sweep experiments/told.toml": "needs a model's weights, or Hi-ToM's own stories (tests/test_recorded.py)",
    "rectom sweep experiments/real.toml ": "needs a model's weights, and hours",
    "rectom report real ": "is of that sweep",
    "rectom report smaller": "is of that sweep",
    "rectom serve ": "needs a model's weights, and serves until it is stopped",
    "rectom run fresh --model local:": "needs a model's weights",
    "rectom run hitom/400 --model NAME --transport batch ": "waits for batches one after the other",
    "rectom server ": "starts a server that stays (tests/test_prefect_server.py does)",
}

#: What is asked for in these tests instead.
CUT: Final = {"fresh/400": "fresh/small", "--stories 100": "--stories 3"}

#: Pages whose commands need what the page shows: the entry point group, and the module.
OFFERED: Final = {
    "add-a-benchmark.md": ("rectom.benchmarks", {"kitchen": "kitchen_tom:ADAPTER"}, "kitchen_tom"),
    "add-a-method.md": ("rectom.methods", {"diaries": "diary_tom:KIND"}, "diary_tom"),
}

BIGTOM: Final = (
    "{who} is a cook. {who} wants tea. {who} fills a pot. {who} believes that it is full. A guest empties the pot.",
    *("{who} sees it.", "{who} does not see it.", "{who} fills it again.", "{who} pours the tea.", "Is the pot full?"),
    *(
        "Does {who} want tea?",
        "What will {who} do?",
        "{who} believes it is empty.",
        "{who} wants tea.",
        "{who} fills it.",
    ),
    *("{who} believes it is full.", "{who} does not.", "{who} pours.", "A bird sings.", "{who} hears it."),
    *("{who} does not hear it.", "auto", "0"),
)
FANTOM: Final = [
    {
        "set_id": "0-0-0",
        "part_id": "0-0",
        "conv_id": 0,
        "full_context": "Ann: Hello!\nBob: Hello!\nAnn: Bye!\nBob: The tea is cold.",
        "short_context": "Ann: Bye!\nBob: The tea is cold.",
        "beliefQAs": [
            {
                "question": "What does Ann believe about the tea?",
                "question_type": "tom:belief:inaccessible",
                "tom_type": "first-order",
                "correct_answer": "Ann does not know about it.",
                "wrong_answer": "Ann believes that it is cold.",
                "missed_info_accessibility": "inaccessible",
            }
        ],
    }
]
TOMI: Final = {
    "story": "1 Zoe entered the shed.\n2 The hat is in the urn.\n3 The urn is in the shed.",
    "question": "Where is the hat really?",
    "answer": "urn",
    "story_type": "true_belief",
    "containers": ["jar", "urn"],
}
TOMI_TEXT: Final = """1 Zoe entered the shed.
2 The hat is in the urn.
3 The urn is in the shed.
4 Zoe moved the hat to the jar.
5 The jar is in the shed.
6 Where is the hat really?\tjar\t1
"""
TOMI_TRACE: Final = "enter_agent_0,agent_0_moves_obj,reality,true_belief\n"


class Obliging(FakeOpenAI):
    """The scripted server, which also says something usable of texts and prompts that it does not know."""

    def __init__(self) -> None:
        super().__init__(any_model=True)

    def _answer(self, body: dict[str, Any]) -> str:
        form = body.get("response_format", {}).get("json_schema", {})
        if form.get("name") == "capital":
            return '{"capital": "Paris"}'
        try:
            return super()._answer(body)
        except (LookupError, StopIteration):
            return json.dumps(least(form["schema"], form["schema"])) if form else "Answer: A"


def least(schema: Mapping[str, Any], root: Mapping[str, Any], number: int = 1) -> Any:
    """The least that a schema takes; entries of a list that have a `line` are numbered."""
    if "$ref" in schema:
        return least(root["$defs"][schema["$ref"].rpartition("/")[2]], root, number)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return least(schema["anyOf"][0], root, number)
    if schema["type"] == "object":
        parts = schema["properties"].items()
        return {name: number if name == "line" else least(part, root) for name, part in parts}
    if schema["type"] == "array":
        return [least(schema["items"], root, place) for place in range(1, schema.get("minItems", 0) + 1)]
    return {"string": "Is it so?", "boolean": False, "integer": number}[schema["type"]]


@dataclass
class Reader:
    """Somebody who follows a page in a folder; `declared` is what commands find in the environment."""

    folder: Path
    server: str
    declared: dict[str, str] = field(default_factory=dict)

    def do(self, command: Command) -> None:
        """Run a command, and hold what comes of it against the page."""
        ended = self.run(self.meant(command.text))
        assert ended.status == command.status, f"{command}\n{ended.err}"
        if command.printed is not None:
            assert agrees(command.printed, ended.out + ended.err), f"{command}\n{ended.out}{ended.err}"

    def meant(self, text: str) -> str:
        """A command with what is really meant by its placeholders, without waiting for what is long."""
        text = re.sub(r"http://[\w.]+:\d+/v1", self.server, text)
        for long, short in CUT.items():
            text = text.replace(long, short)
        text = re.sub(r"^nohup (.*) &$", r"\1", text)
        text = re.sub(r"=…", "=none", text).replace(" …", "")
        for run in self.latest():
            text = re.sub(r"\bRUN\b", run, text, count=1)
        return re.sub(r"\brectom (run|sweep)\b(?! --plain)", r"rectom \1 --plain", text)

    def latest(self) -> list[str]:
        """The runs that there are, the latest first."""
        made = sorted(self.folder.glob("runs/*/results.jsonl"), key=lambda file: -file.stat().st_mtime_ns)
        return [file.parent.name for file in made]

    def run(self, text: str) -> Ended:
        """Run a command: in this process if it is one of ours alone, else in a shell."""
        words = shlex.split(text, comments=True)
        own = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
        if words[0] == "export":
            self.declared |= own
            return Ended(0, "", "")
        if words[len(own)] != "rectom":
            return self.shell(text)
        arguments, log = (words[:-3], words[-2]) if words[-1] == "2>&1" else (words, "")
        with chdir(self.folder):
            ended = call(*arguments[len(own) + 1 :], stdin="y\n", **self.declared, **own)
        if log:
            (self.folder / log).write_text(ended.out + ended.err)
        return ended

    def shell(self, text: str) -> Ended:
        """Run a command in a shell, which finds this Python first."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        known = environment(**self.declared) | {"PATH": path, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=known, capture_output=True, text=True, check=False, timeout=120
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of benchmark files: generated stories as Hi-ToM's, and some rows as those of others."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "Hi-ToM_data.json").write_bytes(orjson.dumps({"data": list(hitom_rows())}))
    rows = [";".join(cell.format(who=who) for cell in BIGTOM) for who in ("Ann", "Bob")]
    (folder / "bigtom.csv").write_text("".join(f"{row}\n" for row in rows))
    (folder / "fantom_v1.json").write_bytes(orjson.dumps(FANTOM))
    kinds = {"reality": "urn", "memory": "urn"}
    lines = [orjson.dumps({**TOMI, "question_type": kind, "answer": answer}) for kind, answer in kinds.items()]
    (folder / "simtom_test_balanced.jsonl").write_bytes(b"\n".join(lines))
    (folder / "fb_all_test.txt").write_text(TOMI_TEXT)
    (folder / "fb_all_test.trace").write_text(TOMI_TRACE)
    return folder


def hitom_rows() -> Iterator[dict[str, Any]]:
    """Rows in Hi-ToM's schema: a story of each length, with claims where there is more than one chapter."""
    number = 0
    for length, tell in ((1, False), (2, True), (3, True)):
        for row in orjson.loads(generate(Recipe(1, length, tell, seed=length)))["data"]:
            yield {**row, "sample_id": number}
            number += 1


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(Obliging()) as obliging:
        yield obliging.base_url


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, data: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reader]:
    """A reader of a page, with the experiments and the files that the page has one write."""
    page: Path = request.getfixturevalue("page")
    folder = tmp_path / "work"
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    shutil.copytree(ROOT / "tests" / "recorded", folder / "tests" / "recorded")
    paper = folder / "experiments" / "paper.toml"
    four = paper.read_text("utf-8")
    paper.write_text(re.sub(r"^models = .*$", 'models = ["qwen3.5-27b"]', four, flags=re.MULTILINE))
    assert paper.read_text("utf-8") != four
    (folder / "rectom").mkdir()
    ours = (ROOT / "rectom" / "llm" / "models.toml").read_text("utf-8")
    declared_here = re.sub(r"^base_url = .*$", f'base_url = "{server}"', ours, flags=re.MULTILINE)
    (folder / "rectom" / "models.toml").write_text(declared_here)
    for name, text in files(page).items():
        (folder / name).write_text(re.sub(r"http://[\w.]+:\d+/v1", server, text))
    monkeypatch.setattr("rectom.results.paper_figures.drawn", lambda _: iter(()))
    if not any(command.printed for command in commands(page)):
        for name, fewer in (("small", fresh.RECIPES["small"][::3]), ("deep", fresh.RECIPES["deep"][:1])):
            monkeypatch.setitem(fresh.RECIPES, name, fewer)
    declared = {"OPENAI_BASE_URL": server, "RECTOM_DATA": str(data), "XDG_CONFIG_HOME": str(folder), "COLUMNS": "80"}
    with site_in(tmp_path / "site", monkeypatch) as site:
        if page.name in OFFERED:
            group, points, module = OFFERED[page.name]
            offer(site, group, points, **{module: block(page.name, "python")})
        if page.name == "add-a-benchmark.md":
            (folder / "kitchen.csv").write_text(block(page.name, "csv"))
        yield Reader(folder, server, declared)


def reason(command: Command) -> str | None:
    """Why a command is not run; None if it is."""
    return next((why for begin, why in NOT_RUN.items() if f"{command.text} ".startswith(begin)), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_does_what_the_page_says(page: Path, reader: Reader) -> None:
    for command in commands(page):
        if reason(command) is None:
            reader.do(command)


EVERY: Final = [command for page in PAGES for command in commands(page)]


def test_what_is_not_run_is_still_there_and_is_said_rightly() -> None:
    left_out = [command for command in EVERY if reason(command)]
    for begin in NOT_RUN:
        assert any(f"{command.text} ".startswith(begin) for command in left_out), f"no page has {begin!r} any more"
    for command in left_out:
        for words in map(_joined, ours(command)):
            assert parses(words), command


def ours(command: Command) -> Iterator[list[str]]:
    """The `rectom` commands within a command, without `rectom`."""
    for text in re.findall(r"\brectom ((?:[^;&|#\n]|(?<=\w)#)+)", command.text):
        yield shlex.split(text)


def parses(words: Sequence[str]) -> bool:
    """Whether the parser takes the words of a command."""
    found: click.Command = rectom
    words = [*words]
    while isinstance(found, click.Group):
        below = found.get_command(click.Context(found), words[0])
        if below is None:
            return False
        found, words = below, words[1:]
    with found.make_context("rectom", words):
        return True


@cache
def options(command: click.Command) -> frozenset[str]:
    """The options of a command and of those below it."""
    found = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        return frozenset(found.union(*(options(each) for each in below if each)))
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_and_command_that_a_page_speaks_of_exists(page: Path) -> None:
    for said in spoken(page):
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", said):
            assert option in options(rectom) | {"--debug", "--help", *FOREIGN}, f"{page.name}: `{said}`"
        if named := re.match(r"rectom ([a-z]+)", said):
            assert rectom.get_command(click.Context(rectom), named[1]), f"{page.name}: `{said}`"


#: Options of other programs that pages speak of.
FOREIGN: Final = frozenset({"--max-model-len", "--max-num-seqs", "--tensor-parallel-size"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_every_file_that_a_page_names_is_there(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"
    for said in spoken(page):
        if re.fullmatch(r"(rectom|flows|tasks|cache|tests|bench|experiments|docs)/[\w./-]*", said):
            assert "NAME" in said or (ROOT / said).exists(), f"{page.name}: `{said}`"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = set[Path](), [PAGES[0]]
    while left:
        page = left.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        left += sorted(targets.intersection(PAGES) - reached)
    assert reached >= set(PAGES), "no page links to this one"


def test_the_faults_page_quotes_what_the_program_says() -> None:
    said = [text for folder in ("rectom", "flows", "cache", "tasks") for text in texts(ROOT / folder)]
    faults = (ROOT / "docs" / "faults.md").read_text("utf-8")
    quoted = [
        quote for row in re.findall(r"^\| (`.*?) \|", faults, re.MULTILINE) for quote in re.findall("`(.*?)`", row)
    ]
    assert len(quoted) > 20
    for quote in quoted:
        parts = [re.escape(part) for part in re.split("…|%s", quote)]
        assert any(re.search(".*".join(parts), text) for text in said), quote


def texts(folder: Path) -> Iterator[str]:
    """Every text in the code of a folder, with `…` for what is put in."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value.replace("%s", "…")


@pytest.mark.parametrize("document", ["batch.md"])
def test_the_python_of_a_page_runs(document: str, tmp_path: Path) -> None:
    code = block(document, "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
