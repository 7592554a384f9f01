"""Calls and their latency over the time of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from rectom.results.figures.picture import Picture, ladder, legend, level, sentence, sheet
from rectom.results.figures.sessions import Numbers, Session, sessions
from rectom.results.figures.theme import SMALL, Theme

#: So many calls are drawn one by one; of more, the median and the 95th percentile of each bin.
_FEW: Final = 200
#: In seconds: between what latencies are drawn, and what is no time of a reply any more.
_LEAST, _MOST, _NEVER = 1e-3, 1e6, 1e11
#: In how many seconds calls are counted.
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600}
#: The parts of a clock, in seconds.
_CLOCK: Final = (("h", 3600), ("min", 60), ("s", 1))
#: In seconds: what may be between two ticks.
_STEPS: Final = (
    *ladder(1e-4, 0.5),
    *(float(many * unit) for unit in (1, 60) for many in (1, 2, 5, 10, 20, 30)),
    *(3600 * many for many in ladder(1, 1e7)),
)
#: The percentiles of the latency.
_SHARES: Final = (50, 95)
#: Places on the axis, and parallel to them the latencies of each line that is drawn.
_Drawn: TypeAlias = tuple[Numbers, list[Numbers]]
#: How many ticks there are, about; the share of the axis that is between two; the share of a cut that has a label.
_TICKS, _ROOM, _LABELLED = 7, 0.06, 0.02


@dataclass(frozen=True, slots=True)
class Ask:
    """A call: when its reply came, in seconds since 1970, 0 where that is not known; and its latency in seconds."""

    at: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls by the time of their replies: `times` in seconds since the first, and parallel to them `latency_s`.

    `unknown` is how many have no time.
    """

    times: Numbers
    latency_s: Numbers
    unknown: int

    @property
    def are_few(self) -> bool:
        """Whether each is drawn."""
        return len(self.times) <= _FEW

    @classmethod
    def of(cls, asks: Sequence[Ask]) -> _Calls:
        at, latency = np.array([ask.at for ask in asks]), np.array([ask.latency_s for ask in asks])
        known = np.flatnonzero((at > 0) & (at < _NEVER) & np.isfinite(latency))
        known = known[np.argsort(at[known], kind="stable")]
        times = at[known] - at[known[:1]] if len(known) else at[known]
        return cls(times, np.clip(latency[known], _LEAST, _MOST), len(asks) - len(known))


def over_time(asks: Sequence[Ask], title: str) -> Picture:
    """How many calls ended, and how long they took, since the first reply; pauses are cut.

    Where there are many calls, bins of them are drawn, about 120 in all.
    """
    calls = _Calls.of(asks)
    if not len(calls.times):
        return sentence(title, "No call has a time." if asks else "No call was sent.")
    if not calls.times[-1]:
        return sentence(title, "All replies came at one time.")
    return partial(_draw, calls, title)


def _draw(calls: _Calls, title: str, theme: Theme) -> Figure:
    handles = _handles(theme, few=calls.are_few)
    figure = sheet(title, 4.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    worked = sessions(calls.times)
    _rates(above, calls, worked, theme)
    _latencies(below, [(_each if calls.are_few else _binned)(calls, session) for session in worked], handles.values())
    _cuts((above, below), worked, theme)
    _ticks(below, worked, calls)
    legend(figure, list(handles.items()))
    return figure


def _handles(theme: Theme, *, few: bool) -> dict[str, Line2D]:
    """What is drawn of the latency, and how."""
    if few:
        return {"a call": Line2D([], [], color=theme.accent, linestyle="none", marker="o", markersize=3)}
    return {
        "median": Line2D([], [], color=theme.ink, linewidth=1.8),
        "95th percentile": Line2D([], [], color=theme.series[1], linewidth=1, linestyle=(0, (2, 1))),
    }


def _rates(axes: Axes, calls: _Calls, worked: Sequence[Session], theme: Theme) -> None:
    counted = [
        np.array([last - first for first, last in session.cells(calls.times)]) * session.bins / session.width
        for session in worked
    ]
    peak = max(float(rates.max()) for rates in counted)
    unit = next((unit for unit, seconds in _UNITS.items() if peak * seconds >= 2), "hour")
    for session, rates in zip(worked, counted, strict=True):
        axes.stairs(rates * _UNITS[unit], session.edges, fill=True, color=theme.accent)
    axes.set_ylim(0, 1.08 * peak * _UNITS[unit])
    axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:,g}")
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(f"calls a {unit}")
    level(axes)


def _each(calls: _Calls, session: Session) -> _Drawn:
    replies = slice(session.first, session.last)
    return session.place(calls.times[replies]), [calls.latency_s[replies]]


def _binned(calls: _Calls, session: Session) -> _Drawn:
    cells = session.cells(calls.times)
    full = [place for place, (first, last) in enumerate(cells) if last > first]
    told = np.array([np.percentile(calls.latency_s[slice(*cells[place])], _SHARES) for place in full])
    return ((session.edges[:-1] + session.edges[1:]) / 2)[full], list(told.T)


def _latencies(axes: Axes, drawn: Sequence[_Drawn], handles: Iterable[Line2D]) -> None:
    for x, lines in drawn:
        for y, handle in zip(lines, handles, strict=True):
            line = Line2D(x, y)
            line.update_from(handle)
            if len(x) == 1:
                line.set(marker="o", markersize=3)
            axes.add_line(line)
    seen = np.concatenate([y for _, lines in drawn for y in lines])
    low, high = float(seen.min()) / 1.15, float(seen.max()) * 1.15
    around = list(ladder(low, high))
    rungs = [rung for rung in around if low <= rung <= high]
    if len(rungs) < 2:
        low, high, rungs = around[0], around[-1], around
    shown = rungs if len(rungs) <= _TICKS else [rung for rung in rungs if log10(rung).is_integer()]
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(shown, [f"{rung:,g}" for rung in shown])
    axes.set_ylim(low, high)
    axes.set_ylabel("latency (s)")
    level(axes)


def _cuts(panels: Sequence[Axes], worked: Sequence[Session], theme: Theme) -> None:
    """Mark the pauses, and say how long they were where there is room."""
    whole = worked[-1].left + worked[-1].width
    for before, after in pairwise(worked):
        left, right = before.left + before.width, after.left
        for axes in panels:
            axes.axvspan(left, right, facecolor=theme.tint, edgecolor=theme.rule, hatch="////", linewidth=0)
        if (right - left) / whole >= _LABELLED:
            text = f"pause: {_told(after.start - before.end)}"
            panels[0].text(
                (left + right) / 2,
                0.5,
                text,
                transform=panels[0].get_xaxis_transform(),
                rotation=90,
                ha="center",
                va="center",
                fontsize=SMALL,
                bbox={"facecolor": theme.tint, "edgecolor": "none", "pad": 1},
            )
    panels[-1].set_xlim(-0.01 * whole, 1.01 * whole)


def _ticks(axes: Axes, worked: Sequence[Session], calls: _Calls) -> None:
    """Ticks at round times since the first reply, or where a session begins if it has none."""
    whole = worked[-1].left + worked[-1].width
    least = sum(session.width for session in worked) / _TICKS
    step = next(step for step in _STEPS if step >= least and (step >= 1 or calls.times[-1] < 120))
    shown: dict[float, float] = {}
    for session in worked:
        for time in _round_times(session, step):
            place = session.left + time - session.start
            if not shown or place - max(shown) >= _ROOM * whole:
                shown[place] = time
    form, texts = _clock(list(shown.values()), float(calls.times[-1]), step)
    axes.set_xticks(list(shown), texts)
    unknown = f"\ncalls without a time, left out: {calls.unknown:,}" if calls.unknown else ""
    axes.set_xlabel(f"time since the first reply ({form}){unknown}")


def _round_times(session: Session, step: float) -> list[float]:
    first, last = ceil(session.start / step), floor(session.end / step)
    return [step * many for many in range(first, last + 1)] or [session.start]


def _clock(times: Sequence[float], whole: float, step: float) -> tuple[str, list[str]]:
    """Times as a clock shows them that is as fine as the step, and what its parts are: `h:min`."""
    first = next(place for place, (_, size) in enumerate(_CLOCK) if whole >= 2 * size or size == 1)
    last = next(place for place, (_, size) in enumerate(_CLOCK) if step >= size or size == 1)
    if _CLOCK[last][1] == 3600 and any(round(time / 60) % 60 for time in times):
        last += 1
    names, sizes = zip(*_CLOCK[first : max(first, last) + 1], strict=True)
    return ":".join(names), [f"{time:.4g}" if sizes == (1,) else _shown(time, sizes) for time in times]


def _shown(time: float, sizes: Sequence[int]) -> str:
    """A time as 7:05, its parts in seconds of these sizes."""
    rest, parts = round(time / sizes[-1]) * sizes[-1], list[str]()
    for size in sizes:
        part, rest = divmod(rest, size)
        parts.append(f"{part:02}" if parts else str(part))
    return ":".join(parts)


def _told(seconds: float) -> str:
    """A while in words: `45 s`, `12 min`, `3.2 h`, `4.5 days`."""
    for unit, size in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 120 * size:
            return f"{seconds / size:.0f} {unit}" if size < 3600 else f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:,.1f} days"
