"""Client quotas on this broker: which buckets the requests of a connection are charged to, and who has to wait.

A charge that leaves a bucket in debt mutes the connection until the debt is paid. The response is not delayed: it tells
the client for how long its next requests are not handled (KIP-219).
"""

from collections.abc import Callable
from itertools import islice
from math import ceil
from typing import Protocol

from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.core.controller.image import MetadataImage
from headrace.core.quotas.bucket import Bucket
from headrace.core.quotas.entities import CLIENT_ID, FETCH_RATE, PRODUCE_RATE, USER, quota_of_client
from headrace.model.limits import QUOTA_BUCKETS_MAX, QUOTA_CLIENTS_MAX
from headrace.ports.clock import Clock

BucketKey = tuple[str, str | None, str | None]
"""A quota's key, and the user and client id that share it."""


class MeteredClient:
    """The buckets of one user with one client id; None where no quota holds."""

    __slots__ = ("client_id", "fetch", "produce", "user")

    def __init__(self, user: str | None, client_id: bytes | None) -> None:
        self.user = user
        self.client_id = client_id
        self.produce: Bucket | None = None
        self.fetch: Bucket | None = None


UNKNOWN_CLIENT = MeteredClient(None, None)
"""Of a connection before its first request, and after a change of the quotas."""


class Throttling(Protocol):
    """The connections of this node."""

    def mute(self, connection: Connection, duration_ms: float) -> None:
        """Handle no request of the connection for a while."""

    def meter_clients(self, client: MeteredClient | None) -> None:
        """Give every connection of a client, and every new one, this client; handle the muted ones again."""


class ClientQuotas:
    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        window_s: Callable[[], float],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`window_s` returns the seconds for which the units of a quota may be used at once."""
        self._image = image
        self._window_s = window_s
        self._clock = clock
        self._metrics = metrics
        self._clients: dict[tuple[str, bytes], MeteredClient] = {}
        self._buckets: dict[BucketKey, Bucket] = {}
        self.connections: Throttling | None = None
        """Set when the node has a loop."""

    def follow_image(self) -> None:
        """Apply the quotas of the committed metadata, at the start and whenever they change."""
        assert self.connections is not None
        self._clients.clear()
        is_used = any(kind in (USER, CLIENT_ID) for entity in self._image().client_quotas for kind, _name in entity)
        if not is_used:
            self._buckets.clear()
        self.connections.meter_clients(UNKNOWN_CLIENT if is_used else None)

    # Requests of clients

    def identify(self, connection: Connection, client_id: bytes) -> None:
        """Find the buckets of a connection, at its first request and when its client id or principal is another."""
        client, user = connection.metered, connection.principal.name
        if client is None or (client.client_id == client_id and client.user == user):
            return
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
        if not connection.muted_until_ms:
            return 0
        return max(0, ceil(connection.muted_until_ms - self._clock.monotonic_ms()))

    def _charge(self, connection: Connection, bucket: Bucket, amount: float, key: str) -> None:
        wait_ms = bucket.charge(amount, self._clock.monotonic_ms())
        if wait_ms:
            self.throttle(connection, wait_ms, key)

    def throttle(self, connection: Connection, wait_ms: float, key: str) -> None:
        """Handle no request of the connection until its debt is paid."""
        assert self.connections is not None
        self._metrics.throttled_requests[key] += 1
        self._metrics.throttled_ms[key] += wait_ms
        self.connections.mute(connection, wait_ms)

    # Buckets

    def _client(self, user: str, client_id: bytes) -> MeteredClient:
        found = self._clients.get((user, client_id))
        if found is None:
            if len(self._clients) >= QUOTA_CLIENTS_MAX:
                self._clients.clear()
            found = self._clients[user, client_id] = MeteredClient(user, client_id)
            found.produce = self._bucket(PRODUCE_RATE, user, client_id)
            found.fetch = self._bucket(FETCH_RATE, user, client_id)
        return found

    def _bucket(self, key: str, user: str, client_id: bytes) -> Bucket | None:
        """Return the bucket that the requests of this client are charged to; None if no quota holds."""
        chosen = quota_of_client(self._image().client_quotas, key, user, client_id.decode(errors="replace"))
        if chosen is None:
            return None
        now_ms, window_s = self._clock.monotonic_ms(), self._window_s()
        shared = (key, chosen.user, chosen.client_id)
        bucket = self._buckets.get(shared)
        if bucket is None:
            if len(self._buckets) >= QUOTA_BUCKETS_MAX:
                self._drop_buckets(now_ms)
            bucket = self._buckets[shared] = Bucket(chosen.limit, window_s=window_s, now_ms=now_ms)
        else:
            bucket.set_rate(chosen.limit, window_s=window_s, now_ms=now_ms)
        return bucket

    def _drop_buckets(self, now_ms: float) -> None:
        """Drop the buckets that are full, and some of the oldest ones if there are few of those."""
        self._buckets = {shared: bucket for shared, bucket in self._buckets.items() if not bucket.is_full(now_ms)}
        surplus = len(self._buckets) - QUOTA_BUCKETS_MAX * 9 // 10
        for shared in tuple(islice(self._buckets, max(surplus, 0))):
            del self._buckets[shared]
