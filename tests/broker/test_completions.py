"""Faults in completions: whatever a completion calls may raise, and the slot of its worker is free again after that.

Every kind of completion is run with a fault in each call that it makes, one after the other: at its first run the first
call raises, at its second run the second, until none is left. What goes on beside it is a broker under all kinds of
work. Then the faults end, and everything has to work again without a restart.
"""

import sys
from itertools import count
from typing import Any

import pytest

from headrace.broker.coordinators.replay import ReplayQueue
from headrace.model.errors import ErrorCode
from headrace.ports.spawner import Lane
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_topics, delete_topics, incremental_alter_configs, list_offsets
from tests.broker.virtual import LONG_MS, VirtualBroker, new_topic

DEPTH_MAX = 2
"""Faults are put into the functions that a completion calls, and into those that these call."""
RELEASES = {"unpin", "next_turn", "after", "_later", "raise_failures"}
"""Calls that are the release of a slot themselves."""
PARTS = {"done", "written", "_event", "_work_off", "_pass_ended", "read_piece", "begin"}
"""Functions that are a part of a completion rather than called by it: they count as the completion itself."""
KINDS = (
    "headrace.broker.cluster.quorum_disk.QuorumDisk._sync.<locals>.completed",
    "headrace.broker.compaction_pass.CompactionPass._cleaned",
    "headrace.broker.compaction_pass.CompactionPass._completed",
    "headrace.broker.compaction_pass.CompactionPass._swap.<locals>.done",
    "headrace.broker.lookups.Lookups._begin.<locals>.completed",
    "headrace.broker.partitions.log_opener.Opener._open_later.<locals>.done",
    "headrace.broker.scrub.Scrubber._continue.<locals>.done",
    "headrace.broker.storage.StorageWatch._query.<locals>.done",
    "headrace.log.compaction.checkpoint.clean_offsets_work.<locals>.<lambda>",
    "headrace.log.directory.LogDirectory._removal.<locals>.done",
    "headrace.log.directory.LogDirectory._checkpoint_work.<locals>.done",
    "headrace.log.flush.Flusher._work.<locals>.done",
    "headrace.log.retirement.Retirement.work.<locals>.done",
)
"""The completions of the work of a busy broker."""
ROUNDS_MAX = 60
REST_STEPS_MAX = 3_000
CALLS_MAX = 30
RUNS_WITHOUT_FAULT = 3
"""Every call has raised after this many runs that made fewer calls."""
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "1000",
    "headrace.scrub.interval.ms": "1000",
    "headrace.disk.free.min.bytes": str(1 << 20),
}
COMPACTED = {
    "cleanup.policy": "compact,delete",
    "retention.bytes": "4000",
    "segment.bytes": "1000",
    "flush.messages": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "50",
}
DELETED = {"retention.bytes": "2000", "segment.bytes": "1000", "file.delete.delay.ms": "50", "flush.messages": "1"}


class Fault(Exception):
    pass


class Faults:
    """Wraps the completions of a spawner, and raises in the calls of those of one kind."""

    def __init__(self, spawner, kind=None):
        self.kind = kind
        self.seen = set()
        self.at = 0
        """Number of the call that raises at the next run."""
        self._runs_without = 0
        self.thrown = []
        self.is_exhausted = False
        submit, start_job = spawner.submit, spawner.start_job

        def submit_wrapped(operation, completed, lane=Lane.OTHER):
            submit(operation, self._wrapped(completed), lane)

        def start_job_wrapped(job, each, completed, **options):
            return start_job(job, self._wrapped(each), self._wrapped(completed), **options)

        spawner.submit, spawner.start_job = submit_wrapped, start_job_wrapped

    def _wrapped(self, completed):
        kind = f"{completed.__module__}.{completed.__qualname__}"

        def run(*outcome):
            self.seen.add(kind)
            if kind == self.kind and not self.is_exhausted:
                self._run_with_fault(completed, outcome)
            else:
                completed(*outcome)

        return run

    def _run_with_fault(self, completed, outcome):
        numbers, before, thrown = count(), sys.gettrace(), len(self.thrown)

        def trace(frame, event, _argument):
            code = frame.f_code
            if "headrace" not in code.co_filename or code.co_name in RELEASES | PARTS:
                return
            if 0 < _depth(frame, run) <= DEPTH_MAX and next(numbers) == self.at:
                self.thrown.append(code.co_qualname)
                raise Fault(code.co_qualname)

        def run():
            completed(*outcome)

        sys.settrace(trace)
        try:
            run()
        finally:
            sys.settrace(before)
            if len(self.thrown) > thrown:
                self.at, self._runs_without = self.at + 1, 0
            else:
                self._runs_without += 1
            self.is_exhausted = self._runs_without >= RUNS_WITHOUT_FAULT or self.at >= CALLS_MAX


def _depth(frame, run):
    """Return how many calls below the completion this frame is; the completion itself is 0."""
    depth = -1
    while frame is not None and frame.f_code is not run.__code__:
        depth += frame.f_code.co_name not in PARTS and "headrace" in frame.f_code.co_filename
        frame = frame.f_back
    return depth if frame is not None else -1


class BusyBroker(VirtualBroker):
    """A broker with all kinds of work in every round."""

    def __init__(self):
        super().__init__(settings=SETTINGS)
        self.node.loop.strict = False
        self.with_topic("kept", **{name.replace(".", "_"): value for name, value in DELETED.items()})
        self.with_topic("table", **{name.replace(".", "_"): value for name, value in COMPACTED.items()})
        self._round = 0

    def round(self):
        """Requests whose answers may never come, on connections of their own."""
        self._round += 1
        client = self.client()
        for number in range(6):
            client.send_produce("kept", content=client.batch(bytes(200)), timeout_ms=500)
            client.send_produce("table", content=client.batch(bytes(200), key=b"%d" % (number % 3)), timeout_ms=500)
        admin = self.client()
        name = f"short-lived-{self._round}"
        admin.send(
            ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=(new_topic(name),), timeout_ms=500)
        )
        self.steps(15)
        topics = (delete_topics.DeleteTopicsRequestTopic(name=name),)
        admin.send(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=500))
        partition = list_offsets.ListOffsetsRequestPartition(partition_index=0, current_leader_epoch=-1, timestamp=1)
        topic = list_offsets.ListOffsetsRequestTopic(name="kept", partitions=(partition,))
        admin.send(ApiKey.LIST_OFFSETS, 7, list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,)))
        self.node._housekeeping._check_all()
        self.node.broker.partitions.checkpoint()
        changes = incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
            name="headrace.compact.request", config_operation=0, value=name
        )
        table = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
            resource_type=2, resource_name="table", configs=(changes,)
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(table,))
        self.client().send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        self.steps(30)
        self.world.time.advance(61_000)
        client.close()
        admin.close()

    def busy_slots(self):
        """The names of what still counts as under way."""
        node = self.node
        table, compactor = node.broker.partitions, node.compactor
        busy = {
            "spawner": self.machine.spawner.in_flight(),
            "compaction passes": len(compactor._passes),
            "compaction checkpoint": len(compactor._writing),
            "a round of compaction": compactor._round_running,
            "lookups": node.broker.lookups._running,
            "opener": table.opener._busy,
            "metadata sync": node.quorum.disk.has_work,
            "metadata snapshot": node.quorum.log._snapshot_in_flight,
            "space": any(directory.space._in_flight for directory in table.directories),
            "pins": sum(file.pins for file in node._files._open.values()),
        }
        for partition in table:
            log = partition.log
            busy[f"{log.path} flush"] = log._flusher.in_flight
            busy[f"{log.path} retention"] = log.retirement.in_flight
            busy[f"{log.path} preallocation"] = log.preallocation.segment is not None
            busy[f"{log.path} exchange"] = log.names_generation % 2 or bool(log.being_replaced)
        return [name for name, count in busy.items() if count]

    def await_rest(self):
        for _ in range(REST_STEPS_MAX):
            if not self.busy_slots():
                return
            self.world.step()
        raise AssertionError(f"slots that are never free again: {self.busy_slots()}")


def check_that_everything_works(broker):
    broker.node.loop.strict = True
    client = broker.client()
    assert client.create_topic("fresh", configs={**COMPACTED, "retention.bytes": "-1"}).error_code == ErrorCode.NONE
    ended = broker.node.compactor.passes_ended
    for number in range(30):
        assert client.produce_error("fresh", content=client.batch(bytes(200), key=b"%d" % (number % 3))) == 0
    broker.run_until(lambda: broker.node.compactor.passes_ended > ended)
    start = broker.partition("kept").log.start_offset
    for _ in range(20):
        assert client.produce_error("kept", content=client.batch(bytes(200))) == 0
    broker.pass_time(2_000)
    assert broker.partition("kept").log.start_offset > start
    assert client.delete_topic("fresh") == ErrorCode.NONE
    read = broker.node._scrubber.bytes_read
    broker.pass_time(61_000)
    broker.run_until(lambda: broker.node._scrubber.bytes_read > read)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_in_a_completion_leaves_no_slot_occupied(kind):
    check_faults_of(kind)


def test_kinds_of_completions_that_are_not_listed_yet():
    broker = BusyBroker()
    faults = Faults(broker.machine.spawner)
    for _ in range(4):
        broker.round()
    broker.steps(200)
    for kind in faults.seen - set(KINDS):
        check_faults_of(kind)


def check_faults_of(kind):
    broker = BusyBroker()
    faults = Faults(broker.machine.spawner, kind)
    for _ in range(ROUNDS_MAX):
        broker.round()
        if faults.is_exhausted:
            break
    assert kind in faults.seen
    faults.is_exhausted = True
    broker.pass_time(LONG_MS)
    broker.await_rest()
    check_that_everything_works(broker)


class _Replay:
    """A partition that is loaded; `failure` is raised by the first slice that is applied."""

    def __init__(self, log, failure=None):
        self._log, self._failure = log, failure
        self.at_end = False
        self.ends: list[Any] = []
        self.done = self.ends.append

    def next_range(self):
        return None if self.at_end else self._log.read(0, 1 << 20, self._log.end_offset, True)

    def take(self, content):
        self.at_end = True
        if self._failure is not None:
            raise self._failure


def test_a_record_that_cannot_be_applied_holds_up_no_other_partition():
    broker = VirtualBroker().with_topic("t")
    broker.node.loop.strict = False
    assert broker.client().produce_error("t") == 0
    log, node = broker.partition("t").log, broker.node
    replays = ReplayQueue(files=node._files, spawner=broker.machine.spawner, timers=node.broker.timers)
    first, second = _Replay(log, ValueError("not a record of a group")), _Replay(log)
    replays.add(first)
    replays.add(second)
    broker.run_until(lambda: second.ends)
    assert second.ends == [None]
    assert "not a record" in str(first.ends[0])
    assert broker.metrics.handler_failures == 1
