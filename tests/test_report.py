from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import orjson
import pytest

from rectom.benchmarks.generate import Recipe
from rectom.events import persistent, public_claim
from rectom.facts import in_room, inside
from rectom.results.drawing import Drawing
from rectom.results.outcome import Outcome, Trace
from rectom.results.report import page
from rectom.results.summary import Cost, summary_line
from tests.conftest import generated
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
        return orjson.loads(self.scripts[0])

    @property
    def policy(self) -> str:
        (content,) = (a["content"] for _, a in self.tags if a.get("http-equiv") == "Content-Security-Policy")
        return content or ""

    @property
    def shown(self) -> str:
        return " ".join(self.text.split())


def outcome_of(trace: Trace, order: int | None = 1) -> Outcome:
    failed = trace.failure["step"] if trace.failure else None
    correct = trace.predicted == trace.gold and not failed
    return Outcome(trace.id, trace.story_id, order, trace.gold, trace.predicted, correct, failed, len(trace.calls), 9)


def drawn(
    traces: Sequence[Trace], settings: Mapping[str, Any] = BY_RULE, cost: Cost | None = None, model: str = "m"
) -> str:
    outcomes = list(map(outcome_of, traces))
    line = summary_line({**IDENTITY, "model": model}, outcomes, cost or Cost(), 3.14159)
    return page(line, settings, outcomes, traces)


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
    assert len(whole.encode()) < 2_000_000


def test_the_page_holds_what_a_drawing_shows_and_shares_it(many: list[Trace], whole: str) -> None:
    data = Page(whole).data
    for trace, question in zip(many, data["questions"], strict=True):
        drawing = Drawing.of(trace.to_json())
        assert data["stories"][question["story"]] == [list(drawing.lines), list(map(list, drawing.events))]
        for place, column in zip(question["columns"], drawing.columns, strict=True):
            chain, cells, final = data["columns"][place]
            assert (tuple(chain), tuple(final)) == (column.chain, column.final)
            assert [data["cells"][cell] for cell in cells] == [
                [cell.mark, cell.where, list(cell.holds), list(cell.changes)] for cell in column.cells
            ]
    assert len(data["stories"]) == 80
    assert len(data["columns"]) < sum(len(question["columns"]) for question in data["questions"])


def test_the_page_needs_no_network_and_may_use_none(many: list[Trace]) -> None:
    html = drawn(many[:5])
    for tag, attributes in Page(html).tags:
        assert not {"src", "href", "srcset", "action", "data", "onclick"} & attributes.keys(), tag
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert not re.search(r"(https?:)?//[a-z]|@import|url\(", re.sub(r"^\s*// .*$", "", html, flags=re.M))
    policy = Page(html).policy
    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"[\w-]+-src", policy)) == {"default-src", "style-src", "script-src"}


def test_the_policy_allows_the_script_of_the_page_and_no_other(many: list[Trace]) -> None:
    parsed = Page(drawn(many[:1]))
    digest = base64.b64encode(sha256(parsed.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in parsed.policy
    assert [attributes.get("type") for tag, attributes in parsed.tags if tag == "script"] == ["application/json", None]


def test_the_script_never_reads_data_as_markup() -> None:
    script = Page(drawn([])).scripts[1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|fetch|XMLHttp", script)


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
    )
    html = drawn([trace], {**BY_MODEL, "model": evil, "identity": evil, "extra": evil}, model=evil)
    parsed = Page(html)
    assert html.count("</script") == html.count("<script") == 2
    assert "<img" not in html
    assert "<!--" not in html
    assert {tag for tag, _ in parsed.tags} <= set(
        "html head meta title style body header h1 p b main section div h3 table tr th span td svg rect path dl dt dd "
        "nav small select option input ol article template ul li script".split()
    )
    question = parsed.data["questions"][0]
    assert question["text"] == f"Where is {evil}?"
    assert question["failure"] == [evil, evil]
    assert parsed.data["stories"][question["story"]][0] == list(lines)
    assert evil in parsed.text


def test_accuracy_is_told_by_order_with_intervals() -> None:
    traces = [dataclasses.replace(told("Where is the ball really?"), id=str(n)) for n in range(4)]
    right = [dataclasses.replace(trace, gold=trace.predicted) for trace in traces[1:]]
    outcomes = [outcome_of(trace, order) for order, trace in enumerate([traces[0], *right])]
    outcomes = [*outcomes[:3], dataclasses.replace(outcomes[3], order=None)]
    html = page(summary_line(IDENTITY, outcomes, Cost(), 1), BY_RULE, outcomes, [traces[0], *right])
    assert "3 of 4 questions right: 75.00 %, 95 % interval 30.1 to 95.4 %" in Page(html).shown
    rows = re.findall(r"<tr[^>]*><td>([^<]+)</td><td class=\"n\">(\d of \d)</td>", html)
    assert rows == [("-", "1 of 1"), ("0", "0 of 1"), ("1", "1 of 1"), ("2", "1 of 1"), ("all", "3 of 4")]
    assert html.count('<rect class="fill"') == 5


def test_failed_questions_are_told_by_step_and_shown_as_far_as_they_came() -> None:
    whole = told("Where does Anne think Bob thinks the ball is?")
    early = dataclasses.replace(stopped(whole, "abstract"), id="early")
    late = dataclasses.replace(stopped(whole, "revise", "chain", "reduced", "events", "world"), id="late")
    parsed = Page(drawn([whole, early, late]))
    assert "Step that failed Questions abstract 1 revise 1" in parsed.shown
    assert "2 failed." in parsed.shown
    assert "failed at revise (1)" in parsed.shown
    questions = {question["id"]: question for question in parsed.data["questions"]}
    assert [question["kind"] for question in questions.values()] == ["right", "failed", "failed"]
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
    shown = Page(drawn([], {**BY_MODEL, "sample": 3})).shown
    for said in (
        "Benchmark hitom/400, the first 20 questions",
        "By the model abstract, chain, revise, reduce, answer",
        "By rule observe",
        "Model some/model, declared to be some/model@fp8, revision abc",
        "Sampling temperature 0.0, top-k 20",
        "Abstraction 5 lines at a time",
        "Repairs a reply that breaks a rule of its step is asked for again, 2 times at most",
        "Data sha256 1c4077bbcdf815b9…",
        "sample 3",
    ):
        assert said in shown
    assert "By rule every step" in Page(drawn([])).shown


def test_a_page_of_another_method_speaks_of_that() -> None:
    settings = {name: value for name, value in BY_MODEL.items() if name not in {"rules", "readers"}} | {"method": "cot"}
    line = summary_line({**IDENTITY, "method": "cot"}, [], Cost(), 0.0)
    text = Page(page(line, settings, [], [])).text
    assert "cot on hitom/400 with m" in text
    assert "some/model@fp8" in text
    for word in ("RecToM", "Rules", "Abstraction", "Repairs"):
        assert word not in text


def test_calls_and_tokens_are_told_with_their_meaning() -> None:
    cost = Cost(sent=1953, shared=1478, prompt=816228, completion=165201, billed=981429, standalone=2247109)
    shown = Page(drawn([], BY_MODEL, cost)).shown
    assert "sent 1,953 requests that went to the server" in shown
    assert "standalone 2,247,109 what the questions would have cost" in shown
    assert "billed 981,429 prompt and completion, what this run paid for" in shown
    assert "No model was asked." in Page(drawn([])).shown


def test_the_calls_of_a_question_come_with_it() -> None:
    trace = dataclasses.replace(told("Where is the ball really?"), calls=[CALL])
    assert Page(drawn([trace])).data["questions"][0]["calls"] == [
        ["observe_states", "shared", 570, 107, 0, 0.2805, "ok", "0123456789ab"]
    ]


def test_a_trace_must_go_with_each_outcome() -> None:
    trace = told("Where is the ball really?")
    with pytest.raises(ValueError, match="zip"):
        page(summary_line(IDENTITY, [], Cost(), 1), BY_RULE, [outcome_of(trace)], [])
