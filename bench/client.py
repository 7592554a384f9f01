"""What the client costs over a bare aiohttp + orjson loop, with every reply on disk before it is used.

    python bench/client.py [--runs 5]
    python bench/client.py --base-url URL --prompts 1000 --concurrency 64 --cache DIR [--bare]

The first form starts a server with a latency of 50 ms in a process of its own and prints the ratios, each the median
over pairs of runs in turn. The second measures one run, of this client or of the bare loop (which stores nothing),
against any server, and prints a line of JSON. A prompt has 1,900 characters.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import click
import orjson

from cache import Store
from flows.replies import StoredReplies
from rectom.llm import ChatClient, ChatRequest, Limits, Message, ModelId, Sampling
from rectom.llm.claims import Claims

MODEL = "mock"
WORDS = "Anne entered the hall. The ball is in the box. " * 50


def prompt(number: int) -> str:
    """1,900 characters, no two alike."""
    return f"{number:06d} {WORDS}"[:1900]


async def ask_ours(base_url: str, prompts: int, concurrency: int, folder: Path) -> dict[str, Any]:
    """Ask everything with our client and the store in `folder`."""
    sampling = Sampling(max_tokens=512)
    with Store(folder) as store:
        claims = Claims(folder / "claims")
        async with ChatClient(
            base_url, None, replies=StoredReplies(store), limits=Limits(concurrency), claims=claims
        ) as client:

            async def ask(number: int) -> None:
                reply = await client.ask(ChatRequest(ModelId(MODEL), (Message("user", prompt(number)),), sampling))
                assert reply.text

            await asyncio.gather(*map(ask, range(prompts)))
        claims.close()
    stats = client.stats
    return {"sent": stats.sent, "retried": stats.retried, "cached": stats.cached, "errors": dict(stats.errors)}


async def ask_bare(base_url: str, prompts: int, concurrency: int) -> dict[str, Any]:
    """Ask everything with as little as will do."""
    gate = asyncio.Semaphore(concurrency)
    url = f"{base_url}/chat/completions"
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:

        async def ask(number: int) -> None:
            body = {
                "model": MODEL,
                "temperature": 0.0,
                "max_tokens": 512,
                "messages": [{"role": "user", "content": prompt(number)}],
            }
            async with gate, session.post(url, data=orjson.dumps(body)) as response:
                assert orjson.loads(await response.read())["choices"][0]["message"]["content"]

        await asyncio.gather(*map(ask, range(prompts)))
    return {"sent": prompts}


def measure(base_url: str, prompts: int, concurrency: int, folder: Path | None, bare: bool) -> dict[str, Any]:
    """One run in this process: what was done, wall and CPU seconds (of all threads)."""
    wall, cpu = time.perf_counter(), time.process_time()
    if bare:
        done = asyncio.run(ask_bare(base_url, prompts, concurrency))
    else:
        assert folder is not None
        done = asyncio.run(ask_ours(base_url, prompts, concurrency, folder))
    return {**done, "wall_s": round(time.perf_counter() - wall, 3), "cpu_s": round(time.process_time() - cpu, 3)}


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """The URL of a mock server in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("mock_server.py")), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def measured(url: str, prompts: int, concurrency: int, *, bare: bool = False) -> dict[str, Any]:
    """One run in a process and with a cache of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--base-url", url, "--prompts", str(prompts), "--concurrency"]
        command += [str(concurrency), "--cache", folder, *(["--bare"] if bare else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    line: dict[str, Any] = json.loads(done.stdout)
    return line


def compare(url: str, runs: int, prompts: int, concurrency: int, most: str) -> None:
    pairs = [(measured(url, prompts, concurrency), measured(url, prompts, concurrency, bare=True)) for _ in range(runs)]
    ours, bare = ({name: median(pair[i][name] for pair in pairs) for name in ("wall_s", "cpu_s")} for i in (0, 1))
    ratios = {name: median(one[name] / other[name] for one, other in pairs) for name in ("wall_s", "cpu_s")}
    errors = sum(sum(one["errors"].values()) + one["retried"] for one, _ in pairs)
    print(
        f"{prompts} prompts, {concurrency} in flight: wall {ours['wall_s']:.2f} s against {bare['wall_s']:.2f} s bare, "
        f"ratio {ratios['wall_s']:.2f}; CPU {ours['cpu_s']:.2f} s against {bare['cpu_s']:.2f} s, "
        f"ratio {ratios['cpu_s']:.2f} ({most}); {errors} errors and retries"
    )


def refused_first(runs: int, concurrency: int) -> None:
    walls, sent = [], []
    with serving("--refuse-first") as url:
        root = url.removesuffix("/v1")
        for _ in range(runs):
            walls.append(measured(url, 128, concurrency)["wall_s"])
            with urllib.request.urlopen(f"{root}/reset") as reply:
                sent.append(json.load(reply)["requests"])
    print(
        f"128 requests, {concurrency} in flight, each refused once with Retry-After 1: {median(walls):.2f} s "
        f"(worst {max(walls):.2f}; at most 2.5), {max(sent)} requests (at most 256)"
    )


@click.command()
@click.option("--base-url")
@click.option("--prompts", default=1000)
@click.option("--concurrency", default=64)
@click.option("--cache", type=click.Path(path_type=Path))
@click.option("--bare", is_flag=True, help="The bare loop instead of the client.")
@click.option("--runs", default=5)
def main(base_url: str | None, prompts: int, concurrency: int, cache: Path | None, bare: bool, runs: int) -> None:
    if base_url:
        if not (cache or bare):
            raise click.UsageError("--cache DIR is needed with --base-url")
        print(json.dumps(measure(base_url, prompts, concurrency, cache, bare)))
        return
    with serving() as url:
        compare(url, runs, 1000, 64, "at most 1.5 and 3")
        compare(url, runs, 1024, 256, "wall at most 2")
        compare(url, runs, 2048, 1024, "wall at most 2")
    for width in (64, 128):
        refused_first(runs, width)


if __name__ == "__main__":
    main()
