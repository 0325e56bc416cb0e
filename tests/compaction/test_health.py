"""Signs of compaction that fails or makes no progress, for operators, and that it holds up no other topic."""

import errno

import pytest

from headrace.broker.compaction_health import REST_MS_MIN
from headrace.log.compaction import cleaner
from headrace.log.compaction.cleaner import CleaningProgress, clean

from ..log.world import virtual_disk
from .logs import filled, flush, planned
from .test_node import CONFIGS, TOPIC, Table
from .virtual_client import VirtualClient

OTHER = "other"


def gauges(table: Table) -> dict[str, float]:
    """The metrics of compaction without their prefix."""
    return {
        family.name.removeprefix("headrace_compaction_"): next(iter(family.samples))[1]
        for family in table.compactor.families()
    }


def test_a_partition_whose_passes_fail_keeps_no_other_from_being_compacted() -> None:
    """It is the dirtiest, and there is one slot: without a rest after a failure it would always be the next."""
    table = Table(7, configs={"min.cleanable.dirty.ratio": "0.01"}, backoff_ms=REST_MS_MIN * 10)
    other = VirtualClient(table.world)
    other.create_topic(OTHER, CONFIGS)
    table.virtual.machine.disk.faults.fail(
        "open", code=errno.ENOSPC, path_contains=f"{TOPIC}-0/00000000000000000000.log.", times=10_000
    )
    for number in range(40):
        table.write(b"key", b"value-%d" % number)
        assert table.produce(OTHER, b"key-%d" % number, b"value") == 0
    table.compactor._begin_round()
    table.world.run_until(lambda: table.compactor.passes_failed == 1)
    table.await_passes(1)
    seen = gauges(table)
    assert seen["failing_partitions"] == 1
    assert seen["uncleanable_partitions"] == 0
    assert seen["waiting_partitions"] == 1
    table.virtual.machine.disk.faults.heal()
    table.world.time.advance(REST_MS_MIN)
    began = table.compactor.passes_ended
    table.compactor._begin_round()
    table.await_passes(began + 1)
    assert gauges(table)["failing_partitions"] == gauges(table)["due_seconds_max"] == 0


def test_a_pass_that_stands_still_shows_for_how_long() -> None:
    table = Table(8)
    spawner = table.virtual.machine.spawner
    spawner.hold(name_contains="swap_work")
    table.write_many(60)
    table.world.run_until(lambda: any("swap_work" in name for name in spawner.waiting_names()))
    assert gauges(table)["idle_seconds_max"] < 10
    table.world.time.advance(600_000)
    seen = gauges(table)
    assert seen["running"] == 1
    assert seen["idle_seconds_max"] >= 600
    assert seen["due_seconds_max"] >= 600
    spawner.release()
    table.settle()
    assert gauges(table)["idle_seconds_max"] == gauges(table)["due_seconds_max"] == 0


def test_a_long_cleaning_says_that_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "PROGRESS_BYTES", 2 * cleaner.REPORT_BYTES)
    log = filled(virtual_disk(), [(b"key-%d" % (number % 4), b"value") for number in range(60)])
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    results = list(clean(log.disk, plan))
    assert sum(type(result) is CleaningProgress for result in results) > 2


def test_a_deleted_topic_is_not_waited_for() -> None:
    table = Table(6, backoff_ms=600_000)
    table.write_many(40)
    disk = table.virtual.machine.disk
    disk.write_vector(disk.open(f"data/{TOPIC}-0/{0:020d}.log"), [b"\xff"], 150)
    table.ask_for_a_pass()
    table.world.run_until(lambda: table.compactor.passes_failed > 0)
    assert gauges(table)["uncleanable_partitions"] == 1
    table.delete()
    assert gauges(table)["uncleanable_partitions"] == gauges(table)["due_seconds_max"] == 0


def test_segments_that_retention_takes_during_a_pass_are_no_failure() -> None:
    """The process that cleans finds no file any more; the partition rests, and the slot serves another topic."""
    configs = {"cleanup.policy": "compact,delete", "retention.bytes": "300", "file.delete.delay.ms": "0"}
    table = Table(12, configs=configs, backoff_ms=600_000)
    VirtualClient(table.world).create_topic(OTHER, CONFIGS)
    for number in range(60):
        table.write(b"key-%d" % (number % 3), b"value")
        assert table.produce(OTHER, b"key-%d" % number, b"value") == 0
    table.world.run_until(lambda: not table.virtual.machine.spawner.in_flight())
    table.compactor._begin_round()
    table.world.run_until(lambda: bool(table.compactor._passes))
    for _ in range(2):  # renamed, then unlinked
        table.virtual.running._housekeeping._check_all()
        table.world.step()
    table.await_passes(1)
    assert gauges(table)["failing_partitions"] == table.compactor.passes_failed == 0
