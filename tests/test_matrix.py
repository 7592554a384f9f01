"""The file of a sweep: what it may say, what becomes of it, and every way in which it may be wrong."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flows.matrix import Matrix, _doubled, read
from flows.settings import Settings
from rectom.errors import SettingsError
from rectom.llm.catalogue import catalogue
from rectom.llm.request import Sampling

EXPERIMENTS = Path(__file__).parents[1] / "experiments"

SMALL = """
models = ["m"]
methods = ["cot"]
benchmarks = ["fresh"]
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "RECTOM_CACHE", "RECTOM_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def matrix(text: str, more: dict[str, Any] | None = None) -> Matrix:
    """The matrix of a file `night.toml` with this text."""
    file = Path("night.toml")
    file.write_text(text)
    return read(file, Path("the/cache"), Path("the/runs"), more)


def settings(text: str) -> list[Settings]:
    return [planned.settings for planned in matrix(text).cells]


def names(text: str) -> list[str]:
    return [planned.cell.name for planned in matrix(text).cells]


def test_texts_are_models_methods_and_benchmarks() -> None:
    found = matrix(SMALL)
    (planned,) = found.cells
    assert (found.name, found.at_once, planned.cell.name, planned.priority) == ("night", 4, "fresh · cot · m", 0)
    assert (found.budget.max_calls, found.budget.max_tokens_total, found.budget.max_cost) == (None, None, None)
    told = planned.settings
    assert (told.model, told.method, told.benchmark, told.subset) == ("m", "cot", "fresh", "small")
    assert (told.cache, told.runs, told.draw, told.seed) == (Path("the/cache"), Path("the/runs"), 0, 0)
    assert planned.command == ("fresh", "--model", "m", "--method", "cot")


def test_every_field_is_read() -> None:
    found = matrix(
        """
        name = "later"
        at-once = 7
        models = ["m", { model = "org/n", label = "N", concurrency = 128, priority = 1 }]
        methods = ["cot", { method = "sc:n=3", priority = -2, temperature = 0.7 }]
        benchmarks = ["fresh", { benchmark = "hitom/cotp", limit = 200, reader = ["chain=model", "reduce=model"] }]
        settings = [{ label = "short", max-tokens = 50 }, { window = 5, default-sampling = true }]
        seeds = [0, 4]
        [defaults]
        max-calls = 5000
        [budget]
        max-calls = 9
        max-tokens-total = 1_000
        max-cost = 0.1
        """
    )
    assert (found.name, found.at_once, len(found.cells)) == ("later", 7, 32)
    assert (found.budget.max_calls, found.budget.max_tokens_total, found.budget.max_cost) == (9, 1000, Decimal("0.1"))
    assert all(planned.settings.budget.calls == 5000 for planned in found.cells)
    last = found.cells[-1]
    assert last.cell.name == "hitom/cotp · sc:n=3 · N · window 5, default-sampling True · seed 4"
    assert last.priority == -1
    told = last.settings
    assert (told.model, told.method, told.limit, told.window) == ("org/n", "sc:n=3", 200, 5)
    assert (told.sampling.temperature, told.endpoint.concurrency) == (0.7, 128)
    assert told.readers == {"chain": "model", "reduce": "model"}
    assert (told.seed, told.draw) == (4, 4)
    assert [planned.cell.setting for planned in found.cells[:3:2]] == ["short", "window 5, default-sampling True"]


def test_cells_on_one_benchmark_are_neighbours() -> None:
    found = names(SMALL.replace('["cot"]', '["cot", "direct"]').replace('["fresh"]', '["fresh", "fresh/deep"]'))
    assert found == ["fresh · cot · m", "fresh · direct · m", "fresh/deep · cot · m", "fresh/deep · direct · m"]


def test_what_is_told_later_goes_before() -> None:
    ladder = """
        models = [{ model = "m", repairs = 2, attempts = 2, limit = 2, timeout = 2, shard = 2 }]
        methods = [{ method = "cot", repairs = 3, attempts = 3, limit = 3 }]
        benchmarks = [{ benchmark = "fresh", repairs = 1, attempts = 1, limit = 1, timeout = 1 }]
        settings = [{ repairs = 4, attempts = 4 }]
        [defaults]
        repairs = 0
        attempts = 9
        limit = 9
        timeout = 9
        shard = 9
        samples = 9
        """
    (told,) = settings(ladder)
    assert (told.samples, told.shard, told.endpoint.timeout_s, told.limit) == (9, 2, 2, 3)
    assert (told.endpoint.attempts, told.repairs) == (4, 4)
    (planned,) = matrix(ladder, {"limit": 5, "retry-failed": True}).cells
    assert (planned.settings.limit, planned.settings.retry_failed) == (5, True)
    assert planned.command.count("--limit") == 1


def test_a_model_from_a_file_is_called_by_the_files_name() -> None:
    Path("a").mkdir()
    Path("a/small.gguf").write_bytes(b"GGUF")
    (planned,) = matrix(SMALL.replace('["m"]', '["local:a/small.gguf"]')).cells
    assert planned.cell.model == planned.settings.model == "small"
    assert planned.command == ("fresh", "--model", "local:a/small.gguf", "--method", "cot")
    assert planned.settings.endpoint.concurrency == 2


def test_models_of_the_command_line_go_for_those_of_the_file() -> None:
    Path("night.toml").write_text(SMALL)
    found = read(Path("night.toml"), Path("cache"), Path("runs"), models=["one", "two"])
    assert [planned.cell.name for planned in found.cells] == ["fresh · cot · one", "fresh · cot · two"]


def test_false_takes_a_default_back() -> None:
    text = SMALL + "settings = [{ label = 'all', limit = false, retry-failed = false }, { label = 'few' }]\n"
    every, few = settings(text + "[defaults]\nlimit = 5\nretry-failed = true\n")
    assert (every.limit, every.retry_failed, few.limit, few.retry_failed) == (None, False, 5, True)


def test_the_ablations_are_called_as_in_the_paper() -> None:
    methods = """["rectom", { update = "model" }, { method = "rectom", state = "off" },
        { label = "own", state = "off" }, "rectom-lite", { method = "rectom", verify = true, label = "checked" }]"""
    text = SMALL.replace('["cot"]', methods)
    assert [planned.cell.method for planned in matrix(text).cells] == [
        "rectom",
        "w/o-det",
        "w/o-state",
        "own",
        "rectom-lite",
        "checked",
    ]
    assert [told.ablation for told in settings(text)][1:4] == [{"update": "model"}, {"state": "off"}, {"state": "off"}]


def test_the_command_of_a_cell_gives_the_settings_of_the_cell() -> None:
    text = """
        models = [{ model = "m", base-url = "http://127.0.0.1:1/v1", reader = ["chain=rules", "reduce=rules"] }]
        methods = [{ method = "rectom", verify = true, temperature = 0.5 }]
        benchmarks = [{ benchmark = "fresh/deep", permute = ["names", "choices"] }]
        seeds = [3]
        """
    (planned,) = matrix(text).cells
    assert planned.command == (
        *("fresh/deep", "--permute", "names", "--permute", "choices", "--model", "m"),
        *("--base-url", "http://127.0.0.1:1/v1", "--reader", "chain=rules", "--reader", "reduce=rules"),
        *("--method", "rectom", "--verify", "--temperature", "0.5", "--seed", "3", "--draw", "3"),
    )
    told = planned.settings
    assert told.named_subset == "deep+choices.3+names.3"
    assert (told.readers, told.verify) == ({"chain": "rules", "reduce": "rules"}, True)


def test_seeds_draw_other_replies_and_share_none() -> None:
    text = SMALL + "seeds = [0, 1, 2]\n"
    assert [told.draw for told in settings(text)] == [0, 1, 2]
    several = settings(text + "[defaults]\nsamples = 5\n")
    drawn = Counter(told.draw + number for told in several for number in range(told.samples))
    assert drawn == Counter(range(15))
    assert names(text)[1:] == ["fresh · cot · m · seed 1", "fresh · cot · m · seed 2"]
    assert len({told.run_name("d") for told in settings(text)}) == 3


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        ('[[skip]]\nmodel = "m"', ["n cot 0", "n cot 1", "n w/o-det 0", "n w/o-det 1"]),
        (
            '[[skip]]\nmodel = "m"\nseed = 0',
            ["m cot 1", "m w/o-det 1", "n cot 0", "n cot 1", "n w/o-det 0", "n w/o-det 1"],
        ),
        ('[[skip]]\nmethod = "w/o-det"\n[[skip]]\nseed = 1', ["m cot 0", "n cot 0"]),
        (
            '[[skip]]\nbenchmark = "fresh"\nsetting = "s"\nseed = 1',
            ["m cot 0", "m w/o-det 0", "n cot 0", "n w/o-det 0"],
        ),
    ],
    ids=["model", "model-seed", "two", "all-labels"],
)
def test_cells_are_left_out_by_their_labels(skip: str, left: list[str]) -> None:
    text = """
        models = ["m", "n"]
        methods = ["cot", { update = "model" }]
        benchmarks = ["fresh"]
        settings = [{ label = "s" }]
        seeds = [0, 1]
        """
    cells = [planned.cell for planned in matrix(f"{text}\n{skip}\n").cells]
    assert [f"{cell.model} {cell.method} {cell.seed}" for cell in cells] == left


def test_a_cell_that_is_left_out_need_not_make_sense() -> None:
    text = SMALL.replace('["m"]', '["m", "rules"]')
    with pytest.raises(SettingsError, match=r"^night.toml: fresh · cot · rules: --method cot needs a model"):
        matrix(text)
    assert names(text + '[[skip]]\nmodel = "rules"\n') == ["fresh · cot · m"]


def test_a_skip_may_name_a_model_of_the_file_that_another_stands_for() -> None:
    with pytest.raises(SettingsError, match="no cell is left"):
        matrix(SMALL + '[[skip]]\nmodel = "m"\n')
    found = read(Path("night.toml"), Path("cache"), Path("runs"), models=["n"])
    assert [planned.cell.model for planned in found.cells] == ["n"]


WRONG: list[tuple[str, str]] = [
    # What the file as a whole is.
    ("models = [", "night.toml is not TOML: Invalid value (at end of document)"),
    ('methods = ["cot"]\nbenchmarks = ["fresh"]', "night.toml: models: Field required"),
    ("+tomato = 1", "night.toml: tomato: Extra inputs are not permitted"),
    ("+at_once = 2", "night.toml: at_once: Extra inputs are not permitted"),
    # Texts where lists are to be, and the other way round.
    ('+settings = "window"', "night.toml: settings: Input should be a valid list"),
    ('models = "m"\nmethods = ["cot"]\nbenchmarks = ["fresh"]', "night.toml: models: Input should be a valid list"),
    ("+seeds = 3", "night.toml: seeds: Input should be a valid list"),
    ("+skip = 3", "night.toml: skip: Input should be a valid list"),
    ("+budget = 3", "night.toml: budget: Input should be a table"),
    ("+defaults = 3", "night.toml: defaults: Input should be a valid dictionary"),
    ('+settings = ["window"]', "night.toml: settings.0: Input should be a table"),
    ('models = [3]\nmethods = ["cot"]\nbenchmarks = ["fresh"]', "night.toml: models.0: Input should be a table"),
    # Lists without anything.
    (
        'models = []\nmethods = ["cot"]\nbenchmarks = ["fresh"]',
        "night.toml: models: List should have at least 1 item after validation, not 0",
    ),
    ("+seeds = []", "night.toml: seeds: List should have at least 1 item after validation, not 0"),
    ("+settings = []", "night.toml: settings: List should have at least 1 item after validation, not 0"),
    # Numbers.
    ("+at-once = 0", "night.toml: at-once: Input should be greater than or equal to 1"),
    ("+at-once = true", "night.toml: at-once: Input should be a valid integer"),
    ('+at-once = "4"', "night.toml: at-once: Input should be a valid integer"),
    ("+seeds = [0, -1]", "night.toml: seeds.1: Input should be greater than or equal to 0"),
    ("+seeds = [true]", "night.toml: seeds.0: Input should be a valid integer"),
    ("+seeds = [1.0]", "night.toml: seeds.0: Input should be a valid integer"),
    ("+settings = [{ priority = nan }]", "night.toml: settings.0.priority: Input should be a valid integer"),
    ("+settings = [{ label = 3 }]", "night.toml: settings.0.label: Input should be a valid string"),
    # Budgets.
    ("+[budget]\nmax-cost = nan", "night.toml: budget.max-cost: Input should be a finite number"),
    ("+[budget]\nmax-cost = -1", "night.toml: budget.max-cost: Input should be greater than or equal to 0"),
    ("+[budget]\nmax-calls = 1.5", "night.toml: budget.max-calls: Input should be a valid integer"),
    ("+[budget]\nmax-call = 1", "night.toml: budget.max-call: Extra inputs are not permitted"),
    # Names and skips.
    ('+name = "a/b"', r"night.toml: name: String should match pattern '^([\w-][\w.-]*)?$'"),
    ('+name = ".."', r"night.toml: name: String should match pattern '^([\w-][\w.-]*)?$'"),
    ('+[[skip]]\nmodle = "m"', "night.toml: skip.0.modle: Extra inputs are not permitted"),
    ('+[[skip]]\nseed = "0"', "night.toml: skip.0.seed: Input should be a valid integer"),
    ('+[[skip]]\nmodel = "m"', "night.toml: no cell is left; skip fewer"),
    ('+[[skip]]\nmodel = "m"\nmethod = "cott"', "night.toml: skip.0.method: no cell has cott; there are cot"),
    ('+[[skip]]\nseed = 1\n[[skip]]\nsetting = "s"', "night.toml: skip.0.seed: no cell has 1; there are 0"),
    ('+[[skip]]\nsetting = "s"', "night.toml: skip.0.setting: no cell has s; there are none"),
    # Cells.
    (
        'models = ["m", "m"]\nmethods = ["cot"]\nbenchmarks = ["fresh"]',
        "night.toml: there are two cells fresh · cot · m; give one of them a label",
    ),
    ("+seeds = [1, 1]", "night.toml: there are two cells fresh · cot · m · seed 1; give one of them a label"),
    (
        'models = ["m"]\nmethods = ["cot"]\nbenchmarks = [{ label = "b", limit = 3 }]',
        'night.toml: b · cot · m: no benchmark; write benchmark = "NAME/SUBSET"',
    ),
    (
        'models = ["m"]\nmethods = ["cot"]\nbenchmarks = ["--help"]',
        'night.toml: --help · cot · m: no benchmark; write benchmark = "NAME/SUBSET"',
    ),
    (
        'models = ["m"]\nmethods = ["cot"]\nbenchmarks = ["tomato"]',
        "night.toml: tomato · cot · m: there is no benchmark 'tomato'; there are hitom, fresh,",
    ),
    # Options of cells.
    ("+[defaults]\nmax_calls = 3", "night.toml: fresh · cot · m: No such option '--max_calls'. (Did you mean one of:"),
    ("+[defaults]\ntemperature = nan", "night.toml: fresh · cot · m: Invalid value for '--temperature': nan is no"),
    ("+[defaults]\ntemperature = inf", "night.toml: fresh · cot · m: Invalid value for '--temperature': inf is no"),
    ("+[defaults]\nlimit = 0", "night.toml: fresh · cot · m: Invalid value for '--limit': 0 is not in the range"),
    ("+[defaults]\nlimit = 2024-01-01", "night.toml: fresh · cot · m: Invalid value for '--limit': '2024-01-01' is"),
    ("+[defaults]\nverify = true", "night.toml: fresh · cot · m: --verify is for --method rectom alone, not for cot"),
    ('+[defaults]\nreader = "chain"', "night.toml: fresh · cot · m: --reader chain: write it as STEP=KIND"),
    ('+[defaults]\nprices = "none.toml"', "night.toml: fresh · cot · m: cannot read none.toml"),
    ("+[defaults]\nmax-cost = 1", "night.toml: fresh · cot · m: --max-cost: the price of m is not known"),
    ('+[defaults]\nverify = "yes"', "night.toml: fresh · cot · m: verify is true or false"),
    ("+[defaults]\nbase-url = true\nretry-failed = true", "night.toml: fresh · cot · m: base-url needs a value"),
    ("+[defaults]\nwindow = [1, 2]", "night.toml: fresh · cot · m: window takes one value, not several"),
    ("+[defaults]\nwindow = { lines = 1 }", "night.toml: fresh · cot · m: window takes one value, not several"),
    (
        'models = ["m"]\nmethods = [{ update = ["model"] }]\nbenchmarks = ["fresh"]',
        "night.toml: fresh · rectom · m: update takes one value, not several",
    ),
    *(
        (f'+[defaults]\n"{name}" = {value}', f"night.toml: fresh · cot · m: {name} is not an option of a cell")
        for name, value in {
            "name": '"x"',
            "runs": '"x"',
            "cache": '"x"',
            "plain": "true",
            "json": "true",
            "seed": "1",
            "draw": "1",
            "help": "true",
            "limit=3": "true",
        }.items()
    ),
]


@pytest.mark.parametrize("samples", ["5", '"5"'])
def test_seeds_share_no_reply_however_the_samples_are_written(samples: str) -> None:
    found = settings(f"seeds = [0, 1, 3]\n{SMALL}[defaults]\nsamples = {samples}\ntemperature = 1")
    assert [(one.samples, one.draw) for one in found] == [(5, 0), (5, 5), (5, 15)]


def test_money_bounds_a_batch_only_where_its_own_price_is_known() -> None:
    prices, text = Path("prices.toml"), SMALL + '[defaults]\nmax-cost = 1\ntransport = "batch"\nprices = "prices.toml"'
    prices.write_text('[prices."m"]\ninput = 1\noutput = 8\ndate = 2026-05-21\n')
    words = r"--max-cost: the price of m in batches \(batch_input, batch_output\) is not known; declare it"
    with pytest.raises(SettingsError, match=words):
        matrix(text)
    prices.write_text(prices.read_text() + "batch_input = 0.5\nbatch_output = 4\n")
    (found,) = settings(text)
    assert (found.budget.cost, found.budget.currency) == (Decimal(1), "USD")


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_wrong_is_named_in_one_line(text: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingsError) as error:
        matrix(SMALL + text[1:] if text.startswith("+") else text)
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["missing.toml", "folder", "latin.toml"])
def test_a_file_that_cannot_be_read_is_named(name: str) -> None:
    Path("folder").mkdir()
    Path("latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(SettingsError, match=rf"^cannot read {name}: ") as error:
        read(Path(name), Path("cache"), Path("runs"))
    assert "\n" not in str(error.value)


def test_the_paper_is_72_cells_with_the_models_sampling() -> None:
    found = read(EXPERIMENTS / "paper.toml", Path("cache"), Path("runs"))
    cells = [planned.cell for planned in found.cells]
    assert (found.name, len(cells), len({cell.name for cell in cells})) == ("paper", 72, 72)
    assert Counter(cell.benchmark for cell in cells) == {"hitom/400": 24, "bigtom/400": 24, "fantom/324": 24}
    methods = ["cot", "simtom", "timetom", "rectom", "w/o-det", "w/o-state"]
    assert Counter(cell.method for cell in cells) == dict.fromkeys(methods, 12)
    models = ["gpt-5.4", "gemini-3-flash", "qwen3.5-27b", "gemma-4-26b-a4b"]
    assert Counter(cell.model for cell in cells) == dict.fromkeys(models, 18)
    sampling = {planned.cell.model: planned.settings.sampling for planned in found.cells}
    assert sampling == {
        "gpt-5.4": Sampling(temperature=None, limit_as="max_completion_tokens"),
        "gemini-3-flash": Sampling(temperature=None),
        "qwen3.5-27b": Sampling(temperature=1.0, top_p=0.95, top_k=20),
        "gemma-4-26b-a4b": Sampling(temperature=1.0, top_p=0.95, top_k=64),
    }
    declared = catalogue()
    for planned in found.cells:
        told, provider = planned.settings, declared[planned.cell.model]
        assert told.model_id().declared == (provider.identity or provider.name)
        assert (told.limit, told.samples, told.draw, told.window, told.verify) == (None, 1, 0, None, False)
    ablated = {planned.cell.method: planned.settings.ablation for planned in found.cells}
    assert ablated == {**{name: {} for name in methods}, "w/o-det": {"update": "model"}, "w/o-state": {"state": "off"}}
    assert len({planned.settings.run_name("d") for planned in found.cells}) == 72


def test_the_small_experiment_asks_no_model() -> None:
    found = read(EXPERIMENTS / "small.toml", Path("cache"), Path("runs"))
    assert [(planned.cell.benchmark, planned.cell.setting, planned.settings.rules) for planned in found.cells] == [
        (benchmark, rules, rules)
        for benchmark in ("fresh/small", "fresh/deep")
        for rules in ("literal", "room-scope", "hitom")
    ]
    assert not any(planned.settings.asks_a_model() for planned in found.cells)


def test_a_file_of_too_many_cells_is_refused_before_one_of_them_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.matrix.product", None)
    many = ", ".join(f'{{ label = "{number}" }}' for number in range(3000))
    with pytest.raises(SettingsError, match=r"night.toml: it has 30,000,000 cells, and 10,000 are the most: split it"):
        matrix(f"{SMALL}settings = [{many}]\nseeds = {[*range(10_000)]}\n")


def test_a_file_may_have_the_most_cells_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.matrix.MOST", 6)
    assert len(names(f"{SMALL}seeds = [0, 1, 2, 3, 4, 5]\n")) == 6
    with pytest.raises(SettingsError, match="it has 8 cells, and 6 are the most"):
        names(SMALL.replace('"m"', '"m", "n"') + "seeds = [0, 1, 2, 3]\n[[skip]]\nmodel = 'n'\n")


def test_a_cell_that_is_there_twice_is_found_in_one_go() -> None:
    assert _doubled(["a", "b", "c", "b", "a"]) in {"a", "b"}
    assert _doubled([str(number) for number in range(50_000)]) is None
