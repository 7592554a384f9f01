"""What a rerun costs that finds everything in the store, and how a large store opens.

    python bench/hits.py [--replies 100000] [--runs 3]

Fills a store with replies to prompts of 1,900 characters, and then in a fresh process each time: opens it, and asks for
all of them and 100 more with an offline client, which says what it would have to send: the plan of a rerun. Prints
seconds, replies a second and the largest memory.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click

from cache import Store
from cache.entry import Entry
from flows.replies import StoredReplies
from rectom.llm import ChatClient, ChatRequest, Message, ModelId, Outcome, Reply, Sampling, Usage, WouldSend

NOWHERE = "http://127.0.0.1:9/v1"
WORDS = "Anne entered the hall. The ball is in the box. " * 50
BATCH = 5000


def request(number: int) -> ChatRequest:
    """1,900 characters, no two alike."""
    text = f"{number:06d} {WORDS}"[:1900]
    return ChatRequest(ModelId("mock"), (Message("user", text),), Sampling(max_tokens=512))


def entry(number: int) -> Entry:
    asked = request(number)
    reply = Reply(asked.key, "A" * 300, Outcome.OK, Usage(480, 80), 0.5, 1, "sent", model="mock")
    return Entry("reply", asked.key, reply.to_record(asked))


def fill(folder: Path, replies: int) -> None:
    with Store(folder) as store:
        for start in range(0, replies, BATCH):
            store.put_many_now(entry(number) for number in range(start, min(start + BATCH, replies)))


async def ask_all(store: Store, replies: int) -> int:
    """Ask everything offline, 64 at a time as a run would; returns how many are missing."""
    missing = 0
    async with ChatClient(NOWHERE, None, replies=StoredReplies(store), offline=True) as client:

        async def ask(numbers: range) -> None:
            nonlocal missing
            for number in numbers:
                try:
                    await client.ask(request(number))
                except WouldSend:
                    missing += 1

        await asyncio.gather(*(ask(range(first, replies, 64)) for first in range(64)))
    return missing


def measure(folder: Path, replies: int) -> dict[str, Any]:
    """Open, plan and answer, in this process."""
    began = time.perf_counter()
    with Store(folder) as store:
        opened = time.perf_counter()
        missing = asyncio.run(ask_all(store, replies + 100))
        asked = time.perf_counter()
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "open_s": opened - began,
        "plan_s": asked - began,
        "missing": missing,
        "per_s": replies / (asked - opened),
        "megabytes": kilobytes / 1024,
    }


@click.command()
@click.option("--replies", default=100_000)
@click.option("--runs", default=3)
@click.option("--folder", type=click.Path(path_type=Path), help="Measure one run over this store (used by itself).")
def main(replies: int, runs: int, folder: Path | None) -> None:
    if folder:
        print(json.dumps(measure(folder, replies)))
        return
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name), replies)
        command = [sys.executable, __file__, "--replies", str(replies), "--folder", name]
        lines = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(runs)]
    found = {field: median(line[field] for line in lines) for field in lines[0]}
    print(f"{replies} cached replies: opened in {found['open_s']:.2f} s; opened and planned in {found['plan_s']:.2f} s")
    print(f"(at most 5), {found['megabytes']:.0f} MB (at most 500), {found['missing']:.0f} missing of 100")
    print(f"all hits: {found['per_s']:,.0f} replies a second (at least 3,000)")


if __name__ == "__main__":
    main()
