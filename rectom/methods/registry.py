"""The methods there are: those of this package, and those that other packages offer."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from rectom.errors import SettingsError
from rectom.methods.base import GROUP, Kind

#: The methods of this package besides RecToM itself, each `KIND` in the module of its name.
BUILT_IN: Final = ("direct", "cot", "sc", "simtom", "timetom", "perceptom")


def names() -> list[str]:
    """Every method's name: this package's first, then the others in alphabetical order."""
    offered = sorted(point.name for point in entry_points(group=GROUP))
    return list(dict.fromkeys([*BUILT_IN, *offered]))


def kind(name: str) -> Kind:
    """A method by its name. Raises SettingsError, with the known names, if there is none or it cannot be loaded."""
    if name in BUILT_IN:
        found = import_module(f"rectom.methods.{name}").KIND
    else:
        points = entry_points(group=GROUP, name=name)
        if not points:
            raise SettingsError(f"there is no method {name!r}; there are rectom, rectom-lite, {', '.join(names())}")
        point = next(iter(points))
        try:
            found = point.load()
        except Exception as error:
            raise SettingsError(f"the method {name!r} of {point.value} cannot be loaded: {error}") from error
    if not isinstance(found, Kind):
        raise SettingsError(f"the method {name!r} is no Kind but {type(found).__name__}")
    if found.name != name:
        raise SettingsError(f"the method {name!r} calls itself {found.name!r}; its package must offer it by that name")
    return found


def chosen(text: str) -> tuple[Kind, Mapping[str, str]]:
    """A method and its options, as the command line writes them: `timetom:solver=off`, `sc:n=10,seed=1`.

    Raises SettingsError for an unknown method, and for options that it does not have.
    """
    name, _, given = text.partition(":")
    method = kind(name)
    pairs = dict(_pair(text, part) for part in given.split(",") if part)
    if unknown := pairs.keys() - method.options.keys():
        known = ", ".join(f"{option}={usual}" for option, usual in method.options.items()) or "none"
        raise SettingsError(f"--method {text}: {name} has no option {min(unknown)!r}; it has {known}")
    return method, {**method.options, **pairs}


def _pair(text: str, part: str) -> tuple[str, str]:
    name, sign, value = part.partition("=")
    if not sign or not name or not value:
        raise SettingsError(f"--method {text}: write options as NAME=VALUE, such as timetom:solver=off")
    return name.strip(), value.strip()
