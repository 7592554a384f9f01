"""`rectom`: finds the command, and turns errors into one line and an exit status.

Exit status: 0 done; 1 an error, named in one line; 2 a wrong command line; 3 partial: questions failed, the run
stopped at a bound that was set, no cell of a plan can begin, or an export left out what is damaged or gone; 130
interrupted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Final, NoReturn

import click

#: The exit status of a run in which questions failed, or that stopped at a bound, and of what else was done in part.
PARTIAL: Final = 3

#: Where each command is, and its line in the help: so that `rectom --help` imports none of them.
COMMANDS: Final = {
    "run": ("flows.commands.run", "Evaluate a benchmark, or take up an evaluation again."),
    "sweep": ("flows.commands.sweep", "Run a matrix of models, methods and benchmarks."),
    "runs": ("flows.commands.runs", "List runs and sweeps: state, accuracy, cost, age."),
    "resume": ("flows.commands.resume", "Go on with a run or a sweep."),
    "rm": ("flows.commands.rm", "Remove runs and sweeps; replies stay in the store."),
    "explain": ("flows.commands.explain", "Say what a run would compute, and why; send nothing."),
    "show": ("flows.commands.show", "Show how the answer to one question came about."),
    "compare": ("flows.commands.compare", "Compare runs over the same questions."),
    "report": ("flows.commands.report", "The paper's tables from runs and sweeps."),
    "export": ("flows.commands.export", "Write runs for other programs: CSV, Parquet, datasets, inspect."),
    "ask": ("flows.commands.ask", "Ask a question about a story of your own."),
    "generate": ("flows.commands.generate", "Write fresh stories that no model has seen."),
    "data": ("flows.commands.data", "The benchmarks: list, get, show, audit."),
    "models": ("flows.commands.models", "The declared models; check one, get weights."),
    "cache": ("flows.commands.cache", "The store: stats, verify, prune, export, import."),
    "serve": ("flows.commands.serve", "Serve a model from a GGUF file."),
    "server": ("flows.commands.server", "A Prefect server for the night: start, stop, status."),
}


class _Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("rectom"), package_name="rectom")
def rectom() -> None:
    """Theory-of-Mind reasoning by recursive perspective construction, and the laboratory around it.

    Every command takes --debug, which shows the traceback of an error.

    Start with: rectom run fresh
    """


def main() -> None:
    """The entry point of the `rectom` command."""
    debug = "--debug" in sys.argv or os.environ.get("RECTOM_DEBUG") == "1"
    if debug:
        os.environ["RECTOM_DEBUG"] = "1"  # for what goes on by itself after an error
    arguments = _joined([argument for argument in sys.argv[1:] if argument != "--debug"])
    try:
        _leave(rectom.main(arguments, prog_name="rectom", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        _end(130, "interrupted; the same command goes on where it was")
    except click.ClickException as error:
        error.show()
        _leave(error.exit_code)
    except (KeyboardInterrupt, asyncio.CancelledError):
        _end(130, "interrupted; the same command goes on where it was")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        _end(_status(error), _one_line(error))


def _joined(arguments: list[str]) -> list[str]:
    """`--transport batch-file DIR` as one option with one value, which is what the parser can read."""
    for place in range(len(arguments) - 2):
        if arguments[place : place + 2] == ["--transport", "batch-file"]:
            return [*arguments[: place + 1], f"batch-file:{arguments[place + 2]}", *arguments[place + 3 :]]
    return arguments


def _status(error: Exception) -> int:
    from rectom.errors import Partial

    return PARTIAL if isinstance(error, Partial) else 1


def _one_line(error: Exception) -> str:
    """An error in one line. What RecToM raises on purpose explains itself; the rest is a defect to report."""
    from cache import CacheError
    from rectom.errors import RectomError
    from rectom.printable import printable

    words = " ".join(printable(str(error)).split())
    if isinstance(error, RectomError | CacheError):
        return words
    if isinstance(error, OSError):
        return f"{words} (run again with --debug to see where)"
    return f"an unexpected {type(error).__name__}: {words} (please report it; --debug shows where)"


def _end(status: int, words: str) -> NoReturn:
    click.echo(f"rectom: {words}", err=True)
    _leave(status)


def _leave(status: int) -> NoReturn:
    """Exit; at once where Prefect was left behind, whose threads would otherwise be waited for."""
    conductor = sys.modules.get("flows.prefect_flow")
    if conductor and conductor.left_behind.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
