from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from flows.options import run_options, settings_from
from flows.settings import Endpoint, Settings
from flows.tolerance import Tolerance
from rectom.errors import SettingsError
from rectom.llm import ModelId, Sampling
from rectom.reader.base import STEPS
from rectom.rules import PRESETS


def test_without_a_model_every_step_is_read_by_rule() -> None:
    assert Settings().by_step() == dict.fromkeys(STEPS, "rules")
    assert not Settings().asks_a_model()


def test_a_model_gets_every_step_that_is_not_given_away() -> None:
    settings = Settings(model="m", readers={"observe": "rules", "chain": "rules"})
    assert settings.by_step() == {**dict.fromkeys(STEPS, "model"), "observe": "rules", "chain": "rules"}
    assert settings.asks_a_model()
    assert not Settings(model="m", readers=dict.fromkeys(STEPS, "rules")).asks_a_model()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(model="m", readers={"guess": "rules"}), "--reader guess=rules: a step is one of abstract, chain,"),
        (
            Settings(model="m", readers={"chain": "magic"}),
            "--reader chain=magic: .* is rules, model or either",
        ),
        (Settings(readers={"chain": "model"}), "--reader chain=model needs a model: give --model NAME and --base-url"),
    ],
)
def test_readers_that_do_not_exist_are_named(settings: Settings, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings.by_step()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(update="model"), "--update model needs a model: give --model NAME and --base-url URL"),
        (Settings(method="cott"), "there is no method 'cott'; there are rectom, rectom-lite, direct"),
        (Settings(method="cot"), "--method cot needs a model: give --model NAME and --base-url URL"),
        (Settings(state="off"), "--state off needs a model: give --model NAME and --base-url URL"),
        (Settings(model="m", method="cot", state="off"), "--state off is for --method rectom alone, not for cot"),
        (Settings(model="m", update="model", state="off"), "--state off leaves no states that --update model could"),
        (
            Settings(model="m", state="off", readers={"revise": "rules"}),
            "no rule reads histories: leave out --reader revise=rules, or --state off",
        ),
    ],
)
def test_an_ablation_that_cannot_be_is_refused_at_once(settings: Settings, words: str) -> None:
    for act in (settings.by_step, settings.fields, settings.asks_a_model, lambda: settings.run_name("d")):
        with pytest.raises(SettingsError, match=words):
            act()


def test_an_ablation_asks_a_model_though_every_step_is_by_rule() -> None:
    by_rule = dict.fromkeys(STEPS, "rules")
    assert Settings(model="m", readers=by_rule, update="model").asks_a_model()
    assert Settings(model="m", readers={"chain": "rules", "reduce": "rules"}, state="off").asks_a_model()


def test_an_ablation_stands_in_the_fields_and_in_the_name_of_a_run() -> None:
    full, update, state = BASE, Settings(model="m", update="model"), Settings(model="m", state="off")
    assert update.fields() == {**full.fields(), "update": "model"}
    assert state.fields() == {**full.fields(), "state": "off"}
    assert full.run_name("d").startswith("hitom-400.rectom.m.")
    assert update.run_name("d").startswith("hitom-400.rectom-update=model.m.")
    assert state.run_name("d").startswith("hitom-400.rectom-state=off.m.")


def test_rules_are_presets() -> None:
    assert Settings(rules="literal").rule_set() is PRESETS["literal"]
    with pytest.raises(SettingsError, match="there are no rules 'mine'; there are literal,"):
        Settings(rules="mine").rule_set()


BASE = Settings(model="m", endpoint=Endpoint("http://a:1/v1", "sk-planted"))


@pytest.mark.parametrize(
    "other",
    [
        Settings(model="m", endpoint=Endpoint("http://b:2/v1", "sk-other", 1, timeout_s=5.0, attempts=1, per_second=2)),
        Settings(model="m", cache=Path("/elsewhere"), runs=Path("/there")),
        Settings(model="m", shard=3),
        Settings(model="m", forced=("completion",)),
    ],
)
def test_where_and_how_a_run_is_made_changes_neither_its_fields_nor_its_name(other: Settings) -> None:
    assert other.fields() == BASE.fields()
    assert other.run_name("d") == BASE.run_name("d")


@pytest.mark.parametrize(
    "other",
    [
        Settings(model="n"),
        Settings(model="m", identity="weights"),
        Settings(model="m", revision="2"),
        Settings(model="m", rules="literal"),
        Settings(model="m", readers={"chain": "rules"}),
        Settings(model="m", update="model"),
        Settings(model="m", state="off"),
        Settings(model="m", window=1),
        Settings(model="m", sampling=Sampling(temperature=None)),
        Settings(model="m", sampling=Sampling(top_p=0.5)),
        Settings(model="m", sampling=Sampling(top_k=5)),
        Settings(model="m", sampling=Sampling(max_tokens=5)),
        Settings(model="m", repairs=0),
        Settings(model="m", limit=5),
        Settings(model="m", subset="cotp"),
    ],
)
def test_what_a_result_depends_on_changes_fields_and_name(other: Settings) -> None:
    assert other.fields() != BASE.fields()
    assert other.run_name("d") != BASE.run_name("d")
    json.dumps(other.fields())


def test_other_data_is_another_run() -> None:
    assert BASE.run_name("d") != BASE.run_name("e")


def test_what_only_a_model_takes_is_no_part_of_a_run_by_rule() -> None:
    assert Settings(window=3, sampling=Sampling(temperature=1.0)).fields() == Settings().fields()


def test_no_place_and_no_secret_in_fields_or_repr() -> None:
    assert "planted" not in str(BASE.fields()) + repr(BASE)
    assert "http" not in str(BASE.fields())


def test_a_model_with_a_path_for_a_name_makes_one_folder() -> None:
    name = Settings(model="org/some model:7b").run_name("d")
    assert name.startswith("hitom-400.rectom.org-some-model-7b.")
    assert "/" not in name


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "a b"])
def test_a_name_is_a_single_plain_folder(name: str) -> None:
    with pytest.raises(SettingsError, match="use letters, digits"):
        Settings(name=name).run_name("d")


def parsed(*arguments: str) -> Settings:
    """The settings that a command line gives."""
    found: list[Settings] = []

    @click.command()
    @run_options
    def command(**options: Any) -> None:
        found.append(settings_from(options))

    command.main(list(arguments), standalone_mode=False)
    return found[0]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "RECTOM_CACHE", "RECTOM_HOME", "RECTOM_DATA"):
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_of_the_command_line_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parsed()
    assert settings == Settings(served_as="rules", cache=Path.cwd() / ".rectom" / "cache")
    monkeypatch.setenv("RECTOM_HOME", "/home/of/rectom")
    assert parsed().cache == Path("/home/of/rectom/cache")


def test_the_target_is_a_benchmark_and_a_subset() -> None:
    assert [(s.benchmark, s.subset) for s in (parsed("hitom"), parsed("hitom/all"), parsed("x/y/z"))] == [
        ("hitom", "400"),
        ("hitom", "all"),
        ("x", "y/z"),
    ]


def test_address_and_key_come_from_the_environment_and_an_option_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://environment:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    endpoint = parsed("--concurrency", "3", "--timeout", "9", "--attempts", "2").endpoint
    assert endpoint == Endpoint("http://environment:1/v1", "sk-planted", 3, timeout_s=9.0, attempts=2)
    assert parsed("--base-url", "http://option:2/v1").endpoint.base_url == "http://option:2/v1"


def test_options_become_settings() -> None:
    words = "--reader observe=rules --reader chain=model --window 5 --default-sampling --force answering --limit 7"
    settings = parsed("hitom/cotp", "--model", "m", *words.split())
    assert settings.readers == {"observe": "rules", "chain": "model"}
    assert (settings.window, settings.sampling, settings.limit) == (5, Sampling(temperature=None), 7)
    assert settings.forced == ("answering",)
    assert settings.ablation == {}
    assert parsed("--model", "m", "--update", "model").ablation == {"update": "model"}
    assert parsed("--model", "m", "--state", "off").ablation == {"state": "off"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--window", "0"], "--window 0: give `story` or a number of lines"),
        (["--window", "some"], "--window some"),
        (["--window", "-1"], "--window -1"),
        (["--reader", "observe"], "--reader observe: write it as STEP=KIND"),
        (["--rules", "mine"], "'mine' is not one of 'literal'"),
        (["--force", "everything"], "'everything' is not one of 'abstraction'"),
        (["--limit", "0"], "0 is not in the range"),
        (["--update", "code"], "'code' is not one of 'rules', 'model'"),
        (["--state", "none"], "'none' is not one of 'on', 'off'"),
        (["--temperature", "-1"], "-1.0 is not in the range"),
    ],
)
def test_options_that_make_no_sense_are_named(arguments: list[str], words: str) -> None:
    with pytest.raises(click.UsageError) as error:
        parsed(*arguments)
    assert words in error.value.format_message()


MODELS = """
[models.mine]
name = "served/name"
base_url = "http://declared:1/v1"
key = "MY_KEY"
identity = "the-model"
revision = "r2"
structured = "json_object"
sampling = { temperature = 1.0, top_k = 20 }
limits = { concurrency = 3, per_minute = 50 }
prices = { input = 1, output = 2, date = 2026-05-21 }
"""


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.toml").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "sk-planted")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.usefixtures("declared")
def test_a_declared_model_brings_its_settings() -> None:
    settings = parsed("--model", "mine")
    assert settings.model_id() == ModelId("served/name", "the-model", "r2")
    assert settings.sampling == Sampling(temperature=1.0, top_k=20)
    assert settings.endpoint == Endpoint(
        "http://declared:1/v1", "sk-planted", 3, per_minute=50, structured="json_object"
    )
    assert settings.budget.prices
    assert settings.budget.prices.output == 2


@pytest.mark.usefixtures("declared")
def test_options_go_before_what_is_declared() -> None:
    words = "--temperature 0 --concurrency 9 --structured text --base-url http://option:2/v1 --model-revision r3"
    settings = parsed("--model", "mine", *words.split())
    assert settings.sampling == Sampling(temperature=0.0, top_k=20)
    assert settings.endpoint == Endpoint("http://option:2/v1", "sk-planted", 9, per_minute=50, structured="text")
    assert settings.model_id().revision == "r3"


@pytest.mark.parametrize(
    ("model", "options", "address"),
    [
        ("mine", (), "http://declared:1/v1"),
        ("mine", ("--base-url", "http://option:2/v1"), "http://option:2/v1"),
        ("other", (), "http://everywhere:3/v1"),
        ("other", ("--base-url", "http://option:2/v1"), "http://option:2/v1"),
    ],
)
@pytest.mark.usefixtures("declared")
def test_the_key_of_a_declared_model_goes_to_no_address_of_the_environment(
    model: str, options: tuple[str, ...], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://everywhere:3/v1")
    assert parsed("--model", model, *options).endpoint.base_url == address


@pytest.mark.usefixtures("declared")
def test_bounds_are_read(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[prices."x"]\ninput = 3\noutput = 4\ndate = 2026-01-02\n')
    words = "--max-calls 5 --max-tokens-total 100 --max-cost 0.5 --max-failures 5% --samples 3 --retry-failed"
    settings = parsed("--model", "x", "--prices", str(tmp_path / "prices.toml"), *words.split())
    assert (settings.budget.calls, settings.budget.tokens, settings.budget.cost) == (5, 100, Decimal("0.5"))
    assert settings.budget.prices
    assert settings.budget.prices.input == 3
    assert (settings.tolerance, settings.samples, settings.retry_failed) == (Tolerance(share=0.05), 3, True)


def test_a_bound_on_money_needs_a_price() -> None:
    with pytest.raises(SettingsError, match="the price of m is not known"):
        parsed("--model", "m", "--max-cost", "1")


def test_samples_are_part_of_what_a_run_is() -> None:
    assert Settings(model="m", samples=2).fields() != Settings(model="m").fields()


def test_lite_gives_the_model_the_abstraction_alone() -> None:
    settings = Settings(method="rectom-lite", model="m")
    assert settings.by_step() == {**dict.fromkeys(STEPS, "either"), "abstract": "model"}
    assert settings.asks_a_model()
    assert settings.fields()["method"] == "rectom-lite"
    assert Settings(method="rectom-lite", model="m", readers={"answer": "model"}).by_step()["answer"] == "model"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "rectom-lite"}, "--method rectom-lite needs a model"),
        ({"method": "cot"}, "--method cot needs a model: give --model NAME and --base-url URL"),
        ({"readers": {"chain": "either"}}, "--reader chain=either needs a model"),
        ({"verify": True}, "--verify needs a model"),
        ({"verify": True, "model": "m", "method": "cot"}, "--verify is for --method rectom alone, not for cot"),
        ({"method": "rectom-lite", "model": "m", "state": "off"}, "no rule reads histories"),
    ],
)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings(**changes).by_step()


def test_a_verified_run_is_another_run() -> None:
    plain, verified = Settings(model="m"), Settings(model="m", verify=True)
    assert "verify" not in plain.fields()
    assert verified.fields()["verify"] is True
    assert ".rectom-verify." in verified.run_name("d")


@pytest.mark.parametrize(
    ("method", "temperature", "words"),
    [
        ("sc", 0.0, "--method sc at temperature 0 asks for one chain of thought 5 times: give --temperature"),
        ("sc:n=3", 0.0, "--method sc:n=3 at temperature 0 asks for one chain of thought 3 times: give --temperature"),
        ("sc:n=1", 0.0, ""),
        ("sc", 0.7, ""),
        ("sc", None, ""),
        ("cot", 0.0, ""),
        ("rectom", 0.0, ""),
    ],
)
def test_chains_that_would_all_be_one_are_doubted(method: str, temperature: float | None, words: str) -> None:
    assert Settings(model="m", method=method, sampling=Sampling(temperature=temperature)).doubt == words
