from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.errors import DataError, SettingsError
from rectom.results import regular
from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome, Trace
from tests.test_whole import full_disk, held

SETTINGS = {"benchmark": "hitom/400", "model": "m", "readers": {"chain": "rules"}}


def outcome(name: str, predicted: str = "box") -> Outcome:
    return Outcome(name, "s", 1, "box", predicted, predicted == "box", None, 2, 30)


def trace(name: str, predicted: str = "box") -> Trace:
    return Trace(name, "s", "Where?", ["box", "bag"], ["Anne left."], predicted=predicted)


def begun(folder: Path, *names: str) -> RunFolder:
    """A run that ended these questions and was then killed."""
    run = RunFolder(folder)
    with run.open(SETTINGS):
        run.write_manifest({"run": folder.name, "settings": SETTINGS})
        for name in names:
            run.append(outcome(name), trace(name))
    return run


def test_lines_are_on_disk_as_soon_as_a_question_has_ended(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "night")
    with run.open(SETTINGS):
        run.append(outcome("a"), trace("a"))
        assert RunFolder(tmp_path / "night").results()["a"] == outcome("a").to_json()
        assert RunFolder(tmp_path / "night").trace("a") == trace("a").to_json()


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["results.jsonl", "traces.jsonl"])
def test_a_line_that_a_crash_tore_is_not_read_and_harms_no_other(tmp_path: Path, name: str, kept: float) -> None:
    run = begun(tmp_path, "a", "b")
    first, second = (tmp_path / name).read_bytes().splitlines(keepends=True)
    (tmp_path / name).write_bytes(first + second[: int(kept * len(second))])
    assert "a" in run.results()
    with run.open(SETTINGS):
        run.append(outcome("c"), trace("c"))
    assert [key for key in run.results() if name == "traces.jsonl" or key != "b"] == list(run.results())
    assert run.results()["c"] == outcome("c").to_json()
    assert run.trace("a") == trace("a").to_json()
    assert run.trace("c") == trace("c").to_json()
    if name == "traces.jsonl":
        with pytest.raises(DataError, match="the trace of question b was torn off"):
            run.trace("b")


def test_of_several_lines_the_last_one_counts(tmp_path: Path) -> None:
    run = begun(tmp_path, "a", "b")
    with run.open(SETTINGS):
        run.append(outcome("a", "bag"), trace("a", "bag"))
    assert run.results()["a"]["predicted"] == "bag"
    assert run.trace("a")["predicted"] == "bag"
    assert list(run.results()) == ["a", "b"]


def test_what_is_no_line_of_ours_is_passed_over(tmp_path: Path) -> None:
    run = begun(tmp_path, "a")
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(b'\n[1, 2]\n"text"\n{"no": "id"}\n\xff\xfe\n')
    assert list(run.results()) == ["a"]


def test_the_end_of_a_run_writes_each_question_once_in_order(tmp_path: Path) -> None:
    run = begun(tmp_path, "b", "a", "b")
    run.finish([outcome("a"), outcome("b")], [trace("a"), trace("b")])
    for name in ("results.jsonl", "traces.jsonl"):
        lines = (tmp_path / name).read_bytes().splitlines()
        assert [orjson.loads(line)["id"] for line in lines] == ["a", "b"]


def test_results_have_the_fields_that_scripts_read(tmp_path: Path) -> None:
    begun(tmp_path, "a")
    line = orjson.loads((tmp_path / "results.jsonl").read_bytes())
    fields = "id story_id order gold predicted correct failed_step calls tokens group ballot"
    assert list(line) == [*fields.split(), "gold_class", "predicted_class", "asked", "fault"]


def test_the_same_settings_take_a_run_up(tmp_path: Path) -> None:
    run = begun(tmp_path, "a")
    with run.open(dict(reversed(SETTINGS.items()))):
        run.append(outcome("b"), trace("b"))
    assert list(run.results()) == ["a", "b"]


def test_other_settings_are_refused_and_change_nothing(tmp_path: Path) -> None:
    run = begun(tmp_path, "a")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(SettingsError, match=r"other settings \(model, rules\); choose another --name"):
        run.open({**SETTINGS, "model": "n", "rules": "literal"})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b"\xff"])
def test_a_manifest_that_is_none_is_told(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(manifest)
    with pytest.raises(DataError, match=r"manifest\.json.* run the same command again"):
        RunFolder(tmp_path).manifest()


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "nothing")
    for look in (run.manifest, run.results, lambda: run.trace("a")):
        with pytest.raises(DataError, match="nothing"):
            look()


def test_an_unknown_question_is_told_with_those_there_are(tmp_path: Path) -> None:
    run = begun(tmp_path, *map(str, range(10)))
    with pytest.raises(DataError, match=r"no question 'x'; it has 0, 1, 2, 3, 4, 5, 6, 7 … \(10 in all\)"):
        run.trace("x")


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsError, match=r"cannot write to .*choose another --runs"):
        RunFolder(tmp_path / "file" / "night").open(SETTINGS)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunFolder(tmp_path)
    run.write("tables/accuracy.md", b"old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(SettingsError, match="No space"):
            run.write("tables/accuracy.md", b"new")
    assert (tmp_path / "tables" / "accuracy.md").read_bytes() == b"old"
    assert run.write("tables/accuracy.md", b"new").read_bytes() == b"new"


def test_a_full_disk_is_told_and_not_kept_full(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.write("report.html", b"old")
    with full_disk(), pytest.raises(SettingsError, match=r"cannot write to .*; make room"):
        run.write("report.html", bytes(1000))
    assert held(tmp_path) == {"report.html": b"old"}


def test_a_run_is_not_taken_up_where_a_torn_line_cannot_be_ended(tmp_path: Path) -> None:
    run = begun(tmp_path, "a", "b")
    (tmp_path / "results.jsonl").write_bytes((tmp_path / "results.jsonl").read_bytes()[:-9])
    with full_disk(), pytest.raises(SettingsError, match=r"cannot write to .*; make room"):
        run.open(SETTINGS)
    with run.open(SETTINGS):  # the lock was given back
        run.append(outcome("b"), trace("b"))
    assert list(run.results()) == ["a", "b"]


def test_an_interrupted_trace_comes_back_as_it_went(tmp_path: Path) -> None:
    run = begun(tmp_path)
    cut: dict[str, Any] = {"predicted": None, "failure": {"step": "chain", "why": "no reply"}}
    with run.open(SETTINGS):
        run.append(outcome("a"), dataclasses.replace(trace("a"), **cut))
    assert Trace(**run.trace("a")).failure == {"step": "chain", "why": "no reply"}


@pytest.mark.parametrize("name", ["results.jsonl", "traces.jsonl", "lock"])
def test_a_link_is_not_added_to(tmp_path: Path, name: str) -> None:
    run = begun(tmp_path / "gift", "a")
    (tmp_path / "mine").write_bytes(b"mine")
    (run.folder / name).unlink()
    (run.folder / name).symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match=rf"cannot write to .*/gift/{name}: it is a link to another place; look where"):
        run.open(SETTINGS)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    (run.folder / name).unlink()
    run.open(SETTINGS).__exit__()  # the lock was given back


def test_nothing_is_written_or_removed_behind_a_link_within_the_folder(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "gift")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "accuracy.md").write_bytes(b"mine")
    run.folder.mkdir()
    (run.folder / "tables").symlink_to("../mine")
    for act in (lambda: run.write("tables/accuracy.md", b"theirs"), lambda: run.remove("tables/accuracy.md")):
        with pytest.raises(DataError, match=r"cannot write to .*/gift/tables: it is a link to another place; look"):
            act()
    assert held(tmp_path / "mine") == {"accuracy.md": b"mine"}


def test_a_run_may_lie_behind_a_link_as_a_whole(tmp_path: Path) -> None:
    begun(tmp_path / "there", "a")
    (tmp_path / "here").symlink_to("there")
    run = RunFolder(tmp_path / "here")
    with run.open(SETTINGS):
        run.append(outcome("b"), trace("b"))
    run.write("tables/accuracy.md", b"")
    assert list(RunFolder(tmp_path / "there").results()) == ["a", "b"]
    assert run.manifest()["run"] == "there"


@pytest.mark.parametrize("name", ["results.jsonl", "traces.jsonl", "manifest.json", "calls.jsonl.gz"])
def test_a_pipe_or_a_link_is_not_read(tmp_path: Path, name: str) -> None:
    run = begun(tmp_path, "a")
    looks: dict[str, Callable[[], object]] = {
        "results.jsonl": run.results,
        "traces.jsonl": lambda: run.trace("a"),
        "manifest.json": run.manifest,
        "calls.jsonl.gz": lambda: list(run.calls()),
    }
    look = looks[name]
    path = tmp_path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(DataError, match=f"{name}.* it is no regular file|{name} .*it is no regular file"):
        look()
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"{name}.*it is a link to another place"):
        look()


def test_a_packed_file_that_unpacks_to_more_than_any_run_has_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(tmp_path)
    monkeypatch.setattr("rectom.results.regular.LINE", 10_000)
    monkeypatch.setattr("rectom.results.regular.lines", partial(regular.lines, most=10_000))
    packed = tmp_path / "calls.jsonl.gz"
    packed.write_bytes(gzip.compress(b" " * 20_000))
    with pytest.raises(DataError, match=r"calls.jsonl.gz cannot be read \(it has a line of more than 10000 bytes\)"):
        list(run.calls())
    packed.write_bytes(gzip.compress(b'{"key": "k"}\n' * 500_000))
    with pytest.raises(DataError, match=r"cannot be read \(it unpacks to more than 500 times its size\)"):
        list(run.calls())


@pytest.mark.parametrize("line", [b"[]\n", b"1\n", b"{\n"])
def test_a_packed_line_that_is_no_call_is_told(tmp_path: Path, line: bytes) -> None:
    run = begun(tmp_path)
    (tmp_path / "calls.jsonl.gz").write_bytes(gzip.compress(line))
    with pytest.raises(DataError, match=r"calls.jsonl.gz cannot be read \(.*\); run the same command again"):
        list(run.calls())
