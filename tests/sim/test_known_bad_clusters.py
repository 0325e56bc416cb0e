"""The simulator of clusters tested: it must notice every known fault within a few seeds."""

import pytest

from tests.sim.known_bad import is_noticed
from tests.sim.known_bad_clusters import (
    count_markers_as_written_for_unknown_topics,
    fence_on_a_connection_reset_alone,
    open_folders_at_boot,
    serve_a_stale_read,
)

SEEDS_MAX = 40
"""Half of the seeds of the long campaign need fewer (docs/reliability.md)."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(
    ("put_in", "first"),
    [
        (serve_a_stale_read, 1),
        (open_folders_at_boot, 0),
        (count_markers_as_written_for_unknown_topics, 7),
        (fence_on_a_connection_reset_alone, 1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_known_fault_of_a_cluster_is_noticed(put_in, first, monkeypatch):
    """Begin with a seed that noticed the fault when this was written, which saves time."""
    put_in(monkeypatch)
    assert any(is_noticed(seed, "cluster") for seed in range(first, first + SEEDS_MAX)), "no seed noticed"
