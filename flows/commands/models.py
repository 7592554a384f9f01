"""`rectom models [check NAME|get NAME]`: the declared models, what their endpoints support, weights to download."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from flows import local
from flows.download import with_bars
from rectom.errors import SettingsError
from rectom.llm import ChatClient, Retry
from rectom.llm.catalogue import FILE, Provider, Weights, catalogue, config_folder, weights
from rectom.llm.listing import list_models
from rectom.llm.probe import Probe, probe
from rectom.llm.request import ModelId
from rectom.printable import printable


@click.group(name="models", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List the models that are declared in models.toml: RecToM's, yours, and the working folder's."""
    if context.invoked_subcommand:
        return
    for name, provider in catalogue().items():
        _print(name, _described(provider))
    for name, found in weights().items():
        _print(f"{local.LOCAL}{name}", _downloadable(found))
    click.echo(f"declared in RecToM, {config_folder() / FILE} and {Path(FILE).absolute()}")


def _print(name: str, lines: Mapping[str, str]) -> None:
    for line in (name, *(f"    {what:10} {words}" for what, words in lines.items())):
        click.echo(printable(line))


def _described(provider: Provider) -> dict[str, str]:
    drawn = ", ".join(f"{name} {value}" for name, value in provider.sampling.sampling().fields().items())
    prices = f"{provider.prices.currency} of {provider.prices.date}" if provider.prices else "unknown"
    return {
        "served as": f"{provider.name} at {provider.base_url or 'the address given'}",
        "key in": provider.key if provider.api_key() else f"{provider.key} (not set)",
        "sampling": drawn or "the server's own",
        "schemas": provider.structured or "to be found out",
        "prices": prices,
    }


def _downloadable(found: Weights) -> dict[str, str]:
    here = local.folder() / found.file
    file = str(here) if here.is_file() else "not here"
    return {"weights": f"{found.size / 1e9:.2f} GB, {found.licence}", "file": file}


@command.command()
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to; by default your data folder.")
def get(name: str, folder: Path | None) -> None:
    """Download the weights of a small open model, and check them.

    A file that is there and does not differ is left alone. The model is then served for a run by --model local:NAME.
    """
    from rectom.benchmarks.adapter import Source
    from rectom.benchmarks.fetch import download

    found = local.weights_of(name)
    source = Source(found.file, (found.address,), found.sha256, found.size)
    instead = f"give --model {local.LOCAL}PATH"
    where = folder or local.folder()
    (file,) = with_bars(lambda show: download(name, [source], where, instead, show))
    click.echo(file)
    click.echo(f"to use it: --model {local.LOCAL}{file if folder else name}", err=True)


@command.command()
@click.argument("name")
@click.option("--base-url", default="", help="The server's address [that of the model, OPENAI_BASE_URL].")
def check(name: str, base_url: str) -> int:
    """Ask the endpoint of NAME one question, and say what it supports."""
    if not name.strip():
        raise click.UsageError("give the NAME of a model")
    provider = catalogue().get(name) or Provider(name=name)
    address = provider.address(base_url)
    if not address:
        raise SettingsError(f"no address of {name} is declared in {FILE}: give --base-url URL as well")
    found, served = asyncio.run(_check(provider, address))
    for line in _said(provider, found, served):
        click.echo(printable(line))
    return 0 if found.right else 1


async def _check(provider: Provider, address: str) -> tuple[Probe, list[str]]:
    model = ModelId(provider.name, provider.identity, provider.revision)
    structured = provider.structured or "json_schema"
    async with ChatClient(address, provider.api_key(), retry=Retry(attempts=2), structured=structured) as client:
        found = await probe(client, model, provider.sampling.sampling())
    return found, await list_models(address, provider.api_key())


def _said(provider: Provider, found: Probe, served: list[str]) -> list[str]:
    how = "rightly" if found.right else "wrongly, or not in the form asked for"
    return [
        f"answers         {how} in {found.latency_s:.2f} s",
        f"reply schemas   {found.structured}",
        f"usage           {'told' if found.tells_usage else 'not told: tokens and money will count 0'}",
        f"models listed   {', '.join(served[:12]) or 'none'}",
        f"declared        {provider.structured or 'nothing about schemas'}",
    ]
