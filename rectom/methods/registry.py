"""The methods there are: those of this package, and those that other packages offer."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from rectom.errors import SettingsError
from rectom.methods.base import GROUP, Kind
from rectom.offers import all_names, checked, offered

#: The methods of this package besides RecToM itself, each `KIND` in the module of its name.
BUILT_IN: Final = ("direct", "cot", "sc", "simtom", "timetom", "perceptom")


def names() -> list[str]:
    """Every method's name: this package's first, then the others in alphabetical order."""
    return all_names(BUILT_IN, GROUP)


def kind(name: str) -> Kind:
    """A method by its name. Raises SettingsError, with the known names, if there is none or it cannot be loaded."""
    if name in BUILT_IN:
        found = import_module(f"rectom.methods.{name}").KIND
    else:
        found = offered("method", name, GROUP, SettingsError, ["rectom", "rectom-lite", *names()])
    return checked("method", name, found, Kind, SettingsError)


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
