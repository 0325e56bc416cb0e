"""Long requests, processed over several turns: other requests are served between the slices.

Commits of very many offsets are split into small ones (`wire/offset_slices.py`), which go through the dispatcher one
after the other; their responses are sent as one. All other requests are decoded some elements per turn
(`wire/primitives/stepped.py`) and handled when they are decoded. Meanwhile no later request of the connection is
handled, so that its requests take effect in order.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from headrace.broker.api.context import close_for_bad_input
from headrace.broker.net.connection import NO_RESPONSE_YET, Connection, ResponseSlot
from headrace.broker.services import RequestServices
from headrace.model.limits import (
    BESIDE_OTHERS_MS,
    LARGE_REQUESTS_AT_ONCE,
    OFFSETS_PER_SLICE,
    OFFSETS_SLICE_BYTES_MAX,
    REQUEST_ELEMENTS_MAX,
    REQUEST_ELEMENTS_PER_STEP,
    SLICES_ALONE,
)
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import response_frame
from headrace.wire.offset_slices import OffsetResponses, OffsetSlices
from headrace.wire.primitives.stepped import Paused, SteppedBody

AT_ONCE = 0.0
RESPONSE_CHECK_MS = 1.0
"""Interval at which a request checks whether the previous slice is answered, if that takes more than a turn."""


class FrameKeeper(Protocol):
    """The receiver, which owns the buffers of large frames."""

    def keep(self, frame: memoryview) -> bool: ...
    def give_back(self, frame: memoryview) -> None: ...


class OwnFrames:
    """Keeps frames that are in no buffer of the receiver: those of forwarded requests."""

    def keep(self, frame: memoryview) -> bool:
        return True

    def give_back(self, frame: memoryview) -> None:
        """Do nothing."""


class LargeFrame:
    """A complete frame that stays in its buffer until `give_back` is called."""

    def __init__(self, keeper: FrameKeeper, buffer: memoryview, body: memoryview) -> None:
        self._keeper = keeper
        self._buffer: memoryview | None = buffer
        self.body = body

    def give_back(self) -> None:
        if self._buffer is not None:
            self._keeper.give_back(self._buffer)
            self._buffer = None


class LargeRequest:
    """One request in progress: `steps` does a part of the work each time and yields the wait before the next, in ms."""

    def __init__(self, connection: Connection, frame: LargeFrame, steps: Iterator[float]) -> None:
        self.connection = connection
        self.frame = frame
        self.steps = steps


class LargeRequests:
    """All long requests of a node: some are processed at the same time, a slice of each per turn."""

    def __init__(self, services: RequestServices) -> None:
        self._services = services
        self._running = 0
        self._waiting: deque[LargeRequest] = deque()
        self._bytes_in = 0
        self._beside_others_until_ms = 0.0

    def slices(self) -> int:
        """Return how many slices a request may process together: more when no other client was active for a while."""
        now_ms, bytes_in = self._services.clock.monotonic_ms(), self._services.metrics.bytes_in
        if bytes_in != self._bytes_in:
            self._bytes_in = bytes_in
            self._beside_others_until_ms = now_ms + BESIDE_OTHERS_MS
        return 1 if now_ms < self._beside_others_until_ms or self._running > 1 else SLICES_ALONE

    def add(self, request: LargeRequest) -> None:
        request.connection.hold()
        self._waiting.append(request)
        self._begin_next()

    def _begin_next(self) -> None:
        while self._waiting and self._running < LARGE_REQUESTS_AT_ONCE:
            self._running += 1
            self._step_after(AT_ONCE, self._waiting.popleft())

    def _step_after(self, wait_ms: float, request: LargeRequest) -> None:
        timers = self._services.timers
        step = self._services.client_quotas.charged(request.connection, lambda: self._step(request))
        if wait_ms == AT_ONCE:
            timers.next_turn(step)
        else:
            timers.after(wait_ms, step)

    def _step(self, request: LargeRequest) -> None:
        connection = request.connection
        try:
            if not connection.closed:
                for wait_ms in request.steps:
                    self._step_after(wait_ms, request)
                    return
        except ProtocolError as error:
            close_for_bad_input(self._services, connection, error)
        except Exception:
            connection.closing = True
            self._end(request)
            raise
        self._end(request)

    def _end(self, request: LargeRequest) -> None:
        request.frame.give_back()
        request.connection.release()
        self._running -= 1
        self._begin_next()


def read_in_steps(
    frame: LargeFrame,
    decode_request: Callable[[SteppedBody, int, int, int], object],
    version: int,
    handle: Callable[[object], None],
    slices: Callable[[], int],
) -> Iterator[float]:
    """Decode the request some elements at a time, then handle it."""
    body = SteppedBody.of(frame.body, elements_max=REQUEST_ELEMENTS_MAX)
    frame.give_back()
    while True:
        body.allow(REQUEST_ELEMENTS_PER_STEP * slices())
        try:
            request = decode_request(body, 0, len(body), version)
        except Paused:
            yield AT_ONCE
            continue
        handle(request)
        return


class _SliceConnection(Connection):
    """Stands in for the client's connection while a slice is handled, and collects its response."""

    __slots__ = ()

    def __init__(self, client: Connection) -> None:
        super().__init__(client.transport, client.listener_name, [], client.last_active_ms)
        self.principal = client.principal
        self.client_software = client.client_software


def commit_in_slices(
    connection: Connection,
    frame: LargeFrame,
    header: bytes,
    key: int,
    version: int,
    correlation_id: int,
    handle_frame: Callable[[Connection, memoryview, int, int], None],
    slices_at_once: Callable[[], int],
) -> Iterator[float]:
    """Commit the offsets of the request some at a time, each slice when the previous one is answered."""
    slot = ResponseSlot(connection, None, NO_RESPONSE_YET)
    connection.responses.append(slot)  # at once, to reserve the slot of the response

    def commit() -> Iterator[float]:
        slices, responses = OffsetSlices(key, version, frame.body), OffsetResponses(key, version)
        stand_in = _SliceConnection(connection)
        while True:
            at_once = slices_at_once()
            body = slices.take(at_once * OFFSETS_PER_SLICE, at_once * OFFSETS_SLICE_BYTES_MAX)
            if body is None:
                break
            slice_frame = memoryview(header + body)
            handle_frame(stand_in, slice_frame, 0, len(slice_frame))
            yield AT_ONCE
            while not stand_in.closing and stand_in.responses[0].waits:
                yield RESPONSE_CHECK_MS
            if stand_in.closing:
                raise ProtocolError("a slice of the request failed")
            parts = stand_in.responses.popleft().parts
            stand_in.held_bytes = 0
            assert isinstance(parts, bytes | bytearray)
            responses.add(bytes(parts))
        slot.complete(response_frame(key, version, correlation_id, responses.body()))

    return commit()
