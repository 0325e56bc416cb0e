"""Nodes with a known fault put in: the simulator is tested by how soon it notices each.

A patch gets pytest's MonkeyPatch. `make chaos` publishes how many seeds each one took.
"""

from collections import deque
from dataclasses import replace
from typing import Any

from headrace.broker.cluster.proposal import Proposal
from headrace.broker.coordinators.batch_syncs import BatchSyncs
from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.coordinators.replay import PartitionReplay
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.marker_writes import MarkerWrites
from headrace.broker.net.loop import Loop
from headrace.broker.partitions import produced_batch, reader
from headrace.core.groups import tables
from headrace.core.groups.classic import ClassicProtocol
from headrace.core.groups.consumer import JOINING_EPOCH, ConsumerProtocol
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.offset_requests import OffsetRequests
from headrace.core.groups.offsets import GroupOffsets
from headrace.core.replication.leader import Leader
from headrace.core.transactions import batch_commits, states
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.names import owner_of, slot_of
from headrace.core.transactions.owner_records import Owner, OwnerRecord
from headrace.core.transactions.pools import Pools
from headrace.core.transactions.states import ENDING, TransactionState
from headrace.log import partition_log
from headrace.log.compaction.key_map import KeyMap
from headrace.log.errors import SequenceRejected
from headrace.log.partition_log import PartitionLog
from headrace.log.producers import APPEND, ProducerStates
from headrace.log.retirement import Retirement
from headrace.log.transaction_index import TransactionIndex
from headrace.log.walk import BatchWalk
from headrace.model.errors import ErrorCode
from headrace.sim.disk import VirtualDisk
from headrace.sim.results import NO_CRASH
from headrace.sim.run import run_seed
from headrace.wire.records.header import BASE_OFFSET, CRC


def is_noticed(seed, scenario):
    """Return whether a broken promise is seen. A crash does not count: a patch that no longer fits crashes too."""
    result = run_seed(seed, scenario=scenario)
    return not result.ok and not result.violation.startswith(NO_CRASH)


def skip_the_checksum_of_produced_batches(patch):
    check = produced_batch.check_produced

    def believe(*arguments, **options):
        error = check(*arguments, **options)
        return ErrorCode.NONE if error is ErrorCode.CORRUPT_MESSAGE else error

    patch.setattr(produced_batch, "check_produced", believe)


def acknowledge_before_the_write(patch):
    begin = Loop.__init__

    def send_first(loop, **options):
        end_turn = options["end_turn"]

        def end_turn_late():
            loop._send_responses()
            end_turn()

        begin(loop, **(options | {"end_turn": end_turn_late}))

    patch.setattr(Loop, "__init__", send_first)


def acknowledge_before_the_sync(patch):
    begin = Leader.__init__
    patch.setattr(
        Leader, "__init__", lambda leader, **options: begin(leader, **(options | {"flush_before_commit": False}))
    )


def believe_the_torn_tail(patch):
    patch.setattr(BatchWalk, "_checksum", lambda walk, fields: fields[CRC])


def lose_the_producer_snapshot(patch):
    opened = PartitionLog.open

    def open_and_forget(*arguments, **options):
        log = opened(*arguments, **options)
        log.producers.clear()
        return log

    patch.setattr(PartitionLog, "open", open_and_forget)


def skip_the_sync_of_contents(patch):
    sync = VirtualDisk.data_sync

    def all_but_contents(disk, file):
        if "/synced-" not in disk._opened(file).path:
            sync(disk, file)

    patch.setattr(VirtualDisk, "data_sync", all_but_contents)


def skip_the_sync_of_metadata(patch):
    sync = VirtualDisk.data_sync

    def all_but_metadata(disk, file):
        path = disk._opened(file).path
        if "__cluster_metadata" not in path or not path.endswith(".log"):  # without its vote, a node refuses to start
            sync(disk, file)

    patch.setattr(VirtualDisk, "data_sync", all_but_metadata)


def skip_the_sync_of_names(patch):
    patch.setattr(VirtualDisk, "sync_directory", lambda disk, path: None)


def serve_above_the_high_watermark(patch):
    read = reader.read_partition

    def read_all(wanted, *arguments):
        partition = reader.locate(wanted)
        if isinstance(partition, ErrorCode):
            return read(wanted, *arguments)
        committed, partition.role.high_watermark = partition.role.high_watermark, partition.log.end_offset  # type: ignore[assignment]
        try:
            return read(wanted, *arguments)._replace(high_watermark=committed)
        finally:
            partition.role.high_watermark = committed

    patch.setattr(reader, "read_partition", read_all)


def adopt_the_folder_of_another_topic(patch):
    patch.setattr(partition_log, "claim_folder", lambda disk, path, topic_partition, topic_id: topic_id)


def take_one_segment_too_many(patch):
    count = Retirement._count_due
    patch.setattr(
        Retirement,
        "_count_due",
        lambda retirement, *arguments: max(count(retirement, *arguments), len(retirement._log.segments) - 2),
    )


# Of groups


def take_commits_of_former_members(patch):
    patch.setattr(OffsetRequests, "_commit_error", lambda requests, command, now: ErrorCode.NONE)


def take_commits_of_former_generations(patch):
    check = ClassicProtocol.commit_error

    def believe(protocol, group, member):
        error = check(protocol, group, member)
        return ErrorCode.NONE if error is ErrorCode.ILLEGAL_GENERATION else error

    patch.setattr(ClassicProtocol, "commit_error", believe)


def answer_before_coordinators_have_committed(patch):
    release = CoordinatorHost._release

    def release_all(host):
        host._held = deque(answer._replace(end_offset=0) for answer in host._held)
        release(host)

    patch.setattr(CoordinatorHost, "_release", release_all)


def assign_what_others_have_not_let_go_of(patch):
    class NoMember(dict):
        def get(self, part, default=None):
            return default

    begin = ConsumerGroup.__init__

    def without_owners(group, group_id):
        begin(group, group_id)
        group.owners = NoMember()

    patch.setattr(ConsumerGroup, "__init__", without_owners)


def tell_an_assignment_once(patch):
    beat = ConsumerProtocol.heartbeat

    def tell_changes_alone(protocol, group, command, out, now):
        known = group.members.get(command.member_id)
        before = None if known is None else known.current.assigned
        result = beat(protocol, group, command, out, now)
        says_all = command.epoch == JOINING_EPOCH or command.rebalance_timeout_ms >= 0
        return result if says_all or result.assignment != before else result._replace(assignment=None)

    patch.setattr(ConsumerProtocol, "heartbeat", tell_changes_alone)


def forget_an_offset_at_a_replay(patch):
    take = PartitionReplay._deliver

    def take_some(replay, batch, fields):
        if fields[BASE_OFFSET] % 7:
            take(replay, batch, fields)

    patch.setattr(PartitionReplay, "_deliver", take_some)


def show_the_offset_before_the_last(patch):
    class Late(GroupOffsets):
        def __init__(self):
            super().__init__()
            self.before = {}

        def apply(self, record):
            place = (record.topic, record.partition)
            self.before[place] = super().get(*place)
            super().apply(record)

        def get(self, topic, partition):
            return self.before.get((topic, partition))

    patch.setattr(tables, "GroupOffsets", Late)


# Of transactions


def fence_no_producers(patch):
    admit = ProducerStates.admit

    def admit_all(states, fields):
        try:
            return admit(states, fields)
        except SequenceRejected:
            return APPEND

    def agree(transactions, transactional_id, producer_id, producer_epoch, partitions, *, add):
        agreed: Proposal[Any] = Proposal()
        agreed.complete(dict.fromkeys(partitions, ErrorCode.NONE))
        return agreed

    patch.setattr(ProducerStates, "admit", admit_all)
    patch.setattr(Transactions, "check", agree)


def send_markers_before_the_outcome_is_committed(patch):
    answer_before_coordinators_have_committed(patch)


def let_readers_pass_open_transactions(patch):
    patch.setattr(ProducerStates, "first_unstable_offset", lambda states, high_watermark: None)


def forget_which_transactions_were_aborted(patch):
    patch.setattr(TransactionIndex, "append", lambda index, entry: None)


def count_offsets_before_their_transaction(patch):
    commit = OffsetRequests.commit
    patch.setattr(
        OffsetRequests,
        "commit",
        lambda requests, command, ticket, now: commit(requests, replace(command, producer=None), ticket, now),
    )


# Of batch commits


def fence_no_runs(patch):
    def enter(self, name, run, out, now):
        before = self._tables.owners.get(name)
        if before is None:
            out.write(OwnerRecord(name, batch_commits._entered(None, run, now.wall_ms)))

    patch.setattr(batch_commits.BatchCommitCoordinator, "_enter", enter)
    patch.setattr(Owner, "older_runs", ())


def forget_which_batch_is_committed(patch):
    commit = batch_commits.BatchCommitCoordinator._commit

    def commit_and_forget(self, command, out, now):
        commit(self, command, out, now)
        owner = self._tables.owners[command.owner]
        out.write(OwnerRecord(command.owner, owner._replace(committed_batch_id=owner.committed_batch_id - 1)))

    patch.setattr(batch_commits.BatchCommitCoordinator, "_commit", commit_and_forget)


def take_other_writers_for_the_same(patch):
    patch.setattr(batch_commits.BatchCommitCoordinator, "_is_the_same", lambda self, command, owner: True)


def lend_ids_before_their_markers(patch):
    follow = Pools.follow

    def follow_and_free(pools, transactional_id, before, after):
        follow(pools, transactional_id, before, after)
        if after is not None and after.writer is not None and after.state in ENDING:
            pools.by_owner[owner_of(transactional_id)].free.add(slot_of(transactional_id))

    patch.setattr(Pools, "follow", follow_and_free)
    patch.setitem(states.PRECEDING, TransactionState.EMPTY, frozenset(TransactionState))


def commit_writers_that_were_aborted(patch):
    def prepare(self, named, command):
        return named.transactional_id in self._tables.transactions

    patch.setattr(batch_commits.BatchCommitCoordinator, "_counts", prepare)


# Of compaction


def keep_the_first_record_of_a_key(patch):
    def put(keys, base_offset, entries):
        for entry in entries:
            if entry[4] is not None:
                keys._offsets.setdefault(entry[4], base_offset + entry[2])

    def kept(keys, base_offset, entries, *, tombstones):
        return [entry for entry in entries if keys._offsets.get(entry[4], -1) in (-1, base_offset + entry[2])]

    patch.setattr(KeyMap, "put", put)
    patch.setattr(KeyMap, "kept", kept)


def drop_tombstones_at_once(patch):
    kept = KeyMap.kept
    patch.setattr(
        KeyMap,
        "kept",
        lambda keys, base_offset, entries, *, tombstones: kept(keys, base_offset, entries, tombstones=False),
    )
    patch.setattr(KeyMap, "put", lambda keys, base_offset, entries: None)


def forget_producers_by_the_wall_clock_alone(patch):
    expire = ProducerStates.expire

    def by_wall_clock(states, wall_ms, expiration_ms):
        for _, state in states.states():
            state.seen_uptime_ms = -expiration_ms
        return expire(states, wall_ms, expiration_ms)

    patch.setattr(ProducerStates, "expire", by_wall_clock)


def forget_owners_by_the_wall_clock_alone(patch):
    def by_wall_clock(machine, updated_at_ms, _updated_uptime_ms, now):
        return now.wall_ms - updated_at_ms >= machine.settings.id_expiration_ms

    patch.setattr(TransactionCoordinator, "_is_unused_for_long", by_wall_clock)


def commit_rows_before_they_are_synced(patch):
    def not_synced(syncs, partitions, then):
        then(dict.fromkeys(partitions, syncs._leader))

    patch.setattr(BatchSyncs, "sync_partitions", not_synced)


def commit_rows_that_the_power_took(patch):
    patch.setattr(
        batch_commits.BatchCommitCoordinator, "may_have_lost_rows", lambda commits, transaction, leader=None: False
    )
    patch.setattr(batch_commits, "_lost_rows", lambda transaction, synced: False)


def end_writers_before_their_markers_are_synced(patch):
    def committed(writes, target, _partition, _end_offset):
        writes.ended(target, ErrorCode.NONE)

    patch.setattr(MarkerWrites, "committed", committed)


OF_THE_LOG = (
    forget_producers_by_the_wall_clock_alone,
    skip_the_checksum_of_produced_batches,
    acknowledge_before_the_write,
    acknowledge_before_the_sync,
    believe_the_torn_tail,
    lose_the_producer_snapshot,
    skip_the_sync_of_contents,
    skip_the_sync_of_metadata,
    skip_the_sync_of_names,
    serve_above_the_high_watermark,
    adopt_the_folder_of_another_topic,
    take_one_segment_too_many,
)
OF_GROUPS = (
    take_commits_of_former_members,
    take_commits_of_former_generations,
    answer_before_coordinators_have_committed,
    assign_what_others_have_not_let_go_of,
    tell_an_assignment_once,
    forget_an_offset_at_a_replay,
    show_the_offset_before_the_last,
)
OF_TRANSACTIONS = (
    fence_no_producers,
    send_markers_before_the_outcome_is_committed,
    let_readers_pass_open_transactions,
    forget_which_transactions_were_aborted,
    count_offsets_before_their_transaction,
)
OF_BATCH_COMMITS = (
    forget_owners_by_the_wall_clock_alone,
    commit_rows_before_they_are_synced,
    commit_rows_that_the_power_took,
    end_writers_before_their_markers_are_synced,
    send_markers_before_the_outcome_is_committed,
    fence_no_runs,
    forget_which_batch_is_committed,
    take_other_writers_for_the_same,
    lend_ids_before_their_markers,
    commit_writers_that_were_aborted,
)
OF_COMPACTION = (keep_the_first_record_of_a_key, drop_tombstones_at_once)
BY_SCENARIO = {
    "log": OF_THE_LOG,
    "groups": OF_GROUPS,
    "transactions": OF_TRANSACTIONS,
    "batch-commits": OF_BATCH_COMMITS,
    "compaction": OF_COMPACTION,
}
KNOWN_BAD = [(scenario, put_in) for scenario, all_of_it in BY_SCENARIO.items() for put_in in all_of_it]
"""Each with the scenario that must notice it."""
SELDOM_MET = (
    adopt_the_folder_of_another_topic,
    commit_rows_before_they_are_synced,
    commit_rows_that_the_power_took,
)
"""Since folders are distinguished twice, the first takes some 76 seeds; the others take dozens, and are found by
tests/batch_commits/test_power_cuts.py. `make chaos` takes the time, the tests pass them over."""
