from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from rectom.benchmarks import registry
from rectom.benchmarks.adapter import Adapter, Files, Source
from rectom.benchmarks.base import Benchmark
from rectom.errors import DataError
from rectom.story import Question, Story
from tests.laboratory import Ended, call, serving, write_stories
from tests.test_fetch import DATA, FileServer, tar_of

STORY = Story("s", ("Anne sees \x1b[31mred.", "Bob [bold]leaves[/bold]."))
QUESTIONS = (
    Question("q/1", "s", "Where is Bob?", ("out", "in"), "out", 0, "place"),
    Question("q/2", "s", "Where does Anne think Bob is?", ("in", "out"), "out", 1, "thought"),
    Question("q/3", "s", "Is Anne glad?", ("yes", "no"), None),
)


def load(files: Files, subset: str) -> Benchmark:
    """Three questions, whatever the file holds; none of `empty`."""
    files.read("toy.txt")
    if subset == "empty":
        raise DataError("nothing of toy/empty")
    warnings = ("these are toys",) if subset == "all" else ()
    questions = QUESTIONS if subset == "all" else QUESTIONS[:2]
    return Benchmark("toy", subset, (STORY,), questions, digest=files.digest, warnings=warnings)


def published(data: bytes, *addresses: str, file: str = "toy.txt") -> Source:
    return Source(file, addresses, sha256(data).hexdigest(), len(data))


TOY = Adapter(
    name="toy",
    title="Toy: of no use",
    load=load,
    subsets={"two": "two questions", "all": "three", "empty": "none of them"},
    default="two",
    licence="CC0-1.0",
    sources=(published(b"toys", "https://example.org/toy.txt"),),
)

Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Let there be these benchmarks, by name; a text is why one cannot be loaded."""

    def put(**offered: Adapter | str) -> None:
        def adapter(name: str) -> Adapter:
            found = offered[name]
            if isinstance(found, str):
                raise DataError(found)
            return found

        monkeypatch.setattr(registry, "names", lambda: list(offered))
        monkeypatch.setattr(registry, "adapter", adapter)

    return put


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer()) as served:
        yield served


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder of data in which the toys are."""
    folder = tmp_path / "data"
    (folder / "toy").mkdir(parents=True)
    (folder / "toy" / "toy.txt").write_bytes(b"toys")
    return folder


def lines_of(ended: Ended) -> list[str]:
    """The lines of the output, without the blanks at their ends."""
    assert (ended.status, ended.err) == (0, "")
    return [line.rstrip() for line in ended.out.splitlines()]


# list


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_list_says_what_there_is(columns: str, offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    assert lines_of(call("data", "list", RECTOM_DATA=str(here), COLUMNS=columns)) == [
        f"Benchmark files are looked for in {here} (RECTOM_DATA)",
        "",
        "toy         Toy: of no use",
        "  here      toy.txt (4 bytes): checksum ok",
        "  subsets   two (default), all, empty",
        "  licence   CC0-1.0",
        "  from      https://example.org/toy.txt",
    ]


def test_the_list_works_where_nothing_is(offer: Offer, tmp_path: Path) -> None:
    offer(toy=TOY)
    said = lines_of(call("data", "list", XDG_DATA_HOME=str(tmp_path), COLUMNS="80"))
    assert said[0] == f"Benchmark files are looked for in {tmp_path}/rectom (your data folder, which is not there yet)"
    assert said[3] == "  missing   toy.txt (4 bytes): rectom data get toy"


def test_a_file_that_was_changed_is_a_warning(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    (here / "toy" / "toy.txt").write_bytes(b"T")
    said = lines_of(call("data", "list", RECTOM_DATA=str(here), COLUMNS="80"))
    assert said[3] == "  differs   toy.txt (1 byte): not as published; to replace: rectom data get toy"


def test_a_benchmark_that_cannot_be_loaded_is_named_and_others_follow(offer: Offer, here: Path) -> None:
    offer(lost="it was [left] at home", toy=TOY)
    said = lines_of(call("data", "list", RECTOM_DATA=str(here), COLUMNS="80"))
    assert said[2] == "lost        cannot be loaded: it was [left] at home"
    assert said[4] == "toy         Toy: of no use"
    first, second = call("data", "list", "--json", RECTOM_DATA=str(here)).out.splitlines()
    assert json.loads(first) == {"name": "lost", "error": "it was [left] at home"}
    assert json.loads(second)["name"] == "toy"


def test_many_files_and_subsets_are_counted(offer: Offer, here: Path) -> None:
    files = ("toy.txt", "a.txt", "b.txt", "c.txt")
    sources = tuple(Source(name, (f"https://example.org/toys/{name}",), "", 0) for name in files)
    subsets = {f"s{n}": "a subset" for n in range(9)}
    offer(toy=replace(TOY, sources=sources, subsets=subsets, default="s7"))
    said = lines_of(call("data", "list", RECTOM_DATA=str(here), COLUMNS="120"))
    assert said[3:] == [
        "  missing   3 files: rectom data get toy",
        "  here      toy.txt (4 bytes): checksum not checked",
        "  instead   another file, which is read in its place",
        "  subsets   s7 (default), s0, s1, s2, s3, s4 and 3 more",
        "  licence   CC0-1.0",
        "  from      https://example.org/toys/",
    ]


def test_one_file_stands_for_the_benchmark_it_is_of(offer: Offer, here: Path) -> None:
    offer(toy=TOY, other=replace(TOY, name="other", sources=(published(b"x", "https://example.org", file="x.txt"),)))
    file = here / "toy" / "toy.txt"
    said = call("data", "list", RECTOM_DATA=str(file), COLUMNS="80").out
    assert f"looked for in {file} (RECTOM_DATA, one file)" in said
    assert said.count("checksum ok") == said.count("missing   x.txt") == 1


def test_the_list_for_programs_has_everything(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    (line,) = call("data", "list", "--json", RECTOM_DATA=str(here)).out.splitlines()
    assert json.loads(line) == {
        "name": "toy",
        "title": "Toy: of no use",
        "subsets": {"two": "two questions", "all": "three", "empty": "none of them"},
        "default": "two",
        "licence": "CC0-1.0",
        "files": [
            {
                "file": "toy.txt",
                "addresses": ["https://example.org/toy.txt"],
                "sha256": sha256(b"toys").hexdigest(),
                "size": 4,
                "member": "",
                "path": str(here / "toy" / "toy.txt"),
                "bytes": 4,
                "condition": "ok",
            }
        ],
        "instead": False,
    }


def test_the_benchmarks_of_this_package_are_listed(tmp_path: Path) -> None:
    ended = call("data", "list", "--json", RECTOM_DATA=str(tmp_path))
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["name"] for line in lines] == registry.names()
    assert lines[0]["files"][0]["condition"] == "missing"
    assert lines[0]["files"][0]["sha256"].startswith("1c4077bb")


# get


def test_a_benchmark_is_downloaded_to_where_it_is_found(offer: Offer, server: FileServer, tmp_path: Path) -> None:
    offer(toy=replace(TOY, sources=(published(DATA, f"{server.address}/right"),)))
    path = tmp_path / "rectom" / "toy" / "toy.txt"
    for _ in range(2):
        assert lines_of(call("data", "get", "toy", XDG_DATA_HOME=str(tmp_path))) == [str(path)]
    assert path.read_bytes() == DATA
    assert server.asked == ["/right"]


def test_a_folder_that_is_not_looked_in_is_said(offer: Offer, server: FileServer, tmp_path: Path) -> None:
    offer(toy=replace(TOY, sources=(published(DATA, f"{server.address}/right"),)))
    arguments = ("data", "get", "toy", "--folder", tmp_path / "b")
    ended = call(*arguments, RECTOM_DATA=str(tmp_path / "a"))
    assert (ended.status, ended.out.strip()) == (0, str(tmp_path / "b" / "toy" / "toy.txt"))
    hint = f"RecToM looks in {tmp_path}/a; for it to find this, set RECTOM_DATA={tmp_path}/b"
    assert ended.errors == [hint]
    assert call(*arguments, RECTOM_DATA=str(tmp_path / "b")).err == ""


def test_a_file_that_was_changed_at_its_address_is_an_error(offer: Offer, server: FileServer, tmp_path: Path) -> None:
    offer(toy=replace(TOY, sources=(published(DATA, f"{server.address}/wrong"),)))
    ended = call("data", "get", "toy", "--folder", tmp_path)
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    assert "not the official file: the sha256 is" in ended.errors[0]
    assert f"put it at {tmp_path}/toy/toy.txt" in ended.errors[0]


def test_all_goes_on_after_a_failure_and_says_what_failed(offer: Offer, server: FileServer, tmp_path: Path) -> None:
    server.files["/tar"] = tar_of(a=b"a", b=b"b")
    parts = tuple(Source(f"{name}.txt", (f"{server.address}/tar",), "", 0, member=name) for name in "ab")
    offer(
        lost="it was left at home",
        gone=replace(TOY, name="gone", sources=(published(DATA, f"{server.address}/none"),)),
        toy=replace(TOY, sources=parts),
    )
    ended = call("data", "get", "all", "--folder", tmp_path)
    assert ended.status == 1
    assert ended.out.split() == [str(tmp_path / "toy" / f"{name}.txt") for name in "ab"]
    assert ended.errors[0] == "rectom: it was left at home"
    assert f"cannot download gone ({server.address}/none: the server answers 404)" in ended.errors[1]
    assert ended.errors[-1] == "rectom: these failed, as said above: lost, gone; the same command tries them again"


@pytest.mark.parametrize("words", [["get", "tomato"], ["show", "tomato"], ["show", "tomato/all"], ["audit", "tomato"]])
def test_an_unknown_benchmark_is_an_error_that_lists_the_known(words: list[str]) -> None:
    ended = call("data", *words)
    assert (ended.status, len(ended.errors)) == (1, 1)
    assert "there is no benchmark 'tomato'; there are hitom, " in ended.errors[0]


# show


def test_a_benchmark_is_shown_as_a_whole(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    assert lines_of(call("data", "show", "toy", RECTOM_DATA=str(here), COLUMNS="80")) == [
        "Toy: of no use",
        "",
        "subset         questions  stories",
        "two (default)          2        1  two questions",
        "all                    3        1  three",
        "empty                  –        –  none of them",
        "",
        "toy/two        order 0  order 1  all",
        "place                1        –    1",
        "thought              –        1    1",
        "all questions        1        1    2",
        "",
        "Question q/1 of toy/two",
        "story s, order 0, place",
        "",
        "1  Anne sees  [31mred.",
        "2  Bob [bold]leaves[/bold].",
        "",
        "   Where is Bob?",
        "A  out  ← gold",
        "B  in",
        "",
    ]


def test_a_subset_and_more_examples(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    said = lines_of(call("data", "show", "toy/all", "--limit", 9, "--data", here, COLUMNS="80"))
    assert said[2:4] == ["subset  questions  stories", "all             3        1  three"]
    assert said[5] == "toy/all        order 0  order 1  no order  all"
    assert "note: these are toys" in said
    assert [line for line in said if line.startswith("Question ")] == [f"Question q/{n} of toy/all" for n in (1, 2, 3)]
    assert said[-6:-3] == ["2  Bob [bold]leaves[/bold].", "", "   Is Anne glad?"]
    assert "Question" not in call("data", "show", "toy/all", "--limit", 0, "--data", here).out


def test_one_question_is_shown_alone(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    said = lines_of(call("data", "show", "toy", "q/2", "--data", here / "toy" / "toy.txt", COLUMNS="80"))
    assert said[:2] == ["Question q/2 of toy/two", "story s, order 1, thought"]
    assert said[-4:] == ["   Where does Anne think Bob is?", "A  in", "B  out  ← gold", ""]


def test_what_is_shown_to_programs(offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    whole = call("data", "show", "toy", "--json", RECTOM_DATA=str(here)).line
    assert whole["subsets"] == {"two": 2, "all": 3, "empty": None}
    assert (whole["benchmark"], whole["subset"], whole["stories"], whole["questions"]) == ("toy", "two", 1, 2)
    assert whole["counts"] == [
        {"order": 0, "group": "place", "questions": 1},
        {"order": 1, "group": "thought", "questions": 1},
    ]
    assert whole["digest"] == sha256(b"toys").hexdigest()
    one = call("data", "show", "toy", "q/1", "--json", RECTOM_DATA=str(here)).line
    assert [one] == whole["examples"]
    assert one == {
        "id": "q/1",
        "story_id": "s",
        "text": "Where is Bob?",
        "choices": ["out", "in"],
        "gold": "out",
        "order": 0,
        "group": "place",
        "ballot": "",
        "classes": [],
        "story": list(STORY.lines),
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["toy/none"], "toy has no subset 'none'; it has two, all, empty"),
        (["toy/empty"], "nothing of toy/empty"),
        (["toy", "q/9"], "toy/two has no question 'q/9'; its 2 are called q/1 … q/2"),
        (["toy", "--data", "/nowhere"], "no toy data (toy.txt) at /nowhere; give --data PATH"),
    ],
)
def test_what_cannot_be_shown_is_one_line(words: list[str], said: str, offer: Offer, here: Path) -> None:
    offer(toy=TOY)
    ended = call("data", "show", *words, RECTOM_DATA=str(here))
    assert (ended.status, ended.out, len(ended.errors)) == (1, "", 1)
    assert ended.errors[0].startswith(f"rectom: {said}")


def test_many_subsets_get_a_line_each(offer: Offer, here: Path) -> None:
    subsets = {f"subset-{n}": "so many words that no line of a terminal has room for them all" for n in range(12)}
    offer(toy=replace(TOY, subsets=subsets, default="subset-0"))
    said = lines_of(call("data", "show", "toy", "--data", here, COLUMNS="80"))
    assert said[4] == "subset-1                    2        1  so many words that no line of a termina…"
    assert [line.split()[0] for line in said[3:15]] == list(subsets)


def test_hitom_is_shown(hitom_file: Path) -> None:
    said = lines_of(call("data", "show", "hitom", "--data", hitom_file, COLUMNS="120"))
    assert [line.split()[:3] for line in said[4:10]] == [
        ["cotp", "600", "120"],
        ["vp", "600", "120"],
        ["length-1", "200", "40"],
        ["length-2", "200", "40"],
        ["length-3", "200", "40"],
        ["all", "1,200", "120"],
    ]
    assert said[11].split() == ["hitom/400", *"order 0 order 1 order 2 order 3 order 4".split(), "all"]
    assert said[12].split() == ["all", "questions", "80", "80", "80", "80", "80", "400"]
    question = call("data", "show", "hitom/cotp", "857", "--data", hitom_file, "--json").line
    assert (question["order"], len(question["story"]), question["gold"]) == (2, 38, "green_treasure_chest")


def test_a_file_of_part_of_the_subsets_is_shown(tmp_path: Path) -> None:
    said = lines_of(call("data", "show", "hitom", "--data", write_stories(tmp_path), COLUMNS="120"))
    counted = {line.split()[0]: line.split()[1] for line in said[4:10]}
    assert [counted[name] for name in ("cotp", "vp", "all")] == ["12", "–", "12"]


# audit


def test_the_audit_of_hitom(hitom_file: Path) -> None:
    said = lines_of(call("data", "audit", "hitom", "--data", hitom_file, COLUMNS="120"))
    heads = [line for line in said if line.endswith(":") and line[0].isdigit()]
    assert heads == [
        "138 questions are labelled differently in their VP and CoTP rows (VP label, CoTP label):",
        "3 pairs of questions have the same structure and contradicting labels:",
        "17 CoTP labels cannot be reached by the rules `hitom`:",
    ]
    assert any(line.startswith("  857 ") and "labelled green_treasure_chest, not " in line for line in said)


def test_the_audit_of_a_file_that_is_not_there() -> None:
    ended = call("data", "audit", "hitom", "--data", "/nowhere.json")
    assert ended.errors[0].startswith("rectom: no hitom data (Hi-ToM_data.json) at /nowhere.json; give --data PATH")


def test_the_lines_of_another_audit_are_printed(offer: Offer, here: Path) -> None:
    def audit(files: Files) -> list[str]:
        return [f"{len(files.read('toy.txt'))} letters", "[all] of them are in doubt"]

    offer(toy=replace(TOY, audit=audit))
    assert lines_of(call("data", "audit", "toy", "--data", here)) == ["4 letters", "[all] of them are in doubt"]


def test_a_benchmark_without_an_audit_is_a_wrong_command_line(offer: Offer) -> None:
    offer(toy=TOY)
    ended = call("data", "audit", "toy")
    assert (ended.status, ended.out) == (2, "")
    assert ended.errors[-1] == "Error: there is no audit of toy; rectom data show toy shows its questions"
