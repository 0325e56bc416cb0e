"""The part of docs/compatibility.md about librdkafka's tests, made from the outcomes."""

from collections.abc import Iterator, Mapping, Sequence

from compat.librdkafka.outcomes import UNTOUCHED, Outcome, Pair
from compat.librdkafka.runner import FAILED, PASSED, SKIPPED
from compat.librdkafka.sources import LIBRDKAFKA_VERSION
from compat.librdkafka.suite import SUITE
from compat.segments import KAFKA_VERSION

BEGIN = "<!-- librdkafka's tests -->"
END = "<!-- end of librdkafka's tests -->"
SIGNS = {PASSED: "yes", FAILED: "**no**", SKIPPED: "skips", UNTOUCHED: "no contact"}
NOT_RUN = "not run"
FINDINGS = "../compat/librdkafka/FINDINGS.md"


def section(pairs: Mapping[str, Pair]) -> str:
    lines = [
        BEGIN,
        "",
        "## librdkafka's own tests",
        "",
        f"The test-runner of librdkafka {LIBRDKAFKA_VERSION}, told to expect Kafka 4.3, against a fresh broker process",
        f"for each test, and against one node of Apache Kafka {KAFKA_VERSION}. `(consumer)` is the same test with the",
        "groups of KIP-848, the others use the classic protocol.",
        "",
        "yes: it passed. **no**: it failed. skips: the test said that it does not apply. no contact: it passed without",
        "a request to this broker, which says nothing of a broker, so it is not run with the other one.",
        f"[Findings]({FINDINGS}) has the reason for each that is not a yes, and",
        "`compat/librdkafka/allow-list` those that must stay one. `try 2`: the first of two tries failed; the tests",
        "wait for real time, and a busy machine makes them late.",
        "",
        *_totals(pairs),
        "",
        f"| test | what it checks | Headrace | Apache Kafka {KAFKA_VERSION} |",
        "|---|---|---|---|",
    ]
    for entry in sorted(SUITE, key=lambda entry: entry.key):
        pair = pairs.get(entry.key, Pair())
        lines.append(f"| {entry.key} | {entry.checks} | {_sign(pair.headrace)} | {_sign(pair.kafka)} |")
    return "\n".join([*lines, "", END])


def _totals(pairs: Mapping[str, Pair]) -> Iterator[str]:
    yield f"| | {' | '.join(SIGNS.values())} |"
    yield f"|---|{'---|' * len(SIGNS)}"
    yield _counts("Headrace", [pair.headrace for pair in pairs.values()])
    yield _counts(f"Apache Kafka {KAFKA_VERSION}", [pair.kafka for pair in pairs.values()])


def _counts(broker: str, outcomes: Sequence[Outcome | None]) -> str:
    results = [outcome.result for outcome in outcomes if outcome is not None]
    return f"| {broker} | {' | '.join(str(results.count(result)) for result in SIGNS)} |"


def _sign(outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_RUN
    return SIGNS[outcome.result] if outcome.tries == 1 else f"{SIGNS[outcome.result]}, try {outcome.tries}"
