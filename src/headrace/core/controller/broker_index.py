"""Topics by the brokers that their partitions name, so that a lost broker is decided on without a scan.

A topic is added when one of its partitions begins to name a broker, and stays until the next lookup finds that none
does any more. One index has the brokers with in-sync and eligible replicas, another those that wait for a leader.
"""

from array import array
from collections.abc import Callable

from headrace.model.ids import NodeId

_UNSIGNED = "I"
STALE_ENTRIES_MIN = 1_024
"""Entries of one broker, at least, before they are checked for repetitions."""


class BrokerIndex:
    """Numbers of topics by broker."""

    __slots__ = ("_check_at", "_topics")

    def __init__(self) -> None:
        self._topics: dict[NodeId, array[int]] = {}
        self._check_at: dict[NodeId, int] = {}

    def add(self, node_id: NodeId, topic_number: int) -> None:
        topics = self._topics.get(node_id)
        if topics is None:
            topics = self._topics[node_id] = array(_UNSIGNED)
        elif topics and topics[-1] == topic_number:
            return
        topics.append(topic_number)
        if len(topics) > self._check_at.get(node_id, STALE_ENTRIES_MIN):
            self._store(node_id, list(dict.fromkeys(topics)))

    def partitions_of(self, node_id: NodeId, found_in: Callable[[int], list[int]]) -> dict[int, list[int]]:
        """Return the broker's partitions by topic number; forget topics in which `found_in` finds none."""
        topics = sorted(set(self._topics.get(node_id, ())))
        found = {number: partitions for number in topics if (partitions := found_in(number))}
        self._store(node_id, list(found))
        return found

    def copy(self) -> "BrokerIndex":
        twin = BrokerIndex()
        twin._topics = {node_id: topics[:] for node_id, topics in self._topics.items()}
        twin._check_at = self._check_at.copy()
        return twin

    def _store(self, node_id: NodeId, topics: list[int]) -> None:
        if topics:
            self._topics[node_id] = array(_UNSIGNED, topics)
            self._check_at[node_id] = max(STALE_ENTRIES_MIN, 2 * len(topics))
        else:
            self._topics.pop(node_id, None)
            self._check_at.pop(node_id, None)
