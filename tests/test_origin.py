from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import Store
from rectom.benchmarks.base import Benchmark
from rectom.benchmarks.generate import Recipe
from rectom.codec import states_from_json
from rectom.events import NOTHING, Delta
from rectom.facts import Fact, inside, superseded
from rectom.grammar import read_question
from rectom.perspective import Hearing, Observability
from rectom.reader.rules import RuleReader
from rectom.results.attribution import attribute
from rectom.results.fault import Fault
from rectom.story import Question, Story
from tests.conftest import generated, recipes
from tests.erring import LINES, Err, asking, blamed, learning, read, stating, unseen


def test_a_state_that_was_not_observed_is_put_down_to_its_line_and_character(dry: Store) -> None:
    fault = blamed(dry, Err(able=unseen(7, "Cid")), "Cid")
    assert fault == Fault("state observability", "not observed", "observed from hall", 7, "Cid")


@pytest.mark.parametrize(
    ("chain", "mistakes", "culprit"),
    [
        (("Bob", "Cid"), [(5, "Bob"), (5, "Cid")], (5, "Bob")),
        (("Cid", "Bob"), [(5, "Bob"), (5, "Cid")], (5, "Cid")),
        # What Cid did after Bob had left is not in what Cid thinks that Bob thinks.
        (("Cid", "Bob"), [(7, "Cid"), (5, "Bob")], (5, "Bob")),
        (("Bob", "Cid"), [(7, "Cid"), (5, "Bob")], (5, "Bob")),
    ],
)
def test_what_a_nested_perspective_took_over_is_put_down_to_the_one_that_it_came_from(
    chain: tuple[str, ...], mistakes: Sequence[tuple[int, str]], culprit: tuple[int, str], dry: Store
) -> None:
    def able(right: Observability, character: str) -> Observability:
        for line, who in mistakes:
            right = unseen(line, who)(right, character)
        return right

    asked = asking(*chain, lines=LINES[:-1])
    oracle, trace = (read(dry, asked, reader) for reader in (RuleReader(), Err(able=able)))
    assert (oracle["predicted"], trace["predicted"]) == ("bag", "box")
    fault = attribute(trace, oracle)
    assert fault
    assert (fault.step, fault.line, fault.who) == ("state observability", *culprit)


def test_what_comes_to_nothing_is_not_at_fault(dry: Store) -> None:
    """Bob did not see what he did; the claim at the end, which he believes, leaves nothing of that."""
    oracle = read(dry, asking("Bob"), RuleReader())
    trace = read(dry, asking("Bob", gold="tin"), Err(able=unseen(5, "Bob"), says="bag"))
    assert trace["perspectives"] != oracle["perspectives"]
    assert attribute(trace, oracle) == Fault("answer", "bag", "tin")
    # Nor is what was misread of a cup, where the ball is asked for.
    lines = (*LINES[:2], "The cup is in the tin.", *LINES[2:])
    oracle = read(dry, asking("Bob", lines=lines), RuleReader())
    trace = read(dry, asking("Bob", gold="tin", lines=lines), Err(events=stating(3, NOTHING), says="bag"))
    assert trace["events"] != oracle["events"]
    assert attribute(trace, oracle) == Fault("answer", "bag", "tin")


def test_a_place_that_was_misjudged_for_an_exit_that_was_missed(dry: Store) -> None:
    """Anne, whose exit was missed, seems to see what Bob does; so she does in the eyes of Bob, who was there."""
    for chain in [("Anne",), ("Bob", "Anne")]:
        asked = asking(*chain, lines=LINES[:-1])
        oracle, trace = (read(dry, asked, reader) for reader in (RuleReader(), Err(events=stating(4, NOTHING))))
        assert oracle["predicted"] == "box" != trace["predicted"]
        assert attribute(trace, oracle) == Fault("abstraction", "nothing", "-in_room(Anne,hall)", 4)


def test_a_claim_that_did_not_convince_for_an_exit_that_was_missed(dry: Store) -> None:
    """Bob, whose exit was missed, seems to have left after Cid; so he does not believe him."""
    asked = asking("Bob", lines=(*LINES[:6], *LINES[7:]))
    oracle, trace = (read(dry, asked, reader) for reader in (RuleReader(), Err(events=stating(6, NOTHING))))
    assert (oracle["predicted"], trace["predicted"]) == ("tin", "bag")
    assert attribute(trace, oracle) == Fault("abstraction", "nothing", "-in_room(Bob,hall)", 6)


def test_a_claim_that_was_not_heard(dry: Store) -> None:
    fault = blamed(dry, Err(able=learning(10, "Anne")), "Anne")
    assert fault == Fault("event observability", "not observed", "observed", 10, "Anne")


def test_a_claim_that_did_not_convince(dry: Store) -> None:
    fault = blamed(dry, Err(believed=lambda *_: Delta()), "Anne")
    assert fault == Fault("revision", "nothing", "+in(ball,tin) -in(ball,box)", 10, "Anne")


def test_a_claim_that_convinced_somebody_of_what_another_thinks(dry: Store) -> None:
    def believed(right: Delta, hearing: Hearing) -> Delta:
        said = inside("ball", "tin")
        return Delta(frozenset({said}), superseded(hearing.belief, [said]))

    fault = blamed(dry, Err(believed=believed), "Bob", "Anne")
    assert fault == Fault("revision", "+in(ball,tin) -in(ball,box)", "nothing", 10, "Anne")


# One mistake, anywhere in stories that nobody wrote.


def believed(trace: Mapping[str, Any]) -> list[str]:
    """Where the last perspective has what is asked for in the end."""
    last = [trace["world"], *trace["perspectives"]][-1]
    _, thing = read_question(trace["question"])
    return [str(fact) for fact in states_from_json(last)[-1] if fact.predicate == "in" and fact.args[0] == thing]


@given(recipes(), st.data())
def test_a_single_mistake_is_found_where_it_was_made(dry: Store, recipe: Recipe, data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(generated(recipe)))
    story = Story.parse(row.story)
    world = RuleReader().world(story)
    benchmark = Benchmark("hitom", "cotp", (story,), (Question("q", story.id, row.question, row.choices),))
    before = (frozenset[Fact](), *world.states)
    changes = [state != last for state, last in zip(world.states, before, strict=False)]
    does = [changed or bool(e and e.occurrence) for e, changed in zip(world.events, changes, strict=True)]
    line = data.draw(st.sampled_from([line for line, something in enumerate(does, 1) if something]))
    who = data.draw(st.sampled_from(sorted(world.setting.exits[-1])))
    says = next(choice for choice in row.choices if choice != row.answer)
    step, mistake = data.draw(
        st.sampled_from(
            [
                ("abstraction", Err(events=stating(line, NOTHING), says=says)),
                ("state observability", Err(able=unseen(line, who), says=says)),
                ("event observability", Err(able=learning(line, who), says=says)),
            ]
        )
    )
    trace, oracle = read(dry, benchmark, mistake), read(dry, benchmark, RuleReader())
    fault = attribute(trace, oracle)
    assert fault
    if believed(trace) == believed(oracle):  # the mistake is about what nobody who is asked about looks at
        assert fault == Fault("answer", says, row.answer)
    else:
        assert (fault.step, fault.line, fault.who) == (step, line, None if step == "abstraction" else who)
