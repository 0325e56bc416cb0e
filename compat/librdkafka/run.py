"""All or some of the tests, one at a time, against both brokers; what came out is kept and judged."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from compat.environments import HOME, Missing
from compat.librdkafka import brokers
from compat.librdkafka.kafka_home import kafka_home
from compat.librdkafka.outcomes import UNTOUCHED, Outcome, Pair, complaints, store, stored
from compat.librdkafka.runner import FAILED, PASSED, Surroundings, Verdict, run_batch
from compat.librdkafka.sources import built_tests
from compat.librdkafka.suite import SUITE, Batch, batches

TRIES_MAX = 2
"""The tests wait for real time, and a busy machine makes them late: a failure is looked at twice, and said."""

HEADRACE = "headrace"
KAFKA = "kafka"


def run_suite(numbers: Collection[str] = (), *, only: str = "") -> list[str]:
    """Run the tests of these numbers, or all, against one broker or both; raises Missing when they cannot be built.

    Gives the complaints about what came out.
    """
    surroundings = Surroundings(tests=built_tests(), kafka_home=_kafka_home(), outputs=HOME / "librdkafka-outputs")
    wanted = list(batches([entry for entry in SUITE if not numbers or entry.number in numbers]))
    if only != KAFKA:
        for batch in wanted:
            _keep(HEADRACE, _on_headrace(batch, surroundings))
    if only != HEADRACE and surroundings.kafka_home is not None:
        meeting = [batch for batch in wanted if not _untouched(batch)]
        for scenario in sorted({batch.scenario for batch in meeting}):
            _on_kafka([batch for batch in meeting if batch.scenario == scenario], scenario, surroundings)
    run = {entry.key for batch in wanted for entry in batch.entries}
    return list(complaints({key: pair for key, pair in stored().items() if key in run}))


def _kafka_home() -> Path | None:
    try:
        return kafka_home()
    except Missing as lacking:
        print(f"Apache Kafka: not run, {lacking}", flush=True)
        return None


def _on_headrace(batch: Batch, surroundings: Surroundings) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for attempt in range(1, TRIES_MAX + 1):
        with brokers.headrace(batch.scenario) as broker:
            found = run_batch(batch, surroundings, broker.bootstrap_servers, broker=HEADRACE)
            witness = broker.witness()
        outcomes = {key: witnessed(verdict, witness, attempt) for key, verdict in found.items()}
        if not _failed(outcomes.values()):
            break
    return outcomes


def witnessed(verdict: Verdict, witness: brokers.Witness, attempt: int) -> Outcome:
    """The runner's word, less where the broker knows better."""
    result, detail = verdict.result, verdict.detail
    if witness.trouble:
        result, detail = FAILED, f"{witness.trouble}; {detail}".rstrip("; ")
    elif result == PASSED and not witness.apis:
        result = UNTOUCHED
    return Outcome(result=result, detail=detail, tries=attempt, apis=witness.apis)


def _untouched(batch: Batch) -> bool:
    """Note tests that contact no broker: they need not be run with another one and count for both."""
    pairs = stored()
    known = [pairs.get(entry.key, Pair()).headrace for entry in batch.entries]
    if not all(outcome is not None and outcome.result == UNTOUCHED for outcome in known):
        return False
    _keep(KAFKA, {entry.key: Outcome(result=UNTOUCHED) for entry in batch.entries})
    return True


def _on_kafka(wanted: Sequence[Batch], scenario: str, surroundings: Surroundings) -> None:
    with brokers.kafka(scenario) as bootstrap_servers:
        for batch in wanted:
            outcomes: dict[str, Outcome] = {}
            for attempt in range(1, TRIES_MAX + 1):
                found = run_batch(batch, surroundings, bootstrap_servers, broker=KAFKA)
                outcomes = {
                    key: Outcome(result=verdict.result, detail=verdict.detail, tries=attempt)
                    for key, verdict in found.items()
                }
                if not _failed(outcomes.values()):
                    break
            _keep(KAFKA, outcomes)


def _failed(outcomes: Iterable[Outcome]) -> bool:
    return any(outcome.result == FAILED for outcome in outcomes)


def _keep(broker: str, outcomes: dict[str, Outcome]) -> None:
    """At once, so that a run that is broken off keeps what it found."""
    pairs = stored()
    for key, outcome in outcomes.items():
        pairs[key] = replace(pairs.get(key, Pair()), **{broker: outcome})
        tries = f" (try {outcome.tries})" if outcome.tries > 1 else ""
        print(f"{key} on {broker}: {outcome.result}{tries} {outcome.detail}".rstrip(), flush=True)
    store(pairs)
