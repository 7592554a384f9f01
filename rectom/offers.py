"""What other packages offer, by entry points: found by name, loaded when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, TypeVar

from rectom.errors import RectomError

T = TypeVar("T")


def all_names(built_in: Sequence[str], group: str) -> list[str]:
    """The names of this package first, then those that others offer in alphabetical order."""
    others = sorted(point.name for point in entry_points(group=group))
    return list(dict.fromkeys([*built_in, *others]))


def offered(what: str, name: str, group: str, fault: type[RectomError], known: Sequence[str]) -> Any:
    """What a package offers under a name. Raises `fault`, in words about `what` it is, if none does or it is broken."""
    points = entry_points(group=group, name=name)
    if not points:
        raise fault(f"there is no {what} {name!r}; there are {', '.join(known)}")
    point = next(iter(points))
    try:
        return point.load()
    except Exception as error:
        raise fault(f"the {what} {name!r} of {point.value} cannot be loaded: {error}") from error


def checked(what: str, name: str, found: object, kind: type[T], fault: type[RectomError]) -> T:
    """What was found under a name, if it is of its kind and has that name. Raises `fault` otherwise."""
    if not isinstance(found, kind):
        raise fault(f"the {what} {name!r} is no {kind.__name__} but {type(found).__name__}")
    own: object = getattr(found, "name", None)
    if own != name:
        raise fault(f"the {what} {name!r} calls itself {own!r}; its package must offer it under that name")
    return found
