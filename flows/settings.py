"""The settings of a run, as the command line gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from flows.serving import Serving
from flows.tolerance import Tolerance
from rectom.errors import SettingsError
from rectom.llm.budget import Budget
from rectom.llm.request import ModelId, Sampling, Structured
from rectom.methods.registry import chosen
from rectom.reader.base import STEPS
from rectom.results.folder import in_name
from rectom.rules import PRESETS, Rules

#: Who reads a step: the rules, the model, or by rule where a rule can and else the model.
RULES, MODEL, EITHER = "rules", "model", "either"

#: Our own method, and the one that spares the model; the others are in `rectom.methods`.
RECTOM, LITE = "rectom", "rectom-lite"

#: Whether perspectives have states.
ON, OFF = "on", "off"

#: The steps that no rule takes where there are no states.
_OF_STATES = ("observe", "revise", "answer")

#: What can be exchanged in a benchmark (see `rectom.benchmarks.permute`).
PERMUTABLE = ("choices", "names", "containers")

#: How requests travel: over HTTP as they come, as jobs of the Batch API, or through files in a folder.
LIVE, BATCH, BATCH_FILE = "live", "batch", "batch-file"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is served, and how it may be asked. Nothing of it is part of a key.

    `structured` is how it takes reply schemas; None if that is to be found out. A model that is only told its schema
    may reply otherwise than one that is held to it, so that a run's manifest says how many replies came of which.
    `folder` is for requests that travel through files. `local` is a file that is served while the run goes on, instead
    of an address.
    """

    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 64
    per_second: int | None = None
    per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: float = 600.0
    attempts: int = 6
    structured: Structured | None = None
    transport: str = LIVE
    folder: Path | None = None
    local: Serving | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run depends on, and where it is kept.

    `permuted` is what is exchanged in the benchmark, by `seed`, and `stories` the number of stories that are drawn
    from it, by the same seed; None for all. `method` is RecToM or another, with its options
    (`sc:n=5`). `model` is the name on the command line: a declared model, a name that the server knows, or `rules`
    for no model at all; `served_as` is what the server is asked for. `readers` gives single steps to `rules`, `model`
    or `either`. `update` says who applies Eq. 1, and `state` whether perspectives have states or are histories of
    events: the paper's ablations w/o-det and w/o-state. `verify` has the steps of the model checked by rule. `rules`
    names a preset, or is empty for those of the benchmark's kind of text. `window` is the number of lines an
    abstraction call gets, None for the whole story. `samples` is how often every question is answered anew, and `draw`
    the number of the first of them: another one draws other replies. `cache` and `runs` are folders.
    """

    benchmark: str = "hitom"
    subset: str = "400"
    permuted: tuple[str, ...] = ()
    seed: int = 0
    stories: int | None = None
    data: Path | None = None
    method: str = RECTOM
    model: str = RULES
    served_as: str = ""
    identity: str | None = None
    revision: str = ""
    readers: Mapping[str, str] = field(default_factory=dict)
    update: str = RULES
    state: str = ON
    verify: bool = False
    rules: str = ""
    window: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    samples: int = 1
    draw: int = 0
    repairs: int = 2
    limit: int | None = None
    forced: tuple[str, ...] = ()
    retry_failed: bool = False
    tolerance: Tolerance = field(default_factory=Tolerance)
    budget: Budget = field(default_factory=Budget)
    shard: int | None = None
    endpoint: Endpoint = Endpoint()
    cache: Path = Path(".rectom/cache")
    runs: Path = Path("runs")
    name: str | None = None

    @property
    def is_rectom(self) -> bool:
        """Whether the method is RecToM, with all steps by the model or not."""
        return self.method in {RECTOM, LITE}

    def by_step(self) -> dict[str, str]:
        """Who reads each step: `rules`, `model` or `either`. Raises SettingsError for what does not go together."""
        for step, reader in self.readers.items():
            if step not in STEPS or reader not in {RULES, MODEL, EITHER}:
                known = f"a step is one of {', '.join(STEPS)}, a reader is rules, model or either"
                raise SettingsError(f"--reader {step}={reader}: {known}")
            if reader != RULES and self.model == RULES:
                raise SettingsError(f"--reader {step}={reader} needs a model: give --model NAME and --base-url URL")
        for name, value in self.ablation.items():
            self._check(f"--{name} {value}")
        if self.verify:
            self._check("--verify")
        if self.method != RECTOM and self.model == RULES:
            if not self.is_rectom:
                chosen(self.method)  # what is no method needs none either
            raise SettingsError(f"--method {self.method} needs a model: give --model NAME and --base-url URL")
        return {step: self.readers.get(step, self._usual(step)) for step in STEPS}

    def _usual(self, step: str) -> str:
        if self.model == RULES:
            return RULES
        return EITHER if self.method == LITE and step != "abstract" else MODEL

    def _check(self, option: str) -> None:
        """Raise SettingsError if an option of RecToM does not go with the others."""
        if not self.is_rectom:
            raise SettingsError(f"{option} is for --method {RECTOM} alone, not for {self.method}")
        if self.model == RULES:
            raise SettingsError(f"{option} needs a model: give --model NAME and --base-url URL")
        if len(self.ablation) > 1:
            raise SettingsError("--state off leaves no states that --update model could update: give one of the two")
        if self.method == LITE and self.state == OFF:
            raise SettingsError(f"no rule reads histories: leave out --state off, or take --method {RECTOM}")
        by_rule = [step for step in _OF_STATES if self.readers.get(step) in {RULES, EITHER}]
        if by_rule and self.state == OFF:
            raise SettingsError(
                f"no rule reads histories: leave out --reader {by_rule[0]}={self.readers[by_rule[0]]}, or --state off"
            )

    @property
    def ablation(self) -> dict[str, str]:
        """What sets a run apart from the paper's full method: nothing, `update: model` or `state: off`."""
        usual = {"update": RULES, "state": ON}
        return {name: value for name, value in (("update", self.update), ("state", self.state)) if value != usual[name]}

    @property
    def doubt(self) -> str:
        """What of the settings is allowed and hardly meant, in one line; empty if nothing is."""
        if self.method.partition(":")[0] != "sc" or self.sampling.temperature != 0:
            return ""
        count = chosen(self.method)[1]["n"]
        told = f"--method {self.method} at temperature 0 asks for one chain of thought {count} times"
        return "" if count == "1" else f"{told}: give --temperature"

    def rule_set(self) -> Rules | None:
        """The rules of the preset, None if none is named. Raises SettingsError if there is none of that name."""
        if not self.rules:
            return None
        if self.rules not in PRESETS:
            raise SettingsError(f"there are no rules {self.rules!r}; there are {', '.join(PRESETS)}")
        return PRESETS[self.rules]

    def model_id(self) -> ModelId:
        """The model as requests name it and replies are kept by."""
        name = self.served_as or self.model
        return ModelId(name, self.identity, self.revision)

    def asks_a_model(self) -> bool:
        """Whether any step goes to a model."""
        readers = self.by_step()
        return not self.is_rectom or {MODEL, EITHER} & {*readers.values()} != set() or bool(self.ablation)

    def fields(self) -> dict[str, Any]:
        """What the results depend on, for the manifest; no addresses, no keys, no places on this machine."""
        model = {
            "model": self.model,
            "identity": self.model_id().declared,
            "revision": self.revision,
            **_drawn(self.sampling),
            "samples": self.samples,
            **({"draw": self.draw} if self.draw else {}),
            "repairs": self.repairs,
            "window": self.window,
        }
        rectom: dict[str, Any] = {"rules": self.rules or self.benchmark, "readers": self.by_step(), **self.ablation}
        rectom |= {"verify": True} if self.verify else {}
        return {
            "benchmark": f"{self.benchmark}/{self.named_subset}",
            "limit": self.limit,
            "method": self.method,
            **(rectom if self.is_rectom else {"rules": self.rules} if self.rules else {}),
            **(model if self.asks_a_model() else {"model": RULES}),
        }

    @property
    def named_subset(self) -> str:
        """The subset, with what is permuted in it and how many stories of it are drawn: `400+names.7+stories.12.7`."""
        drawn = [f"stories.{self.stories}"] if self.stories else []
        return "+".join([self.subset, *(f"{what}.{self.seed}" for what in [*self.permuted, *drawn])])

    def run_name(self, data_digest: str) -> str:
        """The name given, or one that the same settings and data always get, so that a rerun takes the run up."""
        if self.name:
            if not re.fullmatch(r"[\w.=+-]+", self.name) or self.name.startswith("."):
                raise SettingsError(f"--name {self.name!r}: use letters, digits, and any of . _ - = +")
            return self.name
        mark = sha256(orjson.dumps([self.fields(), data_digest], option=orjson.OPT_SORT_KEYS)).hexdigest()[:6]
        options = [*(f"{option}={value}" for option, value in self.ablation.items()), *["verify"][: self.verify]]
        variant = "-".join([self.method, *options])
        model, method = map(in_name, (self.model, variant))
        return f"{self.benchmark}-{self.named_subset}.{method}.{model}.{mark}"


def _drawn(sampling: Sampling) -> dict[str, Any]:
    named = ("temperature", "top_p", "top_k", "max_tokens")
    return {**{name: getattr(sampling, name) for name in named}, **sampling.fields()}
