"""`rectom serve FILE.gguf`: a model from a file, as an OpenAI-compatible endpoint."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from flows.local import revision, started
from flows.serving import Serving


@click.command(name="serve")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--slots", type=click.IntRange(1), default=2, show_default=True, help="Requests that are answered at once."
)
@click.option("--ctx", type=click.IntRange(256), default=4096, show_default=True, help="Tokens of context a slot.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 for a free one.")
@click.option("--threads", type=click.IntRange(1), help="All cores by default.")
def command(file: Path, slots: int, ctx: int, port: int, threads: int | None) -> None:
    """Serve the model in FILE, until it is interrupted; needs pip install 'rectom[local]'.

    For one run there is no need to serve: --model local:FILE.gguf starts and stops the server around it.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serving = Serving(file, slots, ctx, port, threads or 0)
    with started(serving) as server:
        address = server.address()
        model = f"--model {serving.name} --model-revision {revision(file)}"
        click.echo(f"{serving.name} is served at {address}; to use it: {model} --base-url {address}")
        raise server.outlasted()
