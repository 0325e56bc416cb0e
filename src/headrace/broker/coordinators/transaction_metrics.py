"""Metrics of the transaction coordinators of this node."""

from collections.abc import Iterable, Iterator

from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.metrics import Family
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.records import CoordinatorRecord
from headrace.core.transactions.states import AT_REST, TransactionState

TransactionHost = CoordinatorHost[TransactionCoordinator, CoordinatorRecord]


def transaction_families(
    hosts: Iterable[TransactionHost],
    *,
    wall_ms: int,
    timed_out: int,
    batches_committed: int,
    markers_unwritten: int,
) -> Iterator[Family]:
    machines = [host.machine for host in hosts if host.machine is not None]
    counts, oldest_at_ms = _states(machines)
    yield Family(
        "headrace_transactional_ids",
        "gauge",
        "Transactional ids by state; those in Ongoing have an open transaction.",
        (((("state", state.value),), count) for state, count in counts.items()),
    )
    yield Family(
        "headrace_transaction_oldest_seconds",
        "gauge",
        "How long the oldest open transaction has been open.",
        (((), 0 if oldest_at_ms is None else max(wall_ms - oldest_at_ms, 0) / 1_000),),
    )
    yield Family(
        "headrace_transactions_timed_out_total",
        "counter",
        "Transactions aborted because their time was up.",
        (((), timed_out),),
    )
    yield from _batch_families(machines, batches_committed)
    yield Family(
        "headrace_transaction_markers_unwritten",
        "gauge",
        "Markers of ended transactions that partitions have not committed yet.",
        (((), markers_unwritten),),
    )


def _batch_families(machines: list[TransactionCoordinator], batches_committed: int) -> Iterator[Family]:
    pools = [pool for machine in machines for pool in tuple(machine.tables.pools.by_owner.values())]
    yield Family(
        "headrace_batch_owners",
        "gauge",
        "Known owners of batch commits, such as the sinks of Spark queries.",
        (((), sum(len(machine.tables.owners) for machine in machines)),),
    )
    yield Family(
        "headrace_batch_writers",
        "gauge",
        "Transactional ids of the owners' pools: those of open writers, and all.",
        (
            ((("state", "open"),), sum(len(pool.open) for pool in pools)),
            ((("state", "all"),), sum(len(pool.slots) for pool in pools)),
        ),
    )
    yield Family(
        "headrace_batch_commits_total",
        "counter",
        "Batches that CommitBatch has committed.",
        (((), batches_committed),),
    )


def _states(machines: Iterable[TransactionCoordinator]) -> tuple[dict[TransactionState, int], int | None]:
    """Return the number of ids in each state, and the start time of the oldest open transaction."""
    counts = dict.fromkeys(TransactionState, 0)
    oldest_at_ms: int | None = None
    for machine in machines:
        for transaction in tuple(machine.tables.transactions.values()):
            counts[transaction.state] += 1
            if transaction.state not in AT_REST and (oldest_at_ms is None or transaction.started_at_ms < oldest_at_ms):
                oldest_at_ms = transaction.started_at_ms
    return counts, oldest_at_ms
