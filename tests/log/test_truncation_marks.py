"""The mark of a truncation: what a start believes of recovery points that were stored before it."""

import pytest

from headrace.log import names
from headrace.log.directory import LogDirectory
from headrace.log.errors import DamagedLog
from headrace.log.inspect import repair, verify
from headrace.sim.entropy import SeededEntropy

from .replica_world import (
    SMALL,
    catch_up,
)
from .truncation_world import history, new_disk, replica_of
from .world import (
    FOLDER,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch_of,
    open_log,
    run,
    truncate,
    virtual_disk,
)


def test_recovery_points_of_before_are_ignored_until_the_log_has_grown_beyond_them() -> None:
    disk = new_disk(5)
    leader = history(5)
    log = replica_of(leader, disk=disk)
    run(log.flush_work())
    old = log.recovery_point
    truncate(log, 10)
    mark = f"{FOLDER}/{names.TRUNCATION}"
    disk.kill()
    log = open_log(disk, SMALL, recovery_point=old)
    assert log.recovery_point <= log.end_offset <= 10
    assert disk.exists(mark)
    catch_up(log, leader)
    append(log, batch_of(b"more"), epoch=9)
    run(log.flush_work())
    assert log.recovery_point > old
    disk.kill()
    log = open_log(disk, SMALL, recovery_point=log.recovery_point)
    assert not disk.exists(mark)


def test_a_lost_end_is_still_found() -> None:
    disk = new_disk(5)
    log = replica_of(history(5), disk=disk)
    run(log.flush_work())
    truncate(log, 40)
    assert log.end_offset > 30
    disk.truncate(log.files.handle(log.active.log), 0)
    disk.kill()
    with pytest.raises(DamagedLog):
        open_log(disk, SMALL, recovery_point=200)


def test_a_damaged_mark_is_reported() -> None:
    disk = new_disk(5)
    log = replica_of(history(5), disk=disk)
    truncate(log, 40)
    below = log.end_offset
    mark = f"{FOLDER}/{names.TRUNCATION}"
    file = disk.open(mark)
    disk.write_vector(file, [b"version=7\n"], 0)
    disk.kill()
    with pytest.raises(DamagedLog, match="its mark cannot be read"):
        open_log(disk, SMALL)
    report = repair(disk, FOLDER, dry_run=False)
    assert [finding.path for finding in report.findings] == [mark]
    assert open_log(disk, SMALL).end_offset == below


def test_a_verification_knows_about_truncations() -> None:
    """The log is not reported as one that lost its end, although its recovery point was stored before."""
    disk = virtual_disk(8)
    directory = LogDirectory.open(disk, "data", cluster_id="c", node_id=1, entropy=SeededEntropy(8))
    log = directory.open_log(PARTITION, TOPIC_ID, SMALL, wall_ms=NOW_MS)
    catch_up(log, history(5))
    run(log.flush_work())
    directory.checkpoint([log], {})
    truncate(log, 40)
    assert verify(disk, "data").findings == []
    assert log.end_offset < directory.recovery_points[PARTITION]
