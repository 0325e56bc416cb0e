"""The transaction coordinators of this node: typed commands for the handlers, and the markers that end transactions.

A transaction ends in three steps, each of which begins when the previous one is committed: the coordinator writes the
outcome to `__transaction_state`, the partitions get their markers, and the coordinator records that all markers are
written. A coordinator that fails in between is loaded again and continues from its log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.batch_syncs import ROWS_NOT_SYNCED, BatchSyncs, SyncedPartitions
from headrace.broker.coordinators.check_requests import Check, CheckRequests
from headrace.broker.coordinators.host import Decide, Runtime
from headrace.broker.coordinators.markers import MarkerSender, MarkerServices, TransactionMarker
from headrace.broker.coordinators.topic import CoordinatedTopic
from headrace.broker.coordinators.transaction_metrics import TransactionHost, transaction_families
from headrace.broker.marker_writes import MarkerFields
from headrace.broker.metrics import Family
from headrace.broker.partitions.replica import Replica
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.placement import internal_replication_factor
from headrace.core.controller.records import TRANSACTION_VERSION
from headrace.core.coordination.machine import Now, PendingProducer, Ticket
from headrace.core.transactions.batch_commands import (
    AbortBatch,
    BatchResult,
    BeginBatchWriter,
    CommitBatch,
    DescribedBatches,
)
from headrace.core.transactions.commands import (
    EPOCH_BUMPED_FROM,
    AddPartitions,
    DescribedTransaction,
    Ending,
    EndTransaction,
    InitProducer,
    ProducerIdNeeded,
    ProducerResult,
    TransactionListing,
    VerifyPartitions,
)
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.names import is_pooled, owner_of
from headrace.core.transactions.records import CoordinatorRecord, LeaderBoot, Partition, TransactionRecords
from headrace.core.transactions.settings import COMPLETION_WAIT_MS_MAX, IDS_PER_SLICE, TransactionSettings
from headrace.core.transactions.tables import TransactionDecision
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId, ProducerId
from headrace.ports.disk import Disk

TRANSACTIONS_TOPIC = "__transaction_state"

COMMIT_WAIT_MS_MAX = 30_000
"""The time that a response waits for its records to be committed, like request.timeout.ms of Kafka's brokers."""

COMPLETION_RETRY_MS = 5
"""The pause before a coordinator on another broker is asked again whether the previous transaction has ended."""

ENDINGS_RETRY_MS = 100
"""The pause before a command that a coordinator could not take is repeated."""

TransactionDecide = Decide[TransactionCoordinator, CoordinatorRecord]

_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS

_EndingKey = tuple[str, PendingProducer, int]
"""(transactional id, producer, time of the decision)."""


class TransactionServices(MarkerServices, Protocol):
    @property
    def disk(self) -> Disk: ...

    @property
    def producer_ids(self) -> ProducerIds: ...


class TransactionSlice(NamedTuple):
    """Transactional ids of one coordinator, few enough for one turn."""

    host: TransactionHost
    transactional_ids: list[str]


class Transactions:
    def __init__(self, services: TransactionServices, runtime: Runtime) -> None:
        self._services = services
        self._timers = runtime.timers
        self._leader = LeaderBoot(services.node_id, services.disk.boot_id())
        self._settings = replace(TransactionSettings.of(services.config), leader=self._leader)
        self.markers = MarkerSender(services, runtime)
        self._checks = CheckRequests(services, runtime.timers, self._leader)
        self._syncs = BatchSyncs(services, self._leader)
        self._marked: set[tuple[TransactionHost, _EndingKey]] = set()
        """Endings whose markers are being sent, with the coordinator that has decided them."""
        self.timed_out = 0
        self.batches_committed = 0
        self.topic: CoordinatedTopic[TransactionCoordinator, CoordinatorRecord] = CoordinatedTopic(
            TRANSACTIONS_TOPIC,
            services,
            new_machine=self._new_machine,
            record_format=TransactionRecords(),
            new_topic=self._new_topic,
            runtime=runtime,
            commit_wait_ms_max=COMMIT_WAIT_MS_MAX,
            on_loaded=self._loaded,
        )

    def _new_machine(self) -> TransactionCoordinator:
        level = self._services.image.features.get(TRANSACTION_VERSION, 0)
        settings = replace(self._settings, server_version=level)
        return TransactionCoordinator(settings, lambda: self._services.image.version)

    def _new_topic(self) -> CreatableTopic:
        config = self._services.config.transactions
        return CreatableTopic(
            name=TRANSACTIONS_TOPIC,
            partition_count=config.log_partitions,
            replication_factor=internal_replication_factor(self._services.image, config.log_replication_factor),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", str(config.log_min_insync_replicas)),
                ("segment.bytes", str(config.log_segment_bytes)),
                ("unclean.leader.election.enable", "false"),
            ),
        )

    def partition_led(self, partition: Replica) -> None:
        self.topic.partition_led(partition)

    def begin_stop(self) -> None:
        self.topic.begin_stop()

    # Transactions

    def check(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
        *,
        add: bool,
    ) -> Proposal[Mapping[Partition, ErrorCode]]:
        """Verify that these partitions are part of the ongoing transaction; with `add`, add them (KIP-890).

        The leader of a partition calls this before it appends the first batch of a transaction, and so does a group
        coordinator. The result comes in a later turn, even within one process. The errors are the transaction
        coordinator's own: the caller must translate PRODUCER_FENCED.
        """
        check = Check(transactional_id, PendingProducer(producer_id, producer_epoch), partitions, add)
        coordinator = self._node_of(transactional_id)
        if transactional_id and coordinator not in (None, self._services.node_id):
            return self._check_remotely(coordinator, check)
        answered: Proposal[Mapping[Partition, ErrorCode]] = Proposal()

        def known(outcome: Any) -> None:
            if isinstance(outcome, ErrorCode):
                outcome = dict.fromkeys(partitions, outcome)
            self._timers.next_turn(lambda: answered.complete(outcome))

        if not transactional_id:
            known(ErrorCode.INVALID_REQUEST)
        elif coordinator is None:
            known(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif add:
            self.add_partitions(
                transactional_id, check.producer, partitions, EPOCH_BUMPED_FROM, leader=self._leader, waits=True
            ).then(known)
        else:
            self.verify_partitions(
                VerifyPartitions(
                    transactional_id=transactional_id,
                    producer=check.producer,
                    partitions=partitions,
                    leader=self._leader,
                )
            ).then(known)
        return answered

    def _node_of(self, transactional_id: str) -> NodeId | None:
        """Return the broker that coordinates the id; None while its partition has no leader, or is not known here."""
        state = self.topic.state_of(owner_of(transactional_id))
        return None if state is None or state.leader == NO_NODE else state.leader

    def _check_remotely(self, coordinator: NodeId, check: Check) -> Proposal[Mapping[Partition, ErrorCode]]:
        """Ask another broker. An addition is repeated for a while if the previous transaction is still ending."""
        answered: Proposal[Mapping[Partition, ErrorCode]] = Proposal()
        until_ms = self._timers.now_ms() + COMPLETION_WAIT_MS_MAX

        def known(outcome: Mapping[Partition, ErrorCode] | ProposalFailed) -> None:
            is_ending = not isinstance(outcome, ProposalFailed) and _CONCURRENT in outcome.values()
            if check.add and is_ending and self._timers.now_ms() + COMPLETION_RETRY_MS < until_ms:
                self._timers.after(COMPLETION_RETRY_MS, lambda: self._checks.ask(coordinator, check).then(known))
            else:
                answered.complete(outcome)

        self._checks.ask(coordinator, check).then(known)
        return answered

    def add_partitions(
        self,
        transactional_id: str,
        producer: PendingProducer,
        partitions: Iterable[Partition],
        client_version: int,
        *,
        leader: LeaderBoot | None = None,
        waits: bool = False,
    ) -> Proposal[ErrorCode]:
        """Add partitions to a transaction. With `waits`, wait for the end of the producer's previous transaction.

        `leader` is the leader of the partitions, if it adds them for its producer.
        """
        command = AddPartitions(
            transactional_id=transactional_id,
            producer=producer,
            partitions=frozenset(partitions),
            client_version=client_version,
            waits=waits,
            leader=leader,
        )
        added = self._decide(
            transactional_id, lambda machine, ticket, now: machine.add_partitions(command, ticket, now)
        )
        return self._held(transactional_id, added) if is_pooled(transactional_id) else added

    def _held(self, transactional_id: str, proposal: Proposal[Any]) -> Proposal[Any]:
        """Return a proposal that completes with the same outcome once the coordinator's records are synced."""
        return self._syncs.held(proposal, lambda: self.topic.host_of(owner_of(transactional_id)))

    def verify_partitions(self, command: VerifyPartitions) -> Proposal[Mapping[Partition, ErrorCode]]:
        transactional_id = command.transactional_id
        verified = self._decide(
            transactional_id, lambda machine, ticket, now: machine.verify_partitions(command, ticket, now)
        )
        return self._held(transactional_id, verified) if is_pooled(transactional_id) else verified

    def init_producer(self, command: InitProducer) -> Proposal[ProducerResult]:
        def decide(
            fresh: ProducerId | None, machine: TransactionCoordinator, ticket: Ticket, now: Now
        ) -> TransactionDecision:
            return machine.init_producer(_with_fresh_id(command, fresh), ticket, now)

        return self._with_producer_id(partial(self._decide, command.transactional_id), decide)

    def begin_batch_writer(self, command: BeginBatchWriter) -> Proposal[BatchResult]:
        def decide(
            fresh: ProducerId | None, machine: TransactionCoordinator, ticket: Ticket, now: Now
        ) -> TransactionDecision:
            return machine.batch_commits.begin(_with_fresh_id(command, fresh), ticket, now)

        # Until the loan is synced, the same identity could be lent again after the loss of power.
        return self._held(command.owner, self._with_producer_id(partial(self._decide, command.owner), decide))

    def commit_batch(self, command: CommitBatch) -> Proposal[BatchResult]:
        """Sync the rows of the writers, commit, sync the commit, then complete."""

        def count(result: BatchResult | ProposalFailed) -> None:
            committed = isinstance(result, BatchResult) and result == BatchResult(ErrorCode.NONE)
            self.batches_committed += committed
            answered.complete(result)

        def rows_synced(synced: SyncedPartitions | None) -> None:
            if synced is None:
                answered.complete(ROWS_NOT_SYNCED)
                return
            confirmed = replace(command, synced=synced)
            committed = self._decide(
                command.owner, lambda machine, ticket, now: machine.batch_commits.commit(confirmed, ticket, now)
            )
            self._held(command.owner, committed).then(count)

        answered: Proposal[BatchResult] = Proposal()
        self._syncs.sync_partitions(self.written_by(command), rows_synced)
        return answered

    def written_by(self, command: CommitBatch) -> set[Partition]:
        """Return the partitions that the named writers of the owner have written to."""
        host = self.topic.host_of(command.owner)
        known = {} if host is None or host.machine is None else host.machine.tables.transactions
        named = (each.transactional_id for each in command.writers)
        found = (known.get(each) for each in named if owner_of(each) == command.owner)
        return {partition for transaction in found if transaction is not None for partition in transaction.partitions}

    def abort_batch(self, command: AbortBatch) -> Proposal[BatchResult]:
        return self._decide(
            command.owner, lambda machine, ticket, now: machine.batch_commits.abort(command, ticket, now)
        )

    def describe_batches(self, owner: str) -> Proposal[DescribedBatches]:
        return self._decide(owner, lambda machine, ticket, _now: machine.batch_commits.describe(owner, ticket))

    def end(self, command: EndTransaction) -> Proposal[ProducerResult]:
        def decide(
            fresh: ProducerId | None, machine: TransactionCoordinator, ticket: Ticket, now: Now
        ) -> TransactionDecision:
            return machine.end(_with_fresh_id(command, fresh), ticket, now)

        return self._with_producer_id(partial(self._decide, command.transactional_id), decide)

    def _decide(self, transactional_id: str, decide: TransactionDecide) -> Proposal[Any]:
        return self.topic.propose(owner_of(transactional_id), decide)

    def _with_producer_id(
        self,
        propose: Callable[[TransactionDecide], Proposal[Any]],
        decide: Callable[[ProducerId | None, TransactionCoordinator, Ticket, Now], TransactionDecision],
    ) -> Proposal[Any]:
        """Let the coordinator decide; if it needs a fresh producer id, get one and let it decide again."""
        answered: Proposal[Any] = Proposal()
        producer_ids = self._services.producer_ids

        def ask(fresh: ProducerId | ProposalFailed) -> None:
            if isinstance(fresh, ProposalFailed):
                answered.complete(fresh)
            else:
                propose(partial(decide, fresh)).then(answered.complete)

        def known(outcome: object) -> None:
            if not isinstance(outcome, ProducerIdNeeded):
                answered.complete(outcome)
            elif producer_ids.overloaded:
                ask(
                    ProposalFailed(
                        ErrorCode.COORDINATOR_NOT_AVAILABLE, "too many requests wait for producer ids: try again"
                    )
                )
            else:
                producer_ids.give(ask)

        propose(partial(decide, None)).then(known)
        return answered

    # Ends

    def _loaded(self, machine: TransactionCoordinator) -> None:
        self._marked = {each for each in self._marked if not each[0].lost}
        host = next(host for host in self.topic if host.machine is machine)
        self._await_endings(host, machine, again=True)

    def _await_endings(self, host: TransactionHost, machine: TransactionCoordinator, *, again: bool) -> None:
        """Wait for committed endings, send their markers, and repeat as long as the coordinator lives."""
        if host.machine is not machine:
            return

        def known(outcome: list[Ending] | ProposalFailed) -> None:
            if isinstance(outcome, ProposalFailed):
                # The lost response may have contained endings: request all of them again.
                self._timers.after(ENDINGS_RETRY_MS, lambda: self._await_endings(host, machine, again=True))
                return
            self._send_markers(host, [ending for ending in outcome if not is_pooled(ending.transactional_id)])
            self._send_markers_of_writers(host, [ending for ending in outcome if is_pooled(ending.transactional_id)])
            self._timers.next_turn(lambda: self._await_endings(host, machine, again=False))

        host.propose(lambda machine, ticket, _now: machine.endings.next(ticket, again=again)).then(known)

    def _send_markers_of_writers(self, host: TransactionHost, endings: list[Ending]) -> None:
        """Send the markers when the outcome is synced: a marker must not survive without the record that caused it."""

        def synced(ok: bool) -> None:
            if ok:
                self._send_markers(host, endings)
            elif not host.lost:
                self._timers.after(ENDINGS_RETRY_MS, lambda: self._send_markers_of_writers(host, endings))

        if endings:
            self._syncs.sync_coordinator(host, synced)

    def _send_markers(self, host: TransactionHost, endings: list[Ending]) -> None:
        for ending in endings:
            if (host, _key(ending)) in self._marked:
                continue
            self._marked.add((host, _key(ending)))
            self.timed_out += ending.timed_out
            fields = MarkerFields(
                ending.producer.producer_id,
                ending.producer.producer_epoch,
                ending.commit,
                host.partition.role.leader_epoch,
                ending.client_version,
                # The id goes back to its pool: rows must not be attributed to the next task that borrows it.
                sync=is_pooled(ending.transactional_id),
            )
            marker = TransactionMarker(fields, ending.partitions, ending.metadata_offset)
            self.markers.send(marker, partial(self._complete, host, ending), lambda: host.lost)

    def _complete(self, host: TransactionHost, ending: Ending) -> None:
        """Record that every partition has its marker."""

        def decide(
            fresh: ProducerId | None, machine: TransactionCoordinator, ticket: Ticket, now: Now
        ) -> TransactionDecision:
            return machine.complete(ending, fresh, ticket, now)

        def known(outcome: object) -> None:
            if isinstance(outcome, ProposalFailed) and not host.lost:
                self._timers.after(ENDINGS_RETRY_MS, lambda: self._complete(host, ending))
            else:
                self._marked.discard((host, _key(ending)))

        self._with_producer_id(host.propose, decide).then(known)

    # Administration

    def describe(self, transactional_id: str) -> Proposal[DescribedTransaction]:
        return self._decide(transactional_id, lambda machine, ticket, _now: machine.describe(transactional_id, ticket))

    @property
    def is_loading(self) -> bool:
        """Return whether a coordinator of this node is still being loaded."""
        return any(host.machine is None for host in self.topic)

    def slices(self) -> Iterator[TransactionSlice]:
        """Yield all transactional ids of this node in slices for `list_transactions`."""
        for host in self.topic:
            if host.machine is not None:
                known = list(host.machine.tables.transactions)
                for first in range(0, len(known), IDS_PER_SLICE):
                    yield TransactionSlice(host, known[first : first + IDS_PER_SLICE])

    def list_transactions(self, part: TransactionSlice) -> Proposal[list[TransactionListing]]:
        ids = part.transactional_ids
        return part.host.propose(lambda machine, ticket, _now: machine.list_transactions(ids, ticket))

    def families(self) -> Iterator[Family]:
        return transaction_families(
            self.topic,
            wall_ms=self._services.clock.wall_ms(),
            timed_out=self.timed_out,
            batches_committed=self.batches_committed,
            markers_unwritten=self.markers.unwritten,
        )


def _key(ending: Ending) -> _EndingKey:
    return ending.transactional_id, ending.producer, ending.decided_at_ms


Command = TypeVar("Command", InitProducer, EndTransaction, BeginBatchWriter)


def _with_fresh_id(command: Command, fresh: ProducerId | None) -> Command:
    return command if fresh is None else replace(command, fresh_producer_id=fresh)
