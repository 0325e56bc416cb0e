"""Scans by blocking calls: the segment files of partitions, for a job that reads them itself."""

from collections.abc import Iterable

from headrace.client.blocking.blocking_client import BlockingClient
from headrace.client.core import scans
from headrace.client.core.cluster import fetch_metadata
from headrace.client.scans import FEATURE, ScanManifest
from headrace.client.types import IsolationLevel
from headrace.model.ids import TopicPartition

LEASE_MS_DEFAULT = 600_000


class Scans(BlockingClient):
    """Sends nothing before the first call; every call ends by `timeout_ms`."""

    def supported(self) -> bool:
        """Return whether the brokers support scans; other implementations of Kafka's protocol do not."""
        self._session.run(fetch_metadata(()), self._timeout_ms)
        return self._session.cluster.feature(FEATURE) > 0

    def scan_manifest(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
        lease_ms: int = LEASE_MS_DEFAULT,
    ) -> ScanManifest:
        """Return the files of all these partitions, readable until the lease ends; release it when you are done."""
        operation = scans.manifest(
            self._session.cluster, partitions, isolation_level=isolation_level, lease_ms=lease_ms
        )
        return self._session.run(operation, self._timeout_ms)

    def renew(self, manifest: ScanManifest) -> None:
        """Renew the lease. A BrokerError with FETCH_SESSION_ID_NOT_FOUND means that it has ended and files may be
        gone.
        """
        self._session.run(scans.renew(manifest.leases), self._timeout_ms)

    def scan_release(self, manifest: ScanManifest) -> None:
        self._session.run(scans.release(manifest.leases), self._timeout_ms)
