"""The clients of this broker, for requests about them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from headrace.broker.net.connection import Connection
from headrace.broker.partitions.fetch_sessions import FetchSessions
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.services import PartitionLookup
from headrace.model.limits import CONNECTION_TOPICS_MAX

KEYS_READ_MAX = 200
"""Partitions of a fetch session whose topics are looked at."""


class ConnectionTopics(NamedTuple):
    """Names of topics, at most CONNECTION_TOPICS_MAX of each kind."""

    written: tuple[str, ...]
    read: tuple[str, ...]


class ClientConnections:
    def __init__(self, partitions: PartitionLookup, fetch_sessions: FetchSessions) -> None:
        self._partitions = partitions
        self._fetch_sessions = fetch_sessions
        self.after: Callable[[int, int], list[Connection]] = lambda token, count_max: []
        """Returns the next connections of clients by token, at most `count_max`; set when there is a loop."""
        self.open: Callable[[], list[Connection]] = list
        """Returns all connections of clients; set when there is a loop."""

    def topics_of(self, connection: Connection) -> ConnectionTopics:
        """Return what the client writes and reads, as far as its last requests tell."""
        repeated = (str(shape.partition.topic) for shape in connection.produce_shapes.values())
        read = (*connection.fetched_topics, *self._fetch_sessions.topics_of(connection.fetch_session_id, KEYS_READ_MAX))
        return ConnectionTopics(
            _first(chain(self._names(connection.produced_topics), repeated)), _first(self._names(read))
        )

    def _names(self, keys: Iterable[bytes]) -> Iterator[str]:
        """Yield the names of the topics that exist, which requests name by name or id."""
        for key in dict.fromkeys(keys):
            topic: LocalTopic | None = self._partitions.by_name.get(key) or self._partitions.by_id.get(key)
            if topic is not None:
                yield topic.name


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(names), CONNECTION_TOPICS_MAX))
