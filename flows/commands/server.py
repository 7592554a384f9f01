"""`rectom server start|stop|status`: a Prefect server that stays, so that its pages can be looked at."""

from __future__ import annotations

import click

from flows import prefect_server


@click.group(name="server")
def command() -> None:
    """A local Prefect server that stays; runs find it by themselves."""


@command.command()
@click.option("--port", type=click.IntRange(1, 65535), help="A free one by default.")
def start(port: int | None) -> None:
    """Start the server, and wait until it answers."""
    click.echo(prefect_server.start(port))


@command.command()
def stop() -> int:
    """Stop the server."""
    stopped = prefect_server.stop()
    click.echo("stopped" if stopped else "no server was running")
    return 0 if stopped else 1


@command.command()
def status() -> int:
    """Say where the server is."""
    url = prefect_server.status()
    click.echo(url or "no server is running; start one with: rectom server start")
    return 0 if url else 1
