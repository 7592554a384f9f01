"""Runs with bounds, samples and second tries: what the settings of `flows.model` do to a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cache import Reason, Store
from flows import model
from flows.cli import _joined
from flows.commands.run import command as run_command
from flows.options import settings_from
from flows.settings import BATCH, BATCH_FILE, LIVE, Endpoint
from flows.tolerance import Tolerance
from rectom.errors import BudgetReached, SettingsError, TooManyFailures
from rectom.llm import ChatClient, Sampling, Timeouts
from rectom.llm.batch import BatchTransport, Pace
from rectom.llm.batch_file import BatchFileTransport, BatchPending
from rectom.llm.budget import Budget
from rectom.llm.prices import Prices
from tests.batch_server import BatchServer, Cluster
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Lab, serving, write_stories
from tests.test_bigtom import ROW
from tests.test_llm_batch import by_rule


class Plain(FakeOpenAI):
    """Takes no reply schemas."""

    refused = 0

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "response_format" in body:
            self.refused += 1
            return web.json_response({"error": {"message": "response_format is not supported here"}}, status=400)
        titles = {"You turn the lines": "abstract", "You read a question": "chain", "You reduce": "reduce"}
        titles |= {"You decide where": "observe_states", "You decide which": "observe_events"}
        titles |= {"You decide whether": "revise", "You answer": "answer"}
        system = body["messages"][0]["content"]
        step = next(name for title, name in titles.items() if system.startswith(title))
        self.asked[step] += 1
        return web.json_response(
            self._completion(body, f"Here it is:\n```json\n{json.dumps(self._reply(step, body))}\n```")
        )


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with serving(FakeOpenAI()) as server:
        yield Lab(tmp_path, write_stories(tmp_path), server)


def test_samples_are_asked_one_by_one_and_kept_apart(lab: Lab) -> None:
    once = lab.asked_by(lab.run)
    hot = Sampling(temperature=1.0)
    thrice = lab.asked_by(lambda: lab.run(samples=3, sampling=hot))
    assert thrice == {step: 3 * count for step, count in once.items()}
    done = lab.run(samples=3, sampling=hot)
    assert done.line["calls"]["sent"] == 0
    assert done.line["questions"] == 3 * SMALL_QUESTIONS
    assert [line["id"] for line in lab.results(done)][::SMALL_QUESTIONS] == ["0#1", "0#2", "0#3"]
    assert not lab.asked_by(lambda: lab.run(samples=2, sampling=hot))


def test_a_bound_on_calls_stops_the_run_and_the_next_one_goes_on(lab: Lab) -> None:
    def stopped() -> None:
        with pytest.raises(BudgetReached, match="--max-calls"):
            lab.run(budget=Budget(calls=20), name="bounded")

    assert lab.asked_by(stopped).total() == 20
    manifest = json.loads((lab.runs / "bounded" / "manifest.json").read_text())
    assert manifest["state"] == "stopped"
    whole = lab.asked_by(lambda: lab.run(name="bounded"))
    assert whole.total() + 20 == lab.server.asked.total()
    assert not lab.asked_by(lab.run)


def test_too_many_failures_stop_the_run_and_say_why(lab: Lab) -> None:
    lab.server.broken = "reduce"
    with pytest.raises(TooManyFailures, match=r"3 of 12 questions failed, 2 may: 3 at reduce \(no usable reply"):
        lab.run(tolerance=Tolerance(count=2))
    assert lab.run(tolerance=Tolerance(share=0.8)).line["failed"] == 9


def test_too_many_failures_leave_what_is_with_the_server_to_be_kept(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    halted: list[Exception] = []

    class Noted(ChatClient):
        def halt(self, error: Exception) -> None:
            halted.append(error)
            super().halt(error)

    monkeypatch.setattr(model, "ChatClient", Noted)
    lab.server.broken = "reduce"
    with pytest.raises(TooManyFailures):
        lab.run(tolerance=Tolerance(count=2))
    assert isinstance(halted[0], TooManyFailures)


def test_only_what_failed_is_asked_again(lab: Lab) -> None:
    lab.server.broken = "chain"
    assert lab.run().line["failed"] == 9
    lab.server.broken = ""
    assert not lab.asked_by(lab.run)
    again = lab.asked_by(lambda: lab.run(retry_failed=True))
    assert again["chain"] == 9
    assert again["abstract"] == 0
    done = lab.run()
    assert (done.line["failed"], done.line["correct"], done.line["calls"]["sent"]) == (0, SMALL_QUESTIONS, 0)


def test_what_failed_is_asked_again_whatever_was_run_in_the_meantime(lab: Lab) -> None:
    lab.server.broken = "chain"
    lab.run()
    lab.server.broken = ""
    lab.run(revision="2")
    assert lab.asked_by(lambda: lab.run(retry_failed=True))["chain"] == 9


def test_a_reply_may_take_as_long_as_is_said(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Timeouts] = []

    class Noted(ChatClient):
        def __init__(self, *arguments: Any, timeouts: Timeouts, **options: Any) -> None:
            given.append(timeouts)
            super().__init__(*arguments, timeouts=timeouts, **options)

    monkeypatch.setattr(model, "ChatClient", Noted)
    lab.run(endpoint=Endpoint(lab.server.base_url, timeout_s=1800))
    # The reply begins when the model has ended.
    assert {(limits.first_byte, limits.total) for limits in given} == {(1800, 1800)}


def test_another_method_is_told_the_rules_in_words_if_some_are_named(lab: Lab) -> None:
    lab.server.keep_bodies = True
    said: list[str] = []
    for rules in ("", "waiting-absent", "literal"):
        lab.run(method="direct", rules=rules)
        said.append(lab.server.bodies[-1]["messages"][1]["content"])
    assert [text.startswith("Assumptions:\n(1)") for text in said] == [True] * 3
    assert ["The waiting_room is no place from which" in text for text in said] == [False, True, False]
    assert ["The waiting_room is a room like any other." in text for text in said] == [False, False, True]


def test_rules_without_words_are_refused_for_another_method(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "bigtom.csv").write_text(";".join(ROW) + "\n")
    with pytest.raises(SettingsError, match="the rules of bigtom have no words: leave --rules out for cot"):
        lab.run(method="cot", rules="hitom", benchmark="bigtom", subset="400", data=tmp_path / "bigtom.csv")


def test_money_is_told_where_the_price_is_known(lab: Lab) -> None:
    prices = Prices(input=Decimal(1_000_000), output=Decimal(0), date=date(2026, 5, 21))
    done = lab.run(budget=Budget(prices=prices))
    assert done.money.billed == done.money.whole == done.line["tokens"]["prompt"]
    again = lab.run(budget=Budget(prices=prices))
    assert (again.money.billed, again.money.whole) == (Decimal(0), done.money.whole)
    assert lab.run().money.whole is None


def test_the_steps_of_a_run_add_up(lab: Lab) -> None:
    lab.server.broken = "reduce"
    done = lab.run()
    steps = json.loads((done.report.parent / "manifest.json").read_text())["steps"]
    assert sum(step["calls"] for step in steps.values()) == done.line["calls"]["sent"]
    assert steps["reduce"]["repairs"] == 18
    assert sum(step["prompt"] for step in steps.values()) == done.line["tokens"]["prompt"]


def test_a_server_without_schemas_is_found_out_once_and_remembered(tmp_path: Path) -> None:
    with serving(Plain()) as server:
        lab = Lab(tmp_path, write_stories(tmp_path), server)
        assert lab.run().line["correct"] == SMALL_QUESTIONS
        assert server.refused > 0
        before = server.refused
        lab.run(revision="another")
        assert server.refused == before
        lab.run(revision="third", endpoint=Endpoint(server.base_url, structured="json_schema"))
        assert server.refused > before


@pytest.mark.parametrize("noted", [{}, {"fields": {}, "outcome": "ok"}, {"structured": "no such way"}])
def test_a_note_that_is_none_is_not_remembered(tmp_path: Path, noted: dict[str, Any]) -> None:
    endpoint = Endpoint("http://localhost/v1")
    with Store(tmp_path) as store:
        store.put_now("latest", model._place(endpoint, "fake"), noted)
        assert model._remembered(store, endpoint, "fake") == "json_schema"


def test_a_cluster_without_a_server_is_asked_through_files(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "BatchFileTransport", partial(BatchFileTransport, quiet_s=0.05))
    folder, cluster = lab.folder / "files", Cluster(by_rule)
    through = Endpoint(transport=BATCH_FILE, folder=folder)
    passes = 0
    while True:
        try:
            done = lab.run(endpoint=through)
            break
        except BatchPending:
            passes += 1
            newest = max(folder.glob("requests-*.jsonl"))
            newest.with_name(newest.name.replace("requests", "results")).write_bytes(cluster.run(newest.read_bytes()))
    assert done.line["correct"] == SMALL_QUESTIONS
    assert set(cluster.ran.values()) == {1}
    assert 4 <= passes <= 12
    assert not lab.asked_by(lab.run)


def test_the_batch_api_gives_what_live_calls_give(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace(quiet=0.05, first=0.01, longest=0.05)
    monkeypatch.setattr(model, "BatchTransport", partial(BatchTransport, pace=pace))
    with serving(BatchServer(answer=by_rule)) as server:
        done = lab.run(endpoint=Endpoint(server.url, "sk-planted", transport=BATCH))
        assert done.line["correct"] == SMALL_QUESTIONS
        assert sum(server.sizes) == done.line["calls"]["sent"]
    assert not lab.asked_by(lab.run)
    assert not any(b"sk-planted" in path.read_bytes() for path in lab.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("through", [Endpoint(transport=BATCH), Endpoint(transport=BATCH_FILE, folder=Path("files"))])
def test_where_nothing_is_sent_no_transport_is_made_and_no_address_needed(
    lab: Lab, through: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run()
    monkeypatch.setattr(model, "_transport", pytest.fail)
    planned = lab.plan(endpoint=through)
    assert {verdict.reason for verdict in planned.verdicts.values()} == {Reason.HIT}
    with Store(lab.store) as store:
        assert isinstance(model.idle_client(lab.settings(endpoint=through), store), ChatClient)


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["live"], (LIVE, None)), (["batch"], (BATCH, None)), (["batch-file", "there"], (BATCH_FILE, Path("there")))],
)
def test_the_transport_is_read(words: list[str], meant: tuple[str, Path | None]) -> None:
    joined = _joined(["run", "--transport", *words, "--plain"])
    endpoint = settings_from(click_context(joined[1:-1])).endpoint
    assert (endpoint.transport, endpoint.folder) == meant


def click_context(arguments: list[str]) -> dict[str, Any]:
    """The options that `rectom run` reads."""
    options = run_command.make_context("run", arguments).params
    return {name: value for name, value in options.items() if name not in {"plain", "as_json"}}
