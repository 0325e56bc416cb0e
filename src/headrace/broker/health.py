"""The health of this broker, as its heartbeats report it to the active controller."""

from headrace.broker.metrics import Metrics
from headrace.broker.partitions.table import PartitionTable
from headrace.core.controller.health import HealthReport
from headrace.ports.spawner import Lane, Spawner


def take_health(metrics: Metrics, partitions: PartitionTable, spawner: Spawner) -> HealthReport:
    """Report what the node has seen since the last call."""
    turn_ms, append_ms = metrics.take_peaks()
    sync_ms = max((longest_ms for lane, _in_flight, longest_ms in spawner.lanes() if lane is Lane.SYNC), default=0.0)
    is_full = all(directory.space.full for directory in partitions.directories)
    return HealthReport(int(turn_ms), int(append_ms), is_full, int(sync_ms))
