"""`rectom` as a library: no Prefect, no store, no client."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import rectom
from rectom import RuleReader, Story, holds, parse
from rectom.benchmarks import hitom
from tests.fault_server import FaultServer
from tests.laboratory import serving

README = Path(__file__).parents[1] / "README.md"


def modules_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after running some code."""
    report = "\nimport sys; print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {"prefect", "aiohttp", "openai", "diskcache", "cache", "tasks", "flows", "rich", "click"}


def test_importing_it_imports_nothing_heavy() -> None:
    assert not HEAVY & modules_after("import rectom")


def test_reading_by_rule_imports_nothing_heavy() -> None:
    code = (
        "from rectom import RuleReader, Story\n"
        "RuleReader().world(Story.parse('The ball is in the box.\\nAnne entered the hall.'))"
    )
    assert not HEAVY & modules_after(code)


def test_the_example_of_its_docstring_is_true() -> None:
    assert rectom.__doc__
    code = re.findall(r"^    (.*)$", rectom.__doc__, re.MULTILINE)
    *lines, last = code
    expression, expected = last.split("  # ")
    names: dict[str, object] = {}
    exec("from rectom import *\n" + "\n".join(lines), names)
    assert str(eval(expression, names)) == expected


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    method, client = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert "True" in output(method, tmp_path)
    with serving(FaultServer()) as server:
        code = client.replace("http://127.0.0.1:8000/v1", server.url)
        assert output(code, tmp_path).count("Usage(") == 100
        assert output(code, tmp_path).count("Usage(") == 100
    assert len(server.requests) == 100


def output(code: str, folder: Path) -> str:
    """What some code prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_hitom_story_is_read_and_believed_in_ten_lines(hitom_file: Path) -> None:
    benchmark = hitom.load(hitom_file, "cotp")
    story = benchmark.stories[0]
    reader = RuleReader()
    world = reader.world(story)
    asked = next(question for question in benchmark.of_story(story.id) if question.order == 1)
    who, thing = re.findall(r"does (\w+) really think the (\w+) is", asked.text)[0]
    assert holds(parse(f"B[{who}] in({thing},{asked.gold})"), world, reader.perspective)
    others = [choice for choice in asked.choices if choice != asked.gold]
    assert not any(holds(parse(f"B[{who}] in({thing},{other})"), world, reader.perspective) for other in others)


def test_stories_are_read_from_text_or_lines() -> None:
    numbered = Story.parse("1 Anne entered the hall.\n2 The ball is in the box.")
    plain = Story.parse("Anne entered the hall. The ball is in the box.")
    assert numbered.lines == plain.lines
    assert RuleReader().world(numbered) == RuleReader().world(plain)
