"""Receives bytes and splits them into frames: small frames in one arena, large ones in pooled buffers.

The bytes of a turn stay where they were received until the turn's writes are done, so a record batch goes from the
socket to the file without a copy. A buffer grows with the bytes received, never with the length declared: at its
beginning it is at most as large as the largest frame that the peer has sent before. When buffers are short, frames that
have stalled are evicted (`receive_shares.py`).
"""

from collections.abc import Callable
from struct import Struct

from headrace.broker.net.buffers import BufferPool, buffer_bytes
from headrace.broker.net.connection import NO_PARTIAL_FRAME, Connection
from headrace.broker.net.receive_shares import ReceiveShares
from headrace.model.limits import (
    LARGE_FRAME_BEGUN_BYTES,
    LARGE_FRAME_BYTES,
    LARGE_FRAME_FIRST_BYTES,
    LARGE_FRAME_ONCE_BYTES,
    RECEIVE_ARENA_BYTES,
    RECEIVE_ONCE_BYTES,
    REQUESTS_IN_FLIGHT_MAX,
    TURN_WORK_MS_MAX,
    WAITING_FRAMES_PER_TURN,
)
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError

_SIZE = Struct(">i")
_API_KEY = Struct(">h")
_SIZE_BYTES = 4
_SMALLEST_FRAME_BYTES = 8
"""An API key, a version and a correlation id."""

_ROOM_WORTH_A_CALL_BYTES = 4096

HandleFrame = Callable[[Connection, memoryview, int, int], None]
HandleRepeat = Callable[[Connection, memoryview, int, int], int]
"""Called with the start of a sized frame and the end of the bytes received; returns the end of the frame if it was
handled, otherwise 0.
"""
CheckLargeFrame = Callable[[Connection, int, memoryview], bool]
"""Called with the size and the first bytes of a large frame, before it gets a buffer. Returns False if the frame was
answered already and the rest of it is to be discarded. Raises ProtocolError.
"""
Evict = Callable[[Connection], None]
"""Closes a connection whose large frame has to give up its buffer."""


class Receiver:
    def __init__(
        self,
        *,
        frame_bytes_max: int,
        held_bytes_max: int,
        pool: BufferPool,
        handle_frame: HandleFrame,
        handle_repeat: HandleRepeat,
        check_large_frame: CheckLargeFrame,
        evict: Evict,
        monotonic_ms: Callable[[], float],
    ) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._held_bytes_max = held_bytes_max
        self._pool = pool
        self._handle_frame = handle_frame
        self._handle_repeat = handle_repeat
        self._tries_repeats = frame_bytes_max >= RECEIVE_ARENA_BYTES
        """Repeated requests are not compared with the frame limit, because the whole arena is smaller."""
        self._check_large_frame = check_large_frame
        self._arena = memoryview(bytearray(RECEIVE_ARENA_BYTES))
        self._used = 0
        self._done_frames: list[memoryview] = []
        self._evict = evict
        self._shares = ReceiveShares(pool.lent_bytes_max)
        self._moves_seen = 0
        self.now_ms = 0.0
        """The time at the beginning of this turn."""
        self._monotonic_ms = monotonic_ms
        self._put_off: list[Connection] = []

    def end_turn(self) -> None:
        """Reuse the arena and the large buffers, because the writes of the turn are done."""
        self._used = 0
        for frame in self._done_frames:
            self._pool.give_back(frame)
        self._done_frames.clear()

    def receive(self, connection: Connection) -> int:
        """Receive bytes, handle the complete frames in them, and return the number of bytes received.

        Returns -1 at the end of the stream.

        Raises ProtocolError for an invalid frame, and OSError when the connection is broken.
        """
        if connection.frame is not None:
            return self._receive_large(connection, connection.frame)
        start, rest = self._used, connection.rest
        position = start + len(rest) if rest is not None else start
        if RECEIVE_ARENA_BYTES - position < _ROOM_WORTH_A_CALL_BYTES:
            return 0  # the arena is full: the connection is still readable in the next turn
        # A memoryview slice ends at the end of the arena.
        received = connection.transport.recv_into(self._arena[position : position + RECEIVE_ONCE_BYTES])
        if received == 0:
            return 0 if connection.put_off else -1  # the stream ends after the requests that it holds
        if rest is not None:
            self._arena[start:position] = rest
            connection.rest = None
            connection.put_off = False
        self._used = end = position + received
        if connection.produce_shapes and not connection.responses and self._tries_repeats:
            # HOT: a client that has one request in flight
            start = self._handle_repeat(connection, self._arena, start, end) or start
            if start == end:
                connection.partial_since_ms = NO_PARTIAL_FRAME
                return received
        self._handle_whole_frames(connection, start, end)
        return received

    def resume(self, connection: Connection) -> bool:
        """Handle frames that were left in `rest` when reading was paused; return False if there is no room."""
        rest = connection.rest
        if rest is None:
            return True
        start = self._used
        end = start + len(rest)
        if end > RECEIVE_ARENA_BYTES:
            return False
        self._arena[start:end] = rest
        connection.rest = None
        connection.put_off = False
        self._used = end
        self._handle_whole_frames(connection, start, end)
        return True

    def take_put_off(self) -> list[Connection]:
        """Return the connections whose frames, received in full, wait for the next turn because this one took long."""
        if not self._put_off:
            return self._put_off
        put_off, self._put_off = self._put_off, []
        return put_off

    def discard(self, connection: Connection) -> None:
        """Drop the unfinished frame of a connection that is closed."""
        if connection.frame is not None and not connection.discarded_bytes:
            self._pool.give_back(connection.frame)
        connection.frame = None
        connection.rest = None
        self._shares.ended(connection)

    def keep(self, frame: memoryview) -> bool:
        """Keep a large frame in its buffer beyond the turn, until `give_back`; return False for one in the arena."""
        if self._done_frames and self._done_frames[-1] is frame:
            self._done_frames.pop()
            return True
        return False

    def give_back(self, frame: memoryview) -> None:
        self._pool.give_back(frame)

    def take_starved(self, *, at_once: bool = False) -> list[Connection]:
        """Return connections that may try again to get a buffer, because some were returned.

        With `at_once` also when none was: frames may have stalled meanwhile.
        """
        if not self._shares.has_waiting:
            return []
        moved = self._pool.returns + self._shares.ended_waits
        if moved == self._moves_seen and not at_once:
            return []
        self._moves_seen = moved
        return self._shares.next_waiting(WAITING_FRAMES_PER_TURN)

    def trim(self) -> None:
        """Release buffers that were not used for a while to the system."""
        self._pool.trim()

    def _handle_whole_frames(self, connection: Connection, position: int, end: int) -> None:
        arena, handle_frame, held_bytes_max = self._arena, self._handle_frame, self._held_bytes_max
        responses = connection.responses
        tries_repeats = connection.produce_shapes and self._tries_repeats
        while end - position >= _SIZE_BYTES:
            # HOT: the same as `connection.is_full`, without the call.
            full = len(responses) >= REQUESTS_IN_FLIGHT_MAX or connection.held_bytes >= held_bytes_max
            if tries_repeats and not full:
                frame_end = self._handle_repeat(connection, arena, position, end)
                if frame_end:
                    connection.partial_since_ms = NO_PARTIAL_FRAME
                    position = frame_end
                    continue
            (size,) = _SIZE.unpack_from(arena, position)
            if not _SMALLEST_FRAME_BYTES <= size <= self._frame_bytes_max:
                raise ProtocolError(
                    f"frame of {size} bytes is outside the limits of {_SMALLEST_FRAME_BYTES} to {self._frame_bytes_max}"
                )
            if full:
                break
            frame_start = position + _SIZE_BYTES
            frame_end = frame_start + size
            if frame_end > end:
                if size > LARGE_FRAME_BYTES and self._begin_large(connection, arena[position:end], size):
                    return
                break
            connection.partial_since_ms = NO_PARTIAL_FRAME
            handle_frame(connection, arena, frame_start, frame_end)
            position = frame_end
            if connection.closing:
                return
            if position < end and self._monotonic_ms() >= self.now_ms + TURN_WORK_MS_MAX:
                connection.put_off = True
                self._put_off.append(connection)
                break
        if position < end:
            connection.rest = bytes(arena[position:end])

    def _begin_large(self, connection: Connection, first: memoryview, size: int) -> bool:
        """Begin a large frame. Its buffer includes the size field, as the arena does."""
        if len(first) < LARGE_FRAME_BEGUN_BYTES:
            return False
        if not self._check_large_frame(connection, size, first[_SIZE_BYTES:]):
            connection.frame = self._arena[:0]
            connection.discarded_bytes = size + _SIZE_BYTES - len(first)
            return True
        size += _SIZE_BYTES
        wanted = min(size, max(connection.largest_frame, LARGE_FRAME_FIRST_BYTES, len(first) + 1))
        frame = self._pool.take(wanted) or self._take_from_others(connection, wanted)
        if frame is None:
            return False
        frame[: len(first)] = first
        connection.frame = frame
        connection.frame_size = size
        connection.frame_received = len(first)
        (api_key,) = _API_KEY.unpack_from(first, _SIZE_BYTES)
        in_one_go = api_key == ApiKey.PRODUCE or connection.peer is not None
        connection.frame_once_bytes = size if in_one_go else LARGE_FRAME_ONCE_BYTES
        self._shares.began(connection, self.now_ms)
        return True

    def _take_from_others(self, connection: Connection, wanted: int) -> memoryview | None:
        """Evict other frames and get a buffer; None, and the connection waits, if none of them has to be evicted."""
        room = buffer_bytes(wanted)
        old = connection.frame
        while (evicted := self._shares.to_evict(connection, room, self.now_ms)) is not None:
            self._evict(evicted)
            buffer = self._pool.take(wanted) if old is None else self._pool.take_larger(old, wanted)
            if buffer is not None:
                return buffer
        self._shares.wait(connection, self.now_ms)
        connection.starved = True
        return None

    def _receive_large(self, connection: Connection, frame: memoryview) -> int:
        if connection.discarded_bytes:
            return self._read_past(connection)
        size, have = connection.frame_size, connection.frame_received
        if have == len(frame):  # it waited for a larger buffer
            larger = self._grown(connection, frame)
            if larger is None:
                return 0
            frame = larger
        received = connection.transport.recv_into(
            frame[have : min(size, len(frame), have + connection.frame_once_bytes)]
        )
        if received == 0:
            return -1
        connection.frame_received = have = have + received
        if have == size:
            connection.frame = None
            self._shares.ended(connection)
            connection.largest_frame = max(connection.largest_frame, size)
            connection.partial_since_ms = NO_PARTIAL_FRAME
            self._done_frames.append(frame)
            if not (connection.produce_shapes and self._handle_repeat(connection, frame, 0, size)):
                self._handle_frame(connection, frame, _SIZE_BYTES, size)
            return received
        self._shares.received(connection, self.now_ms)
        if have == len(frame):
            self._grown(connection, frame)
        return received

    def _read_past(self, connection: Connection) -> int:
        room = self._arena[self._used : self._used + min(connection.discarded_bytes, RECEIVE_ONCE_BYTES)]
        if not room:
            return 0  # the arena is full: the connection is still readable in the next turn
        received = connection.transport.recv_into(room)
        if received == 0:
            return -1
        connection.discarded_bytes -= received
        if not connection.discarded_bytes:
            connection.frame = None
            connection.partial_since_ms = NO_PARTIAL_FRAME
        return received

    def _grown(self, connection: Connection, frame: memoryview) -> memoryview | None:
        """Move the frame to a larger buffer; None, and the connection waits, when there is none now."""
        wanted = min(connection.frame_size, 2 * len(frame))
        larger = self._pool.take_larger(frame, wanted) or self._take_from_others(connection, wanted)
        if larger is None:
            return None
        self._shares.end_wait(connection)
        larger[: len(frame)] = frame
        connection.frame = larger
        self._pool.give_back(frame)
        return larger
