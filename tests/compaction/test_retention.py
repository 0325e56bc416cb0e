"""Retention and compaction of the same log: a segment has one of them at a time, in whatever order helpers end."""

from dataclasses import replace
from itertools import permutations

import pytest

from headrace.log.compaction.swap import swap_work
from headrace.log.partition_log import PartitionLog
from headrace.model.errors import ErrorCode

from ..log.world import FOLDER, NOW_MS, open_log, virtual_disk
from .logs import CONFIG, cleaned_groups, filled, flush, pairs, planned
from .test_node import TOPIC, Table
from .virtual_client import VirtualClient

ROWS = [(b"key-%d" % (number % 4), b"value-%d" % number) for number in range(60)]
BOTH = replace(CONFIG, delete=True, retention_bytes=0)
OTHER = "other"


def log_files(log: PartitionLog) -> list[str]:
    return sorted(name for name in log.disk.list_directory(FOLDER) if name.endswith(".log"))


def orders() -> list[tuple[str, ...]]:
    """Every order in which two helpers and the loop can see both operations end."""
    steps = ("swap.run", "swap.done", "retention.run", "retention.done")
    return [
        order
        for order in permutations(steps)
        if order.index("swap.run") < order.index("swap.done")
        and order.index("retention.run") < order.index("retention.done")
    ]


@pytest.mark.parametrize("first", ["swap", "retention"])
@pytest.mark.parametrize("order", orders(), ids=" ".join)
def test_the_log_and_the_folder_agree_whichever_ends_first(order: tuple[str, ...], first: str) -> None:
    """`first` is begun first, on the loop; then both run in helpers."""
    log = filled(virtual_disk(), ROWS, BOTH)
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    groups = list(cleaned_groups(log.disk, plan))
    swap = swap_work(log, groups[-1], wall_ms=NOW_MS) if first == "swap" else None
    retention = log.retirement.work(NOW_MS, log.end_offset)
    swap = swap or swap_work(log, groups[-1], wall_ms=NOW_MS)
    works = {"swap": swap, "retention": retention}
    for step in order:
        name, part = step.split(".")
        work = works[name]
        if work is not None and part == "run":
            work.run()
        elif work is not None:
            work.done(True, None)
    assert not log.failed
    assert log_files(log) == [segment.log.path.rpartition("/")[2] for segment in log.segments]
    assert log.size_bytes == sum(segment.size for segment in log.segments)
    found = pairs(log)
    assert {key: value for _, key, value in found} == dict(ROWS[log.start_offset :])
    later = log.retirement.work(NOW_MS, log.end_offset)
    if later is not None:
        later.run_inline()
    assert log.start_offset == log.end_offset, "what an exchange kept from retention goes with the next look"
    start = log.start_offset
    log.close()
    again = open_log(log.disk, BOTH, recovery_point=start, start_offset=start, clean=True)
    assert (again.start_offset, again.end_offset) == (start, start)


def test_retention_takes_what_is_before_the_segments_of_an_exchange() -> None:
    log = filled(virtual_disk(), ROWS, BOTH)
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    groups = list(cleaned_groups(log.disk, plan))
    replaced = groups[1].sources[0].base_offset
    swap = swap_work(log, groups[1], wall_ms=NOW_MS)
    retention = log.retirement.work(NOW_MS, log.end_offset)
    assert swap is not None
    assert retention is not None
    retention.run_inline()
    assert log.start_offset == replaced
    swap.run_inline()
    assert log.segments[0].base_offset == replaced


def test_compaction_continues_after_retention_met_an_exchange() -> None:
    """A pass whose segments are due for deletion ends, and its slot serves another topic."""
    configs = {"cleanup.policy": "compact,delete", "retention.bytes": "300"}
    table = Table(5, configs=configs, backoff_ms=100)
    spawner = table.virtual.machine.spawner
    spawner.hold(name_contains="swap_work")
    table.write_many(60)
    table.world.run_until(lambda: any("swap_work" in name for name in spawner.waiting_names()))
    table.virtual.running._housekeeping._check_all()
    table.world.run_until(lambda: not any("Retirement" in name for name in spawner.waiting_names()))
    spawner.release()
    table.world.run_until(lambda: not table.compactor._passes)
    table.settle()
    other = VirtualClient(table.world)
    other.create_topic(OTHER, {"cleanup.policy": "compact", "segment.bytes": "1000", "flush.messages": "1"})
    ended = table.compactor.passes_ended
    for number in range(60):
        assert table.produce(OTHER, b"key-%d" % (number % 4), b"%d" % number) == ErrorCode.NONE
    table.world.run_until(lambda: table.compactor.passes_ended > ended)
    live = [name for name in table.virtual.machine.disk.list_directory(f"data/{TOPIC}-0") if name.endswith(".log")]
    assert sorted(live) == [segment.log.path.rpartition("/")[2] for segment in table.log.segments]
