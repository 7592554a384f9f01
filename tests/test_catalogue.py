from __future__ import annotations

from pathlib import Path

import pytest

from rectom.errors import SettingsError
from rectom.llm.catalogue import Provider, catalogue, config_folder, read_prices
from rectom.llm.request import Sampling


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config_folder().mkdir(parents=True)
    return config_folder() / "models.toml"


def test_the_models_of_the_paper_have_its_settings(tmp_path: Path) -> None:
    found = catalogue(tmp_path)
    assert {name: provider.sampling.sampling() for name, provider in found.items()} == {
        "gpt-5.4": Sampling(temperature=None, limit_as="max_completion_tokens"),
        "gemini-3-flash": Sampling(temperature=None),
        "qwen3.5-27b": Sampling(temperature=1.0, top_p=0.95, top_k=20),
        "gemma-4-26b-a4b": Sampling(temperature=1.0, top_p=0.95, top_k=64),
    }
    assert all(provider.prices is None for provider in found.values())


def test_the_working_folder_goes_before_the_user_and_both_before_ours(tmp_path: Path, config: Path) -> None:
    config.write_text('[models."gpt-5.4"]\nname = "users"\n[models.own]\nname = "users"\n')
    (tmp_path / "models.toml").write_text('[models.own]\nname = "folders"\n')
    found = catalogue(tmp_path)
    assert (found["gpt-5.4"].name, found["own"].name) == ("users", "folders")
    assert "qwen3.5-27b" in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models", "models.toml is not TOML"),
        ("[models.x]\n", "models.x.name: Field required"),
        ('[models.x]\nname = "x"\nkeey = "K"\n', "models.x.keey: Extra inputs"),
        ('[models.x]\nname = "x"\nstructured = "yes"\n', "models.x.structured"),
        ('[models.x]\nname = "x"\nlimits = { concurrency = 0 }\n', "models.x.limits.concurrency"),
        ('[models.x]\nname = "x"\nprices = { input = 1, output = 1 }\n', "models.x.prices.date: Field required"),
        ('[models.x]\nname = "x"\nsampling = { temperature = inf }\n', "models.x.sampling.temperature"),
        ('[models.x]\nname = "x"\nsampling = { seed = 9223372036854775808 }\n', "models.x.sampling.seed"),
        ('[models.x]\nname = "x"\nsampling = { extra = { a = nan } }\n', "models.x.sampling.extra.*sent as JSON"),
        ('[models.x]\nname = "x"\nsampling = { extra = { a = 2024-01-01 } }\n', "sampling.extra.*sent as JSON"),
        ('[models.x]\nname = "x"\nsampling = { extra = { a = 99999999999999999999 } }\n', "extra.*sent as JSON"),
        ('[models.x]\nname = "x"\nkey = "sk-live-0123"\n', "models.x.key: .*give the name of the environment variable"),
        ('[models.x]\nname = "x"\nkey = "1KEY"\n', "models.x.key"),
        ('[models.x]\nname = "x"\nkey = "KEY\\n"\n', "models.x.key"),
        ('[models.x]\nname = "x"\nkey = ""\n', "models.x.key"),
        ('[modls.x]\nname = "x"\n', "modls: Extra inputs"),
    ],
)
def test_a_wrong_file_is_named_with_the_field(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(SettingsError, match=words) as caught:
        catalogue(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_the_key_is_read_from_the_environment_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-planted")
    provider = Provider(name="x", key="MY_KEY")
    assert provider.api_key() == "sk-planted"
    assert "planted" not in repr(provider)


def test_prices_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[prices."a/b"]\ninput = 0.1\noutput = 0.4\ncached_input = 0.01\ndate = 2026-05-21\n')
    assert str(read_prices(file)["a/b"].cached_input) == "0.01"
    file.write_text("prices = 3\n")
    with pytest.raises(SettingsError, match="prices"):
        read_prices(file)
    with pytest.raises(SettingsError, match="cannot read"):
        read_prices(tmp_path / "none.toml")
