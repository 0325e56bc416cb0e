"""Readers of every partition, alone or as members of a group."""

from headrace.client.config import ConsumerConfig
from headrace.client.errors import ClientError
from headrace.client.loop import LoopConsumer
from headrace.client.types import ConsumerRecord
from headrace.sim.checkers.violation import Violation
from headrace.sim.cluster.applications import REQUEST_TIMEOUT_MS, Application
from headrace.sim.cluster.context import ClusterContext

RECORDS_MAX = 50
POLL_MS_MAX = 200
HEARTBEAT_MS = 1_000
SESSION_MS = 10_000

READABLE = "a reader that keeps its position can always continue"


class ReaderApplication(Application):
    """Reads every partition from its beginning, and again from there when it is restarted."""

    _consumer: LoopConsumer

    def __init__(self, context: ClusterContext, name: str, *, committed_only: bool) -> None:
        self._committed_only = committed_only
        super().__init__(context, name)

    def begin(self) -> None:
        self._consumer = self.client.consumer(self._config())
        self._consumer.assign(self.context.places)

    def _config(self, **options: object) -> ConsumerConfig:
        return ConsumerConfig(
            isolation_level="read_committed" if self._committed_only else "read_uncommitted",
            auto_offset_reset="earliest",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            **options,  # type: ignore[arg-type]
        )

    def received(self) -> None:
        try:
            taken = self._consumer.take(RECORDS_MAX)
        except ClientError as error:
            raise Violation(READABLE, f"{self.name}: {type(error).__name__}: {error}") from error
        for record in taken:
            self.read(record)
        self.rest(POLL_MS_MAX)

    def read(self, record: ConsumerRecord[bytes | None]) -> None:
        self.context.history.show(record, committed_only=self._committed_only)
        self.progress += 1


class MemberApplication(ReaderApplication):
    """A member of the group that all members share; `values` are what the group has read."""

    def __init__(self, context: ClusterContext, name: str, values: set[bytes], *, protocol: str) -> None:
        self._values = values
        self._protocol = protocol
        super().__init__(context, name, committed_only=False)

    def begin(self) -> None:
        self._consumer = self.client.consumer(
            self._config(
                group_id="members",
                group_protocol=self._protocol,
                heartbeat_interval_ms=HEARTBEAT_MS,
                session_timeout_ms=SESSION_MS,
                max_poll_interval_ms=SESSION_MS,
                auto_commit_interval_ms=1_000,
            )
        )
        self._consumer.subscribe(*dict.fromkeys(place.topic for place in self.context.places))

    def read(self, record: ConsumerRecord[bytes | None]) -> None:
        super().read(record)
        self._values.add(bytes(record.value or b""))
