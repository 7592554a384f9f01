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

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator

from rectom.declared import parse, read_toml, validate
from rectom.errors import SettingsError
from rectom.llm.prices import Prices
from rectom.llm.request import LimitField, Sampling, Structured

FILE = "models.toml"

#: What looks like the declaration of a key, in a file that is wrong.
_KEY = re.compile(r"""key["']?\s*=\s*["'](\w+)["']""", re.IGNORECASE)


#: How the name of an environment variable looks.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeclaredSampling(_Strict):
    """How replies are drawn; what is left out is left to the server. `limit_as` is the field in which it takes
    the limit on a reply's tokens; `extra` goes into the request as it is.
    """

    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1, lt=2**63)
    max_tokens: int | None = Field(default=None, ge=1, lt=2**63)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    limit_as: LimitField = "max_tokens"
    extra: dict[str, Any] = Field(default_factory=dict)

    @field_validator("extra")
    @classmethod
    def _sendable(cls, extra: dict[str, Any]) -> dict[str, Any]:
        try:
            json.dumps(extra, allow_nan=False)
            orjson.dumps(extra)  # no numbers of more than 64 bits either
        except (TypeError, ValueError) as error:
            raise ValueError(f"it cannot be sent as JSON ({error})") from None
        return extra

    def sampling(self) -> Sampling:
        """As the client takes it."""
        drawn = self.temperature, self.top_p, self.top_k, self.max_tokens, self.seed
        return Sampling(*drawn, limit_as=self.limit_as, extra=self.extra)


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

    @field_validator("key")
    @classmethod
    def _named(cls, key: str) -> str:
        if not _VARIABLE.fullmatch(key):  # it may be a key itself, which nobody is to see
            raise ValueError("give the name of the environment variable that holds the key, not the key")
        return key

    def address(self, given: str = "") -> str:
        """Where it is asked: at the address given, else the declared one, else that in the environment; "" if none.

        The environment comes last, so that the key of a declared model goes to no other server than its own.
        """
        return given or self.base_url or os.environ.get("OPENAI_BASE_URL", "")

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


def key_names(folder: Path | None = None) -> frozenset[str]:
    """The environment variables that hold the keys of declared models.

    A file that is wrong is no error here: what it seems to name as a key counts as one.
    """
    own = (model.key for model in _own().models.values())
    return frozenset((*own, *(name for path in _places(folder) for name in _key_names(path))))


def _key_names(path: Path) -> list[str]:
    try:
        return [model.key for model in _read(path).models.values()]
    except SettingsError:
        with suppress(OSError):
            return _KEY.findall(path.read_text("utf-8", "replace"))
    return []


def weights(folder: Path | None = None) -> dict[str, Weights]:
    """All weights by their names in the files, as `catalogue` reads them. Raises SettingsError as that does."""
    return {name: found for file in _files(folder) for name, found in file.weights.items()}


def _files(folder: Path | None) -> Iterator[_File]:
    """What the files declare, the later ones over the earlier."""
    yield _own()
    yield from (_read(path) for path in _places(folder) if path.is_file())


@cache
def _own() -> _File:
    own, where = resources.files("rectom.llm").joinpath(FILE).read_text("utf-8"), "the models of RecToM"
    return validate(_File, parse(own, where), where)


def _read(path: Path) -> _File:
    return validate(_File, read_toml(path), str(path))


def _places(folder: Path | None) -> tuple[Path, Path]:
    """Where the user's files are, if they are there."""
    return config_folder() / FILE, (folder or Path()) / FILE


def config_folder() -> Path:
    """The user's configuration folder of RecToM."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rectom"


def read_prices(file: Path) -> dict[str, Prices]:
    """A price file: `[prices."identity"]` tables. Raises SettingsError that names the field, if one is wrong."""
    return validate(_Prices, read_toml(file), str(file)).prices
