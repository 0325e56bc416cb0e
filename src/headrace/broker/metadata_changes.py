"""Recent changes of the committed metadata, for clients that follow them instead of reading all metadata again.

A change is kept as the name of what changed, once: the response says how that is now. Nothing is kept while no client
asks.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple, Protocol

from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.records import ResourceKind
from headrace.model.limits import METADATA_CHANGES_KEPT_MAX, METADATA_CHANGES_UNASKED_MS_MAX
from headrace.ports.clock import Clock


class ChangeKind(IntEnum):
    TOPIC_CREATED = 1
    TOPIC_DELETED = 2
    TOPIC_GREW = 3
    PARTITION = 4
    CONFIGS = 5
    BROKERS = 6


class Change(NamedTuple):
    kind: ChangeKind
    name: str = ""
    """Of a topic or a resource."""
    number: int = 0
    """A partition or a ResourceKind."""
    topic_id: bytes = b""
    """Of a topic that was created or deleted."""


class ChangeWait(Protocol):
    def changed(self) -> None:
        """Called when the metadata has changed."""


class RecentChanges:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._version_of: dict[Change, int] = {}
        """The version that brought a change, oldest first; a change that comes again moves to the end."""
        self._complete_from: int | None = None
        """The version after which every change is kept; None while no client asks."""
        self._asked_at_ms = 0.0
        self.waiting: dict[ChangeWait, None] = {}
        """Requests that wait for a change; each removes itself when it has got one."""

    def after(self, version: int, current: int) -> list[Change] | None:
        """Return what changed after a version, oldest first; None if not all of that is kept.

        `current` is the version of the image.
        """
        self._asked_at_ms = self._clock.monotonic_ms()
        if self._complete_from is None:
            self._complete_from = current
        if version >= current:
            return []
        if version < self._complete_from:
            return None
        found = []
        for change in reversed(self._version_of):
            if self._version_of[change] <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def image_changed(self, delta: MetadataDelta, version: int) -> None:
        """Keep what a committed change names, and notify the requests that wait."""
        if self._complete_from is not None:
            if self._clock.monotonic_ms() - self._asked_at_ms > METADATA_CHANGES_UNASKED_MS_MAX:
                self._complete_from = None
                self._version_of.clear()
            else:
                self._keep(delta, version)
        for each in tuple(self.waiting):
            each.changed()

    def _keep(self, delta: MetadataDelta, version: int) -> None:
        kept = self._version_of
        for change in _changes(delta):
            kept.pop(change, None)
            kept[change] = version
            if len(kept) > METADATA_CHANGES_KEPT_MAX:
                self._complete_from = kept.pop(next(iter(kept)))


def _changes(delta: MetadataDelta) -> Iterator[Change]:
    for topic in delta.topics_deleted:
        yield Change(ChangeKind.TOPIC_DELETED, topic.name, topic_id=topic.topic_id)
    for topic in delta.topics_created:
        yield Change(ChangeKind.TOPIC_CREATED, topic.name, topic_id=topic.topic_id)
    for name in dict.fromkeys(part.topic for part in delta.partitions_added):
        yield Change(ChangeKind.TOPIC_GREW, name)
    for part in delta.partitions_changed:
        yield Change(ChangeKind.PARTITION, part.topic, part.partition)
    for name in delta.topic_configs_changed:
        yield Change(ChangeKind.CONFIGS, name, ResourceKind.TOPIC)
    for name in delta.broker_configs_changed:
        yield Change(ChangeKind.CONFIGS, name, ResourceKind.BROKER)
    if delta.brokers_changed:
        yield Change(ChangeKind.BROKERS)
