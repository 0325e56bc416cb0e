"""Leases of segment files to jobs that read them outside the broker.

A lease gives each of its files a second name (a hard link), in a folder of its own (`log/scan_links.py`). To end the
lease, the broker removes that folder: when the job releases it or does not renew it in time, when the log directory is
full, and when scans keep more deleted bytes than allowed. A job whose files are gone has to ask again, or to fetch.
"""

from collections.abc import Callable, Iterator

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.partitions.held_segments import HeldPartition, look_at
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.log.scan_links import link_files, remove_folder, scan_folder
from headrace.model.access import Principal, Requester
from headrace.model.errors import ErrorCode
from headrace.ports.bundle import Ports
from headrace.ports.spawner import Lane

LEASES_MAX = 256
"""The limit of one node. A Spark job does not know when its last task has read, so its lease stays until it is not
renewed any more. Many short queries in a row therefore hold many leases."""

ENTRIES_MAX = 200_000
"""The limit of segments and aborted transactions in all leases together."""

LEASE_MS_MIN = 1_000
LEASE_MS_MAX = 3_600_000
"""The bounds of the time until a lease has to be renewed."""

LEASE_ID_BYTES = 16
SWEEP_MS = 1_000
"""The pause between two checks of the leases."""

LOOKS_MAX = 10
"""Attempts on a partition whose files are replaced or deleted at the same time."""

Outcome = HeldPartition | ErrorCode


class Lease:
    __slots__ = ("client", "deadline_ms", "duration_ms", "ended", "lease_id", "partitions")

    def __init__(self, lease_id: bytes, client: Requester) -> None:
        self.lease_id = lease_id
        self.client = client
        self.duration_ms = LEASE_MS_MIN
        self.deadline_ms = 0.0
        self.ended = False
        self.partitions: dict[tuple[str, int], HeldPartition] = {}

    @property
    def entries(self) -> int:
        return sum(held.entries for held in self.partitions.values())

    def kept_bytes(self) -> int:
        return sum(held.kept_bytes() for held in self.partitions.values())

    def folder(self, directory_path: str) -> str:
        return scan_folder(directory_path, self.lease_id.hex())

    def folder_of(self, held: HeldPartition) -> str:
        return f"{self.folder(held.directory.path)}/{held.topic}-{held.partition}"


class ScanLeases:
    def __init__(
        self,
        *,
        partitions: PartitionTable,
        ports: Ports,
        timers: Timers,
        logger: NodeLogger,
        kept_bytes_max: Callable[[], int],
        may_scan: Callable[[Requester, str], bool],
    ) -> None:
        """`kept_bytes_max` gives the limit of deleted bytes that all leases may keep on disk, as configured now;
        `may_scan` decides whether a client may read the files of a topic.
        """
        self._partitions = partitions
        self._clock = ports.clock
        self._disk = ports.disk
        self._entropy = ports.entropy
        self._spawner = ports.spawner
        self._timers = timers
        self._logger = logger
        self._kept_bytes_max = kept_bytes_max
        self.may_scan = may_scan
        self._leases: dict[bytes, Lease] = {}
        self._sweeping = False
        self.broken = 0

    def begin(self, client: Requester) -> Lease | ErrorCode:
        if len(self._leases) >= LEASES_MAX:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        lease = Lease(self._entropy.random_bytes(LEASE_ID_BYTES), client)
        self._leases[lease.lease_id] = lease
        return lease

    def find(self, lease_id: bytes, principal: Principal) -> Lease | ErrorCode:
        """Return a lease of this principal, from whichever host it connects now."""
        lease = self._leases.get(lease_id)
        is_own = lease is not None and lease.client.principal == principal
        return lease if lease is not None and is_own else ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def renew(self, lease: Lease, duration_ms: int) -> None:
        lease.duration_ms = min(max(duration_ms, LEASE_MS_MIN), LEASE_MS_MAX)
        lease.deadline_ms = self._clock.monotonic_ms() + lease.duration_ms
        self._sweep_later()

    def release(self, lease_id: bytes, principal: Principal) -> None:
        lease = self.find(lease_id, principal)
        if isinstance(lease, Lease):
            self._end(lease)

    # Holding

    def hold(self, lease: Lease, partition: Replica, isolation_level: int, done: Callable[[Outcome], None]) -> None:
        """Give the partition's files their second names; call `done` with the outcome, now or in a later turn."""
        known = lease.partitions.get((partition.topic, partition.index))
        if known is not None:
            done(known)
        else:
            self._hold(lease, partition, isolation_level, done, LOOKS_MAX)

    def _hold(
        self, lease: Lease, partition: Replica, isolation_level: int, done: Callable[[Outcome], None], looks: int
    ) -> None:
        home = self._partitions.home_of(partition)
        if home is None or not looks:
            # A retriable error: the client asks again.
            done(ErrorCode.REPLICA_NOT_AVAILABLE if looks == 0 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        held = look_at(partition, home, isolation_level)
        if isinstance(held, ErrorCode):
            done(held)
            return
        if sum(each.entries for each in self._leases.values()) + held.entries > ENTRIES_MAX:
            done(ErrorCode.POLICY_VIOLATION)
            return
        disk, source, destination = self._disk, held.log.path, lease.folder_of(held)
        file_names = held.file_names()

        def linked(_result: None, error: BaseException | None) -> None:
            moved = held.names_generation % 2 or held.names_generation != held.log.names_generation
            if lease.ended:
                self._remove(lease.folder(held.directory.path))
                done(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            elif not self.may_scan(lease.client, held.topic):
                self._remove(destination)
                done(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif moved or isinstance(error, FileNotFoundError):
                # Compaction or retention has renamed files meanwhile.
                self._hold(lease, partition, isolation_level, done, looks - 1)
            elif error is not None:
                # The file system has no hard links, or no space for them: the job has to fetch.
                partition_name = f"{held.topic}-{held.partition}"
                self._logger.warning("cannot link files for a scan", partition=partition_name, reason=str(error))
                self._remove(destination)
                done(ErrorCode.POLICY_VIOLATION)
            else:
                lease.partitions[held.topic, held.partition] = held
                done(held)

        self._spawner.submit(lambda: link_files(disk, source, destination, file_names), linked, Lane.REQUEST)

    # Ends

    def check_access(self) -> None:
        """End the leases with files of topics that their clients may no longer scan."""
        for lease in tuple(self._leases.values()):
            lost = [topic for topic, _partition in lease.partitions if not self.may_scan(lease.client, topic)]
            if lost:
                self._logger.info("ended a scan lease without access", scan=lease.lease_id.hex(), topic=lost[0])
                self._end(lease)

    def _sweep_later(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            self._timers.after(SWEEP_MS, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = False
        now_ms = self._clock.monotonic_ms()
        for lease in tuple(self._leases.values()):
            if lease.deadline_ms <= now_ms:
                self._end(lease)
        self._make_room()
        if self._leases:
            self._sweep_later()

    def _make_room(self) -> None:
        """End leases that keep deleted bytes, largest first, while there are too many or a directory is full."""
        kept = {lease: lease.kept_bytes() for lease in self._leases.values()}
        full = {directory.path for directory in self._partitions.directories if directory.space.full}
        total = sum(kept.values())
        for lease in sorted(kept, key=kept.__getitem__, reverse=True):
            in_full = any(held.directory.path in full for held in lease.partitions.values())
            if kept[lease] and (in_full or total > self._kept_bytes_max()):
                total -= kept[lease]
                self.broken += 1
                self._logger.warning(
                    "ended a scan lease to free disk space", scan=lease.lease_id.hex(), deleted_bytes=kept[lease]
                )
                self._end(lease)

    def _end(self, lease: Lease) -> None:
        del self._leases[lease.lease_id]
        lease.ended = True
        for path in {held.directory.path for held in lease.partitions.values()}:
            self._remove(lease.folder(path))

    def _remove(self, folder: str) -> None:
        disk, logger = self._disk, self._logger

        def removed(_result: None, error: BaseException | None) -> None:
            if error is not None:
                logger.warning("files of a scan remain until the next start", folder=folder, reason=str(error))

        self._spawner.submit(lambda: remove_folder(disk, folder), removed)

    def begin_stop(self) -> None:
        """End all leases, because the node stops. Their folders are removed when the log directories are closed."""
        for lease in self._leases.values():
            lease.ended = True
        self._leases.clear()

    # Metrics

    def families(self) -> Iterator[Family]:
        leases = tuple(self._leases.values())
        yield Family("headrace_scan_leases", "gauge", "Scans that hold files.", (((), len(leases)),))
        yield Family(
            "headrace_scan_kept_bytes",
            "gauge",
            "Bytes that are deleted from their topics and kept on disk for scans.",
            (((), sum(lease.kept_bytes() for lease in leases)),),
        )
        yield Family(
            "headrace_scan_leases_broken_total", "counter", "Scans that lost their files for want of room.",
            (((), self.broken),),
        )  # fmt: skip
