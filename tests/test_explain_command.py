from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cache import Reason, Store, Verdict
from flows.commands import explain as command
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Ended, Lab, call, change_prompt, run_options, serving, write_stories


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("ran")
    with serving(FakeOpenAI()) as server:
        lab = Lab(folder, write_stories(folder), server)
        lab.run()
        yield lab


@pytest.fixture
def lab(ran: Lab, tmp_path: Path) -> Lab:
    """A lab with a store of its own in which everything is that ran once."""
    shutil.copytree(ran.store, tmp_path / "store")
    return Lab(tmp_path, ran.data, ran.server)


def explain(lab: Lab, *more: object, **changes: object) -> Ended:
    return call("explain", "run", *run_options(lab, **changes), *more, COLUMNS="200")


def rows(ended: Ended) -> dict[str, list[str]]:
    """The cells of the table by stage; a reason may go over several rows."""
    assert ended.status == 0, ended.err
    found: dict[str, list[str]] = {}
    stage = ""
    for line in ended.out.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        if len(cells) != 5 or cells[0] == "stage":
            continue
        stage = cells[0] or stage
        if cells[0]:
            found[stage] = cells[1:]
        else:
            found[stage][3] += f" {cells[4]}"
    return found


STAGES = ["abstraction", "global state", "questions", "observability", "completion", "answering"]


def test_after_a_run_everything_is_in_the_store(lab: Lab) -> None:
    found = rows(explain(lab))
    assert list(found) == STAGES
    for items, stored, to_compute, why in found.values():
        assert items == stored
        assert (to_compute, why) == ("0", "")
    assert found["abstraction"][0] == "3"
    assert found["answering"][0] == "12"


def test_it_sends_nothing_and_stores_nothing(lab: Lab) -> None:
    asked = lab.server.asked.total()
    with Store(lab.store) as store:
        before = store.count()
    for more in ([], ["--rules", "literal"], ["--force", "completion"], ["--model-identity", "other"]):
        explain(lab, *more)
    assert lab.server.asked.total() == asked
    with Store(lab.store) as store:
        assert store.count() == before
    assert not lab.runs.exists()


def test_a_changed_field_is_named_with_both_values(lab: Lab) -> None:
    found = rows(explain(lab, "--model-revision", "2"))
    assert found["abstraction"][2:] == ["3", '3 changed: reader.revision "" -> "2"']
    assert found["questions"][2] == "12"
    assert found["answering"][3] == "12 upstream is recomputed"


def test_a_changed_prompt_is_named_by_its_digest(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    change_prompt(monkeypatch, "revise")
    found = rows(explain(lab))
    assert [stage for stage, cells in found.items() if cells[2] != "0"] == ["completion", "answering"]
    assert re.search(r"changed: revise\.prompts\.revise [0-9a-f]{8} -> [0-9a-f]{8}", found["completion"][3])


def test_what_differs_from_item_to_item_is_summed_up_by_its_fields(lab: Lab) -> None:
    lab.server.wrong = "observe_states"
    try:
        lab.run(readers={"revise": "rules", "answer": "rules"}, revision="wrong")
    finally:
        lab.server.wrong = ""
    found = rows(explain(lab, "--reader", "revise=rules", "--reader", "answer=rules", "--force", "observability"))
    assert "forced" in found["observability"][3]
    assert "changed: observability (differs from item to item)" in found["completion"][3]


def test_forced_stages_say_so(lab: Lab) -> None:
    found = rows(explain(lab, "--force", "completion"))
    assert found["completion"][2:] == ["12", "12 forced"]
    # Computed from the replies in the store, the outcome is known to be the same.
    assert found["answering"][2:] == ["0", ""]


def test_an_empty_store_is_a_first_run(lab: Lab, tmp_path: Path) -> None:
    found = rows(explain(lab, cache=tmp_path / "empty"))
    assert found["abstraction"][1:] == ["0", "3", "3 first run"]
    assert found["observability"][3] == "known once the questions are read"


def test_the_whole_run_command_may_follow(lab: Lab) -> None:
    assert explain(lab, "--plain", "--json").status == 0


def test_a_server_that_is_down_is_no_matter(lab: Lab) -> None:
    assert rows(explain(lab, base_url="http://127.0.0.1:9/v1"))["answering"][2] == "0"


def test_every_sample_counts_and_another_draw_is_another_reply(lab: Lab) -> None:
    assert rows(explain(lab, "--draw", 1))["abstraction"][2:] == ["3", "3 changed: reader.sample 0 -> 1"]
    assert rows(explain(lab, "--samples", 2))["abstraction"][:3] == ["6", "3", "3"]


class Muddled(FakeOpenAI):
    """Says nothing of use, in words that a terminal's markup takes for an end."""

    def _answer(self, body: dict[str, Any]) -> str:
        return "I cannot say. [/INST]"


def test_what_a_model_said_is_shown_as_it_is(tmp_path: Path) -> None:
    with serving(Muddled()) as server:
        lab = Lab(tmp_path, write_stories(tmp_path), server)
        assert lab.run(method="direct").line["failed"] == SMALL_QUESTIONS
        assert "I cannot say. [/INST]" in rows(explain(lab, method="direct"))["answering"][3]


def test_a_terminal_obeys_nothing_of_a_reason(lab: Lab) -> None:
    run = lab.plan()
    run.verdicts["answering", "q"] = Verdict(Reason.FAILED_BEFORE, ("why",), ("Ann\x1b[2J is nobody",))
    console = Console(width=200)
    with console.capture() as caught:
        console.print(command._table([run]))
    assert "Ann [2J is nobody" in caught.get()


def test_only_runs_can_be_explained() -> None:
    ended = call("explain", "show")
    assert ended.status == 2
    assert "'show' is not 'run'" in ended.err
