"""What a killed run has to pay again.

    python bench/kill.py [--runs 3]

A client in a process of its own asks 1,000 prompts, 64 in flight, and is killed (SIGKILL) when the server has seen 564
requests: 500 are answered and 64 under way. A second one then asks the same with the same cache. Together they may
send 1,064 requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
PROMPTS, CONCURRENCY, KILLED_AT = 1000, 64, 564


def get(url: str, what: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/{what}") as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def client(url: str, folder: str) -> list[str]:
    command = [sys.executable, str(HERE / "client.py"), "--base-url", url, "--prompts", str(PROMPTS)]
    return [*command, "--concurrency", str(CONCURRENCY), "--cache", folder]


def kill_and_resume(url: str) -> tuple[int, int, dict[str, Any]]:
    """Requests seen until the kill, requests seen in all, and what the second run says."""
    get(url, "reset")
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(client(url, folder), stdout=subprocess.DEVNULL) as first:
            while get(url, "stats")["requests"] < KILLED_AT and first.poll() is None:
                time.sleep(0.001)
            first.kill()
        before = get(url, "stats")["requests"]
        done = subprocess.run(client(url, folder), capture_output=True, check=True)
        return before, get(url, "stats")["requests"], json.loads(done.stdout)


@click.command()
@click.option("--runs", default=3)
def main(runs: int) -> None:
    command = [sys.executable, str(HERE / "mock_server.py"), "--latency", "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().strip()
        try:
            for _ in range(runs):
                before, total, line = kill_and_resume(url)
                print(
                    f"killed after {before} requests; rerun: {line['cached']} from the store, {line['sent']} sent; "
                    f"{total} in all (at most {PROMPTS + CONCURRENCY})"
                )
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
