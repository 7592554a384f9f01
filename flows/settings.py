"""The settings of a run, as the command line gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from rectom.errors import SettingsError
from rectom.reader.base import STEPS
from rectom.rules import DEFAULT, PRESETS, Rules

RULES = "rules"
MODEL = "model"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is served, and how it may be asked. Nothing of it changes a result or a key."""

    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 64
    timeout_s: float = 600.0
    attempts: int = 6


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run depends on, and where it is kept.

    `model` is the name that the server knows, or `rules` for no model at all. `readers` gives single steps to
    `rules` or `model`. `rules` names a preset. `window` is the number of lines an abstraction call gets, None for
    the whole story. `cache` and `runs` are folders.
    """

    benchmark: str = "hitom"
    subset: str = "400"
    data: Path | None = None
    model: str = RULES
    identity: str | None = None
    revision: str = ""
    readers: Mapping[str, str] = field(default_factory=dict)
    rules: str = DEFAULT
    window: int | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    repairs: int = 2
    limit: int | None = None
    forced: tuple[str, ...] = ()
    shard: int | None = None
    endpoint: Endpoint = Endpoint()
    cache: Path = Path(".rectom/cache")
    runs: Path = Path("runs")
    name: str | None = None

    def by_step(self) -> dict[str, str]:
        """Who reads each step: `rules` or `model`. Raises SettingsError for steps and readers that do not exist."""
        usual = RULES if self.model == RULES else MODEL
        for step, reader in self.readers.items():
            if step not in STEPS or reader not in {RULES, MODEL}:
                raise SettingsError(
                    f"--reader {step}={reader}: a step is one of {', '.join(STEPS)}, a reader is rules or model"
                )
            if reader == MODEL and self.model == RULES:
                raise SettingsError(f"--reader {step}=model needs a model: give --model NAME and --base-url URL")
        return {step: self.readers.get(step, usual) for step in STEPS}

    def rule_set(self) -> Rules:
        """The rules of the preset. Raises SettingsError if there is none of that name."""
        if self.rules not in PRESETS:
            raise SettingsError(f"there are no rules {self.rules!r}; there are {', '.join(PRESETS)}")
        return PRESETS[self.rules]

    def asks_a_model(self) -> bool:
        """Whether any step goes to a model."""
        return MODEL in self.by_step().values()

    def fields(self) -> dict[str, Any]:
        """What the results depend on, for the manifest; no addresses, no keys, no places on this machine."""
        model = {
            "model": self.model,
            "identity": self.identity or self.model,
            "revision": self.revision,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_tokens": self.max_tokens,
            "repairs": self.repairs,
            "window": self.window,
        }
        return {
            "benchmark": f"{self.benchmark}/{self.subset}",
            "limit": self.limit,
            "method": "rectom",
            "rules": self.rules,
            "readers": self.by_step(),
            **(model if self.asks_a_model() else {"model": RULES}),
        }

    def run_name(self, data_digest: str) -> str:
        """The name given, or one that the same settings and data always get, so that a rerun takes the run up."""
        if self.name:
            if not re.fullmatch(r"[\w.-]+", self.name) or self.name.startswith("."):
                raise SettingsError(f"--name {self.name!r}: use letters, digits, '.', '_' and '-'")
            return self.name
        mark = sha256(orjson.dumps([self.fields(), data_digest], option=orjson.OPT_SORT_KEYS)).hexdigest()[:6]
        model = re.sub(r"[^\w.-]+", "-", self.model)
        return f"{self.benchmark}-{self.subset}.rectom.{model}.{mark}"
