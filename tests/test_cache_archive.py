import contextlib
import gzip
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from cache import ArchiveError, CacheError, Entry, Imported, Store, digest, export, import_, verify
from cache import archive as archive_module

HEADER: dict[str, Any] = {"format": "rectom-cache", "version": 1}


def reply(number: int) -> Entry:
    request = {"prompt": f"question {number}", "n": number}
    return Entry("reply", digest(request), {"request": request, "text": "é\n" * number, "outcome": "ok"})


def stage(number: int) -> Entry:
    fields = {"stage": "s", "n": number}
    return Entry("stage", digest(fields), {"fields": fields, "output": number, "calls": []})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        opened.put_many_now(reply(number) for number in range(150))
        opened.put_now(*stage(1))
        yield opened


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "fresh") as opened:
        yield opened


def lines(*entries: dict[str, Any], header: Any = HEADER, **end: Any) -> bytes:
    body = b"".join(orjson.dumps(line) + b"\n" for line in (header, *entries))
    last = {"entries": len(entries), "sha256": hashlib.sha256(body).hexdigest(), **end}
    return body + orjson.dumps(last) + b"\n"


def refuse(fresh: Store, file: Path) -> str:
    with pytest.raises(ArchiveError) as caught:
        import_(fresh, file)
    assert fresh.count() == {"reply": 0, "stage": 0, "latest": 0}
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_round_trip(store: Store, fresh: Store, tmp_path: Path) -> None:
    file = tmp_path / "backup.jsonl.gz"
    assert export(store, file) == 150
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert import_(fresh, file) == Imported(added=150)
    assert list(fresh.iterate("reply")) == list(store.iterate("reply"))
    assert fresh.count()["stage"] == 0
    assert import_(fresh, file) == Imported(present=150)


def test_replies_travel_without_what_was_asked(store: Store, fresh: Store, tmp_path: Path) -> None:
    file = tmp_path / "bare"
    assert export(store, file, requests=False) == 150
    assert b"question 7" not in gzip.decompress(file.read_bytes())
    assert import_(fresh, file) == Imported(added=150)
    assert fresh.get("reply", reply(7).key) == {"text": reply(7).value["text"], "outcome": "ok"}
    assert not verify(fresh)


def test_all_kinds_and_the_same_bytes(store: Store, fresh: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert export(store, one, ("reply", "stage", "latest")) == 151
    import_(fresh, one)
    export(fresh, two, ("reply", "stage", "latest"))
    assert one.read_bytes() == two.read_bytes()


def test_an_empty_store(fresh: Store, tmp_path: Path) -> None:
    assert export(fresh, tmp_path / "empty") == 0
    assert import_(fresh, tmp_path / "empty") == Imported()


def test_what_is_present_stays_and_what_is_damaged_is_healed(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    export(store, file)
    kept, hurt = reply(1), reply(2)
    store.put_now("reply", kept.key, {"mine": True})
    store._database._sql("UPDATE Cache SET value = x'00' WHERE key = ?", (f"reply:{hurt.key}",))
    assert export(store, tmp_path / "other") == 149
    assert import_(store, file) == Imported(added=1, present=149)
    assert store.get("reply", kept.key) == {"mine": True}
    assert store.get("reply", hurt.key) == hurt.value


def test_a_reply_under_another_key_is_refused(fresh: Store, tmp_path: Path) -> None:
    file = tmp_path / "forged"
    good, bad = reply(1)._asdict(), {**reply(2)._asdict(), "key": digest("another")}
    file.write_bytes(gzip.compress(lines(good, good, bad)))
    assert import_(fresh, file) == Imported(added=1, present=1, refused=1)
    assert [key for key, _ in fresh.iterate("reply")] == [good["key"]]


@pytest.mark.parametrize(
    "entry",
    [
        Entry("stage", stage(1).key, {}),
        Entry("stage", digest("another"), stage(1).value),
        Entry("latest", digest(1), {}),
        Entry("latest", digest(1), {"fields": [], "outcome": "ok"}),
    ],
)
def test_a_stage_result_is_held_against_its_form_and_its_key(fresh: Store, tmp_path: Path, entry: Entry) -> None:
    file = tmp_path / "forged"
    file.write_bytes(gzip.compress(lines(stage(2)._asdict(), entry._asdict())))
    assert import_(fresh, file) == Imported(added=1, refused=1)
    assert not fresh.contains(entry.kind, entry.key)


def test_what_is_not_of_its_form_is_healed(fresh: Store, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_bytes(gzip.compress(lines(stage(1)._asdict())))
    fresh.put_now("stage", stage(1).key, {})
    assert import_(fresh, file) == Imported(added=1)
    assert fresh.get("stage", stage(1).key) == stage(1).value


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_the_deepest_value_that_can_be_stored(fresh: Store, tmp_path: Path) -> None:
    levels = 300
    while levels:
        levels -= 1
        with contextlib.suppress(TypeError):
            fresh.put_now("reply", digest(1), nested(levels))
            break
    assert levels > 100
    assert export(fresh, tmp_path / "deep") == 1
    fresh.delete("reply", [digest(1)])
    assert import_(fresh, tmp_path / "deep") == Imported(added=1)
    assert fresh.get("reply", digest(1)) == nested(levels)
    assert verify(fresh) == []


def test_a_deeper_value_is_refused(fresh: Store, tmp_path: Path) -> None:
    entry = {**reply(1)._asdict(), "kind": "stage", "value": {"a": 0}}
    text = orjson.dumps(entry).replace(b":0}", b":" + b'{"a":' * 300 + b"0" + b"}" * 301)
    body = orjson.dumps(HEADER) + b"\n" + text + b"\n"
    end = orjson.dumps({"entries": 1, "sha256": hashlib.sha256(body).hexdigest()})
    (tmp_path / "deep").write_bytes(gzip.compress(body + end + b"\n"))
    assert "cannot be stored" in refuse(fresh, tmp_path / "deep")


@pytest.mark.parametrize("cut", [0, 1, 9, 10, 40, 0.3, 0.6, 0.95, -9, -8, -1])
def test_a_truncated_file_is_refused(store: Store, fresh: Store, tmp_path: Path, cut: float) -> None:
    file = tmp_path / "backup"
    export(store, file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(cut * len(whole)) if isinstance(cut, float) else cut])
    refuse(fresh, file)


@pytest.mark.parametrize("keep", [1, 2, 100, 150, 151])
def test_missing_lines_are_noticed(store: Store, fresh: Store, tmp_path: Path, keep: int) -> None:
    file = tmp_path / "backup"
    export(store, file)
    text = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    assert len(text) == 152
    file.write_bytes(gzip.compress(b"".join(text[:keep])))
    refuse(fresh, file)
    file.write_bytes(gzip.compress(b"".join([*text[:keep], text[-1]])))
    if keep < 151:
        refuse(fresh, file)
    else:
        assert import_(fresh, file).added == 150


def test_every_flipped_byte_is_noticed(store: Store, fresh: Store, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    export(store, file)
    whole = file.read_bytes()
    # The gzip header has a time, flags and an operating system, which mean nothing.
    for place in range(10, len(whole), max(1, len(whole) // 60)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        refuse(fresh, file)


Edit = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace(b'"ok"', b'"no"', 1),
        lambda text: text.replace(b'"entries":150', b'"entries":149'),
        lambda text: text + b'{"kind":"reply"}\n',
        lambda text: text + b"\n",
        lambda text: text + text,
        lambda text: text.partition(b"\n")[2],
        lambda text: b"",
        lambda text: b"[]\n" + text,
        lambda text: os.urandom(1000),
    ],
)
def test_a_tampered_text_is_refused(store: Store, fresh: Store, tmp_path: Path, edit: Edit) -> None:
    file = tmp_path / "backup"
    export(store, file)
    file.write_bytes(gzip.compress(edit(gzip.decompress(file.read_bytes()))))
    refuse(fresh, file)


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "other", "key": digest(1), "value": {}},
        {"kind": ["reply"], "key": digest(1), "value": {}},
        {"kind": "reply", "key": "../../etc/passwd", "value": {}},
        {"kind": "reply", "key": 7, "value": {}},
        {"kind": "reply", "key": digest(1), "value": [1]},
        {"kind": "reply", "key": digest(1)},
        {"kind": "reply", "key": digest(1), "value": {}, "more": 1},
    ],
)
def test_a_line_that_is_no_entry_is_refused(fresh: Store, tmp_path: Path, entry: dict[str, Any]) -> None:
    file = tmp_path / "foreign"
    file.write_bytes(gzip.compress(lines(reply(1)._asdict(), entry)))
    refuse(fresh, file)


@pytest.mark.parametrize("header", [{**HEADER, "version": 2}, {**HEADER, "format": "x"}, {}, [], 1])
def test_another_format_is_refused(fresh: Store, tmp_path: Path, header: Any) -> None:
    file = tmp_path / "foreign"
    file.write_bytes(gzip.compress(lines(reply(1)._asdict(), header=header)))
    refuse(fresh, file)


@pytest.mark.parametrize("content", [b"", b"plain text", lines(), b"\x1f\x8b" + b"\0" * 100])
def test_a_file_that_is_no_gzip_is_refused(fresh: Store, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "plain"
    file.write_bytes(content)
    refuse(fresh, file)


def test_a_bomb_is_not_unpacked(fresh: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "LINE_LIMIT", 100_000)
    line, total = tmp_path / "line", tmp_path / "total"
    line.write_bytes(gzip.compress(orjson.dumps(HEADER) + b"\n" + b" " * 10_000_000))
    assert "bytes a line" in refuse(fresh, line)
    entry = {**reply(1)._asdict(), "value": {"text": "x" * 50_000}}
    total.write_bytes(gzip.compress(lines(*[entry] * 400)))
    with pytest.raises(ArchiveError, match="50 times its size"):
        import_(fresh, total, ratio=50)
    assert fresh.count()["reply"] == 0
    total.write_bytes(gzip.compress(lines(*[reply(1)._asdict()] * 2000)))
    assert import_(fresh, total) == Imported(added=1, present=1999)


def test_a_missing_file_and_a_place_that_cannot_be_written(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be read"):
        import_(store, tmp_path / "nowhere")
    with pytest.raises(ArchiveError, match="cannot be written"):
        export(store, tmp_path / "no" / "folder")


def test_an_export_that_fails_leaves_the_old_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup"
    file.write_bytes(b"old")

    def fail(*_: object) -> Iterator[Any]:
        yield digest(1), {"a": 1}
        raise CacheError("the disk")

    monkeypatch.setattr(store, "iterate", fail)
    with pytest.raises(CacheError, match="the disk"):
        export(store, file)
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["backup"]
