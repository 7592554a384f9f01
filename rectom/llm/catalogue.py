"""The models that are declared in `models.toml`: where they are served, how they are asked, what they cost.

Three files are read, the later ones over the earlier: the one that comes with RecToM, the one in the user's
configuration folder, and the one in the working folder. A table is a model:

    [models."qwen3.5-27b"]
    name = "Qwen/Qwen3.5-27B"                 # what the server is asked for
    base_url = "http://127.0.0.1:8000/v1"
    key = "VLLM_API_KEY"                      # the environment variable that holds the key
    identity = "Qwen/Qwen3.5-27B"             # what replies are kept by, with the revision
    revision = "2026-03"
    structured = "json_schema"                # or json_object, text; left out: found out
    sampling = { temperature = 1.0, top_p = 0.95, top_k = 20 }
    limits = { concurrency = 64, per_minute = 5000, tokens_per_minute = 2000000 }
    prices = { input = 0.1, output = 0.4, date = 2026-05-21 }

Other tables are weights to download, for models that are served on this machine (`rectom models get`):

    [weights."qwen2.5-coder-1.5b"]
    file = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    address = "https://…"
    sha256 = "cc32…"
    size = 1117320768                         # bytes
    licence = "Apache-2.0"
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rectom.declared import parse, read_toml, validate
from rectom.llm.prices import Prices
from rectom.llm.request import Sampling, Structured

FILE = "models.toml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeclaredSampling(_Strict):
    """How replies are drawn; what is left out is left to the server. `extra` goes into the request as it is."""

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    extra: dict[str, Any] = Field(default_factory=dict)

    def sampling(self) -> Sampling:
        """As the client takes it."""
        return Sampling(self.temperature, self.top_p, self.top_k, self.max_tokens, self.seed, extra=self.extra)


class DeclaredLimits(_Strict):
    """The most that the endpoint is to be asked."""

    concurrency: int | None = Field(default=None, ge=1)
    per_second: int | None = Field(default=None, ge=1)
    per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class Provider(_Strict):
    """A declared model."""

    name: str = Field(min_length=1)
    base_url: str = ""
    key: str = "OPENAI_API_KEY"
    identity: str | None = None
    revision: str = ""
    structured: Structured | None = None
    sampling: DeclaredSampling = DeclaredSampling()
    limits: DeclaredLimits = DeclaredLimits()
    prices: Prices | None = None

    def api_key(self) -> str | None:
        """The key, from the environment."""
        return os.environ.get(self.key) or None


class Weights(_Strict):
    """The weights of an open model, in a GGUF file that its authors publish at `address`."""

    file: str = Field(pattern=r"^\w[\w.-]*\.gguf$")
    address: str = Field(pattern=r"^https?://")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(gt=0)
    licence: str = Field(min_length=1)


class _File(_Strict):
    models: dict[str, Provider] = Field(default_factory=dict)
    weights: dict[str, Weights] = Field(default_factory=dict)


class _Prices(_Strict):
    prices: dict[str, Prices]


def catalogue(folder: Path | None = None) -> dict[str, Provider]:
    """Every declared model by its name in the files; `folder` is the working folder by default.

    Raises SettingsError that names the file and the field, if one is wrong.
    """
    return {name: model for file in _files(folder) for name, model in file.models.items()}


def weights(folder: Path | None = None) -> dict[str, Weights]:
    """All weights by their names in the files, as `catalogue` reads them. Raises SettingsError as that does."""
    return {name: found for file in _files(folder) for name, found in file.weights.items()}


def _files(folder: Path | None) -> Iterator[_File]:
    """What the files declare, the later ones over the earlier."""
    own, where = resources.files("rectom.llm").joinpath(FILE).read_text("utf-8"), "the models of RecToM"
    yield validate(_File, parse(own, where), where)
    for path in (config_folder() / FILE, (folder or Path()) / FILE):
        if path.is_file():
            yield validate(_File, read_toml(path), str(path))


def config_folder() -> Path:
    """The user's configuration folder of RecToM."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rectom"


def read_prices(file: Path) -> dict[str, Prices]:
    """A price file: `[prices."identity"]` tables. Raises SettingsError that names the field, if one is wrong."""
    return validate(_Prices, read_toml(file), str(file)).prices
