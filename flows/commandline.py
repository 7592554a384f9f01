"""The command that was last given for a run or a sweep, as its folder keeps it: `command.json`, for its owner alone.

It is apart from the manifest, so that a run that is published holds no addresses and no places of a machine. Keys are
in neither: they come from the environment.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import click
import orjson
from click.core import ParameterSource
from pydantic import AfterValidator, BaseModel, ValidationError

from flows.seal import is_sealed, seal
from flows.settings import BATCH_FILE
from rectom import whole
from rectom.errors import DataError, SettingsError
from rectom.llm.address import Address
from rectom.results.regular import read

FILE: Final = "command.json"

#: What a command reads of the environment, besides keys.
_Variable: TypeAlias = Literal["OPENAI_BASE_URL", "RECTOM_CACHE", "RECTOM_DATA", "RECTOM_HOME"]

#: Options that say how a command talks, or what it is to do anew this once.
_ASIDE: Final = frozenset({"as_json", "retry_failed", "forced"})

#: An address with what may be secret in it: user and password, query, fragment.
_ADDRESS: Final = re.compile(r"\A(https?://)(?:.*@)?([^?#]*).*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command's name and arguments, the folder that it was given in, and what the environment said for it."""

    name: str
    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, context: click.Context, *, once: bool = False) -> CommandLine:
        """The command that is being run; what holds for this once alone is in it only if it is to be given `once`."""
        assert context.command.name
        return cls.given(context.command.name, _arguments(context, frozenset() if once else _ASIDE))

    @classmethod
    def given(cls, name: str, arguments: Iterable[str]) -> CommandLine:
        """A command as if it were given here and now, without passwords in its addresses."""
        said = {name: _bare(os.environ[name]) for name in get_args(_Variable) if name in os.environ}
        if "OPENAI_BASE_URL" in said and not _is_address(said["OPENAI_BASE_URL"]):
            del said["OPENAI_BASE_URL"]  # what nobody can ask at may hold anything
        return cls(name, tuple(map(_bare, arguments)), Path.cwd(), said)

    def keep(self, run: Path) -> None:
        """Write it into the folder of a run. Raises SettingsError if there is no room.

        One with a place whose name is no text is not kept: the run goes on when it is given again.
        """
        try:
            data = orjson.dumps(
                {**asdict(self), "folder": str(self.folder)}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            )
        except orjson.JSONEncodeError:
            return
        try:
            whole.write(run / FILE, data, private=True)
            seal(run, data)
        except OSError as error:
            raise SettingsError(f"cannot write to {run}: {error.strerror}; make room and run again") from None

    @classmethod
    def kept(cls, run: Path, *, trusted: bool = False) -> CommandLine:
        """Read it back. Raises DataError, with what to do, if there is none.

        One that is not sealed by this user is refused as well, with what it would do, unless it is `trusted`.
        """
        path = run / FILE
        try:
            data = read(path)
            found = _Kept.model_validate_json(data)
        except FileNotFoundError:
            raise DataError(f"{run} does not hold its command: run it again as it was begun") from None
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise DataError(f"{path} cannot be read ({why}): run the command again as it was begun") from None
        said = {str(name): value for name, value in found.environment.items()}
        line = cls(found.name, tuple(found.arguments), found.folder, said)
        if not trusted and not is_sealed(run, data):
            raise DataError(
                f"{run} is not sealed as yours: it may be somebody else's, or of another machine, or older than seals; "
                "look at the folder, the addresses and the places of its command, and give --trust if all are right: "
                f"in {line.folder}: {line}"
            )
        return line

    def __str__(self) -> str:
        """As it would be typed."""
        said = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*said, shlex.join(["rectom", self.name, *self.arguments])])

    @contextmanager
    def circumstances(self) -> Iterator[None]:
        """Its folder, and its environment, which stays. Raises DataError if the folder is gone.

        The address of now stands, since the key is that of now as well; the places are those of then: another store
        would pay for everything again.
        """
        if not self.folder.is_dir():
            raise DataError(
                f"{self.folder} is gone, where the run was begun; begin it again where it shall go on: {self}"
            )
        for name in get_args(_Variable):
            if name.startswith("RECTOM_"):
                os.environ.pop(name, None)
        for name, value in self.environment.items():
            os.environ[name] = os.environ.get(name) or value
        with chdir(self.folder):
            yield


def _absolute(folder: Path) -> Path:
    if not folder.is_absolute():  # as `keep` writes none: it would be another one wherever the run is taken up
        raise ValueError("no absolute place")
    return folder


class _Kept(BaseModel):
    name: Literal["run", "sweep"]
    arguments: list[str]
    folder: Annotated[Path, AfterValidator(_absolute)]
    environment: dict[_Variable, str]


def _arguments(context: click.Context, aside: Collection[str]) -> Iterator[str]:
    """The parameters that the command line gave, as words."""
    for parameter in context.command.get_params(context):
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name not in aside:
            yield from _words(parameter, context.params[name])


def _words(parameter: click.Parameter, value: Any) -> Iterator[str]:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(parameter, click.Option):
            yield max(parameter.opts, key=len)
        if not (isinstance(parameter, click.Option) and parameter.is_flag):
            yield _placed(one)


def _placed(value: object) -> str:
    """A value in words, with places that hold in any folder."""
    if isinstance(value, Path):
        return str(value.absolute())
    kind, sign, folder = str(value).partition(":")
    return f"{kind}:{Path(folder).absolute()}" if sign and kind == BATCH_FILE else str(value)


def _is_address(word: str) -> bool:
    try:
        return bool(Address.parse(word))
    except SettingsError:
        return False


def _bare(word: str) -> str:
    return _ADDRESS.sub(r"\1\2", word)
