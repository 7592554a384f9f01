"""How near a cold run comes to the ideal, and what a rerun costs: ratios within one run of this script.

    python bench/pipeline.py --data FILE [--latency 0.5] [--concurrency 64] [--plain]

A server that answers by rule after a fixed latency runs in a process of its own. The ideal wall time is
calls x latency / concurrency, plus the longest chain of dependent calls; both are taken from the run itself.
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

from flows.prefect_server import free_port


def run(data: Path, folder: Path, port: int, options: list[str]) -> dict[str, Any]:
    """One `rectom run`; its line of JSON."""
    command = ["rectom", "run", "hitom/400", "--data", str(data), "--model", "fake", "--json", "--name", "bench"]
    command += ["--base-url", f"http://127.0.0.1:{port}/v1", "--cache", str(folder / "cache"), "--runs", str(folder)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def longest_chain(folder: Path) -> int:
    """Calls that must wait for one another: abstract, observe, every revision, answer."""
    traces = (json.loads(line) for line in (folder / "bench" / "traces.jsonl").read_text().splitlines())
    steps = [[call["step"] for call in trace["calls"]] for trace in traces]
    return max(2 + ("observe_states" in calls) + calls.count("revise") for calls in steps)


def idle_flow_s() -> float:
    """Seconds that a Prefect flow which does nothing takes, in a process of its own, as a run does."""
    code = (
        "import asyncio, time; from flows import prefect_server; prefect_server.prepare(); begun = time.monotonic()\n"
        "from prefect import flow\n"
        "@flow\nasync def idle(): pass\n"
        "asyncio.run(idle()); print(time.monotonic() - begun)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--latency", default=0.5)
@click.option("--concurrency", default=64)
@click.option("--plain", is_flag=True)
def main(data: Path, latency: float, concurrency: int, plain: bool) -> None:
    port = free_port()
    server = [sys.executable, "-m", "tests.fake_openai", "--latency", str(latency), "--port", str(port)]
    options = ["--concurrency", str(concurrency), *(["--plain"] if plain else [])]
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(server) as serving:
        folder = Path(name)
        try:
            time.sleep(3)
            line = run(data, folder, port, options)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as reply:
                stats = json.load(reply)
            chain = longest_chain(folder)
            ideal = stats["calls"] * latency / concurrency + chain * latency
            print(f"cold: {stats['calls']} calls, {stats['calls'] / line['questions']:.2f} a question")
            print(
                f"first to last call {stats['span_s']:.2f} s; ideal {ideal:.2f} s ({chain} calls in the longest chain)"
            )
            print(f"ratio {stats['span_s'] / ideal:.3f} (at most 1.10)")
            idle = [0.0 if plain else idle_flow_s() for _ in range(3)]
            again = [run(data, folder, port, options) for _ in range(3)]
            rerun = sorted(line["wall_s"] for line in again)[1]
            sent = sum(line["calls"]["sent"] for line in again)
            print(
                f"rerun: {sent} sent; {rerun:.2f} s against {sorted(idle)[1]:.2f} s of an idle flow (at most 2 s more)"
            )
        finally:
            serving.terminate()


if __name__ == "__main__":
    main()
