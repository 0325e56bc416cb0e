"""The metrics page of all shards: every metric once, and a label that names the shard."""

from headrace.operations.metrics_page import parse_page
from headrace.shards.metrics_page import merged

PAGE = """\
# HELP headrace_connections Open client connections.
# TYPE headrace_connections gauge
headrace_connections {0}
# HELP headrace_request_seconds Time.
# TYPE headrace_request_seconds histogram
headrace_request_seconds_bucket{{api="fetch",le="+Inf"}} {0}
headrace_request_seconds_count{{api="fetch"}} {0}
"""


def test_samples_of_all_shards_follow_one_heading() -> None:
    lines = list(merged({0: PAGE.format(3), 2: PAGE.format(4)}))
    assert lines == [
        "# HELP headrace_connections Open client connections.",
        "# TYPE headrace_connections gauge",
        'headrace_connections{shard="0"} 3',
        'headrace_connections{shard="2"} 4',
        "# HELP headrace_request_seconds Time.",
        "# TYPE headrace_request_seconds histogram",
        'headrace_request_seconds_bucket{shard="0",api="fetch",le="+Inf"} 3',
        'headrace_request_seconds_count{shard="0",api="fetch"} 3',
        'headrace_request_seconds_bucket{shard="2",api="fetch",le="+Inf"} 4',
        'headrace_request_seconds_count{shard="2",api="fetch"} 4',
    ]
    page = parse_page("\n".join(lines))
    assert page["headrace_connections"] == [({"shard": "0"}, 3.0), ({"shard": "2"}, 4.0)]


def test_a_metric_that_only_one_shard_has_is_kept() -> None:
    extra = "# HELP headrace_more More.\n# TYPE headrace_more counter\nheadrace_more 1\n"
    assert 'headrace_more{shard="1"} 1' in list(merged({0: PAGE.format(1), 1: PAGE.format(2) + extra}))
