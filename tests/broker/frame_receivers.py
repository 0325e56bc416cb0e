"""A receiver with its pool, for tests of frames."""

from headrace.broker.net.buffers import BufferPool
from headrace.broker.net.connection import ResponseSlot
from headrace.broker.net.receiver import Receiver

FRAME_BYTES_MAX = 8 << 20
MANY_BYTES = 64 << 20


class Receiving:
    """A receiver with its pool, and what it has handed over: (connection, bytes) per frame."""

    def __init__(self, *, lent_bytes_max=MANY_BYTES, kept_bytes_max=MANY_BYTES, held_bytes_max=MANY_BYTES):
        self.pool = BufferPool(lent_bytes_max=lent_bytes_max, kept_bytes_max=kept_bytes_max)
        self.frames = []
        self.gave_way = []
        self.answered = True
        self.time_ms = 0.0
        self.frame_takes_ms = 0.0
        self._views = []
        self.receiver = Receiver(
            frame_bytes_max=FRAME_BYTES_MAX,
            held_bytes_max=held_bytes_max,
            pool=self.pool,
            handle_frame=self._handle,
            handle_repeat=lambda sender, view, position, end: 0,
            check_large_frame=lambda sender, size, first: True,
            evict=self._evict,
            monotonic_ms=lambda: self.time_ms,
        )

    def _evict(self, sender):
        self.gave_way.append(sender)
        sender.closed = True
        self.receiver.discard(sender)

    def _handle(self, sender, view, start, end):
        self._views.append((sender, view[start:end], bytes(view[start:end])))
        self.time_ms += self.frame_takes_ms
        if not self.answered:
            sender.responses.append(ResponseSlot(sender, None, 1))

    def end_turn(self):
        for sender, view, content in self._views:
            assert view == content, "the bytes of a turn stay until its end"
            self.frames.append((sender, content))
        self._views.clear()
        self.receiver.end_turn()

    def feed(self, sender, content):
        """The bytes arrive, and are taken in as many turns as it needs."""
        sender.transport.incoming += content
        while sender.transport.incoming:
            self.receiver.receive(sender)
            self.end_turn()

    def contents(self, sender):
        return [content for who, content in self.frames if who is sender]


def declared(size):
    return size.to_bytes(4, "big")
