from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from rich.console import Console

from rectom import grammar
from rectom.benchmarks.generate import Recipe
from rectom.benchmarks.hitom import Row
from rectom.codec import events_to_json, history_to_json, perspective_to_json, states_from_json
from rectom.errors import DataError
from rectom.events import Event
from rectom.facts import Fact, printed, value_of
from rectom.history import History
from rectom.perspective import build_global
from rectom.reader.rules import RuleReader
from rectom.results.drawing import Column, Drawing, Mark, _short
from rectom.results.outcome import Trace
from rectom.results.show import table
from rectom.story import Story
from tests.conftest import generated, recipes

LINES = (
    "Anne, Bob and Cy entered the hall.",
    "The ball is in the red_box.",
    "Anne exited the hall.",
    "Bob moved the ball to the green_treasure_chest.",
    "Bob exited the hall.",
    "Cy exited the hall.",
    "Anne, Bob and Cy entered the waiting_room.",
    "Cy publicly claimed that the ball is in the blue_bag.",
)
CALL = {
    "step": "observe_states",
    "key": "0123456789abcdef" * 4,
    "source": "shared",
    "prompt": 570,
    "completion": 107,
    "reasoning": 0,
    "cached": 0,
    "latency_s": 0.2805,
    "outcome": "ok",
}


def told(
    question: str, lines: Sequence[str] = LINES, *, events: Sequence[Event] | None = None, chain: Sequence[str] = ()
) -> Trace:
    """The trace that the rule reader leaves of a question; of any events, if they and the chain are given."""
    reader, thing = RuleReader(), ""
    if events is None:
        events = grammar.read_story(Story("story", tuple(lines)))
        chain, thing = grammar.read_question(question)
    perspectives = [build_global(events)]
    for name in chain:
        perspectives.append(reader.perspective(perspectives[-1], name))
    final = perspectives[-1].final
    return Trace(
        id="q1",
        story_id="story",
        question=question,
        choices=["red_box", "green_treasure_chest", "blue_bag"],
        lines=list(lines),
        chain=list(chain),
        reduced=grammar.reduced_question(thing) if thing else "Is it there?",
        events=events_to_json(events),
        world=perspective_to_json(perspectives[0]),
        perspectives=[perspective_to_json(perspective) for perspective in perspectives[1:]],
        final=printed(final),
        predicted=value_of(final, "in", thing),
        gold="red_box",
    )


def of_row(row: Row) -> Trace:
    """The trace of a generated question."""
    trace = told(row.question, Story.parse(row.story).lines)
    return dataclasses.replace(trace, id=str(row.sample_id), choices=list(row.choices), gold=row.answer)


def stopped(trace: Trace, step: str, *kept: str) -> Trace:
    """The trace of a question that failed at a step, when it had only what is named."""
    names = {"chain", "reduced", "events", "world", "perspectives", "final", "predicted"}
    lost: dict[str, Any] = dict.fromkeys(names - set(kept))
    return dataclasses.replace(trace, failure={"step": step, "why": "no [entry] for line 3"}, **lost)


def screen(trace: Trace, width: int = 100, method: str = "rectom") -> str:
    console = Console(width=width, color_system=None, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(table(trace.to_json(), method))
    return shown.get()


def squeezed(text: str) -> str:
    return "".join(text.split())


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text))


def marks(column: Column) -> str:
    return "".join(cell.mark for cell in column.cells)


# How a trace is drawn.


def test_a_column_tells_how_its_holder_came_by_each_state() -> None:
    drawing = Drawing.of(told("Where does Anne think Bob thinks the ball is?").to_json())
    world, anne, bob = drawing.columns
    assert [column.holder for column in drawing.columns] == ["World", "Anne", "Bob"]
    assert drawing.thing == "ball"
    assert marks(world) == " " * len(LINES)
    # She sees until she leaves, learns of the exits, does not see the move, and does believe who left after her.
    assert marks(anne) == "ooh.hhh!"
    # Bob is still there when she has gone, but she cannot tell what he sees.
    assert marks(bob).startswith("ooh.")
    assert [cell.where for cell in anne.cells[:3]] == ["hall", "hall", ""]
    assert [cell.holds for cell in anne.cells[1:4]] == [("red_box",)] * 3
    assert world.cells[3].changes == ("+green_treasure_chest", "-red_box")
    assert anne.cells[7].changes == ("+blue_bag", "-red_box")
    assert world.answer == ("green_treasure_chest",)
    assert anne.answer == ("blue_bag",)


def without_states() -> Trace:
    """A trace of histories: Anne's and, as she has it, Bob's."""
    trace = told("Where does Anne think Bob thinks the ball is?")
    whole = History(grammar.read_story(Story("story", LINES)))
    anne = whole.seen_by("Anne", {1, 2, 3, 5, 6, 7, 8})
    bob = anne.seen_by("Bob", {2, 3})
    return dataclasses.replace(
        trace,
        world=history_to_json(whole),
        perspectives=[history_to_json(anne), history_to_json(bob)],
        final=["2 +in(ball,red_box)", "3 -in_room(Anne,hall)"],
        predicted="red_box",
    )


def test_a_history_shows_which_events_are_in_it() -> None:
    drawing = Drawing.of(without_states().to_json())
    assert drawing.histories
    world, anne, bob = drawing.columns
    assert [column.chain for column in drawing.columns] == [(), ("Anne",), ("Anne", "Bob")]
    assert [marks(column) for column in drawing.columns] == [" " * 8, "ooo.oooo", ".oo....."]
    assert [cell.holds for cell in anne.cells[:5]] == [
        ("events 1",),
        ("events 1-2",),
        ("events 1-3",),
        ("events 1-3",),
        ("events 1-3, 5",),
    ]
    assert bob.cells[0].holds == ()
    assert (world.answer, anne.answer, bob.answer) == (("events 1-8",), ("events 1-3, 5-8",), ("events 2-3",))
    assert bob.final == bob.answer


def test_histories_that_were_not_built_are_named() -> None:
    trace = dataclasses.replace(without_states(), perspectives=None, final=None, predicted=None)
    drawing = Drawing.of(trace.to_json())
    assert drawing.missing == ("Anne", "Bob")
    assert drawing.histories
    assert not Drawing.of(told("Where is the ball really?").to_json()).histories


def test_the_screen_shows_histories_with_their_events_and_a_legend_of_their_own() -> None:
    text = screen(without_states(), 120)
    for words_ in ("Final history", "events 1-3, 5-8", "+in(ball,green_treasure_chest)", "the event is in the history"):
        assert words_ in text
    assert "inherited" not in text
    assert "Final state" not in text


def test_presence_is_told_by_number_in_a_cell_and_by_name_in_the_final_state() -> None:
    world = Drawing.of(told("Where is the ball really?").to_json()).columns[0]
    assert world.cells[0].changes == ("+3 @hall",)
    assert world.cells[2].changes == ("-Anne @hall",)
    assert world.final == ("green_treasure_chest", "Anne, Bob, Cy @waiting_room")


def test_numbers_in_facts_are_sorted_as_numbers() -> None:
    facts = [Fact("heard", ("Ann", str(number))) for number in (12, 4, 101)]
    assert _short(facts, None) == ["heard(Ann,4)", "heard(Ann,12)", "heard(Ann,101)"]
    said = [Fact("said", (who, line)) for who, line in (("Ann", "12"), ("Ann", "4"), ("Bob", "5"))]
    assert _short(said, None) == ["line 4", "line 5", "line 12"]


def test_events_are_drawn_in_the_notation_of_the_paper() -> None:
    events = Drawing.of(told("Where is the ball really?").to_json()).events
    assert events[0] == ("+in_room({Anne,Bob,Cy},hall)",)
    assert events[3] == ("+in(ball,green_treasure_chest)", "-in(ball,red_box)")
    assert events[7] == ("public_claim(Cy,in(ball,blue_bag))",)


def test_a_question_that_names_no_object_shows_where_everything_is() -> None:
    trace = dataclasses.replace(told("Where is the ball really?"), question="Is it there?", reduced="Is it?")
    drawing = Drawing.of(trace.to_json())
    assert drawing.thing is None
    assert drawing.columns[0].answer == ("ball in green_treasure_chest",)


def test_who_thinks_about_himself_has_a_column_of_his_own_name_only() -> None:
    trace = told("Where does Anne think Anne thinks the ball is?")
    assert [column.chain for column in Drawing.of(trace.to_json()).columns] == [(), ("Anne",), ("Anne",)]


@given(recipes())
@settings(max_examples=25)
def test_every_cell_shows_the_state_of_its_perspective(recipe: Recipe) -> None:
    trace = of_row(generated(recipe)[-1])
    drawing = Drawing.of(trace.to_json())
    assert drawing.columns[-1].answer == (trace.gold,)
    for column, data in zip(drawing.columns, [trace.world, *(trace.perspectives or ())], strict=True):
        assert data
        assert drawing.thing
        where = [value_of(state, "in", drawing.thing) for state in states_from_json(data)]
        assert [cell.holds for cell in column.cells] == [(place,) if place else () for place in where]
        assert all(not cell.changes for cell in column.cells if cell.mark is Mark.INHERITED)


@pytest.mark.parametrize(
    "damage",
    [
        {"world": {"chain": []}},
        {"events": [{"kind": "other"}]},
        {"events": [{"kind": "persistent", "added": ["in(("], "removed": []}]},
        {"lines": None},
        {"perspectives": [3]},
    ],
)
def test_a_damaged_trace_is_refused_in_one_line(damage: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"^the trace of question q1 cannot be read .* run the same command again"):
        table({**told("Where does Anne really think the ball is?").to_json(), **damage})


def with_rules(question: str = "Where does Anne really think the ball is?") -> Trace:
    """A trace in which Anne observed nothing, beside what the rules make of the question."""
    trace = told(question)
    assert trace.perspectives
    blind = {**trace.perspectives[0], "deltas": [[[], []]] * 8, "events": [False] * 8, "vantage": [None] * 8}
    names = ("chain", "reduced", "events", "world", "perspectives", "final", "predicted")
    fault = {"step": "state observability", "found": "nothing", "expected": "in_room(Anne,hall)", "by": "oracle"}
    return dataclasses.replace(
        trace,
        perspectives=[blind, *trace.perspectives[1:]],
        oracle={name: getattr(trace, name) for name in names},
        fault={**fault, "line": 1, "who": "Anne"},
    )


def test_a_column_is_set_against_the_rules_own_of_the_same_chain() -> None:
    drawing = Drawing.of(with_rules("Where does Anne think Bob thinks the ball is?").to_json())
    world, anne, bob = drawing.columns
    assert (drawing.expected(world), drawing.expected(bob)) == (world, bob)
    expected = drawing.expected(anne)
    assert expected
    assert [cell.holds for cell in anne.cells] == [()] * 8
    assert [cell.holds for cell in expected.cells[1:]] == [("red_box",)] * 6 + [("blue_bag",)]
    assert Drawing.of(told("Where is the ball really?").to_json()).expected(world) is None


def test_a_column_of_another_chain_length_or_kind_has_none_beside_it() -> None:
    trace = with_rules()
    assert trace.oracle
    (anne,), world = trace.oracle["perspectives"], trace.oracle["world"]
    empty: dict[str, Any] = {"deltas": [], "events": [], "vantage": []}
    others: list[dict[str, Any]] = [
        {"perspectives": [{**anne, "chain": ["Bob"]}]},
        {"events": [], "world": {**world, **empty}, "perspectives": [{**anne, **empty}]},
        {"world": without_states().world, "perspectives": [{**(without_states().world or {}), "chain": ["Anne"]}]},
    ]
    for other in others:
        drawing = Drawing.of(dataclasses.replace(trace, oracle={**trace.oracle, **other}).to_json())
        assert drawing.rules
        assert len(drawing.rules.columns) == 2
        assert drawing.expected(drawing.columns[1]) is None


# What the terminal shows.


def test_order_0_has_the_world_alone() -> None:
    shown = screen(told("Where is the ball really?"))
    assert "Where is the ball really?" in shown
    assert "thinks" not in shown
    assert "green_treasure_chest, wrong: the label is red_box" in shown
    assert "No model was asked." in shown


def test_a_method_without_perspectives_is_not_shown_to_lack_them() -> None:
    plain = stopped(told("Where is the ball really?"), "answer")
    trace = dataclasses.replace(plain, failure=None, predicted="red_box")
    text = screen(trace, method="cot")
    assert not any(word in text for word in ("Chain", "Reduced", "observed", "inherited"))
    assert "red_box, right" in text
    assert "Chain" in screen(trace)


def test_options_that_are_sentences_have_a_line_each_and_are_quoted_in_the_verdict() -> None:
    options = ["Noor believes it is oat milk.", "Noor believes it is almond milk."]
    trace = dataclasses.replace(
        told("Where is the ball really?"), choices=options, predicted=options[0], gold=options[1]
    )
    shown = screen(trace)
    assert any(line.strip().split(maxsplit=1) == ["Choices", options[0]] for line in shown.splitlines())
    assert any(line.strip() == options[1] for line in shown.splitlines())
    assert f"“{options[0]}”, wrong: the label is “{options[1]}”" in " ".join(shown.split())


def test_order_1_can_be_read_without_colour() -> None:
    shown = screen(told("Where does Anne really think the ball is?"))
    assert "World → Anne" in shown
    for seen in (
        "o red_box",
        "from hall",
        "h red_box",
        ". red_box",
        "! blue_bag",
        "+blue_bag",
        "-red_box",
        "-Anne @hall",
    ):
        assert seen in shown
    assert "public_claim(Cy,in(ball,blue_bag))" in squeezed(shown)
    assert "o observed" in shown
    assert "Final state" in shown


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("order", [0, 4, 8])
def test_it_fits_the_console_and_shows_every_column_and_line(order: int, width: int) -> None:
    trace = of_row(generated(Recipe(stories=1, chapters=2, max_order=8, seed=3))[order])
    shown = screen(dataclasses.replace(trace, calls=[CALL]), width)
    assert max(map(len, shown.splitlines())) <= width
    assert trace.chain is not None
    assert len(trace.chain) == order
    # No name is broken within a word: every word is one that the widest console shows.
    assert words(shown) <= words(screen(dataclasses.replace(trace, calls=[CALL]), 400))
    assert all(name in shown for name in trace.chain)
    assert "…" not in shown
    assert "observe_states" in shown
    assert str(len(trace.lines)) in shown


def test_a_step_that_failed_early_leaves_the_story_and_the_failure() -> None:
    shown = screen(stopped(told("Where does Anne think Bob thinks the ball is?"), "abstract"))
    assert "abstract: no [entry] for line 3" in shown
    assert "not read" in shown
    assert "none; the label is red_box" in shown
    assert LINES[4] in shown
    assert "World" not in shown


def test_a_step_that_failed_late_leaves_the_world_and_names_what_was_not_built() -> None:
    trace = stopped(
        told("Where does Anne think Bob thinks the ball is?"), "revise", "chain", "reduced", "events", "world"
    )
    shown = screen(trace)
    assert "Not built: the perspectives of Anne, Bob." in shown
    assert "+green_" in shown
    assert "revise: no [entry]" in shown


def test_an_answer_that_failed_keeps_its_perspectives() -> None:
    whole = told("Where does Anne really think the ball is?")
    trace = dataclasses.replace(whole, predicted=None, failure={"step": "answer", "why": "no option"})
    shown = screen(trace)
    assert "Not built" not in shown
    assert "! blue_bag" in shown
    assert "answer: no option" in shown


def test_markup_and_escapes_of_a_story_are_shown_as_they_are() -> None:
    lines = ("[bold red]Anne[/] entered the hall.", *LINES[1:])
    events = grammar.read_story(Story("story", LINES))
    shown = screen(told("Where is the [link=x]ball[/link]?", lines, events=events))
    assert "[bold red]Anne[/]" in squeezed(shown).replace("boldred", "bold red")
    assert "[link=x]ball[/link]" in shown


def test_nothing_of_a_trace_steers_the_terminal() -> None:
    steering = "\x1b]0;taken\x07"
    odd = dataclasses.replace(
        told("Where does Anne really think the ball is?"),
        lines=[f"{line}{steering}" for line in LINES],
        id=f"[/x]{steering}",
        question=f"Where?{steering}",
        predicted=f"the box{steering}",
        final=[f"in(ball,box{steering})"],
        failure={"step": "answer", "why": f"no{steering}"},
        fault={"step": "answer", "line": 1, "who": steering, "found": steering, "expected": steering, "by": "rules"},
        calls=[{**CALL, "step": f"answer{steering}", "key": f"{steering}key", "prompt": f"[/]{steering}"}],
    )
    shown = screen(odd)
    assert "Question [/x] ]0;taken" in shown
    assert {sign for sign in shown if not sign.isprintable()} == {"\n"}


def test_a_question_without_a_label_is_neither_right_nor_wrong() -> None:
    shown = screen(dataclasses.replace(told("Where is the ball really?"), gold=None))
    assert "green_treasure_chest; there is no label" in shown


def test_what_went_wrong_is_told_and_what_the_rules_have_stands_in_the_cell() -> None:
    shown = screen(with_rules(), 140)
    assert "at state observability, line 1, Anne: nothing; the rules say in_room(Anne,hall)" in shown
    assert ". nothing" in shown
    assert "✗ red_box" in shown
    assert "✗ blue_bag" in shown
    assert "✗ what the rules have instead" in shown
    checked = {**(with_rules().fault or {}), "by": "verify", "line": None, "who": None}
    assert "at state observability: nothing; the check asks for in_room" in screen(
        dataclasses.replace(with_rules(), fault=checked), 140
    )
    assert "✗" not in screen(told("Where does Anne really think the ball is?"))


@pytest.mark.parametrize(
    "changes",
    [
        {"calls": [{name: value for name, value in CALL.items() if name != "latency_s"}]},
        {"calls": [{**CALL, "latency_s": "soon"}]},
        {"calls": [{**CALL, "key": 1}]},
        {"calls": [1]},
        {"calls": 1},
        {"choices": [1]},
        {"chain": [1, 2, 3]},
        {"failure": 1},
        {"failure": {"step": "answer"}},
        {"fault": {"line": 1}},
    ],
)
def test_a_trace_that_was_changed_is_told_as_one(changes: dict[str, Any]) -> None:
    trace = {**told("Where does Anne really think the ball is?").to_json(), **changes}
    with pytest.raises(DataError, match=r"the trace of question .* cannot be read .*; run the same command again"):
        table(trace)


def test_lines_that_are_no_text_are_shown_as_what_they_are() -> None:
    trace = told("Where is the ball really?").to_json()
    console = Console(file=io.StringIO(), width=80)
    console.print(table({**trace, "lines": [*range(700, 700 + len(trace["lines"]))]}))
    assert isinstance(console.file, io.StringIO)
    assert "700" in console.file.getvalue()
