from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cache import Store
from flows.cli import COMMANDS
from tests.fake_openai import FakeOpenAI
from tests.fault_server import WRONG_KEY, FaultServer
from tests.laboratory import (
    SMALL_QUESTIONS,
    Ended,
    Lab,
    call,
    command,
    environment,
    execute,
    finish,
    run_options,
    serving,
    spawn,
    write_stories,
)
from tests.published import published


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stories(tmp_path_factory.mktemp("data"))


@pytest.fixture
def lab(tmp_path: Path, data: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI(keep_bodies=True)) as server:
        yield Lab(tmp_path, data, server)


def plain(lab: Lab, *more: object, **changes: object) -> list[object]:
    return ["run", *run_options(lab, **changes), "--plain", "--json", *more]


def until(happened: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


# Help.


def modules_of(*arguments: str) -> tuple[str, set[str]]:
    """What a command prints, and the top-level modules that it imports."""
    code = (
        "import sys\n"
        f"sys.argv = ['rectom', *{list(arguments)!r}]\n"
        "from flows.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    return done.stdout, set(done.stderr.split())


def test_help_imports_next_to_nothing() -> None:
    said, modules = modules_of("--help")
    assert not {"prefect", "aiohttp", "openai", "diskcache", "pydantic", "rich", "rectom", "cache"} & modules
    assert all(name in said for name in COMMANDS)


@pytest.mark.parametrize("name", ["run", "server"])
def test_the_help_of_a_command_does_without_prefect(name: str) -> None:
    said, modules = modules_of(name, "--help")
    assert "Usage" in said
    assert not {"prefect", "openai"} & modules


def test_runs_are_listed_without_what_compares_and_draws_them(tmp_path: Path) -> None:
    _, modules = modules_of("runs", "--runs", str(tmp_path))
    assert not {"prefect", "aiohttp", "numpy", "matplotlib"} & modules


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_its_line(name: str) -> None:
    ended = call(name, "--help")
    assert ended.status == 0
    assert f"rectom {name}" in ended.out


def test_the_version_is_told() -> None:
    ended = call("--version")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("rectom, version ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dance"], "No such command 'dance'"),
        (["run", "--dance"], "No such option"),
        (["show"], "Missing argument"),
        (["run", "--model", ""], "--model: give a name, or `rules` for no model at all"),
        (["run", "--model", "m", "--top-k", str(2**63)], "is too large"),
        (["run", "--window", "²"], "--window ²: give `story` or a number of lines"),
        (["models", "check", ""], "give the NAME of a model"),
    ],
)
def test_a_wrong_command_line_is_exit_status_two(arguments: list[str], words: str) -> None:
    ended = call(*arguments)
    assert ended.status == 2
    assert words in ended.errors[-1]
    assert "Traceback" not in ended.err


# Errors in one line.


def wrong_data(folder: Path) -> Path:
    file = folder / "wrong.json"
    file.write_text('{"data": [{"story": "The ball is in the box."}]}')
    return file


def no_json(folder: Path) -> Path:
    file = folder / "no.json"
    file.write_text("no json")
    return file


def a_file(folder: Path) -> Path:
    file = folder / "a file"
    file.write_text("no folder")
    return file


def foreign(folder: Path) -> Path:
    (folder / "foreign").mkdir()
    (folder / "foreign" / "cache.db").write_bytes(b"SQLite format 3\0")
    return folder / "foreign"


def damaged(folder: Path) -> Path:
    store = folder / "damaged"
    Store(store).close()
    (store / "cache.db").write_bytes(b"garbage" * 1000)
    return store


Change = Callable[[Path], dict[str, object]]

ERRORS: dict[str, tuple[Change, str]] = {
    "no such file": (
        lambda _: {"data": "/nowhere.json"},
        "no hitom data (Hi-ToM_data.json) at /nowhere.json; give --data PATH",
    ),
    "another schema": (lambda at: {"data": wrong_data(at)}, "is not in Hi-ToM's schema: data.0.prompting_type"),
    "no JSON": (lambda at: {"data": no_json(at)}, "is not JSON"),
    "a bad reader": (lambda _: {"reader": "guess=rules"}, "--reader guess=rules: a step is one of"),
    "a reader without a model": (lambda _: {"model": "rules", "reader": "chain=model"}, "needs a model"),
    "a bad name": (lambda _: {"name": "../up"}, "--name '../up': use letters, digits"),
    "no address": (lambda _: {"base_url": None}, "give --base-url URL or set OPENAI_BASE_URL"),
    "a bad address": (lambda _: {"base_url": "localhost"}, "the base URL must look like http://host:port/v1"),
    "nobody there": (lambda _: {"base_url": "http://127.0.0.1:9/v1"}, "is the server running?"),
    "an unknown model": (lambda _: {"model": "nobody"}, "it does not serve 'nobody'; the server knows: fake"),
    "a store in a file": (lambda at: {"cache": a_file(at)}, "choose another one with --cache DIR"),
    "a store that cannot be": (lambda at: {"cache": a_file(at) / "below"}, "cannot be written"),
    "a foreign store": (lambda at: {"cache": foreign(at)}, "holds the database of another program"),
    "a damaged store": (lambda at: {"cache": damaged(at)}, "is not readable"),
    "runs in a file": (lambda at: {"runs": a_file(at)}, "choose another --runs"),
}


@pytest.mark.parametrize(("change", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_that_says_what_to_do(lab: Lab, change: Change, words: str) -> None:
    ended = call(*plain(lab, **change(lab.folder)))
    assert (ended.status, ended.out) == (1, "")
    assert len(ended.errors) == 1, ended.err
    assert ended.errors[0].startswith("rectom: ")
    assert words in ended.errors[0]
    assert "Traceback" not in ended.err


def test_an_error_that_would_steer_the_terminal_does_not(lab: Lab) -> None:
    ended = call(*plain(lab, data="/no\x1b]0;taken\x07where.json"))
    assert ended.status == 1
    assert " at /no ]0;taken where.json; give --data PATH" in ended.errors[0]
    assert {sign for sign in ended.err if not sign.isprintable()} == {"\n"}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("hitom/nosuch", "hitom has no subset 'nosuch'; it has 400"),
        ("tomato", "there is no benchmark 'tomato'; there are hitom, fresh, bigtom"),
    ],
)
def test_a_benchmark_that_there_is_not_is_named(lab: Lab, target: str, words: str) -> None:
    ended = call("run", target, *run_options(lab)[1:], "--plain")
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert words in ended.errors[0]


def test_a_text_without_a_grammar_needs_a_model(tmp_path: Path) -> None:
    ended = call("run", "bigtom", "--plain", "--runs", tmp_path / "runs", RECTOM_DATA=str(published("bigtom")))
    assert ended.status == 1
    assert ended.errors == ["rectom: no rule reads bigtom, which follows no grammar: give --model NAME"]
    assert not (tmp_path / "runs").exists()


def test_a_window_that_makes_no_sense_is_a_wrong_command_line(lab: Lab) -> None:
    ended = call(*plain(lab, window="some"))
    assert ended.status == 2
    assert [line for line in ended.errors if line.startswith("Error: ")] == [
        "Error: --window some: give `story` or a number of lines"
    ]


@pytest.mark.parametrize("url", ["me:planted@host:8000/v1", "http://host:8000/v1 planted", " https://me:planted@host"])
def test_an_address_that_is_none_is_refused_and_kept_nowhere(lab: Lab, url: str) -> None:
    for ended in (call(*plain(lab, base_url=url)), call(*plain(lab, base_url=None), OPENAI_BASE_URL=url)):
        assert ended.status == 1
        assert ended.errors[0].startswith("rectom: the base URL must look like http://host:port/v1")
        assert "planted" not in ended.err
    assert not [file for file in lab.folder.rglob("*") if file.is_file() and b"planted" in file.read_bytes()]


def test_a_wrong_key_is_said_without_the_key(lab: Lab) -> None:
    with serving(FaultServer(usual=WRONG_KEY)) as server:
        ended = call(*plain(lab, base_url=server.url), OPENAI_API_KEY="sk-planted-0123456789")
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert "it does not take the API key; set OPENAI_API_KEY" in ended.errors[0]
    assert "planted" not in ended.err
    assert server.requests[0].headers["Authorization"] == "Bearer sk-planted-0123456789"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_may_not_be_written_is_said_in_one_line(lab: Lab) -> None:
    lab.store.mkdir(mode=0o500)
    ended = call(*plain(lab))
    assert ended.status == 1
    assert len(ended.errors) == 1
    assert "cannot be written" in ended.errors[0]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debug_shows_where_it_happened(lab: Lab, how: str) -> None:
    arguments = plain(lab, data="/nowhere.json")
    ended = execute(*arguments, "--debug") if how == "option" else execute(*arguments, RECTOM_DEBUG="1")
    assert ended.status == 1
    assert "Traceback" in ended.err
    assert "no hitom data (Hi-ToM_data.json) at /nowhere.json" in ended.errors[-1]


def test_a_full_disk_is_one_line_and_what_was_paid_for_stays(lab: Lab) -> None:
    words = command(*plain(lab))
    limited = ["bash", "-c", 'ulimit -f 500; exec "$0" "$@"', *words]
    done = subprocess.run(limited, capture_output=True, text=True, env=environment(), check=False, timeout=60)
    ended = Ended(done.returncode, done.stdout, done.stderr)
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert ended.errors[-1].startswith("rectom: ")
    assert "no room to write" in ended.errors[-1]
    sent = lab.server.asked.total()
    again = call(*plain(lab))
    assert again.line["correct"] == SMALL_QUESTIONS
    assert lab.server.asked.total() - sent < sent


def test_a_reader_that_goes_away_is_no_traceback(lab: Lab) -> None:
    process = spawn(*plain(lab, model="rules"))
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in {0, 1}
    assert "Traceback" not in err


# Runs that are cut short.

CONCURRENCY = 4


def distinct(lab: Lab) -> int:
    return len({json.dumps(body, sort_keys=True) for body in lab.server.bodies})


@pytest.mark.parametrize("after", [8, 40])
def test_after_kill_nine_a_rerun_sends_at_most_what_was_in_flight_again(lab: Lab, after: int) -> None:
    lab.server.latency_s = 0.05
    process = spawn(*plain(lab, concurrency=CONCURRENCY))
    until(lambda: len(lab.server.bodies) >= after, process)
    process.kill()
    assert finish(process).status == -signal.SIGKILL
    lab.server.latency_s = 0
    again = call(*plain(lab, concurrency=CONCURRENCY))
    assert again.status == 0
    assert again.line["correct"] == SMALL_QUESTIONS
    assert again.line["calls"]["cached"] >= after - CONCURRENCY
    assert len(lab.server.bodies) <= distinct(lab) + CONCURRENCY
    results = (lab.runs / again.line["run"] / "results.jsonl").read_text().splitlines()
    assert len({json.loads(line)["id"] for line in results}) == len(results) == SMALL_QUESTIONS


def test_an_interrupt_is_one_line_and_the_same_command_goes_on(lab: Lab) -> None:
    lab.server.latency_s = 0.3
    process = spawn(*plain(lab, concurrency=CONCURRENCY))
    until(lambda: len(lab.server.bodies) >= 20, process)
    process.send_signal(signal.SIGINT)
    ended = finish(process, 20)
    assert (ended.status, ended.out) == (130, "")
    assert ended.errors == ["rectom: interrupted; the same command goes on where it was"]
    (folder,) = lab.runs.iterdir()
    assert json.loads((folder / "manifest.json").read_text())["state"] == "interrupted"
    lab.server.latency_s = 0
    again = call(*plain(lab, concurrency=CONCURRENCY))
    assert again.line["correct"] == SMALL_QUESTIONS
    assert len(lab.server.bodies) <= distinct(lab) + CONCURRENCY
    assert json.loads((folder / "manifest.json").read_text())["state"] == "finished"


def test_one_process_works_on_a_run_at_a_time(lab: Lab) -> None:
    lab.server.latency_s = 0.3
    first = spawn(*plain(lab))
    until(lambda: len(lab.server.bodies) >= 20, first)
    second = call(*plain(lab))
    assert (second.status, len(second.errors)) == (1, 1)
    assert "another process works on" in second.errors[0]
    assert finish(first).status == 0


def test_two_processes_with_one_store_both_end_well(lab: Lab) -> None:
    lab.server.latency_s = 0.02
    both = [spawn(*plain(lab), "--name", name) for name in ("one", "two")]
    for ended in map(finish, both):
        assert ended.status == 0, ended.err
        assert ended.line["correct"] == SMALL_QUESTIONS
    results = (lab.runs / ended.line["run"] / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["correct"] for line in results] == [True] * SMALL_QUESTIONS
    assert call("cache", "verify", "--cache", lab.store).status == 0
    sent = lab.server.asked.total()
    assert sent == distinct(lab)
    assert call(*plain(lab)).line["calls"]["sent"] == 0


def test_the_program_itself_runs_and_shows_what_it_did(lab: Lab) -> None:
    ended = execute(*plain(lab))
    assert ended.status == 0
    assert ended.line["correct"] == SMALL_QUESTIONS
    shown = call("show", ended.line["run"], "11", "--runs", lab.runs, COLUMNS="200")
    assert shown.status == 0
    assert shown.out.startswith("Question 11 ")
    assert re.search(r"^Answer +\w+, right", shown.out, re.MULTILINE)
    unknown = call("show", ended.line["run"], "999", "--runs", lab.runs)
    assert unknown.status == 1
    assert len(unknown.errors) == 1
    assert "has no question '999'" in unknown.errors[0]
    nowhere = call("show", "nosuch", "1", "--runs", lab.runs)
    assert (nowhere.status, len(nowhere.errors)) == (1, 1)
