import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cache import CacheError, CacheFull, CacheReadOnly, Entry, Store, digest, verify
from cache import folder as folder_module
from cache.writer import BATCH, Change

Commit = Callable[[list[Change]], None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        yield opened


def entry(number: int) -> Entry:
    return Entry("reply", digest(number), {"n": number})


async def put_all(store: Store, numbers: range) -> list[BaseException | None]:
    return await asyncio.gather(*(store.put(*entry(n)) for n in numbers), return_exceptions=True)


def before_commit(store: Store, monkeypatch: pytest.MonkeyPatch, act: Callable[[list[Change]], None]) -> None:
    commit: Commit = store._writer._commit

    def wrapped(changes: list[Change]) -> None:
        act(changes)
        commit(changes)

    monkeypatch.setattr(store._writer, "_commit", wrapped)


def spoil_once(store: Store, monkeypatch: pytest.MonkeyPatch, pragma: str) -> None:
    """The writer's connection gets ``pragma`` before its first transaction; the next connection is sound."""
    pending = [pragma]

    def act(_: list[Change]) -> None:
        if pending:
            store._database._sql(pending.pop()).fetchall()

    before_commit(store, monkeypatch, act)


async def test_many_waiters_share_few_transactions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    queued = threading.Event()

    def act(changes: list[Change]) -> None:
        assert queued.wait(10)
        sizes.append(len(changes))

    before_commit(store, monkeypatch, act)
    waiting = asyncio.ensure_future(put_all(store, range(1000)))
    await asyncio.sleep(0.1)
    queued.set()
    assert set(await waiting) == {None}
    assert sum(sizes) == 1000
    assert max(sizes) == BATCH
    assert len(sizes) <= 1000 // BATCH + 2


async def test_the_event_loop_runs_while_the_disk_is_slow(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before_commit(store, monkeypatch, lambda _: time.sleep(0.2))
    waiting = asyncio.ensure_future(store.put(*entry(1)))
    ticks = 0
    while not waiting.done():
        await asyncio.sleep(0.005)
        ticks += 1
    assert ticks > 10


async def test_an_error_reaches_every_waiter_and_the_writer_lives_on(store: Store) -> None:
    assert await put_all(store, range(5)) == [None] * 5
    poison = f"reply:{entry(30).key}"
    with closing(sqlite3.connect(store.folder / "cache.db")) as database, database:
        database.execute(
            f"CREATE TRIGGER poison BEFORE INSERT ON Cache WHEN NEW.key = '{poison}'"
            " BEGIN SELECT RAISE(ABORT, 'bad sector'); END"
        )
    results = await put_all(store, range(10, 60))
    errors = [result for result in results if result is not None]
    assert errors
    assert {type(error) for error in errors} == {CacheError}
    assert len(set(map(id, errors))) == len(errors)
    assert "bad sector" in str(errors[0])
    assert "\n" not in str(errors[0])
    for number, result in zip(range(10, 60), results, strict=True):
        assert store.contains("reply", entry(number).key) == (result is None)
    assert await put_all(store, range(100, 110)) == [None] * 10
    assert store.get("reply", entry(2).key) == {"n": 2}


@pytest.mark.parametrize(
    ("pragma", "kind"),
    [("PRAGMA query_only = 1", CacheReadOnly), ("PRAGMA max_page_count = 1", CacheFull)],
)
async def test_sqlite_says_why(
    store: Store, monkeypatch: pytest.MonkeyPatch, pragma: str, kind: type[CacheError]
) -> None:
    spoil_once(store, monkeypatch, pragma)
    big = [Entry("reply", digest(n), {"text": random.Random(n).randbytes(20_000).hex()}) for n in range(20)]
    with pytest.raises(CacheError) as caught:
        await store.put_many(big)
    assert type(caught.value) is kind
    assert str(store.folder) in str(caught.value)
    await store.put_many(big)
    assert store.count()["reply"] == 20
    assert verify(store) == []


async def test_a_lock_that_lasts_is_an_error_and_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "LOCK_SECONDS", 0.2)
    with Store(tmp_path) as store, closing(sqlite3.connect(tmp_path / "cache.db")) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        results = await put_all(store, range(3))
        assert all(type(result) is CacheError and "locked" in str(result) for result in results)
        assert store.get("reply", entry(0).key) is None
        other.execute("ROLLBACK")
        assert await put_all(store, range(3)) == [None] * 3


async def test_a_program_error_in_the_writer_is_no_silence(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def act(_: list[Change]) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        before_commit(store, patch, act)
        with pytest.raises(CacheError, match="a bug"):
            await store.put(*entry(1))
    await store.put(*entry(1))


def test_threads_may_put(store: Store) -> None:
    def work(start: int) -> None:
        for number in range(start, start + 50):
            store.put_now(*entry(number))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 400, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count()["reply"] == 400


def exhausted(folder: Path, code: str) -> str:
    """What a program writes that has a store in ``folder``, and no file descriptor left where it calls `exhaust`."""
    script = (
        "import os, sys; from pathlib import Path; from cache import CacheError, Store, digest, verify\n"
        "taken = []\n"
        "def exhaust():\n"
        "    import resource\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "    try:\n"
        "        while True:\n"
        "            taken.append(os.open(os.devnull, os.O_RDONLY))\n"
        "    except OSError:\n"
        "        pass\n"
        f"folder = Path(sys.argv[1])\n{code}"
    )
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, check=True, text=True, timeout=60
    ).stdout


def test_what_comes_when_no_file_can_be_opened_is_kept(tmp_path: Path) -> None:
    exhausted(
        tmp_path,
        "with Store(folder) as store:\n"
        "    exhaust()\n"
        "    for number in range(100):\n"
        "        store.put_now('reply', digest(number), {'n': number})\n",
    )
    with Store(tmp_path) as store:
        assert store.count()["reply"] == 100


def test_a_store_that_cannot_open_its_files_says_what_helps(tmp_path: Path) -> None:
    with Store(tmp_path):
        pass
    told = exhausted(
        tmp_path,
        "exhaust()\n"
        "while taken:\n"
        "    try:\n"
        "        Store(folder).close()\n"
        "        break\n"
        "    except CacheError as error:\n"
        "        print(type(error).__name__, error)\n"
        "    os.close(taken.pop())\n",
    ).splitlines()
    assert len(told) > 3
    assert all(line.startswith("CacheError ") and "too many open files" in line for line in told)
    assert all("`ulimit -n`" in line and str(tmp_path) in line for line in told)


WRITER = """
import asyncio, os, sys
from pathlib import Path
from cache import Store, digest

async def work(store, name):
    number = 0
    while True:
        key = digest([name, number])
        await store.put("reply", key, {"name": name, "number": number, "text": key * 50})
        os.write(1, f"{name} {number}\\n".encode())
        number += 1

async def main():
    with Store(Path(sys.argv[1])) as store:
        await asyncio.gather(*(work(store, f"{sys.argv[2]}.{n}") for n in range(16)))

asyncio.run(main())
"""


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE)


def killed(child: subprocess.Popen[bytes], after: float) -> list[tuple[str, int]]:
    """What the child had acknowledged when it was killed, ``after`` seconds from its first word."""
    assert child.stdout
    said = child.stdout.readline()
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    said += child.communicate()[0]
    assert child.returncode == -signal.SIGKILL
    return [(line.split()[0], int(line.split()[1])) for line in said.decode().split("\n")[:-1]]


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(9)
    acknowledged: list[tuple[str, int]] = []
    for turn in range(10):
        # Two at a time in one folder, each killed in the midst of its own and the other's transactions.
        children = [start(tmp_path, f"{turn}{who}") for who in "ab"]
        for child in children:
            acknowledged += killed(child, dice.uniform(0.01, 0.12))
    assert len(acknowledged) > 500
    with Store(tmp_path) as store:
        for name, number in acknowledged:
            key = digest([name, number])
            assert store.get("reply", key) == {"name": name, "number": number, "text": key * 50}
        assert verify(store) == []
        store.put_now(*entry(1))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, asyncio; from pathlib import Path; from cache import Store, digest\n"
        "async def main():\n"
        "    with Store(Path(sys.argv[1])) as store:\n"
        "        keys = [digest([sys.argv[2], n]) for n in range(1500)]\n"
        "        await asyncio.gather(*(store.put('reply', key, {'key': key}) for key in keys))\n"
        "        await asyncio.gather(*(store.put('stage', digest(n), {'n': n}) for n in range(500)))\n"
        "asyncio.run(main())\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), who]) for who in "abc"]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    with Store(tmp_path) as store:
        keys = [digest([who, number]) for who in "abc" for number in range(1500)]
        assert all(store.get("reply", key) == {"key": key} for key in keys)
        assert store.count() == {"reply": 4500, "stage": 500, "latest": 0}


FULL = """
import asyncio, os, resource, sys
from pathlib import Path
from cache import CacheFull, Store, digest

async def main():
    text = os.urandom(10_000).hex()
    with Store(Path(sys.argv[1])) as store:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        async def put(n):
            await store.put("reply", digest(n), {"n": n, "text": text})
        results = await asyncio.gather(*(put(n) for n in range(1000)), return_exceptions=True)
        stored = [n for n, result in enumerate(results) if result is None]
        errors = [result for result in results if result is not None]
        assert errors and all(type(error) is CacheFull for error in errors), errors[:1]
        assert "free space" in str(errors[0]) and "\\n" not in str(errors[0]), errors[0]
        assert stored, "nothing fitted"
        for n in stored:
            assert store.get("reply", digest(n)) == {"n": n, "text": text}
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await put(5000)
    print(*stored, 5000)

asyncio.run(main())
"""


def test_a_full_disk_is_told_and_leaves_the_rest_intact(tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, check=False, timeout=60)
    assert child.returncode == 0, child.stderr.decode()
    with Store(tmp_path) as store:
        assert all(store.get("reply", digest(int(number))) for number in child.stdout.split())
        assert verify(store) == []
