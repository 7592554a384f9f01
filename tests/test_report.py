from __future__ import annotations

import base64
import dataclasses
import re
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
import pytest

from rectom.benchmarks.generate import Recipe
from rectom.errors import DataError
from rectom.events import persistent, public_claim
from rectom.facts import in_room, inside
from rectom.results.drawing import Drawing
from rectom.results.outcome import Outcome, Trace
from rectom.results.page_data import parts_of
from rectom.results.paged import questions_of
from rectom.results.report import Paged, pages
from rectom.results.summary import Cost, summary_line
from tests.conftest import generated
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Lab, serving, write_stories
from tests.test_show import CALL, of_row, stopped, told

IDENTITY = {"run": "night", "benchmark": "hitom", "subset": "400", "method": "rectom", "model": "m"}
STEPS = ("abstract", "chain", "observe", "revise", "reduce", "answer")
BY_RULE: dict[str, Any] = {
    "benchmark": "hitom/400",
    "limit": None,
    "method": "rectom",
    "rules": "hitom",
    "readers": dict.fromkeys(STEPS, "rules"),
    "model": "rules",
    "data": "1c4077bbcdf815b91dbb791b60dbce3920a98bd63317954ebf94a532d43cd573",
}
BY_MODEL = {
    **BY_RULE,
    "limit": 20,
    "readers": {**dict.fromkeys(STEPS, "model"), "observe": "rules"},
    "model": "some/model",
    "identity": "some/model@fp8",
    "revision": "abc",
    "temperature": 0.0,
    "top_p": None,
    "top_k": 20,
    "max_tokens": None,
    "repairs": 2,
    "window": 5,
}


class Page(HTMLParser):
    """A page as a browser takes it apart: its tags, its text, and what stands in each script."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._within = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = tag
        if tag == "script":
            self.scripts.append("")
        elif tag in {"td", "dt", "dd", "tr", "th", "li", "p", "option"}:
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within != "style":
            self.text += data

    @property
    def data(self) -> Any:
        return unpacked(self.scripts[0])

    @property
    def index(self) -> Any:
        return unpacked(self.scripts[1])

    @property
    def policy(self) -> str:
        (content,) = (a["content"] for _, a in self.tags if a.get("http-equiv") == "Content-Security-Policy")
        return content or ""

    @property
    def shown(self) -> str:
        return " ".join(self.text.split())


def unpacked(letters: str) -> Any:
    return orjson.loads(zlib.decompress(base64.b64decode(letters, validate=True)))


def outcome_of(trace: Trace, order: int | None = 1) -> Outcome:
    failed = trace.failure["step"] if trace.failure else None
    correct = trace.predicted == trace.gold and not failed
    return Outcome(trace.id, trace.story_id, order, trace.gold, trace.predicted, correct, failed, len(trace.calls), 9)


def run_of(
    traces: Sequence[Trace],
    settings: Mapping[str, Any] = BY_RULE,
    *,
    name: str = "night",
    cost: Cost | None = None,
    calls: Mapping[str, Mapping[str, Any]] | None = None,
    **identity: str,
) -> Paged:
    outcomes = [dataclasses.replace(outcome_of(trace), fault=(trace.fault or {}).get("step", "")) for trace in traces]
    line = summary_line({**IDENTITY, **identity}, outcomes, cost or Cost(), 3.14159)
    return Paged(line, settings, outcomes, traces, calls or {}, name)


def drawn(traces: Sequence[Trace], settings: Mapping[str, Any] = BY_RULE, **more: Any) -> str:
    """The page of one run, which is one file."""
    (html,) = pages([run_of(traces, settings, **more)]).values()
    return html.decode()


def synthetic() -> list[Trace]:
    """400 questions about 80 stories of two chapters with claims, each with seventeen calls."""
    traces = []
    for number, row in enumerate(generated(Recipe(stories=80, chapters=2, seed=7))):
        calls: list[Mapping[str, Any]] = [
            {**CALL, "key": sha256(f"{number}/{call}".encode()).hexdigest()} for call in range(17)
        ]
        traces.append(dataclasses.replace(of_row(row), calls=calls))
    return traces


@pytest.fixture(scope="module")
def many() -> list[Trace]:
    return synthetic()


@pytest.fixture(scope="module")
def whole(many: list[Trace]) -> str:
    return drawn(many)


def test_every_question_is_in_the_page_and_the_page_is_small(many: list[Trace], whole: str) -> None:
    assert [question["id"] for question in Page(whole).data["questions"]] == [trace.id for trace in many]
    assert len(whole.encode()) < 500_000


def test_the_page_holds_what_a_drawing_shows_and_shares_it(many: list[Trace], whole: str) -> None:
    data = Page(whole).data
    for trace, question in zip(many, data["questions"], strict=True):
        drawing = Drawing.of(trace.to_json())
        (answer,) = question["answers"]
        assert data["stories"][question["story"]] == list(drawing.lines)
        assert data["events"][answer["events"]] == list(map(list, drawing.events))
        for place, column in zip(answer["columns"], drawing.columns, strict=True):
            chain, cells, final = data["columns"][place]
            assert (tuple(chain), tuple(final)) == (column.chain, column.final)
            assert [data["cells"][cell] for cell in cells] == [
                [cell.mark, cell.where, list(cell.holds), list(cell.changes)] for cell in column.cells
            ]
    assert len(data["stories"]) == 80
    assert len(data["columns"]) < sum(len(question["answers"][0]["columns"]) for question in data["questions"])


def test_the_page_needs_no_network_and_may_use_none(many: list[Trace]) -> None:
    html = drawn(many[:5])
    for tag, attributes in Page(html).tags:
        assert not {"src", "srcset", "action", "data", "onclick"} & attributes.keys(), tag
        assert attributes.get("href", "#detail") == "#detail"
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert not re.search(r"(https?:)?//[a-z]|@import|url\(", re.sub(r"^\s*// .*$", "", html, flags=re.M))
    policy = Page(html).policy
    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"[\w-]+-src", policy)) == {"default-src", "style-src", "script-src"}


def test_the_policy_allows_the_script_of_the_page_and_no_other(many: list[Trace]) -> None:
    parsed = Page(drawn(many[:1]))
    digest = base64.b64encode(sha256(parsed.scripts[2].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in parsed.policy
    types = [attributes.get("type") for tag, attributes in parsed.tags if tag == "script"]
    assert types == ["application/octet-stream", "application/octet-stream", None]


def test_the_script_never_reads_data_as_markup() -> None:
    script = Page(drawn([])).scripts[2]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|fetch|XMLHttp", script)


def test_markup_in_stories_names_and_replies_stays_text() -> None:
    evil = "</script><img src=x onerror=alert(1)><!--<script>"
    events = (
        persistent([in_room("Anne", "hall"), in_room("O'Neil", "hall")]),
        persistent([inside("ball", "box")]),
        public_claim("O'Neil", inside("ball", "bag")),
    )
    lines = (f'Anne and "O\'Neil" entered {evil}', "The ball is in the box.", f"O'Neil claimed {evil} \u2028")
    trace = dataclasses.replace(
        told(f"Where is {evil}?", lines, events=events, chain=["O'Neil"]),
        id=evil,
        story_id=evil,
        choices=[evil, "box"],
        gold=evil,
        predicted=evil,
        calls=[{**CALL, "step": evil}],
        failure={"step": evil, "why": evil},
        fault={"step": evil, "found": evil, "expected": evil, "line": 1, "who": evil, "by": evil},
    )
    said: dict[str, Any] = {"messages": [{"role": evil, "content": evil}], "text": evil, "reasoning": evil}
    run = run_of([trace], {**BY_MODEL, "model": evil, "identity": evil, "extra": evil}, model=evil, name=evil)
    run = dataclasses.replace(
        run, calls={str(CALL["key"]): said}, outcomes=[dataclasses.replace(run.outcomes[0], group=evil)]
    )
    html = pages([run, run])["report.html"].decode()
    parsed = Page(html)
    assert html.count("</script") == html.count("<script") == 3
    assert "<img" not in html
    assert "<!--" not in html
    assert {tag for tag, _ in parsed.tags} <= set(
        "html head meta title style body header h1 p b main section div h3 table tr th span td svg rect path dl dt dd "
        "nav small select option input ol article template ul li script a label kbd details summary".split()
    )
    question = parsed.data["questions"][0]
    assert question["text"] == f"Where is {evil}?"
    assert question["answers"][0]["failure"] == [evil, evil]
    assert parsed.data["stories"][question["story"]] == list(lines)
    assert parsed.data["texts"] == [evil]
    assert evil in parsed.text


def test_accuracy_is_told_by_order_with_intervals() -> None:
    traces = [dataclasses.replace(told("Where is the ball really?"), id=str(n)) for n in range(4)]
    right = [dataclasses.replace(trace, gold=trace.predicted) for trace in traces[1:]]
    outcomes = [outcome_of(trace, order) for order, trace in enumerate([traces[0], *right])]
    outcomes = [*outcomes[:3], dataclasses.replace(outcomes[3], order=None)]
    line = summary_line(IDENTITY, outcomes, Cost(), 1)
    html = pages([Paged(line, BY_RULE, outcomes, [traces[0], *right], {}, "night")])["report.html"].decode()
    assert "3 of 4 questions right: 75.00 %, 95 % interval 30.1 to 95.4 %" in Page(html).shown
    rows = re.findall(r"<tr[^>]*><td>([^<]+)</td><td class=\"n\">(\d of \d)</td>", html)
    assert rows == [("-", "1 of 1"), ("0", "0 of 1"), ("1", "1 of 1"), ("2", "1 of 1"), ("all", "3 of 4")]
    assert html.count('<rect class="fill"') == 5


def test_samples_do_not_narrow_the_intervals() -> None:
    traces = [dataclasses.replace(told("Where is the ball really?"), id=str(n)) for n in range(4)]
    once = [traces[0], *(dataclasses.replace(trace, gold=trace.predicted) for trace in traces[1:])]
    samples = [dataclasses.replace(trace, id=f"{trace.id}#{n}") for n in range(3) for trace in once]
    sampled = run_of(samples, {**BY_RULE, "samples": 3})
    shown, both = (Page(page.decode()).shown for page in (*pages([sampled]).values(), *pages([sampled] * 2).values()))
    assert "9 of 12 questions right: 75.00 %, 95 % interval 30.1 to 95.4 %" in shown
    assert shown.count("30.1 to 95.4") == 3  # in words, of the order and of all
    assert "night 9 of 12 75.00 30.1 to 95.4" in both


def test_failed_questions_are_told_by_step_and_shown_as_far_as_they_came() -> None:
    whole = told("Where does Anne think Bob thinks the ball is?")
    early = dataclasses.replace(stopped(whole, "abstract"), id="early")
    late = dataclasses.replace(stopped(whole, "revise", "chain", "reduced", "events", "world"), id="late")
    parsed = Page(drawn([whole, early, late]))
    assert "Step that failed Questions abstract 1 revise 1" in parsed.shown
    assert "2 failed." in parsed.shown
    assert "failed at revise (1)" in parsed.shown
    questions = {question["id"]: question["answers"][0] for question in parsed.data["questions"]}
    assert [answer["kind"] for answer in questions.values()] == ["right", "failed", "failed"]
    assert (questions["early"]["chain"], questions["early"]["columns"]) == (None, [])
    assert questions["early"]["failure"] == ["abstract", "no [entry] for line 3"]
    assert len(questions["late"]["columns"]) == 1
    assert questions["late"]["missing"] == ["Anne", "Bob"]


def test_a_run_without_failures_does_not_speak_of_them() -> None:
    assert "Failed questions" not in Page(drawn([told("Where is the ball really?")])).shown


def test_a_run_without_questions_has_a_page() -> None:
    parsed = Page(drawn([]))
    assert "0 of 0 questions right." in parsed.shown
    assert "This run has no questions." in parsed.shown
    assert parsed.data["questions"] == []


def test_settings_are_told_in_words() -> None:
    shown = Page(drawn([], {**BY_MODEL, "max_tokens": 512, "samples": 3, "sample": 3})).shown
    for said in (
        "Benchmark hitom/400, the first 20 questions",
        "By the model abstract, chain, revise, reduce, answer",
        "By rule observe",
        "Model some/model, declared to be some/model@fp8, revision abc",
        "Sampling temperature 0.0, top-k 20, most tokens of a reply 512",
        "Samples 3 answers to each question",
        "Abstraction 5 lines at a time",
        "Repairs a reply that breaks a rule of its step is asked for again, 2 times at most",
        "Data sha256 1c4077bbcdf815b9…",
        "sample 3",
    ):
        assert said in shown
    once = Page(drawn([], {**BY_MODEL, "samples": 1})).shown
    assert "samples" not in once.lower()
    assert "By rule every step" in Page(drawn([])).shown


def test_a_page_of_another_method_speaks_of_that() -> None:
    settings = {name: value for name, value in BY_MODEL.items() if name not in {"rules", "readers"}} | {"method": "cot"}
    line = summary_line({**IDENTITY, "method": "cot"}, [], Cost(), 0.0)
    text = Page(pages([Paged(line, settings, [], [], {}, "night")])["report.html"].decode()).text
    assert "cot on hitom/400 with m" in text
    assert "some/model@fp8" in text
    for word in ("RecToM", "Rules", "Abstraction", "Repairs"):
        assert word not in text


def test_calls_and_tokens_are_told_with_their_meaning() -> None:
    cost = Cost(sent=1953, shared=1478, prompt=816228, completion=165201, billed=981429, standalone=2247109)
    shown = Page(drawn([], BY_MODEL, cost=cost)).shown
    assert "sent 1,953 requests that went to the server" in shown
    assert "standalone 2,247,109 what the questions would have cost" in shown
    assert "billed 981,429 prompt and completion, what this run paid for" in shown
    assert "No model was asked." in Page(drawn([])).shown


def test_the_calls_of_a_question_come_with_it_and_texts_stand_once() -> None:
    other = {**CALL, "key": "f" * 64, "step": "answer", "source": "sent", "repair": True}
    asked: dict[str, list[Mapping[str, Any]]] = {"one": [CALL], "two": [CALL, other]}
    traces = [
        dataclasses.replace(told("Where is the ball really?"), id=name, calls=calls) for name, calls in asked.items()
    ]
    said = {"messages": [{"role": "system", "content": "Rules."}], "text": "{}", "reasoning": "", "model": "m"}
    data = Page(drawn(traces, calls={CALL["key"]: said})).data
    one, two = (question["answers"][0]["calls"] for question in data["questions"])
    assert one == [["observe_states", "shared", 570, 107, 0, 0, 0.2805, "ok", False, 0]]
    assert two == [*one, ["answer", "sent", 570, 107, 0, 0, 0.2805, "ok", True, 1]]
    assert data["replies"] == [["0123456789ab", [["system", 0]], 1, None, "m"], ["f" * 12, [], None, None, None]]
    assert data["texts"] == ["Rules.", "{}"]


def test_a_trace_must_go_with_each_outcome() -> None:
    run = run_of([told("Where is the ball really?")])
    with pytest.raises(ValueError, match="zip"):
        pages([dataclasses.replace(run, traces=[])])


# What the rules make of it.


def astray() -> Trace:
    """Anne did not see where the ball was put, says the model; the rules know better."""
    trace = told("Where does Anne think the ball is?")
    assert trace.perspectives
    (seen,) = trace.perspectives
    blind = {**seen, "deltas": [[[], []]] * 8, "events": [False] * 8, "vantage": [None] * 8}
    names = ("chain", "reduced", "events", "world", "perspectives", "final", "predicted")
    return dataclasses.replace(
        trace,
        perspectives=[blind],
        predicted="green_treasure_chest",
        oracle={name: getattr(trace, name) for name in names},
        fault={
            "step": "state observability",
            "found": "not observable",
            "expected": "in_room(Anne,hall)",
            "line": 2,
            "who": "Anne",
            "by": "oracle",
        },
    )


def test_what_the_rules_make_of_it_is_there_to_be_compared() -> None:
    trace = astray()
    data = Page(drawn([trace])).data
    (answer,) = data["questions"][0]["answers"]
    assert answer["rules"]["chain"] == ["Anne"]
    assert answer["rules"]["columns"][0] == answer["columns"][0]
    assert answer["rules"]["columns"][1] != answer["columns"][1]
    assert answer["fault"] == trace.fault
    assert Page(drawn([told("Where is the ball really?")])).data["questions"][0]["answers"][0]["rules"] is None


def test_steps_at_fault_are_counted_and_can_be_chosen() -> None:
    parsed = Page(drawn([astray(), told("Where is the ball really?")]))
    assert "Step at fault Questions state observability 1 not told 1" in parsed.shown
    assert all(("option", {"value": step}) in parsed.tags for step in ("state observability", "not told"))
    assert [row[3] for row in parsed.index["parts"][0]["rows"]] == [
        [["wrong", None, "state observability"]],
        [["wrong", None, "not told"]],
    ]
    assert "`not told`: no rule reads the text" in parsed.shown
    alone = Page(drawn([told("Where is the ball really?")]))
    assert "Step at fault" not in alone.shown
    # Where a run tells it of no answer, as that of a method without steps, nothing is said of any.
    assert [row[3] for row in alone.index["parts"][0]["rows"]] == [[["wrong", None, ""]]]


def test_the_methods_of_several_runs_can_be_chosen_with_how_many_questions_they_have(many: list[Trace]) -> None:
    runs = [run_of(many[:3]), run_of(many[:3], method="cot"), run_of(many[2:4], method="cot")]
    text = pages(runs)["report.html"].decode()
    assert '<option value="cot">cot (4)</option>' in text


def test_how_long_the_command_and_the_replies_took_are_told_apart() -> None:
    call = {**CALL, "key": "a" * 64, "latency_s": 3600.0}
    traces = [dataclasses.replace(trace, calls=[call, {**call, "key": "b" * 64}]) for trace in synthetic()]
    assert (
        "The last command of the run took 3.1 s; the replies, one after the other, 2:00:00."
        in Page(drawn(traces)).shown
    )
    assert "took 3.1 s. " in Page(drawn([told("Where is the ball really?")])).shown


# Large runs.


def test_a_large_run_is_split_and_every_part_leads_to_the_others(many: list[Trace]) -> None:
    found = pages([run_of(many)], most=150)
    assert list(found) == ["report.html", "report-2.html", "report-3.html"]
    parts = [Page(html.decode()) for html in found.values()]
    assert [question["id"] for part in parts for question in part.data["questions"]] == [trace.id for trace in many]
    assert [len(part.data["questions"]) for part in parts] == [150, 150, 100]
    for here, part in enumerate(parts):
        assert part.index["here"] == here
        assert [len(one["rows"]) for one in part.index["parts"]] == [150, 150, 100]
        assert {a["href"] for tag, a in part.tags if tag == "a" and "data-part" in a} == set(found)
        assert f"Part {here + 1} of 3" in part.shown
    first, last = many[150].id, many[299].id
    assert all(f"{first} to {last}: 150 questions" in part.shown for part in parts)
    assert "Accuracy by order" in parts[0].shown
    assert "Accuracy by order" not in parts[1].shown


def test_a_run_of_large_replies_is_split_by_size(many: list[Trace]) -> None:
    run = run_of(many[:40])
    parts = parts_of([run], questions_of([run]), most=400, largest=12_000)
    assert len(parts) > 2
    assert all(len(packed) <= 12_000 for _, packed in parts)
    assert [asked.id for part, _ in parts for asked in part] == [trace.id for trace in many[:40]]
    # What cannot be split is a part of its own.
    assert [len(part) for part, _ in parts_of([run], questions_of([run])[:3], most=400, largest=1)] == [1, 1, 1]


# Several runs.


def test_the_same_question_of_several_runs_stands_once() -> None:
    traces = [dataclasses.replace(told("Where is the ball really?"), id="7"), dataclasses.replace(astray(), id="8")]
    other = [dataclasses.replace(trace, id=f"other {trace.id}") for trace in reversed(traces)]
    more = dataclasses.replace(told("Where does Bob think the ball is?"), id="8")
    runs = [run_of(traces, name="a"), run_of(other, name="b", method="cot"), run_of([more], name="a")]
    parsed = Page(pages(runs)["report.html"].decode())
    assert [run["name"] for run in parsed.data["runs"]] == ["a", "b", "a (2)"]
    told_by = [(q["id"], [answer is not None for answer in q["answers"]]) for q in parsed.data["questions"]]
    assert told_by == [("7", [True, True, False]), ("8", [True, True, False]), ("8 (a (2))", [False, False, True])]
    assert "3 runs on hitom/400" in parsed.shown
    assert [a["value"] for tag, a in parsed.tags if tag == "option" and a["value"] in {"cot", "b", "disagree"}]


def test_samples_of_a_run_go_with_the_samples_of_another() -> None:
    one = told("Where is the ball really?")
    samples = [dataclasses.replace(one, id=f"7#{number}") for number in (1, 2)]
    found = questions_of([run_of(samples), run_of(samples[:1])])
    assert [asked.id for asked in found] == ["7#1", "7#2"]
    assert [[answer is not None for answer in asked.answers] for asked in found] == [[True, True], [True, False]]


# Runs of folders.


def test_a_run_is_read_back_as_it_was_shown(tmp_path: Path) -> None:
    lab = Lab(tmp_path, write_stories(tmp_path))
    with serving(FakeOpenAI(wrong="observe_states")) as lab.server:
        done = lab.run()
    folder = done.report.parent
    run = Paged.read(folder)
    assert run.name == folder.name
    assert list(run.outcomes) == done.outcomes
    assert {call["key"] for trace in run.traces for call in trace.calls} == run.calls.keys()
    assert pages([run])["report.html"] == done.report.read_bytes()
    data = Page(done.report.read_text()).data
    assert len(data["questions"]) == SMALL_QUESTIONS
    assert all(messages and text is not None for _, messages, text, *_ in data["replies"])


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("manifest.json", b'{"state": "running"}', "is not finished but running"),
        ("manifest.json", b'{"state": "finished", "settings": {}}', r"manifest.json: summary: Field required"),
        ("results.jsonl", b"", "do not agree on the questions"),
        ("traces.jsonl", b"[1]\n", r"traces.jsonl: .*; run the same command again"),
        ("traces.jsonl", b"{torn", r"traces.jsonl, row 1: not JSON .*; run the same command again"),
        ("calls.jsonl.gz", b"no gzip", r"calls.jsonl.gz cannot be read"),
    ],
)
def test_a_folder_that_is_no_finished_run_is_refused_in_a_line(
    tmp_path: Path, name: str, damage: bytes, says: str
) -> None:
    done = Lab(tmp_path, write_stories(tmp_path)).run(model="rules", readers={})
    (done.report.parent / name).write_bytes(damage)
    with pytest.raises(DataError, match=says):
        Paged.read(done.report.parent)


def test_the_page_of_a_quarter_of_the_benchmark_with_all_calls_is_small(hitom_file: Path, tmp_path: Path) -> None:
    lab = Lab(tmp_path, hitom_file)
    with serving(FakeOpenAI(wrong="revise")) as lab.server:
        done = lab.run(subset="400", limit=100)
    assert list(done.report.parent.glob("report*")) == [done.report]
    assert done.report.stat().st_size < 300_000
    data = Page(done.report.read_text()).data
    assert len(data["questions"]) == 100
    assert all(messages and text is not None for _, messages, text, *_ in data["replies"])
