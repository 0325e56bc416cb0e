"""The client of the run itself: it creates the topics, and in the end reads every partition from beginning to end."""

from collections.abc import Callable, Iterable
from typing import Any

from headrace.client.config import ClientConfig, ConsumerConfig
from headrace.client.core.admin import partitions, topics
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerUnreachable
from headrace.client.loop import LoopClient
from headrace.client.types import LATEST, IsolationLevel, NewTopic
from headrace.model.ids import TopicPartition
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.cluster.context import ClusterContext

NAME = "auditor"
CALL_MS_MAX = 30_000
ATTEMPTS_MAX = 10
PAUSE_MS = 1_000
RECORDS_MAX = 500

OPENS = "a healthy cluster accepts the requests of clients"
ALL_READABLE = "a healed cluster shows every partition to its end"

Await = Callable[[Callable[[], bool], str], None]
"""Steps the run until the condition holds; the text says what did not happen in time."""


class ClusterAuditor:
    def __init__(self, context: ClusterContext, run_until: Await) -> None:
        self._context = context
        self._run_until = run_until
        servers = context.cluster.bootstrap_servers
        self._client = context.world.machine(NAME).boot(
            lambda machine: LoopClient(
                ClientConfig(bootstrap_servers=servers),
                network=machine.network,
                clock=machine.clock,
                entropy=machine.entropy,
            )
        )

    def create(self, new: Iterable[NewTopic]) -> None:
        wanted = list(new)
        outcomes = self._call(
            lambda cluster: topics.create_topics(cluster, wanted, validate_only=False, timeout_ms=CALL_MS_MAX)
        )
        for name, outcome in outcomes.items():
            require(not outcome.error, OPENS, f"{name} cannot be created: {outcome.error}")

    def check(self) -> None:
        """Compare what is there with what was promised."""
        self._check_all()
        self._check_committed()

    def _check_all(self) -> None:
        for place, values in self._read(IsolationLevel.READ_UNCOMMITTED).items():
            self._context.history.check_read(place, values)

    def _check_committed(self) -> None:
        found = self._read(IsolationLevel.READ_COMMITTED)
        self._context.history.check_committed({value for values in found.values() for value in values})

    def _read(self, isolation: IsolationLevel) -> dict[TopicPartition, set[bytes]]:
        """Read all values of every partition; no transaction is left open, so committed records go to the end too."""
        places = self._context.places
        committed_only = isolation is IsolationLevel.READ_COMMITTED
        latest = dict.fromkeys(places, LATEST)
        offsets = self._call(lambda cluster: partitions.offsets(cluster, latest, timeout_ms=CALL_MS_MAX))
        ends = {place: found.offset for place, found in offsets.items()}
        consumer = self._client.consumer(
            ConsumerConfig(
                isolation_level="read_committed" if committed_only else "read_uncommitted",
                auto_offset_reset="earliest",
            )
        )
        consumer.assign(places)
        found: dict[TopicPartition, set[bytes]] = {place: set() for place in places}

        def is_read() -> bool:
            for record in consumer.take(RECORDS_MAX):
                self._context.history.show(record, committed_only=committed_only)
                found[TopicPartition(record.topic, record.partition)].add(bytes(record.value or b""))
            return all((consumer.position(place) or 0) >= end for place, end in ends.items())

        self._run_until(is_read, f"{ALL_READABLE} ({isolation.name})")
        consumer.assign(())
        return found

    def _call(self, begin: Callable[[Cluster], Operation[Any]]) -> Any:
        """Call a broker, again if its connection turns out to be one from before a restart."""
        for _ in range(ATTEMPTS_MAX):
            outcome = self._try(begin(self._client.cluster))
            if not isinstance(outcome, Exception):
                return outcome
            if not isinstance(outcome, BrokerUnreachable):
                break
            self._pause()
        raise Violation(OPENS, f"{type(outcome).__name__}: {outcome}")

    def _try(self, operation: Operation[Any]) -> Any:
        outcomes: list[Any] = []
        self._client.run(operation, timeout_ms=CALL_MS_MAX, ended=outcomes.append)
        self._run_until(lambda: bool(outcomes), "a request of the auditor does not end")
        return outcomes[0]

    def _pause(self) -> None:
        time = self._context.world.time
        due_ms = time.now_ms + PAUSE_MS
        self._run_until(lambda: time.now_ms >= due_ms, "time stands still")
