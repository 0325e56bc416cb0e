"""Findings of `headrace doctor` from a broker's metrics page: stuck helper threads and stuck compaction."""

from collections.abc import Iterator

from headrace.operations.amounts import count_text
from headrace.operations.findings import Finding, note, ok, problem, warning
from headrace.operations.metrics_address import METRICS_CONFIG, metrics_address
from headrace.operations.metrics_page import MetricsPage, MetricsUnavailable, read_page, total

COMPACTION_IDLE_SECONDS_MAX = 300
"""A compaction pass without progress for longer than this is stuck."""
COMPACTION_DUE_SECONDS_MAX = 3_600
"""A partition that has been due for compaction for longer than this waits too long."""


def health_findings(node_id: int, host: str, listen: str) -> Iterator[Finding]:
    """Check one broker. `host` is its advertised host, `listen` its config headrace.metrics.listen."""
    about = f"health of broker {node_id}"
    if not listen:
        seen = "stuck helper threads and compaction cannot be detected without a metrics page"
        yield note(about, seen, f"start the broker with {METRICS_CONFIG}=127.0.0.1:9644 to check them")
        return
    try:
        page = read_page(*metrics_address(host, listen))
    except MetricsUnavailable as error:
        yield warning(about, str(error), f"check whether {METRICS_CONFIG} is reachable from here")
        return
    found = [*lane_findings(about, page), *compaction_findings(about, page)]
    yield from found or [ok(about, "no helper thread and no compaction is stuck")]


def lane_findings(about: str, page: MetricsPage) -> Iterator[Finding]:
    seconds = {labels.get("lane"): value for labels, value in page.get("headrace_helper_longest_seconds", ())}
    waiting = {labels.get("lane"): value for labels, value in page.get("headrace_helper_operations", ())}
    for labels, is_stuck in page.get("headrace_helper_stuck", ()):
        lane = labels.get("lane")
        if is_stuck:
            operations = count_text(int(waiting.get(lane, 0)), "operation")
            seen = f"helper threads for {lane} are stuck: {operations}, the oldest for {seconds.get(lane, 0):.0f} s"
            yield problem(
                about, seen, "check in the system log whether the disk responds; restart the broker if it does"
            )


def compaction_findings(about: str, page: MetricsPage) -> Iterator[Finding]:
    idle_seconds = total(page, "headrace_compaction_idle_seconds_max")
    if idle_seconds > COMPACTION_IDLE_SECONDS_MAX:
        seen = f"a compaction pass has made no progress for {idle_seconds:.0f} s"
        yield problem(about, seen, "see the broker's log; restart the broker if this persists")
    due_seconds = total(page, "headrace_compaction_due_seconds_max")
    if due_seconds > COMPACTION_DUE_SECONDS_MAX:
        seen = f"a partition has been due for compaction for {due_seconds / 60:.0f} minutes"
        advice = "raise log.cleaner.threads or log.cleaner.io.max.bytes.per.second, and see the broker's log"
        yield warning(about, seen, advice)
    given_up = int(total(page, "headrace_compaction_uncleanable_partitions"))
    if given_up:
        seen = f"compaction gave up on {count_text(given_up, 'partition')}"
        yield problem(about, seen, "see the broker's log for the reason; `headrace log verify` finds damaged files")
    failing = int(total(page, "headrace_compaction_failing_partitions")) - given_up
    if failing > 0:
        seen = f"compaction of {count_text(failing, 'partition')} failed and will be retried"
        yield warning(about, seen, "see the broker's log for the reason")
