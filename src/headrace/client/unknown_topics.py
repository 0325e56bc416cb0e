"""Track topics that a consumer wants and that do not exist, and log them."""

from collections.abc import Iterator
from logging import INFO, WARNING
from typing import TYPE_CHECKING

from headrace.client.core.cluster import Cluster
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.client.core.groups.group_logging import Tell

UNKNOWN_TOPIC_LOG_MS = 1_000
"""Time for which a topic may be unknown before the client logs it: a broker that creates it needs a moment."""


class UnknownTopics:
    def __init__(self, cluster: Cluster, tell: "Tell | None") -> None:
        """`tell` logs a message."""
        self._cluster = cluster
        self._tell = tell
        self._since_ms: dict[str, float] = {}
        self._logged: set[str] = set()

    def look(self, now_ms: float) -> None:
        """Note the topics with errors; log each topic that stays unknown once, and once more when it appears."""
        errors = self._cluster.topic_errors
        if not errors and not self._since_ms:
            return
        for topic, error in errors.items():
            since_ms = self._since_ms.setdefault(topic, now_ms)
            is_lasting = now_ms - since_ms >= UNKNOWN_TOPIC_LOG_MS
            if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_lasting and topic not in self._logged:
                self._logged.add(topic)
                hint = f"create it with `headrace topics create {topic}`, or check its spelling"
                self._say(
                    WARNING, f"topic {topic!r} does not exist; the consumer starts to read when it appears ({hint})"
                )
        for topic in [each for each in self._since_ms if each not in errors]:
            del self._since_ms[topic]
            if topic in self._logged and self._cluster.partition_count(topic) is not None:
                self._logged.discard(topic)
                self._say(INFO, f"topic {topic!r} exists now")

    def errors(self, now_ms: float, patience_ms: float) -> Iterator[tuple[str, ErrorCode]]:
        """Yield the topics that have had an error for that long, with the error."""
        self.look(now_ms)
        for topic, since_ms in self._since_ms.items():
            if now_ms - since_ms >= patience_ms:
                yield topic, self._cluster.topic_errors[topic]

    def _say(self, level: int, text: str) -> None:
        if self._tell is not None:
            self._tell(level, text)
