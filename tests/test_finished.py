from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks import fantom
from rectom.errors import DataError
from rectom.results.finished import Finished, Paid
from rectom.results.folder import RunFolder
from rectom.results.outcome import Outcome, Trace, digest_of_asked
from rectom.results.summary import Cost, summary_line

SETTINGS = {
    "benchmark": "toy/all",
    "data": "d" * 64,
    "method": "rectom",
    "rules": "hitom",
    "readers": {"chain": "rules"},
}
COST = Cost(sent=3, cached=1, shared=2, billed=700)


def answer(number: int, correct: bool = True, **changes: Any) -> Outcome:
    """What came of one question: two a story, of order 0 and 1."""
    outcome = Outcome(
        str(number), f"s{number // 2}", number % 2, "box", "box" if correct else "bag", correct, None, 4, 1000
    )
    return replace(outcome, **changes)


def asked(outcome: Outcome, **changes: Any) -> Trace:
    """The trace of an outcome, with a story of its own."""
    question = f"Where is ball {outcome.id.partition('#')[0]}?"
    trace = Trace(outcome.id, outcome.story_id, question, ["box", "bag"], ["The ball is in the box."], gold="box")
    return replace(trace, **changes)


def write_run(
    folder: Path,
    outcomes: Sequence[Outcome],
    traces: Sequence[Trace] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
    cost: Cost = COST,
    **manifest: Any,
) -> Path:
    """The folder of a finished run."""
    run = RunFolder(folder)
    run.finish(outcomes, traces or [asked(outcome) for outcome in outcomes])
    line = summary_line({"run": folder.name}, outcomes, cost, 1.0, settings.get("samples", 1))
    run.write_manifest({"run": folder.name, "state": "finished", "settings": settings, "summary": line, **manifest})
    return folder


def test_a_run_comes_back_question_by_question(tmp_path: Path) -> None:
    outcomes = [answer(0), answer(1, False), answer(2, False, predicted=None, failed_step="revise"), answer(3)]
    run = Finished.read(write_run(tmp_path / "night", outcomes))
    assert (run.name, run.benchmark, run.data, run.answers) == ("night", "toy/all", "d" * 64, 4)
    assert [(q.story_id, q.order, q.score, q.failed, q.tries) for q in run.questions] == [
        ("s0", 0, 1.0, 0, 1),
        ("s0", 1, 0.0, 0, 1),
        ("s1", 0, 0.0, 1, 1),
        ("s1", 1, 1.0, 0, 1),
    ]
    assert {(q.calls, q.tokens) for q in run.questions} == {(4, 1000)}
    assert len({q.key for q in run.questions}) == 4
    assert run.settings == SETTINGS


def test_samples_are_one_question_with_the_share_that_is_right(tmp_path: Path) -> None:
    right = {"0#1": True, "1#1": True, "0#2": False, "1#2": True, "0#3": False, "1#3": True}
    outcomes = [answer(int(name[0]), good, id=name, tokens=100 * int(name[2])) for name, good in right.items()]
    sampled = Finished.read(write_run(tmp_path / "three", outcomes, settings={**SETTINGS, "samples": 3}))
    assert [(q.tries, q.score, q.tokens) for q in sampled.questions] == [(3, 1 / 3, 200), (3, 1.0, 200)]
    assert sampled.answers == 6
    once = Finished.read(write_run(tmp_path / "once", [answer(0), answer(1)]))
    assert [q.key for q in sampled.questions] == [q.key for q in once.questions]


def test_a_run_that_tells_what_it_asked_needs_no_traces(tmp_path: Path) -> None:
    outcomes = [answer(0), answer(1, False)]
    traces = [asked(outcome) for outcome in outcomes]
    old = Finished.read(write_run(tmp_path / "old", outcomes, traces))
    digests = [digest_of_asked(one.question, one.choices, one.lines, one.gold) for one in traces]
    told = [replace(outcome, asked=digest) for outcome, digest in zip(outcomes, digests, strict=True)]
    folder = write_run(tmp_path / "new", told, traces)
    (folder / "traces.jsonl").unlink()
    assert [q.key for q in Finished.read(folder).questions] == [q.key for q in old.questions]


def test_what_went_wrong_at_which_step_is_kept_with_the_question(tmp_path: Path) -> None:
    outcomes = [
        answer(0, False, id="0#1", predicted=None, failed_step="revise", group="tell"),
        answer(0, False, id="0#2", fault="answer", group="tell"),
        answer(0, True, id="0#3", group="tell"),
    ]
    (found,) = Finished.read(write_run(tmp_path / "run", outcomes, settings={**SETTINGS, "samples": 3})).questions
    assert (found.name, found.group, found.failed_steps, found.faults) == ("0", "tell", ("revise",), ("answer",))


def test_a_number_sign_in_an_id_is_no_sample_where_there_are_none(tmp_path: Path) -> None:
    run = Finished.read(write_run(tmp_path / "odd", [answer(0, id="a#1"), answer(0, id="a#2")]))
    assert len(run.questions) == 2


def test_the_tries_of_a_ballot_are_one_question(tmp_path: Path) -> None:
    outcomes = [answer(0, good, id=f"0/{number}", ballot="0") for number, good in enumerate([True, True, False, True])]
    run = Finished.read(write_run(tmp_path / "five", outcomes))
    assert [(q.tries, q.score) for q in run.questions] == [(4, 0.75)]


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Where is the kite?"},
        {"choices": ["bag", "box"]},
        {"lines": ["The ball is in the bag."]},
        {"gold": "bag"},
    ],
)
def test_what_is_asked_tells_questions_apart(tmp_path: Path, change: dict[str, Any]) -> None:
    one = Finished.read(write_run(tmp_path / "one", [answer(0)]))
    other = Finished.read(write_run(tmp_path / "other", [answer(0)], [asked(answer(0), **change)]))
    assert one.questions[0].key != other.questions[0].key


@pytest.mark.parametrize(
    ("benchmark", "same"),
    [
        ("toy/some", True),
        ("toy/all+names.7", False),
        ("game/all", False),
        ("toy/all", True),
        ("toy/all+stories.4.7", True),
        ("toy/all+names.7+stories.4.7", False),
    ],
)
def test_a_subset_keeps_questions_what_they_are_and_a_permutation_does_not(
    tmp_path: Path, benchmark: str, same: bool
) -> None:
    one = Finished.read(write_run(tmp_path / "one", [answer(0)]))
    settings = {**SETTINGS, "benchmark": benchmark, "data": "e" * 64}
    other = Finished.read(write_run(tmp_path / "other", [answer(0, False)], settings=settings))
    assert (one.questions[0].key == other.questions[0].key) is same


@pytest.fixture(scope="module")
def fantom_file(hitom_file: Path) -> Path:
    """FanToM's file beside that of Hi-ToM; without it the test is skipped."""
    file = hitom_file.parents[1] / "fantom" / "fantom_v1.belief_only.json"
    return file if file.is_file() else pytest.skip(f"no FanToM file at {file}")


@pytest.mark.parametrize(("other", "shared"), [("fantom/first", 181), ("fantom/324-full", 0)])
def test_fantoms_subsets_share_questions_and_its_long_contexts_none(
    fantom_file: Path, tmp_path: Path, other: str, shared: int
) -> None:
    def read(subset: str) -> Finished:
        benchmark = fantom.ADAPTER.open(subset.partition("/")[2], fantom_file)
        lines = {story.id: list(story.lines) for story in benchmark.stories}
        outcomes = [Outcome(q.id, q.story_id, q.order, q.gold, None, False, None, 0, 0) for q in benchmark.questions]
        traces = [
            Trace(q.id, q.story_id, q.text, list(q.choices), lines[q.story_id], gold=q.gold)
            for q in benchmark.questions
        ]
        settings = {"benchmark": subset, "data": benchmark.digest}
        return Finished.read(write_run(tmp_path / benchmark.subset, outcomes, traces, settings))

    one, another = read("fantom/324"), read(other)
    assert len({q.key for q in one.questions} & {q.key for q in another.questions}) == shared


# What was paid.

MONEY = {"billed": "0.100000", "whole": "0.250000", "currency": "USD", "date": "2026-05-21"}


def session(tokens: int) -> dict[str, Any]:
    return {"started": "…", "state": "finished", "prompt": tokens - 50, "completion": 50}


@pytest.mark.parametrize(
    ("sessions", "billed", "money"),
    [
        ([session(700)], 700, Decimal("0.1")),
        # The summary is about the last session: what earlier ones paid is added, and the money for it is not known.
        ([session(1300), session(700)], 2000, None),
        ([{"started": "…"}, session(700)], None, None),
        ([], 700, Decimal("0.1")),
    ],
)
def test_what_all_sessions_paid_is_added_up(
    tmp_path: Path, sessions: list[dict[str, Any]], billed: int | None, money: Decimal | None
) -> None:
    run = Finished.read(write_run(tmp_path / "run", [answer(0)], money=MONEY, sessions=sessions))
    assert run.paid == Paid(4, billed, Decimal("0.25"), money, "USD")


@pytest.mark.parametrize("more", [{"money": dict.fromkeys(MONEY)}, {}], ids=["told", "of an older version"])
def test_money_that_is_unknown_stays_unknown(tmp_path: Path, more: dict[str, Any]) -> None:
    run = Finished.read(write_run(tmp_path / "run", [answer(0)], **more))
    assert (run.paid.whole, run.paid.money) == (None, None)
    told = {"calls_different": 4, "tokens_billed": 700, "money": None, "money_billed": None, "currency": None}
    assert run.paid.to_json() == told


# Runs that cannot be compared.


@pytest.mark.parametrize("state", ["running", "interrupted", "stopped", "failed", None])
def test_an_unfinished_run_is_refused(tmp_path: Path, state: str | None) -> None:
    folder = write_run(tmp_path / "night", [answer(0)], state=state)
    with pytest.raises(DataError, match=rf"night is not finished but {state}: run its command to the end"):
        Finished.read(folder)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing holds no run"):
        Finished.read(tmp_path / "nothing")


def cut(name: str) -> Callable[[Path], object]:
    """Tear off the end of a file."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20])


def drop(name: str) -> Callable[[Path], object]:
    """Take the last line of a file away."""
    return lambda folder: (folder / name).write_bytes(b"".join((folder / name).read_bytes().splitlines(True)[:-1]))


def put(name: str, **fields: Any) -> Callable[[Path], object]:
    """Change the last line of a file."""

    def change(folder: Path) -> None:
        *lines, last = (folder / name).read_bytes().splitlines()
        (folder / name).write_bytes(b"\n".join([*lines, orjson.dumps({**orjson.loads(last), **fields})]))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut("results.jsonl"), "results.jsonl, row 2: not JSON"),
        (cut("traces.jsonl"), "traces.jsonl, row 2: not JSON"),
        (cut("manifest.json"), "manifest.json cannot be read"),
        (drop("results.jsonl"), "damaged: its files do not agree"),
        (drop("traces.jsonl"), "damaged: its files do not agree"),
        (put("results.jsonl", correct=False), "damaged: its files do not agree"),
        (put("results.jsonl", id="0"), "holds a question more than once"),
        (put("results.jsonl", tokens="many"), "row 2: tokens: "),
        (put("results.jsonl", story_id=None), "row 2: story_id: "),
        (put("traces.jsonl", lines=None), "row 2: lines: "),
        (lambda folder: (folder / "traces.jsonl").unlink(), "cannot read .*traces.jsonl"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "is not a manifest"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "is not finished but damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"state": "finished"}'), "manifest.json: settings: "),
    ],
)
def test_a_damaged_run_is_refused_in_one_line_that_names_it(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    folder = write_run(tmp_path / "night", [answer(0), answer(1)])
    damage(folder)
    with pytest.raises(DataError, match=f"night.*{said}|{said}.*") as refused:
        Finished.read(folder)
    assert "night" in str(refused.value)
    assert "\n" not in str(refused.value)
