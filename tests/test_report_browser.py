"""The page of a run as people use it: in headless Chromium, from disk."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from rectom.results.outcome import Trace
from rectom.results.report import Paged, pages
from tests.fake_openai import FakeOpenAI
from tests.laboratory import SMALL_QUESTIONS, Lab, serving, write_stories
from tests.test_report import outcome_of, run_of
from tests.test_show import CALL, LINES, told

#: Where the screenshots are kept.
KEPT = Path(os.environ.get("RECTOM_SCREENSHOTS") or Path(__file__).parent / "out")
WIDE, NARROW = (1280, 1600), (390, 1600)
#: Chromium as it comes asks its maker for updates, and keeps a profile.
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()
EVIL = "</script><img src=x onerror=\"document.title='taken'\"><!--"


class Browser:
    """A window on a page. What it is asked to do waits until the page has done it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, file: Path, address: str = "", size: tuple[int, int] = WIDE, scheme: str = "light") -> None:
        """Open a file at an address behind `#`, in a window of a size in pixels."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        self.driver.get("about:blank")
        self.driver.get(f"{file.as_uri()}{address and '#'}{address}")
        self.until("return document.documentElement.dataset.ready === 'true'")

    def until(self, script: str, *given: object) -> None:
        """Wait until a script says so."""
        WebDriverWait(self.driver, 10, 0.02).until(lambda _: self.run(script, *given), script)

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def choose(self, control: str, value: str) -> None:
        Select(self.one(control)).select_by_value(value)

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    @property
    def focus(self) -> WebElement:
        return self.driver.switch_to.active_element

    @property
    def address(self) -> str:
        return str(self.run("return location.hash"))

    @property
    def listed(self) -> int:
        return len(self.all("#list a"))

    def shows(self, question: str) -> None:
        """Wait until a question is the one that is shown."""
        self.until("return document.querySelector('#detail .above')?.textContent.startsWith(arguments[0])", question)

    def keep(self, name: str) -> None:
        """Keep a picture of the window."""
        KEPT.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(KEPT / f"{name}.png"))

    def fits(self) -> None:
        """The page is not wider than the window: what is wide scrolls by itself."""
        wide, inner = self.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    browser, service = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not service:
        pytest.skip("chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(service))
    yield started
    started.quit()


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Iterator[Browser]:
    """The browser; whatever a test did in it, nothing went wrong there and nothing was asked of a network."""
    yield Browser(driver)
    assert driver.get_log("browser") == []  # type: ignore[no-untyped-call]
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]  # type: ignore[no-untyped-call]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert not [url for url in asked if url.startswith(("http", "ws", "ftp"))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Paged]:
    """The same questions by a model that errs, with all its calls and what the rules make of them, and by rule."""
    folder = tmp_path_factory.mktemp("runs")
    lab = Lab(folder, write_stories(folder))
    with serving(FakeOpenAI(wrong="observe_states")) as lab.server:
        erring = Paged.read(lab.run().report.parent)
    by_rule = Paged.read(lab.run(model="rules", readers={}).report.parent)
    traces = [blamed(trace) if outcome.fault or not outcome.correct else trace for outcome, trace in both(erring)]
    outcomes = [
        dataclasses.replace(outcome, fault=(trace.fault or {}).get("step", ""))
        for outcome, trace in zip(erring.outcomes, traces, strict=True)
    ]
    return [
        dataclasses.replace(erring, name="erring", outcomes=outcomes, traces=traces),
        dataclasses.replace(by_rule, name="by rule"),
    ]


def both(run: Paged) -> Iterator[tuple[Any, Trace]]:
    return zip(run.outcomes, run.traces, strict=True)


def blamed(trace: Trace) -> Trace:
    """The trace with what the rules make of the question, and with the first step that differs."""
    rules = told(trace.question, trace.lines).to_json()
    names = ("chain", "reduced", "events", "world", "perspectives", "final", "predicted")
    assert trace.chain
    fault = {"step": "state observability", "found": "not_observable", "expected": "in_room(…)", "by": "oracle"}
    return dataclasses.replace(
        trace,
        oracle={name: rules[name] for name in names},
        fault={**fault, "line": 2, "who": trace.chain[0]},
    )


@pytest.fixture(scope="module")
def single(runs: list[Paged], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("single"), runs[:1])


@pytest.fixture(scope="module")
def double(runs: list[Paged], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("double"), runs)


def written(folder: Path, shown: list[Paged], **more: Any) -> Path:
    for name, data in pages(shown, **more).items():
        (folder / name).write_bytes(data)
    return folder / "report.html"


@pytest.fixture(scope="module")
def wrong(runs: list[Paged]) -> str:
    """The id of a question of order 2 that the model got wrong."""
    return next(outcome.id for outcome in runs[0].outcomes if outcome.order == 2 and not outcome.correct)


@pytest.mark.parametrize(("name", "size"), [("wide", WIDE), ("narrow", NARROW)])
def test_open_filter_click_a_question_and_follow_a_call(
    browser: Browser, single: Path, runs: list[Paged], wrong: str, name: str, size: tuple[int, int]
) -> None:
    browser.open(single, size=size)
    browser.keep(f"page-{name}")
    browser.fits()
    assert browser.text("#count") == f"{SMALL_QUESTIONS} of {SMALL_QUESTIONS}"

    browser.choose("#outcome", "wrong")
    browser.choose("#order", "2")
    expected = [outcome.id for outcome in runs[0].outcomes if outcome.order == 2 and not outcome.correct]
    browser.until("return document.querySelectorAll('#list a').length === arguments[0]", len(expected))
    assert browser.text("#count") == f"{len(expected)} of {SMALL_QUESTIONS}"
    assert "order=2" in browser.address
    assert "outcome=wrong" in browser.address

    browser.one("#list a").click()
    browser.shows(f"Question {wrong},")
    assert f"q={wrong}" in browser.address
    assert browser.all(".steps tbody tr")
    assert browser.all(".cell.inherited")

    # Each call that made a perspective stands below it, also one about what somebody thinks that another thinks.
    makers = [cell.text.split() for cell in browser.all(".makers") if cell.text]
    assert ["abstract" in made for made in makers] == [True, False, False]
    assert all({"observe_states", "observe_events"} <= set(made) for made in makers[1:])
    (trace,) = (trace for outcome, trace in both(runs[0]) if outcome.id == wrong)
    revised = [call["step"] for call in trace.calls].count("revise")
    assert sum(made.count("revise") for made in makers) == revised > 0

    maker = next(link for link in browser.all(".makers .to-call") if "observe_states" in link.text)
    maker.click()
    browser.until("return document.querySelectorAll('details.call[open]').length === 1")
    opened = browser.one("details.call[open]")
    assert "observe_states" in opened.text
    assert "tokens" in opened.text
    assert "sent" in opened.text
    key = opened.get_attribute("data-key")
    assert f"call={key}" in browser.address
    (said,) = [call for full, call in runs[0].calls.items() if full.startswith(str(key))]
    boxes = [box.get_attribute("textContent") for box in opened.find_elements(By.CSS_SELECTOR, "pre")]
    assert boxes[:2] == [message["content"] for message in said["messages"]]
    assert json.loads(str(boxes[2])) == json.loads(said["text"])
    browser.keep(f"call-{name}")
    browser.fits()


def test_the_address_leads_to_what_it_names_and_back_leads_back(browser: Browser, single: Path, wrong: str) -> None:
    browser.open(single, "fault=state+observability&order=2")
    assert Select(browser.one("#fault")).first_selected_option.get_attribute("value") == "state observability"
    browser.shows(f"Question {wrong},")
    browser.choose("#fault", "")
    browser.choose("#order", "0")
    browser.until("return location.hash === '#order=0'")
    browser.shows("Question 0,")
    browser.driver.back()
    browser.driver.back()
    browser.shows(f"Question {wrong},")
    assert Select(browser.one("#order")).first_selected_option.get_attribute("value") == "2"
    assert "fault=state+observability" in browser.address
    browser.driver.forward()
    browser.until("return location.hash === '#order=2'")


def test_words_are_looked_for(browser: Browser, single: Path) -> None:
    browser.open(single)
    browser.one("#text").send_keys("really")
    browser.until("return document.querySelector('#count').textContent.startsWith('6 of')")
    browser.one("#text").send_keys(" nobody")
    browser.until("return document.querySelector('#detail').textContent === 'No question fits.'")
    assert browser.listed == 0


def test_what_differs_from_the_rules_is_marked_in_words(browser: Browser, single: Path, wrong: str) -> None:
    browser.open(single, f"q={wrong}")
    marked = browser.all("td.astray")
    assert marked
    assert all("✗ rules:" in cell.text for cell in marked)
    assert all(told.get_attribute("title") for told in browser.all("td .rules"))
    (culprit,) = browser.all(".culprit")
    assert "went wrong here" in culprit.text
    assert "▶ Went wrong at state observability, line 2" in browser.text(".blame")
    assert "the rules say" in browser.text(".blame")
    browser.open(single, "q=0")
    assert not browser.all(".astray, .blame")


def test_two_runs_stand_side_by_side(browser: Browser, double: Path, wrong: str) -> None:
    browser.open(double, f"q={wrong}")
    assert [pane.text for pane in browser.all(".pane .whose")] == ["1erring", "2by rule"]
    left, right = browser.all(".pane")
    assert left.location["y"] == right.location["y"]
    rows = [pane.find_elements(By.CSS_SELECTOR, ".steps tbody tr") for pane in (left, right)]
    assert [row.location["y"] for row in rows[0]] == [row.location["y"] for row in rows[1]]
    assert "Wrong" in left.text
    assert "Right" in right.text
    assert "No model was asked." in right.text
    browser.keep("two-wide")
    browser.fits()

    browser.choose(".choosers label:last-child select", "-")
    browser.until("return document.querySelectorAll('.pane').length === 1")
    browser.choose(".choosers label:first-child select", "by rule")
    browser.until("return document.querySelector('.whose').textContent.includes('by rule')")

    browser.open(double, f"q={wrong}", NARROW)
    left, right = browser.all(".pane")
    assert right.location["y"] >= left.location["y"] + left.size["height"]
    browser.fits()


def test_several_runs_are_filtered_by_run_and_by_where_they_disagree(
    browser: Browser, double: Path, runs: list[Paged]
) -> None:
    browser.open(double, "outcome=disagree")
    assert browser.listed == sum(not outcome.correct for outcome in runs[0].outcomes)
    assert len(browser.all("#list li:first-child .badge")) == 2
    browser.open(double, "run=by+rule&outcome=wrong")
    assert browser.listed == 0
    browser.open(double, "run=by+rule&outcome=right")
    assert browser.listed == SMALL_QUESTIONS
    assert len(browser.all("#list li:first-child .badge")) == 1
    assert "by rule" in browser.text(".whose")


def test_the_keyboard_reaches_everything(browser: Browser, single: Path) -> None:
    browser.open(single, "q=0")
    browser.press(Keys.TAB)
    assert browser.focus.text == "Skip to the question"
    browser.press(Keys.ENTER)
    assert browser.focus.get_attribute("id") == "detail"

    browser.press("/")
    assert browser.focus.get_attribute("id") == "text"
    browser.press("x", Keys.BACKSPACE)
    browser.until("return document.querySelectorAll('#list a').length === arguments[0]", SMALL_QUESTIONS)
    browser.press(Keys.TAB)
    assert browser.focus.get_attribute("aria-current") == "true"
    first = browser.text("#detail h2")
    browser.press(Keys.ARROW_DOWN)
    browser.until("return document.querySelector('#detail h2').textContent !== arguments[0]", first)
    assert browser.focus.get_attribute("aria-current") == "true"
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("k")
    browser.until("return document.querySelector('#detail h2').textContent === arguments[0]", first)
    browser.press("j", Keys.ENTER)
    assert browser.focus.get_attribute("id") == "detail"

    browser.run("document.querySelector('.call summary').focus()")
    browser.press(Keys.ENTER)
    browser.until("return document.querySelector('.call').open && document.querySelector('.call pre') !== null")
    browser.press(Keys.TAB)
    assert browser.focus.tag_name == "pre"
    assert browser.focus.get_attribute("aria-label") == "prompt: system"


def test_every_control_has_a_name(browser: Browser, double: Path) -> None:
    browser.open(double, "q=1")
    for control in browser.all("select, input, button, a, summary"):
        assert control.accessible_name, control.get_attribute("outerHTML")


@pytest.mark.parametrize(("name", "size"), [("wide", WIDE), ("narrow", NARROW)])
def test_the_dark_page_is_dark_and_fits(
    browser: Browser, double: Path, wrong: str, name: str, size: tuple[int, int]
) -> None:
    browser.open(double, f"q={wrong}", size, "dark")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 29)"
    browser.keep(f"dark-{name}")
    browser.fits()


def test_markup_in_replies_does_nothing(browser: Browser, tmp_path: Path) -> None:
    lines = (f"Anne entered the hall {EVIL}", *LINES[1:])
    trace = dataclasses.replace(
        told("Where does Anne think the ball is?"), question=f"Where? {EVIL}", lines=list(lines), calls=[CALL]
    )
    said: dict[str, Any] = {
        "messages": [{"role": "user", "content": EVIL}],
        "text": EVIL,
        "reasoning": EVIL,
        "model": EVIL,
    }
    browser.open(written(tmp_path, [run_of([trace], calls={str(CALL["key"]): said}, name=EVIL)]))
    browser.until("return document.querySelectorAll('.call[open] pre').length === 3")
    assert EVIL in browser.text(".call")
    assert not browser.all("img")
    assert "taken" not in browser.driver.title


def test_a_question_of_another_part_is_shown_there(browser: Browser, runs: list[Paged], tmp_path: Path) -> None:
    file = written(tmp_path, runs[:1], most=5)
    last = runs[0].outcomes[-1].id
    browser.open(file, "outcome=wrong")
    assert "in this part" in browser.text("#count")
    browser.one(".parts summary").click()
    fitting = [outcome for outcome in runs[0].outcomes[5:10] if not outcome.correct]
    assert f"{len(fitting)} of them fit" in browser.text(".parts li:nth-child(2)")
    browser.one("a[data-part='1']").click()
    browser.until("return location.pathname.endsWith('report-2.html') && location.hash === '#outcome=wrong'")
    browser.until("return document.documentElement.dataset.ready === 'true'")
    assert browser.listed == len(fitting)
    browser.open(file)
    browser.run("location.hash = arguments[0]", f"q={last}")
    browser.until("return location.pathname.endsWith('report-3.html')")
    browser.until("return document.documentElement.dataset.ready === 'true'")
    browser.shows(f"Question {last},")


def test_a_browser_that_cannot_unpack_is_told_so(browser: Browser, single: Path) -> None:
    hidden = browser.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
    )
    try:
        browser.driver.get(single.as_uri())
        assert "open the page in a newer one" in browser.text("#detail")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", hidden)


def test_the_page_of_a_method_without_perspectives_shows_its_call(browser: Browser, tmp_path: Path) -> None:
    whole = told("Where is the ball really?")
    made: dict[str, Any] = {"predicted": "red_box", "gold": "red_box", "calls": [CALL]}
    trace = Trace("1", "s", whole.question, whole.choices, whole.lines, **made)
    said: dict[str, Any] = {"messages": [], "text": "Step by step: the red_box.", "reasoning": None, "model": "m"}
    assert outcome_of(trace).correct
    browser.open(written(tmp_path, [run_of([trace], method="cot", calls={str(CALL["key"]): said})]))
    browser.until("return document.querySelectorAll('.call[open] pre').length === 1")
    assert "Step by step" in browser.text(".call")
    heads = [head.text for head in browser.all("#detail h3")]
    assert heads == ["Model calls", "Story"]


def test_a_failed_answer_is_listed_with_its_step_and_sentences_have_lines_of_their_own(
    browser: Browser, tmp_path: Path
) -> None:
    whole = told("Where is the ball really?")
    options = ["Noor believes it is oat milk.", "Noor believes it is almond milk."]
    made: dict[str, Any] = {"gold": options[0], "choices": options}
    fine = Trace("1", "s", whole.question, lines=whole.lines, predicted=options[1], **made)
    none = Trace("2", "s", whole.question, lines=whole.lines, failure={"step": "answer", "why": "no option"}, **made)
    browser.open(written(tmp_path, [run_of([fine, none], method="cot")]))
    listed = [small.text for small in browser.all("#list small")]
    assert listed == ["1 · order 1", "2 · order 1 · failed at answer"]
    assert f"Wrong: “{options[1]}”; the label is “{options[0]}”" in browser.text(".verdict")
    first, second = browser.all(".options li")
    assert second.location["y"] >= first.location["y"] + first.size["height"]


def test_what_is_dimmed_can_be_read(browser: Browser, single: Path, wrong: str) -> None:
    """Nothing is told from the rest by opacity, which leaves too little contrast."""
    browser.open(single, f"q={wrong}")
    nodes = "[...document.querySelectorAll('.cell *, .options *')]"
    script = f"return {nodes}.every((node) => getComputedStyle(node).opacity === '1')"
    assert browser.driver.execute_script(script)
    browser.open(single, "q=7")  # in which somebody believes what was before
    borders = "return getComputedStyle(document.querySelector('.cell.inherited > .state .chip')).borderTopStyle"
    assert browser.driver.execute_script(borders) == "dashed"
