"""How a benchmark joins RecToM: one object that says what it is called, where it comes from, and how it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from rectom.benchmarks.base import Benchmark, digest_of
from rectom.errors import DataError


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a benchmark, or of a model, as its authors publish it.

    `file` is its path in the benchmark's folder; `addresses` where it is to be had, the best first; `sha256` (hex)
    and `size` (bytes) are of what lies there, and empty and 0 where they are not known. Where that is an archive,
    `.tar.gz` or `.zip`, `member` is the file's path in it. Raises DataError if `file` leads out of the folder, or there
    is no address.
    """

    file: str
    addresses: tuple[str, ...]
    sha256: str
    size: int
    member: str = ""

    def __post_init__(self) -> None:
        path = PurePosixPath(self.file)
        if not path.name or path.is_absolute() or ".." in path.parts:
            raise DataError(f"the file {self.file!r} of a benchmark does not lie in its folder; give a path below it")
        if not self.addresses:
            raise DataError(f"the file {self.file} of a benchmark has no address; give one, or leave the source out")


class Files:
    """The files of one benchmark on this machine: in the folder `where`, or `where` is itself the only one."""

    def __init__(self, name: str, where: Path) -> None:
        self.name = name
        self.where = where
        self._read: dict[str, str] = {}  # the sha256 of what was read, by the name asked for

    @property
    def digest(self) -> str:
        """The sha256 of everything read so far, in hexadecimal; of one file it is the file's own."""
        if len(self._read) == 1:
            return next(iter(self._read.values()))
        return sha256(repr(sorted(self._read.items())).encode()).hexdigest()

    def path(self, *names: str) -> Path:
        """Where the first of some files is that there is. Raises DataError, with what to do, if there is none."""
        return self._find(names)[1]

    def _find(self, names: Sequence[str]) -> tuple[str, Path]:
        for name in names:
            for path in self._places(name):
                if path.is_file():
                    return name, path
        raise DataError(
            f"no {self.name} data ({' or '.join(names)}) at {self.where}; give --data PATH, or set RECTOM_DATA to the "
            f"file or its folder, or run: rectom data get {self.name}"
        )

    def read(self, *names: str) -> bytes:
        """The bytes of the first of some files that there is. Raises DataError if there is none or it is unreadable."""
        name, path = self._find(names)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; give --data PATH") from None
        self._read[name] = digest_of(data)
        return data

    def _places(self, name: str) -> list[Path]:
        if self.where.is_file():
            # The path given is the file that is read first; others lie beside it.
            first = next(iter(self._read), name)
            return [self.where if name == first else self.where.parent / Path(name).name]
        return [self.where / self.name / name, self.where / name]


@dataclass(frozen=True)
class Adapter:
    """A benchmark as RecToM knows it.

    `load` reads one of the `subsets` (each with a line that says what it is) from the files. `licence` is that of the
    data. `audit` examines the labels and returns what it found, a line each. A package offers an adapter under the
    entry point group `rectom.benchmarks`. Raises DataError if `default` is no subset.
    """

    name: str
    title: str
    load: Callable[[Files, str], Benchmark]
    subsets: Mapping[str, str]
    default: str
    licence: str
    sources: tuple[Source, ...] = ()
    audit: Callable[[Files], list[str]] | None = field(default=None)

    def __post_init__(self) -> None:
        if self.default not in self.subsets:
            raise DataError(f"{self.name} has no subset {self.default!r}, which is to be its default")

    def open(self, subset: str, where: Path | None = None) -> Benchmark:
        """Read a subset from the files at `where`, or where RECTOM_DATA or the user's data folder has them.

        Raises DataError for an unknown subset, and for missing and wrong files.
        """
        if subset not in self.subsets:
            raise DataError(f"{self.name} has no subset {subset!r}; it has {', '.join(self.subsets)}")
        return self.load(self.files(where), subset)

    def files(self, where: Path | None = None) -> Files:
        """The benchmark's files on this machine."""
        return Files(self.name, where or data_place())


def data_place() -> Path:
    """Where benchmark files are looked for: what RECTOM_DATA says, a file or a folder, or else the user's folder."""
    said = os.environ.get("RECTOM_DATA")
    return Path(said).expanduser() if said else data_folder()


def data_folder() -> Path:
    """Where the user's benchmark files lie: `$XDG_DATA_HOME/rectom`, usually `~/.local/share/rectom`."""
    said = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = said if said.is_absolute() else Path.home() / ".local" / "share"
    return base / "rectom"


#: The entry point group in which other packages offer adapters.
GROUP: Final = "rectom.benchmarks"
