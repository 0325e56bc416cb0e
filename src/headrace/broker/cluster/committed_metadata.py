"""The committed metadata of this node: the image that all parts of the broker read, and those that wait for changes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush

from headrace.core.controller.changes import decode_change
from headrace.core.controller.delta import MetadataDelta, apply_with_delta, delta_between
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Record
from headrace.core.raft.entries import EntryKind, LogEntry

Subscriber = Callable[[MetadataDelta], None]


class CommittedMetadata:
    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """It stays the same object for the life of the node."""
        self._subscribers: list[Subscriber] = []
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        """A heap of offsets, each with the function to call when the image has reached it."""
        self._sequence = 0

    def subscribe(self, on_image_change: Subscriber) -> None:
        """Call back with the changes of every commit, after they are in `image` and before any response is sent."""
        self._subscribers.append(on_image_change)

    def when_applied(self, offset: int, then: Callable[[], None]) -> None:
        """Call back when the image contains every entry below `offset`; at once if it does already."""
        if offset <= self.image.version:
            then()
        else:
            self._sequence += 1
            heappush(self._waiting, (offset, self._sequence, then))

    def apply(
        self, entries: Sequence[LogEntry], own_records: Mapping[int, Sequence[Record]]
    ) -> list[Callable[[], object]]:
        """Apply committed entries; return the calls that inform others, in their order.

        `own_records` has the records of changes that this node decided, by the index of the entry: they need not be
        decoded again. Raises RecordError if an entry cannot be read or contradicts the image.
        """
        records: list[Record] = []
        for entry in entries:
            if entry.kind is EntryKind.COMMAND:
                records += own_records.get(entry.index) or decode_change(entry.payload)
        delta = apply_with_delta(self.image, records)
        self.image.version = entries[-1].index
        calls: list[Callable[[], object]] = []
        if records:
            calls += [partial(subscriber, delta) for subscriber in self._subscribers]
        return calls

    def restore(self, image: MetadataImage) -> list[Callable[[], object]]:
        """Continue from the image of a snapshot; return the callbacks to run, in their order."""
        delta = delta_between(self.image, image)
        self.image.replace_by(image)
        return [partial(subscriber, delta) for subscriber in self._subscribers]

    def take_reached(self) -> list[Callable[[], None]]:
        """Return the calls that waited for the offset of the image."""
        reached = []
        while self._waiting and self._waiting[0][0] <= self.image.version:
            reached.append(heappop(self._waiting)[2])
        return reached
