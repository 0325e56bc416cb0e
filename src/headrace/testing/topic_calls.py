"""Calls for topics that tests share, whether one broker or a cluster serves them."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.client import Admin

TOPIC_NAME_LENGTH_MAX = 200


class TopicCalls:
    """The base of the embedded broker and the embedded cluster."""

    def __init__(self) -> None:
        self._topics_named = 0

    @property
    def bootstrap_servers(self) -> str:
        """Return HOST:PORT, or several separated by commas, as every Kafka client accepts it."""
        raise NotImplementedError

    def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic and return its name; it can be used at once."""
        from headrace.client import NewTopic

        with self._admin() as admin:
            new = NewTopic(name, partitions=partitions, replication_factor=replicas, configs=dict(configs or {}))
            outcome = admin.create_topics([new])[name]
        if outcome.error:
            raise ValueError(f'topic "{name}" cannot be created: {outcome.message or outcome.error.name}')
        return name

    def delete_topic(self, name: str) -> None:
        with self._admin() as admin:
            outcome = admin.delete_topics([name])[name]
        if outcome.error:
            raise ValueError(f'topic "{name}" cannot be deleted: {outcome.message or outcome.error.name}')

    def unused_topic_name(self, text: str) -> str:
        """Return a valid topic name made from any text, a new one at each call."""
        self._topics_named += 1
        legal = re.sub(r"[^a-zA-Z0-9-]+", "-", text).strip("-")[:TOPIC_NAME_LENGTH_MAX]
        return f"{legal or 'topic'}-{self._topics_named}"

    def _admin(self) -> "Admin":
        from headrace.client import Admin

        return Admin(self.bootstrap_servers)
