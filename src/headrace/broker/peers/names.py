"""Addresses of host names: resolved by a helper thread and kept for a while, so that a name never delays the loop."""

from collections.abc import Callable
from functools import partial

from headrace.broker.timers import Timers
from headrace.model.addresses import needs_resolver
from headrace.model.limits import NAME_RESOLVED_MS, NAME_RESOLVING_MS_MAX, NAMES_MAX
from headrace.ports.network import Network
from headrace.ports.spawner import Lane, Spawner

Resolved = Callable[[list[str] | OSError], None]
"""Called with the addresses of a name, or with the error of the resolver."""


class _Name:
    __slots__ = ("addresses", "resolved_ms", "waiting")

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.resolved_ms = float("-inf")
        self.waiting: list[Resolved] = []


class Names:
    def __init__(self, *, network: Network, spawner: Spawner, timers: Timers) -> None:
        self._network = network
        self._spawner = spawner
        self._timers = timers
        self._names: dict[str, _Name] = {}

    def resolve(self, host: str, then: Resolved) -> None:
        """Call back with the addresses: at once if they are known, otherwise in a later turn.

        Known addresses stay in use while the resolver fails, however old they are.
        """
        if not needs_resolver(host):
            then([host])
            return
        name = self._names.get(host)
        if name is None:
            if len(self._names) >= NAMES_MAX:
                del self._names[next(iter(self._names))]
            name = self._names[host] = _Name()
        now_ms = self._timers.now_ms()
        if now_ms - name.resolved_ms < NAME_RESOLVED_MS:
            then(name.addresses)
            return
        name.waiting.append(then)
        if len(name.waiting) == 1:
            self._ask(host, name)

    def _ask(self, host: str, name: _Name) -> None:
        late = OSError(f"the resolver has not answered for {host} within {NAME_RESOLVING_MS_MAX // 1000} s")
        give_up = self._timers.after(NAME_RESOLVING_MS_MAX, lambda: self._deliver(name, late))

        def resolve_name() -> list[str]:
            return self._network.resolve(host)

        def completed(addresses: list[str] | None, error: BaseException | None) -> None:
            self._timers.cancel(give_up)
            if addresses:
                name.addresses, name.resolved_ms = addresses, self._timers.now_ms()
            failure = error if isinstance(error, OSError) else OSError(f"{host} has no address")
            self._deliver(name, failure)

        self._spawner.submit(resolve_name, completed, Lane.NAMES)

    def _deliver(self, name: _Name, failure: OSError) -> None:
        waiting, name.waiting = name.waiting, []
        outcome = name.addresses or failure
        for then in waiting:
            self._timers.next_turn(partial(then, outcome))
