"""Rates of `headrace top` from the metrics page of several shards: sums of counts, the largest of delays."""

from headrace.operations.metrics_page import parse_page
from headrace.operations.top_samples import Sample, view_of

PAGE = """\
headrace_requests_total{{shard="0",api="produce"}} {0}
headrace_requests_total{{shard="1",api="produce"}} {0}
headrace_produce_errors_total{{shard="0",error="NOT_LEADER_OR_FOLLOWER"}} {0}
headrace_produce_errors_total{{shard="1",error="NOT_LEADER_OR_FOLLOWER"}} {0}
headrace_loop_lag_max_seconds{{shard="0"}} 0.002
headrace_loop_lag_max_seconds{{shard="1"}} 0.005
"""


def sample(at_seconds: float, count: int) -> Sample:
    page = parse_page(PAGE.format(count))
    return Sample(at_seconds, 2, partitions={}, starts={}, ends={}, sizes={}, groups={}, metrics=page)


def test_the_page_of_several_shards_is_one_node() -> None:
    node = view_of(sample(0.0, 100), sample(10.0, 150)).node
    assert node is not None
    assert node.requests_per_second == 10.0
    assert node.errors == {"produce NOT_LEADER_OR_FOLLOWER": 10.0}
    assert node.loop_lag_ms == 5.0
