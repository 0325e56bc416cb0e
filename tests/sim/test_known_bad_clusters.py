"""The simulator of clusters tested: it must notice every known fault within a few seeds."""

import pytest

from tests.sim.known_bad import is_noticed
from tests.sim.known_bad_clusters import (
    count_markers_as_written_for_unknown_topics,
    fence_on_a_connection_reset_alone,
    open_folders_at_boot,
    serve_a_stale_read,
)
from tests.sim.known_bad_replicas import (
    accept_any_sequence,
    acknowledge_before_the_high_watermark,
    commit_without_joining_replicas,
    keep_the_isr_at_an_unclean_registration,
    keep_the_producers_of_a_truncated_log,
    lead_on_after_a_resignation,
    skip_the_check_of_the_last_epoch,
    truncate_to_the_high_watermark,
)

SEEDS_MAX = 80
"""Half of the tries of the long campaign need less than half of it (docs/reliability.md)."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(
    ("put_in", "first"),
    [
        (serve_a_stale_read, 0),
        (open_folders_at_boot, 0),
        (count_markers_as_written_for_unknown_topics, 4),
        (fence_on_a_connection_reset_alone, 0),
        (acknowledge_before_the_high_watermark, 0),
        (commit_without_joining_replicas, 0),
        (truncate_to_the_high_watermark, 0),
        (skip_the_check_of_the_last_epoch, 0),
        (lead_on_after_a_resignation, 0),
        (keep_the_producers_of_a_truncated_log, 0),
        (accept_any_sequence, 14),
        (keep_the_isr_at_an_unclean_registration, 0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_known_fault_of_a_cluster_is_noticed(put_in, first, monkeypatch):
    """Begin with a seed that noticed the fault when this was written, which saves time."""
    put_in(monkeypatch)
    assert any(is_noticed(seed, "cluster") for seed in range(first, first + SEEDS_MAX)), "no seed noticed"
