from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cache import Store
from flows.evaluate import benchmark_of, load_benchmark
from flows.purse import Purse
from flows.settings import Settings
from flows.shared import sharing
from rectom.benchmarks.generate import Recipe
from rectom.errors import DataError, EndpointDown, SettingsError, UnknownModel, WrongKey
from rectom.llm import ChatClient
from rectom.results.folder import RunFolder
from rectom.schemas import world_facts
from rectom.words import words_of
from tests.fake_openai import STEPS, FakeOpenAI
from tests.laboratory import SMALL, SMALL_QUESTIONS, Ended, Lab, call, contents, run_options, serving, write_stories
from tests.test_bigtom import small
from tests.test_reader_rules import WRONG_LABELS

LINE = ["run", "benchmark", "subset", "method", "model", "questions", "different", "correct", "failed"]
LINE += ["accuracy", "by_order", "calls", "tokens", "wall_s"]
CALLS = ["sent", "cached", "shared", "retried"]
TOKENS = ["prompt", "completion", "reasoning", "cached", "billed", "standalone"]
RESULT = [
    *"id story_id order gold predicted correct failed_step calls tokens group ballot".split(),
    *"gold_class predicted_class asked fault".split(),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stories(tmp_path_factory.mktemp("data"))


def missed(results: list[dict[str, Any]]) -> list[int]:
    return [int(result["id"]) for result in results if not result["correct"]]


def without(line: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in names}


def unsourced(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without where its replies came from."""
    return {**trace, "calls": [without(call_, "source") for call_ in trace["calls"]]}


# The real benchmark.


def test_a_model_that_never_errs_scores_583_of_600_over_http_and_misses_the_wrong_labels(
    tmp_path: Path, hitom_file: Path
) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, hitom_file, server)
        done = lab.run()
        sent = server.asked.total()
        results = lab.results(done)
        assert (done.line["questions"], done.line["correct"], done.line["failed"]) == (600, 583, 0)
        assert missed(results) == WRONG_LABELS
        assert done.line["calls"]["sent"] == sent == done.cost.sent
        assert sum(result["calls"] for result in results) == sent + done.line["calls"]["shared"]
        # A part of the same questions: everything is in the store.
        part = lab.run(subset="400")
        assert server.asked.total() == sent
    assert (part.line["questions"], part.line["correct"], part.line["calls"]["sent"]) == (400, 393, 0)
    by_order = {order: group["correct"] for order, group in part.line["by_order"].items()}
    assert by_order == {"0": 80, "1": 80, "2": 78, "3": 77, "4": 78}
    assert part.line["calls"]["cached"] / 400 <= 5.0
    by_id = {result["id"]: result for result in results}
    assert all(by_id[result["id"]] == result for result in lab.results(part))
    # What went wrong there are the labels.
    wrong = {result["id"]: result["fault"] for result in lab.results(part) if not result["correct"]}
    assert wrong.keys() <= set(map(str, WRONG_LABELS))
    assert list(wrong.values()) == ["label"] * 7


def test_the_rules_alone_give_the_same_score_without_a_call(tmp_path: Path, hitom_file: Path) -> None:
    lab = Lab(tmp_path, hitom_file)
    done = lab.run(model="rules")
    assert missed(lab.results(done)) == WRONG_LABELS
    assert done.line["calls"] == dict.fromkeys(CALLS, 0)
    assert done.line["tokens"] == dict.fromkeys(TOKENS, 0)
    assert done.line["model"] == "rules"


# The numbers of a run.


def test_the_line_and_the_results_hold_exactly_what_they_are_said_to(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
    line, results = done.line, lab.results(done)
    assert list(line) == LINE
    assert list(line["calls"]) == CALLS
    assert list(line["tokens"]) == TOKENS
    assert all(list(result) == RESULT for result in results)
    identity = {"benchmark": "hitom", "subset": "cotp", "method": "rectom", "model": "fake"}
    assert without(line, *LINE[5:], "run") == identity
    assert line["run"] == done.report.parent.name
    assert line["accuracy"] == 1.0
    assert line["by_order"] == {str(k): {"questions": 3, "correct": 3} for k in range(4)}
    assert line["wall_s"] > 0
    assert lab.seen
    assert [result["id"] for result in results] == [question.id for question in lab.seen.benchmark.questions]
    for result, question in zip(results, lab.seen.benchmark.questions, strict=True):
        assert (result["story_id"], result["order"], result["gold"]) == (
            question.story_id,
            question.order,
            question.gold,
        )
        assert (result["predicted"], result["correct"], result["failed_step"]) == (question.gold, True, None)


def test_calls_and_tokens_add_up(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(keep_bodies=True)) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
        again = lab.run()
    for line, sent in ((done.line, server.asked.total()), (again.line, 0)):
        calls, tokens = line["calls"], line["tokens"]
        results = lab.results(done)
        assert calls["sent"] == sent
        assert sum(result["calls"] for result in results) == calls["sent"] + calls["cached"] + calls["shared"]
        assert sum(result["tokens"] for result in results) == tokens["standalone"]
        assert tokens["billed"] == (tokens["prompt"] + tokens["completion"] if sent else 0)
        assert tokens["standalone"] > tokens["prompt"] + tokens["completion"]
    # The server's own count.
    written = sum(sum(len(m["content"]) for m in body["messages"]) // 4 for body in server.bodies)
    assert done.line["tokens"]["prompt"] == written


def test_a_rerun_sends_nothing_and_says_the_same(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
        results, traces, sent = lab.results(done), lab.traces(done), server.asked.total()
        again = lab.run()
        assert server.asked.total() == sent
    assert again.report == done.report
    assert lab.results(again) == results
    # Two questions may have computed one result at once: only the one that sent stays in the store.
    assert {id_: unsourced(trace) for id_, trace in lab.traces(again).items()} == {
        id_: unsourced(trace) for id_, trace in traces.items()
    }
    assert without(again.line, "calls", "tokens", "wall_s") == without(done.line, "calls", "tokens", "wall_s")
    assert again.line["calls"] == {**done.line["calls"], "sent": 0, "cached": sent}
    assert again.line["tokens"] == {**done.line["tokens"], "billed": 0}


def test_no_request_is_sent_twice(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(keep_bodies=True, latency_s=0.01)) as server:
        Lab(tmp_path, data, server).run(window=1)
    sent = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
    assert set(sent.values()) == {1}


def test_line_by_line_every_different_line_is_asked_once(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run(window=1)
    assert lab.seen
    lines = [line for story in lab.seen.benchmark.stories for line in story.lines]
    assert len(set(lines)) < len(lines)
    # But where no fact can be formed.
    assert server.asked["abstract"] == len({line for line in lines if any(world_facts(words_of([line])))})
    assert done.line["correct"] == SMALL_QUESTIONS


def test_windows_read_the_same_as_the_whole_story(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        traces = [lab.traces(lab.run(window=window)) for window in (None, 1, 5)]
    parts = [{id_: without(trace, "calls") for id_, trace in of.items()} for of in traces]
    assert parts[0] == parts[1] == parts[2]


def test_model_and_rules_leave_the_same_traces(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        asked, read = lab.traces(lab.run()), lab.traces(lab.run(model="rules"))
    assert {id_: without(trace, "calls") for id_, trace in asked.items()} == {
        id_: without(trace, "calls") for id_, trace in read.items()
    }


@pytest.mark.parametrize("step", ["abstract", "chain", "observe", "revise", "reduce", "answer"])
def test_any_step_alone_can_be_given_to_the_rules_or_to_the_model(tmp_path: Path, data: Path, step: str) -> None:
    prompts = {"observe": {"observe_states", "observe_events"}}.get(step, {step})
    others = {name: "rules" for name in ("abstract", "chain", "observe", "revise", "reduce", "answer") if name != step}
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        assert lab.run(readers=others).line["correct"] == SMALL_QUESTIONS
        assert set(server.asked) == prompts
        server.asked.clear()
        assert lab.run(readers={step: "rules"}).line["correct"] == SMALL_QUESTIONS
        assert not prompts & set(server.asked)


@pytest.mark.parametrize("recipe", [Recipe(2, 3, True, 4, 3, "fresh", "now"), Recipe(2, 1, False, 8, 4, "fresh")])
def test_stories_with_other_names_wordings_and_orders_are_read(tmp_path: Path, recipe: Recipe) -> None:
    with serving(FakeOpenAI()) as server:
        done = Lab(tmp_path, write_stories(tmp_path, recipe), server).run()
    assert done.line["correct"] == done.line["questions"] == 2 * (recipe.max_order + 1)


def test_a_limit_cuts_the_questions_and_their_stories(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run(limit=2)
    assert [result["id"] for result in lab.results(done)] == ["0", "1"]
    assert server.asked["abstract"] == len({result["story_id"] for result in lab.results(done)})


def test_the_same_stories_are_drawn_in_whatever_dress_they_come() -> None:
    plain = Settings(benchmark="fresh", subset="400", stories=10, seed=7)
    drawn = [load_benchmark(settings).stories for settings in (plain, replace(plain, permuted=("choices", "names")))]
    assert drawn[0] != drawn[1]
    assert len({story.id.partition("+")[0] for stories in drawn for story in stories}) == 10


def test_a_permuted_run_is_set_beside_the_plain_one_over_the_same_file(tmp_path: Path, data: Path) -> None:
    (tmp_path / "other").mkdir()
    other = write_stories(tmp_path / "other", replace(SMALL, stories=1))
    permuted = {"model": "rules", "permuted": ("names",), "seed": 7}
    Lab(tmp_path, other).run(model="rules")
    assert Lab(tmp_path, data).run(**permuted).unpermuted is None
    plain = Lab(tmp_path, data).run(model="rules")
    assert Lab(tmp_path, data).run(**permuted).unpermuted == plain.line


def test_stories_are_drawn_by_seed_and_the_run_says_so(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done, other = lab.run(stories=1, seed=1), lab.run(stories=1, seed=3)
    assert done.line["subset"] == "cotp+stories.1.1"
    drawn = [{result["story_id"] for result in lab.results(ended)} for ended in (done, other)]
    assert [len(stories) for stories in drawn] == [1, 1]
    assert drawn[0] != drawn[1]
    assert done.report != other.report
    with pytest.raises(SettingsError, match=r"--stories 99: hitom/cotp has \d+ stories; give fewer, or leave it out"):
        Lab(tmp_path, data).run(model="rules", stories=99)


# A step that is answered wrongly.


def differences(trace: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """The parts of a trace that differ, in the order of Algorithm 1."""

    def along(name: str) -> Callable[[dict[str, Any]], Any]:
        return lambda of: [perspective[name] for perspective in of["perspectives"]]

    parts: dict[str, Callable[[dict[str, Any]], Any]] = {
        "abstract": lambda of: of["events"],
        "chain": lambda of: of["chain"],
        "reduce": lambda of: of["reduced"],
        "observe_states": along("vantage"),
        "observe_events": along("events"),
        "revise": along("deltas"),
        "answer": lambda of: of["predicted"],
    }
    return [name for name, part in parts.items() if part(trace) != part(right)]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory, data: Path) -> dict[str, dict[str, Any]]:
    """The traces by rule."""
    lab = Lab(tmp_path_factory.mktemp("rules"), data)
    return lab.traces(lab.run(model="rules"))


@pytest.mark.parametrize("step", STEPS)
def test_a_step_answered_wrongly_shows_where_it_went_wrong(
    tmp_path: Path, data: Path, step: str, right: dict[str, dict[str, Any]]
) -> None:
    with serving(FakeOpenAI(wrong=step)) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
    assert done.line["questions"] == SMALL_QUESTIONS
    assert done.line["correct"] < SMALL_QUESTIONS
    assert done.line["failed"] == 0
    found = {id_: differences(trace, right[id_]) for id_, trace in lab.traces(done).items()}
    firsts = {parts[0] for parts in found.values() if parts}
    assert firsts == {step}
    wrong = {result["id"] for result in lab.results(done) if not result["correct"]}
    assert wrong <= {id_ for id_, parts in found.items() if parts}


# A step that is answered with nonsense.


@pytest.mark.parametrize("step", STEPS)
def test_a_step_answered_with_nonsense_fails_and_is_counted_wrong(tmp_path: Path, data: Path, step: str) -> None:
    with serving(FakeOpenAI(broken=step, keep_bodies=True)) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run(repairs=1)
        sent = server.asked.total()
        results = lab.results(done)
        again = lab.run(repairs=1)
        assert server.asked.total() == sent
    failed = [result for result in results if result["failed_step"]]
    assert len(results) == done.line["questions"] == SMALL_QUESTIONS
    assert failed
    assert {result["failed_step"] for result in failed} == {step}
    assert {(result["predicted"], result["correct"]) for result in failed} == {(None, False)}
    assert all(result["correct"] for result in results if not result["failed_step"])
    assert done.line["failed"] == len(failed) == SMALL_QUESTIONS - done.line["correct"]
    asked = [body["messages"] for body in server.bodies if body["response_format"]["json_schema"]["name"] == step]
    assert Counter(len(messages) for messages in asked) == {2: len(asked) / 2, 4: len(asked) / 2}
    assert sum(result["calls"] for result in results) >= done.line["calls"]["sent"]
    assert lab.results(again) == results
    assert again.line["calls"]["cached"] == sent
    traces = lab.traces(again)
    for result in failed:
        assert traces[result["id"]]["failure"]["step"] == step
        assert "no usable reply in 2 tries" in traces[result["id"]]["failure"]["why"]


def test_only_the_questions_that_need_the_step_fail(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(broken="observe_events")) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
    assert done.line["by_order"]["0"] == {"questions": 3, "correct": 3}
    assert done.line["failed"] == 9
    assert {result["order"] for result in lab.results(done) if result["failed_step"]} == {1, 2, 3}


def test_nonsense_in_one_window_costs_its_story_alone_and_a_rerun_nothing(tmp_path: Path, data: Path) -> None:
    """The other windows of the story are asked to their end, so that no rerun sends what the first run left."""
    with serving(FakeOpenAI(broken="abstract", latency_s=0.01)) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run(window=1)
        sent = server.asked.total()
        again = lab.run(window=1)
        assert server.asked.total() == sent
    assert done.line["failed"] == SMALL_QUESTIONS
    calls = done.line["calls"]
    assert sum(result["calls"] for result in lab.results(again)) == calls["sent"] + calls["shared"]
    assert server.asked["abstract"] % 3 == 0


# The folder of a run.


def test_the_folder_holds_all_that_it_should_and_says_that_it_ended(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        done = Lab(tmp_path, data, server).run()
    folder = done.report.parent
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    tables = {f"tables/{name}.{kind}" for name in ("accuracy", "steps") for kind in ("md", "csv", "tex")}
    assert names == {
        "manifest.json",
        "results.jsonl",
        "traces.jsonl",
        "calls.jsonl.gz",
        "times.csv",
        "report.html",
        "lock",
        *tables,
    }
    manifest = RunFolder(folder).manifest()
    assert manifest["state"] == manifest["sessions"][-1]["state"] == "finished"
    assert manifest["sessions"][-1]["schemas"] == {"json_schema": done.line["calls"]["sent"]}
    assert manifest["summary"] == done.line
    assert {"model", "identity", "rules", "window", "readers", "data"} <= manifest["settings"].keys()
    assert server.base_url not in json.dumps(manifest)
    assert "| all | 12 | 12 | 100.00 |" in (folder / "tables" / "accuracy.md").read_text()


def test_a_line_that_a_crash_tore_off_is_made_whole(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        done = lab.run()
        results = lab.results(done)
        for name in ("results.jsonl", "traces.jsonl"):
            file = done.report.parent / name
            file.write_bytes(file.read_bytes()[:-25])
        assert len(RunFolder(done.report.parent).results()) == len(results) - 1
        assert lab.results(lab.run()) == results


def test_what_a_mended_run_has_not_any_more_is_not_in_its_folder(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(broken="chain")) as server:
        lab = Lab(tmp_path, data, server)
        folder = lab.run().report.parent
        page = folder / "report-2.html"
        page.touch()  # of a run that had more questions
        assert (folder / "tables" / "faults.md").exists()
        server.broken = ""
        assert lab.run(retry_failed=True).line["failed"] == 0
    assert not [*folder.glob("tables/faults.*")]
    assert not page.exists()
    assert (folder / "report.html").exists()


def test_a_run_that_is_interrupted_when_all_is_answered_has_its_books(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_shown: object) -> dict[str, bytes]:
        raise KeyboardInterrupt

    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        with monkeypatch.context() as patch:
            patch.setattr("flows.evaluate.report.pages", interrupted)
            with pytest.raises(KeyboardInterrupt):
                lab.run(name="cut")
        manifest = RunFolder(lab.runs / "cut").manifest()
        assert (manifest["state"], manifest["sessions"][-1]["state"]) == ("interrupted", "interrupted")
        assert manifest["sessions"][-1]["sent"] == server.asked.total()
        assert lab.run(name="cut").line["calls"]["sent"] == 0


def test_what_comes_after_a_run_is_finished_changes_nothing_of_it(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = ChatClient.aclose

    async def interrupted(client: ChatClient) -> None:
        await close(client)
        raise asyncio.CancelledError

    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        monkeypatch.setattr(ChatClient, "aclose", interrupted)
        with pytest.raises(asyncio.CancelledError):
            lab.run(name="late")
    manifest = RunFolder(lab.runs / "late").manifest()
    assert (manifest["state"], manifest["sessions"][-1]["state"]) == ("finished", "finished")
    assert manifest["summary"]["correct"] == SMALL_QUESTIONS


def test_what_no_rule_reads_is_refused_also_where_a_model_has_read_it(tmp_path: Path) -> None:
    asked = Lab(tmp_path, small(tmp_path, {})).settings(benchmark="bigtom", subset="400")
    with sharing(tmp_path / "store", Purse(), []) as shared:
        assert benchmark_of(asked, shared).questions
        with pytest.raises(SettingsError, match="no rule reads bigtom, which follows no grammar: give --model NAME"):
            benchmark_of(replace(asked, model="rules"), shared)


def test_a_name_that_another_run_has_is_refused(tmp_path: Path, data: Path) -> None:
    lab = Lab(tmp_path, data)
    lab.run(model="rules", name="mine")
    with pytest.raises(SettingsError, match=r"mine holds a run with other settings \(rules\); choose another --name"):
        lab.run(model="rules", name="mine", rules="literal")


@pytest.mark.parametrize("model", ["rules", "fake"])
def test_settings_that_differ_get_folders_of_their_own(tmp_path: Path, data: Path, model: str) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        reports = {lab.run(model=model, **more).report for more in ({}, {"rules": "literal"}, {"limit": 3})}
    assert len(reports) == 3


# What ends a run.


def test_a_server_that_is_gone_ends_the_run_and_the_manifest_says_so(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        pass
    lab = Lab(tmp_path, data, server)
    with pytest.raises(EndpointDown):
        lab.run(name="gone")
    manifest = RunFolder(lab.runs / "gone").manifest()
    assert manifest["state"] == "failed"
    assert "summary" not in manifest


class OutOfCredit(FakeOpenAI):
    """Refuses the first request when it has others, and replies later to these."""

    def __init__(self) -> None:
        super().__init__()
        self.others = asyncio.Event()

    async def _completed(self, request: web.Request) -> web.Response:
        if self.in_flight == 1:
            await self.others.wait()
            return web.json_response({"error": {"message": "no credit", "code": "insufficient_quota"}}, status=429)
        self.others.set()
        await asyncio.sleep(0.3)
        return await super()._completed(request)


def test_what_is_waited_for_when_a_run_ends_is_in_its_books(tmp_path: Path, data: Path) -> None:
    with serving(OutOfCredit()) as server:
        lab = Lab(tmp_path, data, server)
        with pytest.raises(WrongKey):
            lab.run(name="spent")
    manifest = RunFolder(lab.runs / "spent").manifest()
    with Store(lab.store) as store:
        kept = [reply["usage"]["prompt"] for _, reply in store.iterate("reply") if reply]
    assert manifest["state"] == "failed"
    assert len(kept) == server.asked.total() > 0
    assert manifest["sessions"][-1]["prompt"] == sum(kept)


def test_a_run_that_was_ended_by_its_server_goes_on_where_it_was(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        whole = lab.run(readers={"answer": "rules"}).line["calls"]["sent"]
        server.model = "moved away"
        with pytest.raises(UnknownModel):
            lab.run()
        server.model = "fake"
        done = lab.run()
    assert done.line["correct"] == SMALL_QUESTIONS
    assert server.asked["abstract"] == SMALL.stories
    assert done.line["calls"]["cached"] >= whole


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subset": "nosuch"}, "hitom has no subset 'nosuch'"),
        ({"data": Path("/nowhere.json")}, r"no hitom data \(Hi-ToM_data.json\) at /nowhere.json; give --data PATH"),
    ],
)
def test_data_that_is_not_there_is_named(tmp_path: Path, data: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Lab(tmp_path, data).run(model="rules", **changes)


def test_another_benchmark_is_named(tmp_path: Path, data: Path) -> None:
    with pytest.raises(DataError, match="there is no benchmark 'tomato'; there are hitom, fresh, bigtom"):
        Lab(tmp_path, data).run(benchmark="tomato")


# Through the command line.


def run(lab: Lab, *more: object, **ours: str) -> Ended:
    return call("run", *run_options(lab), "--plain", "--json", *more, **ours)


def test_the_command_ends_with_the_line_alone_on_standard_output(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        ended = run(lab)
    assert ended.status == 0
    assert len(ended.out.splitlines()) == 1
    assert list(ended.line) == LINE
    assert "report.html" in ended.err
    manifest = RunFolder(lab.runs / ended.line["run"]).manifest()
    assert manifest["summary"] == ended.line


def test_failed_questions_are_exit_status_three(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI(broken="answer")) as server:
        ended = run(Lab(tmp_path, data, server))
    assert ended.status == 3
    assert ended.line["failed"] == SMALL_QUESTIONS
    assert "failed, and counted as wrong: 12 at answer (no usable reply in 3 tries" in ended.err


def test_the_key_is_nowhere(tmp_path: Path, data: Path) -> None:
    key = "sk-planted-0123456789abcdef"
    with serving(FakeOpenAI(broken="answer", keep_bodies=True)) as server:
        lab = Lab(tmp_path, data, server)
        ended = run(lab, "--default-sampling", OPENAI_API_KEY=key)
        server.model = "moved away"
        refused = run(lab, "--name", "other", "--model-identity", "other", OPENAI_API_KEY=key)
    assert refused.status == 1
    said = ended.out + ended.err + refused.out + refused.err + json.dumps(server.bodies) + contents(lab.store)
    assert "planted" not in said
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        assert b"planted" not in file.read_bytes(), file


def test_lite_asks_the_model_for_the_abstraction_alone_and_scores_the_same(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        lite = lab.run(method="rectom-lite")
        assert lite.line["correct"] == SMALL_QUESTIONS
        assert lite.line["calls"]["sent"] == SMALL.stories
        assert {call["step"] for trace in lab.traces(lite).values() for call in trace["calls"]} == {"abstract"}
        full = lab.run()
    # The abstraction that the other run asked for is not asked for again.
    assert full.line["calls"]["cached"] == SMALL.stories
    asked = [call for trace in lab.traces(full).values() for call in trace["calls"] if call["step"] == "abstract"]
    assert lite.line["tokens"]["standalone"] == sum(call["prompt"] + call["completion"] for call in asked)


def test_lite_takes_less_than_half_of_the_tokens_over_the_orders_that_hitom_asks(tmp_path: Path) -> None:
    to_order_4 = write_stories(tmp_path, replace(SMALL, max_order=4))
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, to_order_4, server)
        lite, full = (lab.run(method=method).line["tokens"]["standalone"] for method in ("rectom-lite", "rectom"))
    assert lite < full / 2


def test_a_verified_run_of_a_model_that_never_errs_is_the_same_run(tmp_path: Path, data: Path) -> None:
    with serving(FakeOpenAI()) as server:
        lab = Lab(tmp_path, data, server)
        plain, verified = lab.run(), lab.run(verify=True)
    assert verified.line["correct"] == plain.line["correct"] == SMALL_QUESTIONS
    assert verified.line["calls"]["sent"] == 0
