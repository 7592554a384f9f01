from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cache import Store
from rectom.benchmarks.base import Benchmark
from rectom.codec import events_to_json, perspective_to_json
from rectom.events import NOTHING, Delta, Event, persistent, private_tell, settle
from rectom.facts import in_room, inside, printed
from rectom.grammar import belief_question
from rectom.grammars import tomi
from rectom.perspective import build_global
from rectom.reader.rules import RuleReader
from rectom.reader.tomi import TomiReader
from rectom.reader.verify import check_abstraction, check_answer, check_learnt
from rectom.results.attribution import attribute, fault_rows
from rectom.results.fault import FAULTS, UNTOLD, Fault
from rectom.results.outcome import Outcome
from rectom.story import Question, Story
from tests.erring import CHOICES, LINES, Err, Trace, also, asking, blamed, learning, read, stating, unseen
from tests.method_cases import TOMI

# The thin line: Anne saw the box, Bob the bag, Cid the jar; Cid, who left last, convinces both.


def test_the_story_is_understood(dry: Store) -> None:
    answers = {chain: read(dry, asking(*chain), RuleReader())["predicted"] for chain in [(), ("Anne",), ("Cid",)]}
    assert answers == {(): "jar", ("Anne",): "tin", ("Cid",): "jar"}


# Each step.


def test_an_event_that_was_missed(dry: Store) -> None:
    fault = blamed(dry, Err(events=stating(7, NOTHING)))
    assert fault == Fault("abstraction", "nothing", "+in(ball,jar) -in(ball,bag)", 7)


def test_an_event_that_was_read_otherwise_wins_over_what_follows_from_it(dry: Store) -> None:
    reader = Err(events=stating(7, NOTHING), able=unseen(7, "Cid"), says="tin")
    fault = blamed(dry, reader, "Cid")
    assert fault
    assert (fault.step, fault.line, fault.who) == ("abstraction", 7, None)


def test_another_chain(dry: Store) -> None:
    fault = blamed(dry, Err(chain_of=lambda chain: chain[:1]), "Anne", "Bob")
    assert fault == Fault("chain", "World → Anne", "World → Anne → Bob")


def test_another_option(dry: Store) -> None:
    assert blamed(dry, Err(says="bag"), "Cid") == Fault("answer", "bag", "jar")


def test_another_object(dry: Store) -> None:
    reader = Err(reduced=lambda _: "Where is the cup really?", says="bag")
    fault = blamed(dry, reader, "Cid")
    assert fault == Fault("reduction", "Where is the cup really?", "Where is the ball really?")


@pytest.mark.parametrize(
    "question", ["Where is the ball?", "In which container is the ball now?", "What place holds the BALL?"]
)
def test_the_same_question_in_other_words_is_the_same(question: str, dry: Store) -> None:
    fault = blamed(dry, Err(reduced=lambda _: question, says="bag"), "Cid")
    assert fault == Fault("answer", "bag", "jar")


@pytest.mark.parametrize(
    ("question", "step"),
    [
        ("Where is the pen really?", "reduction"),
        ("Where was the cup at the beginning?", "reduction"),
        ("At the beginning, where was the pen?", "answer"),
    ],
)
def test_a_question_about_the_beginning_asks_for_another_thing(question: str, step: str, dry: Store) -> None:
    story, asked, _ = TOMI[1]
    benchmark = Benchmark("tomi", "test", (story,), (replace(asked, gold="cup"),), task="tomi")
    oracle = read(dry, benchmark, TomiReader())
    found = attribute({**oracle, "reduced": question, "predicted": "drawer"}, oracle)
    assert oracle["predicted"] == "cup"
    assert found
    assert found.step == step


def test_a_later_move_has_nothing_to_do_with_the_beginning() -> None:
    lines = ("Ann entered the hall.", "The ball is in the box.", "Ann moved the ball to the bag.")
    events = tomi.read_story(Story("s", lines))

    def trace(events: Sequence[Event], says: str) -> dict[str, Any]:
        world = build_global(events)
        told = {"events": events_to_json(events), "world": perspective_to_json(world), "final": printed(world.final)}
        asked = {"chain": [], "perspectives": [], "reduced": "Where was the ball at the beginning?"}
        return {**told, **asked, "predicted": says, "gold": "box"}

    oracle = trace(events, "box")
    assert attribute(trace(settle([*events[:2], NOTHING]), "bag"), oracle) == Fault("answer", "bag", "box")
    begun = [events[0], persistent([inside("ball", "tin"), tomi.began_in("ball", "tin")]), events[2]]
    fault = attribute(trace(settle(begun), "tin"), oracle)
    assert fault
    assert (fault.step, fault.line) == ("abstraction", 2)


# Eq. 1 by a model.


def test_a_state_of_the_world_that_does_not_follow_from_the_events(dry: Store) -> None:
    expected = Fault("update", "+in(ball,jar)", "+in(ball,jar) -in(ball,bag)", 7)
    for chain in [(), ("Cid",)]:
        oracle = read(dry, asking(*chain), RuleReader())
        trace = read(dry, asking(*chain, gold="jar"), Err(says="bag"))
        for seen in (trace["world"], *trace["perspectives"]):
            assert seen["deltas"][6] == [["in(ball,jar)"], ["in(ball,bag)"]]
            seen["deltas"][6] = [["in(ball,jar)"], []]
        assert attribute(trace, oracle) == expected
    # What follows from an event that was read otherwise is right as it stands.
    missed = read(dry, asking("Cid", gold="jar"), Err(events=stating(7, NOTHING)))
    fault = attribute(missed, oracle)
    assert fault
    assert (fault.step, fault.line) == ("abstraction", 7)


def test_what_differs_at_one_line_is_told_in_the_order_of_the_algorithm(dry: Store) -> None:
    """Cid's looks, then what he learnt of, then what he believes: each is told where nothing before it differs."""
    oracle = read(dry, asking("Anne"), RuleReader())
    trace = read(dry, asking("Anne", gold="tin"), Err(says="bag"))
    (perspective,) = trace["perspectives"]
    perspective["deltas"][9] = [[], []]
    told = [attribute(trace, oracle)]
    perspective["events"][9] = False
    told.append(attribute(trace, oracle))
    perspective["vantage"][9] = "hall"
    told.append(attribute(trace, oracle))
    assert [(fault.step, fault.line, fault.who) for fault in told if fault] == [
        ("revision", 10, "Anne"),
        ("event observability", 10, "Anne"),
        ("state observability", 10, "Anne"),
    ]
    # All of which comes after a step of the story before it, where that changed something.
    perspective["vantage"][8] = "hall"
    fault = attribute(trace, oracle)
    assert fault
    assert fault.line == 10
    perspective["deltas"][8] = [["in(ball,tin)"], []]
    fault = attribute(trace, oracle)
    assert fault
    assert (fault.step, fault.line) == ("state observability", 9)


def test_a_look_that_shows_nothing_new_is_no_fault(dry: Store) -> None:
    """Whoever waits sees nobody that is not known to be there, and does not for that disbelieve what is said."""
    oracle = read(dry, asking("Anne"), RuleReader())
    trace = read(dry, asking("Anne", gold="tin"), Err(says="bag"))
    said = [line for line, event in enumerate(oracle["events"]) if event.get("occurrence")]
    assert said
    (perspective,) = trace["perspectives"]
    for line in said:
        perspective["vantage"][line] = "waiting_room" if perspective["vantage"][line] != "waiting_room" else None
    assert attribute(trace, oracle) == Fault("answer", "bag", oracle["predicted"])
    perspective["deltas"][said[0]] = [["in(ball,tin)"], []]
    fault = attribute(trace, oracle)
    assert fault
    assert (fault.step, fault.line) == ("revision", said[0] + 1)


def test_a_long_change_is_told_in_part(dry: Store) -> None:
    fault = blamed(dry, Err(events=stating(1, NOTHING), says="box"), "Bob")
    assert fault == Fault("abstraction", "nothing", " ".join(f"+in_room({n},hall)" for n in ("Anne", "Bob", "Cid")), 1)
    crowd = frozenset(in_room(name, "hall") for name in "ABCDEFGH")
    fault = blamed(dry, Err(events=stating(1, persistent(crowd)), says="box"), "Bob")
    assert fault
    assert fault.found == " ".join([*(f"+in_room({name},hall)" for name in "ABCDEF"), "…"])


# What is no difference.


def test_facts_that_held_already_are_no_difference(dry: Store) -> None:
    """The model says that Anne, who stays in the hall, is there: so everyone seems to learn of her coming."""
    for line, fact in [(3, in_room("Anne", "hall")), (3, inside("ball", "box")), (6, in_room("Cid", "hall"))]:
        reader = Err(events=also(line, fact), says="bag")
        assert blamed(dry, reader, "Cid") == Fault("answer", "bag", "jar")


def test_unless_something_follows_from_them(dry: Store) -> None:
    """Cid is said to enter the hall in which he is when he moves the ball: so Anne learns what he did."""
    fault = blamed(dry, Err(events=also(7, in_room("Cid", "hall")), believed=lambda *_: Delta()), "Anne")
    told = "+in(ball,jar) +in_room(Cid,hall) -in(ball,bag)"
    assert fault == Fault("abstraction", told, "+in(ball,jar) -in(ball,bag)", 7)


def test_nor_if_a_container_seems_to_stand_elsewhere_for_them(dry: Store) -> None:
    """The model says once more where the ball is when Dan enters the attic: so the box seems to stand there."""
    lines = ("Anne entered the hall.", "The ball is in the box.", "Dan entered the attic.")
    asked = Question("q", "s", belief_question(["Dan"], "ball"), CHOICES, "bag", 1)
    benchmark = Benchmark("hitom", "cotp", (Story("s", lines),), (asked,))
    reader = Err(events=also(3, inside("ball", "box")))
    fault = attribute(read(dry, benchmark, reader), read(dry, benchmark, RuleReader()))
    assert fault == Fault("abstraction", "+in(ball,box) +in_room(Dan,attic)", "+in_room(Dan,attic)", 3)


def test_a_container_that_seems_to_stand_elsewhere_does_so_from_the_beginning(dry: Store) -> None:
    """Said of the cup once more when Dan enters the attic: so Anne, in the hall, seems not to have seen the box."""
    lines = ("Anne entered the hall.", "The ball is in the box.", "The cup is in the box.", "Dan entered the attic.")
    benchmark = asking("Anne", gold="box", lines=lines)
    trace = read(dry, benchmark, Err(events=also(4, inside("cup", "box"))))
    assert trace["failure"]
    fault = attribute({**trace, "predicted": "bag", "failure": None}, read(dry, benchmark, RuleReader()))
    assert fault == Fault("abstraction", "+in(cup,box) +in_room(Dan,attic)", "+in_room(Dan,attic)", 4)


class Untold(TomiReader):
    """Reads ToMi, and tells of no container where it stands."""

    async def abstract(self, story: Story) -> tuple[Event, ...]:
        told = []
        for event in await super().abstract(story):
            added = frozenset(fact for fact in event.delta.added if fact.predicate != "at")
            told.append(replace(event, delta=replace(event.delta, added=added)))
        return settle(told)


def of_tomi(lines: Sequence[str], *chain: str) -> Benchmark:
    """Where who is at the end of a chain of two thinks the pen is."""
    text = "Where does {} think that {} searches for the pen?".format(*chain)
    question = Question("q", "s", text, ("cup", "drawer"), "drawer", 2)
    return Benchmark("tomi", "test", (Story("s", tuple(lines)),), (question,), task="tomi")


def test_a_model_need_not_say_where_containers_stand(dry: Store) -> None:
    """The rules say it of a line that moves something, before a line tells it: the prompt does not ask for that."""
    benchmark = of_tomi(TOMI[0][0].lines, "Bo", "Ann")
    oracle, trace = (read(dry, benchmark, reader) for reader in (TomiReader(), Untold()))
    assert oracle["events"] != trace["events"]
    assert attribute({**trace, "predicted": "drawer"}, oracle) == Fault("answer", "drawer", "cup")


def test_a_belief_that_no_step_accounts_for_is_put_down_to_who_applies_eq_1(dry: Store) -> None:
    trace = read(dry, asking("Bob", gold="tin"), Err(events=also(7, in_room("Cid", "hall")), says="bag"))
    trace["perspectives"][0]["deltas"][4] = [[], []]
    fault = attribute(trace, read(dry, asking("Bob"), RuleReader()))
    assert fault == Fault("update", "nothing", "+in(ball,bag) -in(ball,box)", 5, "Bob")


def test_a_label_that_the_rules_do_not_reach_is_no_fault_of_the_model(dry: Store) -> None:
    oracle = read(dry, asking("Cid"), RuleReader())
    trace = read(dry, asking("Cid", gold="box"), RuleReader())
    assert attribute(trace, oracle) == Fault("label", "jar", "box")
    # Nor is what the model did otherwise on its way to the answer that the rules give.
    trace = read(dry, asking("Cid", gold="box"), Err(able=unseen(5, "Cid")))
    assert attribute(trace, oracle) == Fault("label", "jar", "box")


def test_a_mistake_is_the_models_own_also_where_the_label_is_another(dry: Store) -> None:
    """The rules say jar, the label box, and the model something else for a reason of its own."""
    oracle = read(dry, asking("Cid"), RuleReader())
    trace = read(dry, asking("Cid", gold="box"), Err(says="bag"))
    assert attribute(trace, oracle) == Fault("answer", "bag", "jar")
    trace = read(dry, asking("Cid", gold="box"), Err(able=unseen(7, "Cid")))
    fault = attribute(trace, oracle)
    assert fault
    assert (fault.step, fault.line) == ("state observability", 7)


def test_an_answer_where_the_rules_have_none(dry: Store) -> None:
    oracle = {**read(dry, asking("Cid"), RuleReader()), "predicted": None}
    trace = read(dry, asking("Cid", gold="box"), RuleReader())
    assert attribute(trace, oracle) == Fault("label", "jar", "box")


# Without states.


def history_of(trace: Trace) -> Trace:
    """The trace with histories in the place of perspectives."""
    made = [{"chain": one["chain"], "events": one["events"]} for one in trace["perspectives"]]
    return {**trace, "world": {"chain": [], "events": [True] * len(LINES)}, "perspectives": made}


def test_histories_are_compared_by_what_is_in_them(dry: Store) -> None:
    oracle = read(dry, asking("Bob", "Cid"), RuleReader())
    answered = history_of(read(dry, asking("Bob", "Cid", gold="box"), Err(says="bag")))
    assert attribute(answered, oracle) == Fault("answer", "bag", "tin")
    erring = Err(able=learning(10, "Cid"), says="bag")
    unheard = history_of(read(dry, asking("Bob", "Cid", gold="box"), erring))
    assert attribute(unheard, oracle) == Fault("event observability", "not observed", "observed", 10, "Cid")


# Failures, and checks.


def failing(step: str) -> Trace:
    return {"failure": {"step": step, "why": "no usable reply in 3 tries: it was empty"}, "calls": []}


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("abstract", "abstraction"),
        ("chain", "chain"),
        ("observe_states", "state observability"),
        ("observe_events", "event observability"),
        ("observe_history", "event observability"),
        ("revise", "revision"),
        ("reduce", "reduction"),
        ("answer", "answer"),
        ("answer_history", "answer"),
        ("update", "update"),
    ],
)
def test_a_step_that_failed_is_at_fault(step: str, fault: str) -> None:
    assert fault in FAULTS
    found = attribute(failing(step), None)
    assert found == Fault(fault, "no usable reply in 3 tries: it was empty", "a usable reply", by="failure")


def test_a_step_by_rule_that_failed_did_so_for_what_it_was_given(dry: Store) -> None:
    def gone(events: tuple[Event, ...]) -> Sequence[Event]:
        return [NOTHING if any(f.predicate == "in" for f in event.delta.added) else event for event in events]

    by_model = blamed(dry, Err(events=gone, says="nothing"), "Cid")
    by_rule = blamed(dry, Err(events=gone, says="nothing"), "Cid", by_rule=["answer"])
    assert by_model
    assert by_rule
    assert (by_model.step, by_model.by) == ("answer", "failure")
    assert (by_rule.step, by_rule.line, by_rule.by) == ("abstraction", 2, "oracle")
    nothing_else = blamed(dry, Err(says="nothing"), "Cid", by_rule=["answer"])
    assert nothing_else
    assert (nothing_else.step, nothing_else.by) == ("answer", "failure")


def test_what_failed_for_what_came_before_it_is_found_before_it(dry: Store) -> None:
    """A step by rule failed, and nothing but the chain, which a model gave, differs."""
    oracle = read(dry, asking("Anne", "Bob"), RuleReader())
    trace = read(dry, asking("Anne", "Bob", gold="tin"), Err(chain_of=lambda chain: chain[:1], says="nothing"))
    for by_rule, step in [((), "answer"), (("observe",), "answer"), (("answer",), "chain")]:
        fault = attribute(trace, oracle, by_rule)
        assert fault
        assert fault.step == step


def test_where_the_rules_read_the_text_checks_are_not_needed(dry: Store) -> None:
    oracle = read(dry, asking("Cid"), RuleReader())
    trace = read(dry, asking("Cid", gold="jar"), Err(says="bag"))
    violated = {"step": "observe_events", "repair": False, "fault": "event 4 does not reach Cid, who is not part of x"}
    assert attribute({**trace, "calls": [violated]}, oracle, verified=True) == Fault("answer", "bag", "jar")
    assert attribute(trace, None) is None


def checked(*calls: tuple[str, str], windows: int = 1) -> Trace:
    whole = [{"step": "abstract", "repair": False, "fault": ""}] * windows
    return {"calls": [*whole, *({"step": step, "repair": True, "fault": fault} for step, fault in calls)]}


def test_without_an_oracle_the_first_violation_serves_where_replies_were_checked() -> None:
    first = ("observe_events", "event 4 does not reach Anne Lee, who is not part of private_tell(Bob,Cid,in(a,b))")
    trace = checked(first, ("answer", "the fact in(a,b) names b, not c"))
    assert attribute(trace, None) is None
    found = attribute(trace, None, verified=True)
    assert found == Fault("event observability", first[1], "a reply without that", 4, "Anne Lee", "verify")
    assert attribute(checked(), None, verified=True) is None
    assert attribute({"calls": [{"step": "answer", "repair": True}]}, None, verified=True) is None


@pytest.mark.parametrize(("windows", "line"), [(1, 2), (3, None)])
def test_the_line_of_a_violation_is_told_where_the_story_was_read_as_a_whole(windows: int, line: int | None) -> None:
    words = "line 2: in_room(Anne,attic) names 'Anne', which the line does not"
    found = attribute(checked(("abstract", words), windows=windows), None, verified=True)
    assert found
    assert (found.step, found.line, found.who) == ("abstraction", line, None)
    placed = attribute(checked(("observe_states", "state 3 does not place Anne in hall")), None, verified=True)
    assert placed
    assert (placed.step, placed.line, placed.who) == ("state observability", 3, "Anne")


@pytest.mark.parametrize(
    "words",
    [
        "no JSON object in it (unexpected character, expected a JSON value: line 1 column 1 (char 0))",
        "it was cut off at the length limit; answer more briefly",
        "steps.0.line: Input should be a valid integer",
        "give one entry for each of the lines 1 to 9, each line once",
        "chain.0: Input should be 'Anne' or 'Bob'",
        "the reduced question must end with a question mark",
    ],
)
def test_a_reply_of_the_wrong_form_tells_nothing_of_what_the_next_one_says(words: str) -> None:
    trace = checked(("abstract", words), ("answer", words))
    assert attribute(trace, None, verified=True) is None
    later = "event 2 does not reach Anne, who is not part of private_tell(Bob,Cid,in(a,b))"
    found = attribute(checked(("abstract", words), ("observe_events", later)), None, verified=True)
    assert found
    assert (found.step, found.found) == ("event observability", later)


def test_the_words_of_every_check_are_known() -> None:
    """The checks themselves, with replies that violate them."""
    box, told = inside("ball", "box"), private_tell("Bob", "Cid", inside("ball", "bag"))
    violations: list[tuple[str, Callable[[], None], int | None, str | None]] = [
        ("abstract", lambda: check_abstraction(["Anne sat."], [persistent([box])]), 1, None),
        ("abstract", lambda: check_abstraction(["Anne sat."], [persistent([box])], so_far=True), 1, None),
        (
            "abstract",
            lambda: check_abstraction(["Hi.", "The ball is in the box."], [NOTHING, persistent([], [box])]),
            2,
            None,
        ),
        ("abstract", lambda: check_abstraction(["ball box bag"], [persistent([box, inside("ball", "bag")])]), 1, None),
        ("observe_events", lambda: check_learnt([None, told], "Anne Lee", [False, True]), 2, "Anne Lee"),
        ("answer", lambda: check_answer("in(ball,box)", "bag", ["box", "bag"]), None, None),
    ]
    for step, check, line, who in violations:
        with pytest.raises(ValueError, match=" ") as violated:
            check()
        words = str(violated.value)
        found = attribute(checked((step, words)), None, verified=True)
        assert found, words
        assert (found.by, found.found, found.line, found.who) == ("verify", words, line, who)


# The table.


def test_a_failure_of_another_methods_step_is_not_told() -> None:
    assert attribute(failing("perceivers_story"), None) is None


def outcome(fault: str, order: int | None, *, correct: bool = False) -> Outcome:
    return Outcome("q", "s", order, "a", "b", correct, None, 0, 0, fault=fault)


def test_the_table_counts_wrong_answers_by_step_and_order() -> None:
    outcomes = [outcome("label", 1), outcome("abstraction", 0), outcome("abstraction", 2), outcome("", 2)]
    header, rows = fault_rows([*outcomes, outcome("answer", 0, correct=True), outcome("abstraction", 2)])
    assert header == ("went wrong at", "order 0", "order 1", "order 2", "all")
    assert rows == [("abstraction", 1, 0, 2, 3), ("label", 0, 1, 0, 1), (UNTOLD, 0, 0, 1, 1)]
    assert fault_rows([outcome("", 0, correct=True)])[1] == []
    assert fault_rows([outcome("chain", None)]) == (("went wrong at", "-", "all"), [("chain", 1, 1)])
    assert fault_rows([]) == (("went wrong at", "all"), [])


def test_questions_without_an_order_stand_before_the_others() -> None:
    header, rows = fault_rows([outcome("", 1), outcome("answer", 0), outcome("", None), outcome("answer", None)])
    assert header == ("went wrong at", "-", "order 0", "order 1", "all")
    assert rows == [("answer", 1, 1, 0, 2), (UNTOLD, 1, 0, 1, 2)]


def test_the_steps_stand_in_the_order_of_the_algorithm() -> None:
    _, rows = fault_rows([outcome(step, 0) for step in ("", *reversed(FAULTS))])
    assert [row[0] for row in rows] == [*FAULTS, UNTOLD]


def test_a_fault_is_written_as_json() -> None:
    fault = Fault("revision", "nothing", "+in(ball,box)", 3, "Anne")
    assert Fault(**fault.to_json()) == fault
    assert fault.by == "oracle"
