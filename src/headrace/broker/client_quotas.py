"""Client quotas on this broker: which buckets the requests of a connection are charged to, and who has to wait.

A charge that leaves a bucket in debt mutes the connection until the debt is paid. The response is not delayed: it tells
the client for how long its next requests are not handled (KIP-219).
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from math import ceil
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import NO_TOKEN, Connection
from headrace.core.access.sasl import SaslState
from headrace.core.controller.image import MetadataImage
from headrace.core.quotas.accept_rates import AcceptRates
from headrace.core.quotas.bucket import Bucket
from headrace.core.quotas.entities import (
    CLIENT_ID,
    FETCH_RATE,
    MUTATION_RATE,
    PRODUCE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    quota_of_client,
)
from headrace.model.access import NODE
from headrace.model.configs.values import BrokerConfig
from headrace.model.limits import CLIENT_ID_KEPT_BYTES_MAX, QUOTA_BUCKETS_MAX, QUOTA_CLIENTS_MAX, THROTTLE_MS_MIN
from headrace.ports.clock import Clock

MS_PER_PERCENT = 10.0
"""Milliseconds of the loop in each second that one percent is."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

BucketKey = tuple[str, str | None, str | None]
"""A quota's key, and the user and client id that share it."""


class MeteredClient:
    """The buckets of one user with one client id; None where no quota holds."""

    __slots__ = ("client_id", "fetch", "produce", "request_time", "user")

    def __init__(self, user: str | None, client_id: bytes | None) -> None:
        self.user = user
        self.client_id = client_id
        self.produce: Bucket | None = None
        self.fetch: Bucket | None = None
        self.request_time: Bucket | None = None
        """In milliseconds of the loop."""


UNKNOWN_CLIENT = MeteredClient(None, None)
"""Of a connection before its first request, and after a change of the quotas."""


class Throttling(Protocol):
    """The connections of this node."""

    def mute(self, connection: Connection, duration_ms: float) -> None:
        """Handle no request of the connection for a while."""

    def time_clients(self, quotas: "ClientQuotas | None") -> None:
        """Have the time charged that receiving, handling and sending take, or with None no more."""

    @property
    def rates(self) -> AcceptRates: ...

    def meter_clients(self, client: MeteredClient | None) -> None:
        """Give every connection of a client, and every new one, this client; handle the muted ones again."""


class ClientQuotas:
    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        config: Callable[[], BrokerConfig],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._image = image
        self._config = config
        self._clock = clock
        self._metrics = metrics
        self._clients: dict[tuple[str, bytes], MeteredClient] = {}
        self._buckets: dict[BucketKey, Bucket] = {}
        self.connections: Throttling | None = None
        """Set when the node has a loop."""
        self._handled: Connection | None = None
        """The connection that the loop works for now, while there is a quota of request time."""
        self._handled_from_ms = 0.0

    def follow_image(self) -> None:
        """Apply the quotas of the committed metadata, at the start and whenever they change."""
        assert self.connections is not None
        self._clients.clear()
        quotas = self._image().client_quotas
        is_used = any(kind in (USER, CLIENT_ID) for entity in quotas for kind, _name in entity)
        is_timed = any(REQUEST_PERCENTAGE in limits for limits in quotas.values())
        self.connections.rates.follow(quotas)
        self.connections.time_clients(self if is_timed else None)
        if not is_used:
            self._buckets.clear()
        self.connections.meter_clients(UNKNOWN_CLIENT if is_used else None)

    # Requests of clients

    def identify(self, connection: Connection, client_id: bytes) -> None:
        """Find the buckets of a connection, at its first request and when its client id or principal is another."""
        client, user = connection.metered, connection.principal.name
        client_id = client_id[:CLIENT_ID_KEPT_BYTES_MAX]
        if client is None or (client.client_id == client_id and client.user == user):
            return
        if connection.sasl is not None and connection.sasl.state is not SaslState.AUTHENTICATED:
            return  # a login is charged to no user
        connection.produce_shapes.clear()  # the short path of Produce does not look at the client id
        connection.metered = self._client(user, client_id)

    def produced(self, connection: Connection, size: int) -> None:
        """Charge the bytes of a Produce request."""
        client = connection.metered
        if client is not None and client.produce is not None:
            self._charge(connection, client.produce, size, PRODUCE_RATE)

    def fetched(self, connection: Connection, size: int) -> None:
        """Charge the bytes of records in the response to a Fetch."""
        client = connection.metered
        if client is not None and client.fetch is not None:
            self._charge(connection, client.fetch, size, FETCH_RATE)

    def fetch_bytes_max(self, connection: Connection, wanted: int) -> int:
        """Return how many bytes a Fetch may read: few enough for a quota that no response makes a long debt."""
        client = connection.metered
        if client is None or client.fetch is None:
            return wanted
        return min(wanted, max(1, int(client.fetch.capacity)))

    def throttle_time_ms(self, connection: Connection) -> int:
        """Return for how long no request of the connection is handled, as responses tell it."""
        if connection is self._handled:
            self._charge_time(connection)
        if not connection.muted_until_ms:
            return 0
        return max(0, ceil(connection.muted_until_ms - self._clock.monotonic_ms()))

    def _charge(self, connection: Connection, bucket: Bucket, amount: float, key: str) -> None:
        wait_ms = bucket.charge(amount, self._clock.monotonic_ms())
        if wait_ms >= THROTTLE_MS_MIN:
            self.throttle(connection, wait_ms, key)

    def throttle(self, connection: Connection, wait_ms: float, key: str) -> None:
        """Handle no request of the connection until its debt is paid."""
        assert self.connections is not None
        if connection.token == NO_TOKEN:  # its response tells the broker that forwarded the request
            connection.muted_until_ms = self._clock.monotonic_ms() + wait_ms
            return
        self._metrics.throttled_requests[key] += 1
        self._metrics.throttled_ms[key] += wait_ms
        self.connections.mute(connection, wait_ms)

    # Request time

    def timed(
        self, call: Callable[Concatenate[Connection, Arguments], Result]
    ) -> Callable[Concatenate[Connection, Arguments], Result]:
        """Return the call with its time charged to the client of the connection."""

        def timed_call(connection: Connection, /, *values: Arguments.args, **options: Arguments.kwargs) -> Result:
            if connection.metered is None:
                return call(connection, *values, **options)
            self._handled, self._handled_from_ms = connection, self._clock.monotonic_ms()
            try:
                return call(connection, *values, **options)
            finally:
                self._charge_time(connection)
                self._handled = None

        return timed_call

    def charged(self, connection: Connection, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call of a later turn with its time charged to the client of the connection."""
        if connection.metered is None:
            return call

        def work(_connection: Connection) -> None:
            call()

        return partial(self.timed(work), connection)

    def _charge_time(self, connection: Connection) -> None:
        """Charge the time since the last charge. A wait is at most one window, so that heartbeats come in time."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms, self._handled_from_ms = now_ms - self._handled_from_ms, now_ms
        bucket = connection.metered.request_time if connection.metered is not None else None
        if bucket is None:
            return
        wait_ms = bucket.charge(elapsed_ms, now_ms)
        if wait_ms >= THROTTLE_MS_MIN and not connection.closed:
            self.throttle(connection, min(wait_ms, self._config().quota_window_s * 1_000), REQUEST_PERCENTAGE)

    # Changes of partitions

    def mutation_bucket(self, connection: Connection, client_id: str | None) -> Bucket | None:
        """Return the bucket for partitions that a client creates or deletes; None if no quota holds."""
        principal = connection.principal
        if principal.type == NODE or not self._image().client_quotas:
            return None
        return self._bucket(MUTATION_RATE, principal.name, (client_id or "").encode()[:CLIENT_ID_KEPT_BYTES_MAX])

    # Buckets

    def _client(self, user: str, client_id: bytes) -> MeteredClient:
        found = self._clients.get((user, client_id))
        if found is None:
            if len(self._clients) >= QUOTA_CLIENTS_MAX:
                self._clients.clear()
            found = self._clients[user, client_id] = MeteredClient(user, client_id)
            found.produce = self._bucket(PRODUCE_RATE, user, client_id)
            found.fetch = self._bucket(FETCH_RATE, user, client_id)
            found.request_time = self._bucket(REQUEST_PERCENTAGE, user, client_id, MS_PER_PERCENT)
        return found

    def _bucket(self, key: str, user: str, client_id: bytes, scale: float = 1.0) -> Bucket | None:
        """Return the bucket that the requests of this client are charged to, in units of the quota times `scale`; None
        if no quota holds.
        """
        chosen = quota_of_client(self._image().client_quotas, key, user, client_id.decode(errors="replace"))
        if chosen is None:
            return None
        config, now_ms, rate = self._config(), self._clock.monotonic_ms(), chosen.limit * scale
        window_s = config.mutation_window_s if key == MUTATION_RATE else config.quota_window_s
        shared = (key, chosen.user, chosen.client_id)
        bucket = self._buckets.get(shared)
        if bucket is None:
            if len(self._buckets) >= QUOTA_BUCKETS_MAX:
                self._drop_buckets(now_ms)
            bucket = self._buckets[shared] = Bucket(rate, window_s=window_s, now_ms=now_ms)
        else:
            bucket.set_rate(rate, window_s=window_s, now_ms=now_ms)
        return bucket

    def _drop_buckets(self, now_ms: float) -> None:
        """Drop the buckets that are full, and some of the oldest ones if there are few of those."""
        self._buckets = {shared: bucket for shared, bucket in self._buckets.items() if not bucket.is_full(now_ms)}
        surplus = len(self._buckets) - QUOTA_BUCKETS_MAX * 9 // 10
        for shared in tuple(islice(self._buckets, max(surplus, 0))):
            del self._buckets[shared]
