"""What the runs of one program share: the store, the claims, an endpoint's limits and batches, and a purse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cache import Store
from flows.local import Server, started
from flows.purse import Purse
from flows.serving import Serving
from flows.settings import LIVE, Endpoint
from rectom.benchmarks.base import Benchmark
from rectom.errors import SettingsError
from rectom.llm import Limits
from rectom.llm.address import Address
from rectom.llm.claims import Claims
from rectom.llm.lent import Lent
from rectom.llm.wire import Transport

#: More requests than any run has at once.
_NO_LIMIT = 10_000_000


@dataclass
class Shared:
    """What runs that go on side by side have in common. `endpoints` are those of all of them.

    Endpoints with one address are one endpoint: they share one gate, with the lowest of the limits that are given.
    """

    store: Store
    claims: Claims
    purse: Purse
    endpoints: Sequence[Endpoint]
    benchmarks: dict[tuple[object, ...], Benchmark] = field(default_factory=dict)
    _limits: dict[tuple[str, bool], Limits] = field(default_factory=dict)
    _transports: dict[object, Lent] = field(default_factory=dict)
    _servers: dict[Serving, Server] = field(default_factory=dict)
    _started: ExitStack = field(default_factory=ExitStack)

    def limits(self, endpoint: Endpoint) -> Limits:
        """The gate of an endpoint."""
        gate = _gate(endpoint)
        if gate not in self._limits:
            self._limits[gate] = limits_of([one for one in self.endpoints if _gate(one) == gate] or [endpoint])
        return self._limits[gate]

    def transport(self, endpoint: Endpoint, made: Transport | None) -> Transport | None:
        """The transport of an endpoint's batches, so that what several runs ask goes into the same ones."""
        place = (endpoint.transport, *_gate(endpoint), endpoint.api_key, endpoint.folder)
        return made and self._transports.setdefault(place, Lent(made))

    def server(self, serving: Serving) -> Server:
        """The server of a model from a file, which is started for the first run that asks for it."""
        if serving not in self._servers:
            self._servers[serving] = self._started.enter_context(started(serving))
        return self._servers[serving]

    def close(self) -> None:
        """End the servers that were started."""
        self._started.close()


@contextmanager
def sharing(cache: Path, purse: Purse, endpoints: Sequence[Endpoint]) -> Iterator[Shared]:
    """Open the store and the claims for runs side by side."""
    with (
        Store(cache) as store,
        closing(Claims(store.folder / "claims", shared=True)) as claims,
        closing(Shared(store, claims, purse, endpoints)) as shared,
    ):
        yield shared


def _gate(endpoint: Endpoint) -> tuple[str, bool]:
    """An address however it is spelt, and whether requests go there as they come: batches hold up none of these."""
    try:
        address = Address.parse(endpoint.base_url).root
    except SettingsError:  # whoever asks there is told
        address = endpoint.base_url
    return address, endpoint.transport == LIVE


def limits_of(endpoints: Sequence[Endpoint]) -> Limits:
    """The gate of endpoints that have one address."""
    if any(endpoint.transport != LIVE for endpoint in endpoints):
        # A request that waits for a place cannot join the batch.
        return Limits(_NO_LIMIT, adaptive=False)
    return Limits(
        min(endpoint.concurrency for endpoint in endpoints),
        per_second=_least([endpoint.per_second for endpoint in endpoints]),
        per_minute=_least([endpoint.per_minute for endpoint in endpoints]),
        tokens_per_minute=_least([endpoint.tokens_per_minute for endpoint in endpoints]),
    )


def _least(bounds: Sequence[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
