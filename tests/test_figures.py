from __future__ import annotations

import subprocess
import sys
from functools import cache
from io import BytesIO
from itertools import combinations, pairwise
from math import dist
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import style
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.text import Annotation, Text
from PIL import Image

from rectom.results.figures import (
    Ask,
    Faults,
    Line,
    Picture,
    Point,
    by_order,
    by_step,
    by_tokens,
    files,
    over_time,
)
from rectom.results.figures.labels import Place
from rectom.results.figures.picture import ladder, plain
from rectom.results.figures.sessions import sessions
from rectom.results.figures.steps import Colour, contrast
from rectom.results.figures.theme import DARK, LIGHT, SMALL, Theme
from rectom.results.figures.tokens import frontier
from rectom.results.statistics import wilson

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
STEPS = ["abstraction", "chain", "reduction", "state observability", "event observability", "revision", "answer"]
COUNTS = [
    *([0, 3, 9, 14, 22], [0, 0, 1, 1, 4], [0, 0, 0, 1, 0], [1, 12, 31, 44, 61]),
    *([0, 2, 8, 9, 11], [0, 0, 4, 7, 9], [2, 1, 0, 3, 2]),
]
FAULTS = Faults(STEPS, list("01234"), COUNTS)


def line(name: str, *shares: float, orders: str = "01234") -> Line:
    return Line(name, list(orders), shares, [wilson(share, 80) for share in shares])


def lines(count: int, orders: int) -> list[Line]:
    chance = Random(count)
    shares = [[round(chance.random(), 2) for _ in range(orders)] for _ in range(count)]
    return [line(f"method {place}", *found, orders="012345678"[:orders]) for place, found in enumerate(shares)]


def point(name: str, tokens: float, share: float, group: str = "") -> Point:
    return Point(name, tokens, share, wilson(share, 400), group)


def points() -> list[Point]:
    """Six methods with three models."""
    chance = Random(1)
    methods = {"direct": 230, "cot": 520, "simtom": 900, "timetom": 2600, "perceptom": 2100, "rectom": 4200}
    models = {"gpt-5.4-mini": (0.6, 1), "Qwen/Qwen3-32B": (0.52, 1.6), "Llama-3.1-8B-Instruct": (0.4, 0.9)}
    return [
        point(name, tokens * more, share + 0.065 * place + chance.uniform(-0.05, 0.05), model)
        for model, (share, more) in models.items()
        for place, (name, tokens) in enumerate(methods.items())
    ]


def night(count: int, *, pause: float = 3 * 3600) -> list[Ask]:
    """Calls at a steady pace, with a pause after two thirds of them."""
    chance, start = Random(count), 1.7e9
    asks = [
        Ask(start + place + pause * (3 * place >= 2 * count), chance.lognormvariate(0.8, 0.5)) for place in range(count)
    ]
    chance.shuffle(asks)
    return asks


PICTURES = {
    "order": by_order(lines(4, 5), "Hi-ToM"),
    "tokens": by_tokens(points(), "Tokens"),
    "step": by_step(FAULTS, "Faults"),
    "time": over_time(night(3000), "A night"),
    "few": over_time(night(30), "Few calls"),
    "nothing": by_step(Faults(STEPS, ["0"], [[0]] * len(STEPS)), "Nothing"),
}
EACH = pytest.mark.parametrize("name", PICTURES)


def drawn(picture: Picture, theme: Theme = LIGHT) -> Figure:
    with style.context(theme.style(), after_reset=True):
        figure = picture(theme)
        figure.draw_without_rendering()
    return figure


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def svg_texts(data: bytes) -> list[str]:
    return [text.text or "" for text in ET.fromstring(data).iter("{http://www.w3.org/2000/svg}text")]


def markers(figure: Figure) -> list[Line2D]:
    """The lines of the first axes that have markers at places."""
    return [one for one in figure.axes[0].lines if one.get_marker() not in {"None", ""} and np.size(one.get_xdata())]


def rgb(colour: str) -> Colour:
    red, green, blue = to_rgb(colour)
    return red, green, blue


# Files


@cache
def made(name: str) -> dict[str, bytes]:
    """The files of a picture, drawn once for all tests."""
    return dict(files(PICTURES[name], "it"))


@EACH
def test_a_figure_is_made_in_light_and_dark_as_svg_and_png(name: str) -> None:
    found = made(name)
    assert list(found) == ["it.svg", "it.png", "it.dark.svg", "it.dark.png"]
    for form, theme in (("it.png", LIGHT), ("it.dark.png", DARK)):
        with Image.open(BytesIO(found[form])) as image:
            assert image.size[0] == 1400
            corner = image.convert("RGB").getpixel((0, 0))
        assert corner == tuple(round(255 * part) for part in to_rgb(theme.paper))
    light, dark = (svg_texts(found[form]) for form in ("it.svg", "it.dark.svg"))
    assert light == dark
    assert light


@EACH
def test_the_same_figure_has_the_same_bytes_whatever_the_settings_of_matplotlib(name: str) -> None:
    once = made(name)
    with mpl.rc_context(
        {"font.size": 30, "svg.hashsalt": "other", "legend.borderpad": 5, "axes.titlepad": 40, "axes.labelpad": 30}
    ):
        before = dict(mpl.rcParams)
        again = dict(files(PICTURES[name], "it"))
        assert dict(mpl.rcParams) == before
    assert once == again


def test_the_bytes_of_svg_tell_neither_day_nor_program() -> None:
    data = made("order")
    assert b"Matplotlib" not in data["it.svg"]
    assert b"dc:date" not in data["it.svg"]
    with Image.open(BytesIO(data["it.png"])) as image:
        assert "Software" not in image.info


ODD = [
    "$a_b$",
    "<b>&amp;",
    "方法一",
    "\x00\x1b[31mred\ud800\ufffe",
    "_x",
    "שלום",
    "a\nb\tc",
    "",
    "🧠",
    r"\frac",
    "n" * 300,
]


def test_odd_names_are_drawn_as_they_are() -> None:
    """Warnings are errors in the tests: letters that the font lacks give none."""
    orders = [Line(name, ODD, [0.5] * len(ODD), [(0.4, 0.6)] * len(ODD)) for name in ODD]
    pictures = [
        by_order(orders, ODD[2]),
        by_tokens([point(name, 100 + 100 * place, 0.05 * place, name[::-1]) for place, name in enumerate(ODD)], ODD[0]),
        by_step(Faults(ODD, ODD, [[1] * len(ODD)] * len(ODD)), " ".join(ODD)),
    ]
    for picture in pictures:
        told = " ".join(svg_texts(dict(files(picture, "it"))["it.svg"]))
        for part in ("$a_b$", "<b>&amp;", "方法一", "[31mred", "_x", "a b c", r"\frac", "nnn"):
            assert part in told


def test_long_names_lose_their_middle() -> None:
    assert plain("rectom-with-rules", 9) == "rect…ules"
    assert plain("a  b\u200b\n c") == "a b c"
    assert plain("rectom", 6) == "rectom"


def test_matplotlib_is_not_imported_before_something_is_drawn() -> None:
    program = "import sys, rectom, rectom.results.report, flows.cli; print('matplotlib' in sys.modules)"
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == "False\n"


# What is told without colours


@THEMES
def test_text_stands_out_from_what_is_behind_it(theme: Theme) -> None:
    for text in (theme.ink, theme.soft):
        for ground in (theme.paper, theme.tint):
            assert contrast(rgb(text), rgb(ground)) >= 4.5
    assert contrast(rgb(theme.accent), rgb(theme.paper)) >= 3


@THEMES
@EACH
def test_no_text_is_small_or_of_another_colour(name: str, theme: Theme) -> None:
    shown = [text for text in drawn(PICTURES[name], theme).findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert all(float(text.get_fontsize()) >= SMALL for text in shown)
    assert {text.get_color() for text in shown} <= {theme.ink, theme.soft, "#000000", "#ffffff"}


@THEMES
def test_series_stand_out_from_the_paper_and_in_greys_from_their_neighbours(theme: Theme) -> None:
    assert all(contrast(rgb(colour), rgb(theme.paper)) >= 3 for colour in theme.series)
    assert all(contrast(rgb(one), rgb(next_)) >= 1.5 for one, next_ in pairwise(theme.series))


@THEMES
def test_no_two_series_have_a_marker_with_its_fill_or_the_dashes_of_another(theme: Theme) -> None:
    looks = [theme.look(series, group) for series in range(8) for group in range(6)]
    assert len({(look.marker, look.fill) for look in looks}) == 48
    assert len({theme.look(series).dashes for series in range(8)}) == 8
    assert len({(look.marker, look.fill) for look in map(theme.look, range(48))}) == 48


#: What is seen with no colour blindness, and without the cones for red, green and blue, in linear RGB.
#: Source: Machado, Oliveira and Fernandes 2009, IEEE TVCG 15, severity 1.0.
SIGHT: dict[str, list[list[float]]] = {
    "all": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour: str, sight: str) -> list[float]:
    """A colour in CIELAB, as it is seen."""
    light = np.array([part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)])
    seen = np.clip(np.array(SIGHT[sight]) @ light, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    x, y, z = (np.array(to_xyz) @ seen / np.array([0.95047, 1, 1.08883])).tolist()
    x, y, z = (part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in (x, y, z))
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@THEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_the_colour_blind_tell_the_series_apart(theme: Theme, sight: str) -> None:
    """By a difference of 20 in CIELAB; 2.3 is just noticed."""
    seen = [lab(colour, sight) for colour in theme.series]
    assert min(dist(one, other) for one, other in combinations(seen, 2)) >= 20


# Accuracy by order


def test_every_accuracy_is_a_point_with_its_interval() -> None:
    given_lines = lines(4, 5)
    figure = drawn(by_order(given_lines, "Hi-ToM"))
    for one, shown, bars in zip(given_lines, markers(figure), figure.axes[0].collections, strict=True):
        assert np.asarray(shown.get_ydata()).tolist() == pytest.approx([100 * share for share in one.accuracy])
        x = np.asarray(shown.get_xdata())
        assert np.abs(x - np.arange(5)).max() < 0.5
        ends = [segment.tolist() for segment in bars.get_segments()]  # type: ignore[attr-defined]
        assert np.allclose(
            ends, [[[at, 100 * low], [at, 100 * high]] for at, (low, high) in zip(x, one.intervals, strict=True)]
        )
    assert figure.axes[0].get_ylim() == (0, 100)
    assert {"method 0", "method 3", "order", "Hi-ToM"} <= set(texts(figure))


@pytest.mark.parametrize(("count", "orders"), [(1, 1), (8, 1), (8, 9), (40, 9)])
def test_bars_of_methods_stand_beside_each_other(count: int, orders: int) -> None:
    figure = drawn(by_order(lines(count, orders), "Hi-ToM"))
    places = sorted(float(x) for shown in markers(figure) for x in np.asarray(shown.get_xdata()))
    assert len(places) == count * orders
    assert all(after - before > 0.01 for before, after in pairwise(places))
    # The legend takes nothing from the axes.
    assert figure.axes[0].get_window_extent().height > 250
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.width
    assert legend.y1 <= figure.axes[0].get_window_extent().y0


def test_orders_are_numbers_or_else_names_and_only_numbers_are_joined() -> None:
    first = Line("a", ["10", "all", "2"], [0.1, 0.2, 0.3], [(0, 1)] * 3)
    figure = drawn(by_order([first, Line("b", ["false belief"], [0.5], [(0, 1)])], ""))
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["2", "10", "all", "false belief"]
    shown = {tuple(np.asarray(one.get_ydata()).tolist()): one.get_linestyle() for one in markers(figure)}
    assert {places: dashes == "None" for places, dashes in shown.items()} == {(30, 10): False, (20,): True, (50,): True}


def test_nothing_by_order_is_said() -> None:
    assert "No question was answered." in texts(drawn(by_order([], "Hi-ToM")))
    assert "No question was answered." in texts(drawn(by_tokens([], "Hi-ToM")))


# Accuracy against tokens

POINTS = st.lists(
    st.builds(
        point, st.sampled_from("abc"), st.sampled_from((0.0, 50.0, 70.0, 400.0)), st.sampled_from((0.1, 0.5, 0.9))
    ),
    min_size=1,
    max_size=8,
)


@given(POINTS)
def test_no_point_is_cheaper_and_better_than_one_of_the_frontier(some: list[Point]) -> None:
    def beats(one: Point, other: Point) -> bool:
        at_least = one.tokens <= other.tokens and one.accuracy >= other.accuracy
        return at_least and (one.tokens, one.accuracy) != (other.tokens, other.accuracy)

    expected = {(one.tokens, one.accuracy) for one in some if not any(beats(other, one) for other in some)}
    found = frontier(some)
    assert [(one.tokens, one.accuracy) for one in found] == sorted(expected)


@settings(max_examples=10, deadline=None)
@given(POINTS)
def test_points_of_all_kinds_are_drawn_inside_the_axes(some: list[Point]) -> None:
    axes = drawn(by_tokens(some, "")).axes[0]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for one in axes.lines:
        if one.get_marker() != "None":
            assert left < float(np.asarray(one.get_xdata())[0]) < right
            assert low <= float(np.asarray(one.get_ydata())[0]) <= high


def labels(figure: Figure) -> list[Annotation]:
    return [text for text in figure.axes[0].texts if isinstance(text, Annotation)]


def test_the_frontier_is_labelled_and_labels_hide_neither_points_nor_labels() -> None:
    figure = drawn(by_tokens(points(), "Hi-ToM"))
    assert {label.get_text() for label in labels(figure)} == {
        f"{best.name} · {best.group}" for best in frontier(points())
    }
    boxes = [label.get_window_extent() for label in labels(figure)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    places: list[Place] = [(one.tokens, 100 * one.accuracy) for one in points()]
    for x, y in figure.axes[0].transData.transform(places):
        assert not any(box.contains(x, y) for box in boxes)


def test_labels_of_points_close_together_do_not_overlap() -> None:
    close = [point(f"a long name {place}", 100 + place, 0.5 + 0.002 * place) for place in range(4)]
    figure = drawn(by_tokens([*close, point("far", 2000, 0.7)], ""))
    assert len(labels(figure)) == 5
    assert not any(
        one.get_window_extent().overlaps(other.get_window_extent()) for one, other in combinations(labels(figure), 2)
    )
    axes = figure.axes[0].get_window_extent()
    assert all(axes.x0 <= label.get_window_extent().x0 for label in labels(figure))


def test_what_asked_no_model_stands_at_the_left_edge() -> None:
    figure = drawn(by_tokens([point("cot", 500, 0.6), point("rules", 0, 0.7), point("rectom", 4000, 0.9)], ""))
    shown = {one.get_marker(): float(np.asarray(one.get_xdata())[0]) for one in markers(figure)}
    assert shown["s"] < 400
    assert shown["o"] == 500
    ticks = {
        tick.get_text(): float(place)
        for tick, place in zip(figure.axes[0].get_xticklabels(), figure.axes[0].get_xticks(), strict=True)
    }
    assert ticks["0\n(no model)"] == pytest.approx(shown["s"])
    assert ticks["1,000"] == 1000
    assert figure.axes[0].get_xscale() == "log"


def test_of_several_figures_a_method_looks_alike_in_each() -> None:
    among = ["direct", "cot", "rectom"]
    line = Line("rectom", ["1"], [0.5], [(0.4, 0.6)])
    (first,) = markers(drawn(by_order([line], "", among)))
    (second,) = markers(drawn(by_tokens([point("rectom", 100, 0.5, "y")], "", among, ["x", "y"])))
    assert {first.get_marker(), second.get_marker()} == {"^"}
    assert (first.get_color(), second.get_markerfacecolor()) == (LIGHT.series[2], LIGHT.paper)


def test_models_fill_the_markers_of_the_methods() -> None:
    figure = drawn(by_tokens([point(name, 100, 0.5, model) for name in "ab" for model in ("x", "y")], ""))
    one, two, three, four = markers(figure)
    assert (one.get_marker(), three.get_marker()) == ("o", "s")
    assert (two.get_marker(), four.get_marker()) == ("o", "s")
    assert one.get_markerfacecolor() == LIGHT.series[0]
    assert two.get_markerfacecolor() == LIGHT.paper
    assert {"a", "b", "x", "y", "frontier"} <= set(texts(figure))


# Where errors arise


@THEMES
def test_fields_tell_their_numbers_readably(theme: Theme) -> None:
    figure = drawn(by_step(FAULTS, "Faults"), theme)
    fields, bars = figure.axes
    told = [text.get_text() for text in fields.texts]
    assert told == [str(number) if number else "·" for row in COUNTS for number in row]
    (mesh,) = fields.collections
    for text, ground in zip(fields.texts, np.asarray(mesh.get_facecolor()), strict=True):
        red, green, blue, _ = ground.tolist()
        assert contrast(rgb(str(text.get_color())), (red, green, blue)) >= 4.5
    (container,) = [found for found in bars.containers if isinstance(found, BarContainer)]
    assert [bar.get_width() for bar in container] == [sum(row) for row in COUNTS]
    assert {"149 (57 %)", "1 (< 1 %)", "4\n(109)"} <= set(texts(figure))


@THEMES
def test_in_greys_a_field_of_more_stands_out_more(theme: Theme) -> None:
    numbers = list(range(0, 60, 6))
    figure = drawn(by_step(Faults(["answer"], list(map(str, numbers)), [numbers]), ""), theme)
    shades = [
        contrast((r, g, b), rgb(theme.paper))
        for r, g, b, _ in np.asarray(figure.axes[0].collections[0].get_facecolor())
    ]
    assert shades == sorted(shades)
    assert shades[-1] > 4


def test_nothing_wrong_is_said() -> None:
    for faults in (Faults([], [], []), Faults(["answer"], ["0"], [[0]])):
        assert "No wrong answer has a step at fault." in texts(drawn(by_step(faults, "")))


# Calls over time


def counted(figure: Figure) -> float:
    """The calls that the steps of the upper panel show, all together; calls a second."""
    shown = [patch.get_data() for patch in figure.axes[0].patches if isinstance(patch, StepPatch)]
    return sum(float((values * np.diff(edges)).sum()) for values, edges, _ in shown)


def test_many_calls_are_drawn_as_few_bins_and_none_is_lost() -> None:
    picture = over_time([*night(100_000), *[Ask(0, 1.0)] * 37, Ask(1.7e9, float("nan"))], "A night")
    figure = drawn(picture)
    unit = 60 if "calls a minute" in texts(figure) else 1
    assert counted(figure) == pytest.approx(100_000 * unit)
    assert sum(len(np.asarray(one.get_xdata())) for one in figure.axes[1].lines) <= 2 * 125
    assert any("calls without a time, left out: 38" in text for text in texts(figure))
    assert len(dict(files(picture, "it"))["it.svg"]) < 100_000


@pytest.mark.parametrize("hours", [1, 3, 8, 800])
def test_a_pause_is_cut_and_told(hours: int) -> None:
    figure = drawn(over_time(night(3000, pause=3600 * hours), "A night"))
    assert sum("pause: " in text for text in texts(figure)) == 1
    left, right = figure.axes[1].get_xlim()
    assert right - left < 1.2 * 3000
    medians = [one for one in figure.axes[1].lines if one.get_color() == LIGHT.ink]
    widths = [float(np.ptp(np.asarray(one.get_xdata()))) for one in medians]
    assert widths == pytest.approx([2000, 1000], rel=0.1)


def test_latencies_are_medians_and_percentiles_of_the_bins() -> None:
    asks = [Ask(1e9 + place, 1 + place % 100) for place in range(2000)]
    median, high = drawn(over_time(asks, "")).axes[1].lines
    assert len(np.asarray(median.get_ydata())) == 100
    assert np.asarray(median.get_ydata()).mean() == pytest.approx(50.5, rel=0.02)
    assert (np.asarray(high.get_ydata()) > np.asarray(median.get_ydata())).all()
    assert (median.get_linestyle(), high.get_linestyle()) == ("-", "--")


def test_few_calls_are_dots_of_their_own() -> None:
    asks = [Ask(1e9 + 7 * place, 0.5 + place) for place in range(40)]
    figure = drawn(over_time(asks, ""))
    (dots,) = figure.axes[1].lines
    assert np.asarray(dots.get_ydata()).tolist() == [ask.latency_s for ask in asks]
    assert "a call" in texts(figure)


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ([], "No call was sent."),
        ([Ask(0, 1), Ask(-5, 1), Ask(float("nan"), 1), Ask(1.7e12, 1)], "No call has a time."),
        ([Ask(1.7e9, 1)], "All replies came at one time."),
    ],
    ids=["none", "unknown", "one"],
)
def test_where_there_is_nothing_to_draw_it_is_said(asks: list[Ask], said: str) -> None:
    assert said in texts(drawn(over_time(asks, "")))


@pytest.mark.parametrize(
    ("seconds", "form", "last"),
    [
        (0.021, "s", "0.02"),
        (100, "s", "100"),
        (600, "min", "10"),
        (150, "min:s", "2:30"),
        (8000, "h:min", "2:00"),
        (30 * 3600, "h", "30"),
    ],
)
def test_times_are_told_as_a_clock_does(seconds: float, form: str, last: str) -> None:
    axes = drawn(over_time([Ask(1e9 + seconds * place / 999, 1) for place in range(1000)], "")).axes[1]
    assert axes.get_xlabel() == f"time since the first reply ({form})"
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks[-1] == last
    assert 3 <= len(ticks) <= 9
    assert len(set(ticks)) == len(ticks)


def test_a_session_without_round_times_has_a_tick_where_it_begins() -> None:
    hours = [9.2 * place / 999 for place in range(1000)] + [20.5 + place / 5000 for place in range(1000)]
    axes = drawn(over_time([Ask(1e9 + 3600 * hour, 1) for hour in hours], "")).axes[1]
    assert axes.get_xlabel() == "time since the first reply (h:min)"
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["0:00", "2:00", "4:00", "6:00", "8:00", "20:30"]


GAPS = st.lists(st.sampled_from((0.0, 0.001, 1.0, 30.0, 600.0, 3600.0, 86400.0)), max_size=60)


@given(GAPS)
def test_sessions_hold_every_reply_once_and_stand_beside_each_other(gaps: list[float]) -> None:
    times = np.cumsum([0.0, *gaps])
    found = sessions(times)
    assert [place for session in found for place in range(session.first, session.last)] == list(range(len(times)))
    for session in found:
        cells = session.cells(times)
        assert len(cells) == session.bins >= 1
        assert [place for first, last in cells for place in range(first, last)] == list(
            range(session.first, session.last)
        )
        places = session.place(times[session.first : session.last])
        slack = 1e-6 * session.width
        assert session.edges[0] - slack <= places.min()
        assert places.max() <= session.edges[-1] + slack
    for before, after in pairwise(found):
        assert before.left + before.width < after.left
        assert after.start - before.end > 60


@settings(max_examples=15, deadline=None)
@given(GAPS, st.floats(allow_nan=True, allow_infinity=True))
def test_calls_at_any_times_are_drawn(gaps: list[float], latency: float) -> None:
    at = np.cumsum([1.7e9, *gaps]).tolist()
    for many in (1, 250):
        asks: list[Any] = [Ask(time, latency if place else 1.0) for time in at for place in range(many)]
        drawn(over_time(asks, ""))


@given(st.floats(1e-3, 1e6), st.floats(1, 1e5))
def test_the_ladder_spans_what_it_is_asked_to(low: float, ratio: float) -> None:
    rungs = list(ladder(low, low * ratio))
    assert rungs[0] <= low
    assert rungs[-1] >= low * ratio
    assert all(rung < low * ratio for rung in rungs[:-1])
    assert all(rung > low for rung in rungs[1:])
