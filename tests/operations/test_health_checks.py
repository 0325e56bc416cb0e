"""Findings of doctor about the health of a broker, given its metrics page."""

import pytest

from headrace.operations.findings import Finding, Level
from headrace.operations.health_checks import compaction_findings, health_findings, lane_findings
from headrace.operations.metrics_page import parse_page
from headrace.testing import EmbeddedBroker
from tests.reserved_ports import reserved_port


def page(**values: float) -> dict[str, list[tuple[dict[str, str], float]]]:
    return parse_page("\n".join(f"headrace_{name} {value}" for name, value in values.items()))


def test_a_stuck_lane_is_a_problem_that_names_it() -> None:
    text = "\n".join(
        f'headrace_helper_{name}{{lane="{lane}"}} {value}'
        for name, lane, value in (
            ("stuck", "sync", 1),
            ("stuck", "other", 0),
            ("longest_seconds", "sync", 95.2),
            ("operations", "sync", 12),
        )
    )
    (found,) = lane_findings("broker", parse_page(text))
    assert found.level is Level.PROBLEM
    assert found.seen == "helper threads for sync are stuck: 12 operations, the oldest for 95 s"
    assert "disk" in found.advice


@pytest.mark.parametrize(
    ("values", "level", "seen"),
    [
        ({"compaction_idle_seconds_max": 301.0}, Level.PROBLEM, "no progress for 301 s"),
        ({"compaction_due_seconds_max": 3_660.0}, Level.WARNING, "due for compaction for 61 minutes"),
        ({"compaction_uncleanable_partitions": 1}, Level.PROBLEM, "gave up on 1 partition"),
        ({"compaction_failing_partitions": 2}, Level.WARNING, "of 2 partitions failed"),
    ],
)
def test_compaction_that_does_not_continue(values: dict[str, float], level: Level, seen: str) -> None:
    (found,) = compaction_findings("broker", page(**values))
    assert found.level is level
    assert seen in found.seen
    assert found.advice


def test_a_page_without_trouble() -> None:
    quiet = page(
        helper_stuck=0,
        compaction_idle_seconds_max=299.0,
        compaction_due_seconds_max=3_599.0,
        compaction_failing_partitions=0,
    )
    assert [*lane_findings("broker", quiet), *compaction_findings("broker", quiet)] == []


def test_without_a_page_and_with_one_that_cannot_be_read() -> None:
    (without,) = health_findings(1, "localhost", "")
    assert without.level is Level.NOTE
    assert "headrace.metrics.listen" in without.advice
    (unreadable,) = health_findings(1, "localhost", f"127.0.0.1:{reserved_port()}")
    assert unreadable.level is Level.WARNING


@pytest.mark.process
def test_the_page_of_a_broker() -> None:
    port = reserved_port()
    with EmbeddedBroker(config={"headrace.metrics.listen": f"0.0.0.0:{port}"}):
        found = list(health_findings(1, "127.0.0.1", f"0.0.0.0:{port}"))
    assert found == [Finding(Level.OK, "health of broker 1", "no helper thread and no compaction is stuck")]
