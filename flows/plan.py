"""What a sweep would send, and what that may cost. Nothing is sent and nothing is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from cache import digest
from flows.evaluate import benchmark_of, is_done
from flows.matrix import Planned
from flows.model import method_of, reader_of
from flows.pipeline import pipeline, run_plainly, shards
from flows.replies import StoredReplies
from flows.settings import Settings
from flows.shared import Shared
from rectom.benchmarks.base import Benchmark
from rectom.errors import RectomError
from rectom.llm.rehearsal import IN_WORDS, Rehearsal, Wanted
from rectom.llm.reply import Usage
from rectom.methods.registry import chosen
from rectom.reader.base import SharedReader
from rectom.reader.rehearsed import rehearsed
from rectom.results.sweep import FAILED, FINISHED, WAITING, Cell
from rectom.task import task
from tasks.run import Run, running

#: Characters a token of English, as tokenizers of today have it.
CHARACTERS: Final = 4

#: Tokens that are put down for a reply in words, and for one in JSON, as long as the store has none of that step.
IN_WORDS_TOKENS: Final = 250
IN_JSON_TOKENS: Final = 100


#: Settings that say which model is asked, and how it draws: they change no prompt, but what replies are kept by.
_OF_MODELS: Final = ("identity", "revision", "temperature", "top_p", "top_k")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a cell would come to: `calls` that no cell before it would send, and their tokens; money if it is known.

    `held` are the different replies that the store has already. `state` is `finished` if nothing is to be done,
    `failed` if the cell cannot be begun, for the reason `why`.
    """

    cell: Cell
    state: str = WAITING
    questions: int = 0
    held: int = 0
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    money: Decimal | None = None
    currency: str = ""
    why: str = ""


@dataclass
class Planner:
    """Estimates cell after cell. A request that two cells of one model would send is counted with the first of them."""

    shared: Shared
    retry: bool = False
    _counted: set[str] = field(default_factory=set)
    _steps: dict[str, str] = field(default_factory=dict)
    _heard: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    _rehearsed: dict[str, tuple[int, dict[str, Wanted]]] = field(default_factory=dict)

    async def estimate(self, planned: Planned) -> Estimate:
        """What a cell would come to."""
        settings = planned.settings
        try:
            benchmark = benchmark_of(settings, self.shared)
            return await self._of(planned, benchmark)
        except RectomError as error:
            return Estimate(planned.cell, FAILED, why=str(error))

    async def _of(self, planned: Planned, benchmark: Benchmark) -> Estimate:
        settings, questions = planned.settings, len(benchmark.questions)
        run = settings.runs / settings.run_name(benchmark.digest)
        if is_done(run, settings, benchmark, self.shared.store, retry=self.retry):
            return Estimate(planned.cell, FINISHED, questions, money=Decimal())
        if not settings.asks_a_model():
            return Estimate(planned.cell, WAITING, questions, money=Decimal())
        held, wanted = await self._asked(settings, benchmark)
        fields = settings.fields()
        model = digest([fields[name] for name in _OF_MODELS])
        new = {key: one for key, one in wanted.items() if (model + key) not in self._counted}
        self._counted |= {model + key for key in new}
        return self._priced(planned, questions, held, new)

    async def _asked(self, settings: Settings, benchmark: Benchmark) -> tuple[int, dict[str, Wanted]]:
        """How many replies of a run the store has, and the requests that would be sent, by key.

        As long as the store is empty all models are asked the same, which is found out once, of a model without a name.
        """
        if self.shared.store.count()["reply"]:
            return await self._rehearse(settings, benchmark)
        sampling = replace(settings.sampling, temperature=None, top_p=None, top_k=None)
        nameless = replace(settings, model="any", served_as="", identity=None, revision="", sampling=sampling)
        alike = digest({**nameless.fields(), "data": benchmark.digest})
        if alike not in self._rehearsed:
            self._rehearsed[alike] = await self._rehearse(nameless, benchmark)
        return self._rehearsed[alike]

    async def _rehearse(self, settings: Settings, benchmark: Benchmark) -> tuple[int, dict[str, Wanted]]:
        """The same, by going through the run."""
        client = Rehearsal(StoredReplies(self.shared.store), replay_failures=not settings.retry_failed)
        calls: list[Mapping[str, Any]] = []
        for number in range(settings.samples):
            run = self._run(settings, benchmark, client, settings.draw + number)
            with running(run):
                await pipeline(shards(run, settings.shard), run_plainly, answers_only=run.method is not None)
            calls += [call for result in run.results.values() for call in result.calls]
        held = {call["key"]: call for call in calls if call["source"] == "cached" or call["completion"]}
        # Methods have steps of one name that ask for replies of several forms.
        prompts = "" if settings.is_rectom else chosen(settings.method)[0].prompts
        self._steps |= {call["key"]: f"{prompts}/{call['step']}" for call in calls}
        for key, call in held.items():
            self._heard[self._steps[key]][key] = call["completion"]
        return len(held), client.wanted

    def _run(self, settings: Settings, benchmark: Benchmark, client: Rehearsal, sample: int) -> Run:
        method = method_of(settings, client, benchmark, sample)
        reader = None
        if method is None:
            asked = reader_of(settings, client, benchmark, sample)
            assert isinstance(asked, SharedReader)
            kind = task(benchmark.task)
            reader = rehearsed(asked, kind.by_rule(settings.rule_set() or kind.rules))
        store, forced, again = self.shared.store, settings.forced, settings.retry_failed
        return Run(benchmark, reader, store, method, dry=True, forced=forced, retry_failed=again)

    def _priced(self, planned: Planned, questions: int, held: int, wanted: Mapping[str, Wanted]) -> Estimate:
        prompt = sum(-(-one.length // CHARACTERS) for one in wanted.values())
        completion = sum(self._reply(key, one) for key, one in wanted.items())
        budget = planned.settings.budget
        prices = budget.prices
        money = prices.cost(Usage(prompt, completion), batch=budget.batch) if prices else None
        currency = prices.currency if prices and wanted else ""
        money = Decimal() if not wanted else money
        return Estimate(planned.cell, WAITING, questions, held, len(wanted), prompt, completion, money, currency)

    def _reply(self, key: str, wanted: Wanted) -> int:
        """How long a reply may be: as the replies to that step in the store are on the average."""
        heard = self._heard.get(self._steps.get(key, ""))
        usual = IN_WORDS_TOKENS if wanted.step == IN_WORDS else IN_JSON_TOKENS
        length = round(sum(heard.values()) / len(heard)) if heard else usual
        return min(length, wanted.max_tokens or length)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """All cells together. The money is None if that of one is not known, or they are in several currencies."""
    found = list(estimates)
    currencies = {one.currency for one in found if one.currency}
    money: Decimal | None = Decimal()
    for one in found:
        money = None if money is None or one.money is None or len(currencies) > 1 else money + one.money
    numbers = {name: sum(getattr(one, name) for one in found) for name in _NUMBERS}
    return Estimate(Cell("", "", "all cells"), money=money, currency=currencies.pop() if currencies else "", **numbers)


_NUMBERS: Final = ("questions", "held", "calls", "prompt", "completion")
