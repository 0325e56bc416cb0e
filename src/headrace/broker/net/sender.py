"""Sends responses in the order of their requests: one send per connection and turn, file contents by sendfile.

A response with much file content takes long to send, so it is sent after the small ones of its turn, and in pieces
while other clients are served (`Loop._send_large`).
"""

from headrace.broker.net.connection import Connection, Part
from headrace.model.limits import COPIED_RANGE_BYTES_MAX, LARGE_RESPONSE_BYTES, SENT_ALONE_BYTES_MAX
from headrace.ports.disk import Disk, FileRange


class Sender:
    def __init__(self, disk: Disk, *, more_flag: int) -> None:
        self._disk = disk
        self._more_flag = more_flag

    def send_ready(self, connection: Connection) -> int:
        """Send the responses that are ready, up to the first that is not, and return the number of bytes sent.

        Bytes that the socket does not accept stay in `connection.unsent`; if a large response is ready, all bytes
        stay there and nothing is sent yet. Raises OSError when the connection is broken.
        """
        responses = connection.responses
        if not responses or responses[0].waits:
            return 0
        frame = responses[0].parts
        if len(responses) == 1 and type(frame) is bytes:  # HOT: a client that has one request in flight
            responses.clear()
            connection.held_bytes = connection.held_bytes_min
        else:
            ready = self._take_ready(connection)
            if connection.unsent:
                connection.unsent.extend(ready)
                return 0 if _is_large(connection) else self.send_unsent(connection)
            if not ready:
                return 0
            frame = ready[0] if len(ready) == 1 else b"".join(ready)
        try:
            sent = connection.transport.send(frame)
        except BlockingIOError:
            sent = 0
        if sent < len(frame):
            connection.unsent.append(memoryview(frame)[sent:])
        return sent

    def _take_ready(self, connection: Connection) -> list[bytes | bytearray]:
        """Take the responses before the first that waits.

        Those up to the last one with file ranges go to `unsent`; the others are returned.
        """
        responses = connection.responses
        ready: list[bytes | bytearray] = []
        while responses and not responses[0].waits:
            parts = responses.popleft().parts
            if isinstance(parts, list):
                if connection.held_bytes:
                    left = connection.held_bytes - sum(map(len, ready))
                    connection.held_bytes = max(connection.held_bytes_min, left)
                connection.unsent.extend(ready)
                connection.unsent.extend(parts)
                ready.clear()
            else:
                assert parts is not None
                ready.append(parts)
        if connection.held_bytes:
            least = connection.held_bytes_min
            left = connection.held_bytes - sum(map(len, ready))
            connection.held_bytes = max(least, left) if responses else least
        return ready

    def send_more(self, connection: Connection, bytes_max: int) -> int:
        """Send unsent bytes and responses that became ready, up to `bytes_max`, when the socket accepts bytes again."""
        connection.unsent.extend(self._take_ready(connection))
        return self.send_unsent(connection, bytes_max)

    def send_unsent(self, connection: Connection, bytes_max: int = SENT_ALONE_BYTES_MAX) -> int:
        """Send parts in order until all are sent, the socket accepts no more, or the limit of this turn is reached."""
        unsent = connection.unsent
        total = 0
        while unsent and total < bytes_max:
            part = unsent[0]
            if isinstance(part, FileRange) and part.length > COPIED_RANGE_BYTES_MAX:
                wanted = min(part.length, bytes_max - total)
                sent = self._send_range(connection, part, wanted)
            else:
                run = self._gather(connection, bytes_max - total)
                wanted = len(run)
                sent = self._send_run(connection, run)
            total += sent
            if sent < wanted:
                break
        return total

    def _send_range(self, connection: Connection, part: FileRange, wanted: int) -> int:
        try:
            sent = connection.transport.send_range(
                part if wanted == part.length else FileRange(part.file, part.position, wanted)
            )
        except BlockingIOError:
            return 0
        if sent == 0:
            raise _too_short(part)
        if sent < part.length:
            connection.unsent[0] = FileRange(part.file, part.position + sent, part.length - sent)
        else:
            connection.unsent.popleft()
        return sent

    def _send_run(self, connection: Connection, run: bytes | bytearray | memoryview) -> int:
        try:
            sent = connection.transport.send(run, self._more_flag if connection.unsent else 0)
        except BlockingIOError:
            sent = 0
        if sent < len(run):
            connection.unsent.appendleft(memoryview(run)[sent:])
        return sent

    def _gather(self, connection: Connection, bytes_max: int) -> bytes | bytearray | memoryview:
        """Join the parts before the next file range that needs sendfile, up to the limit, into one run of bytes."""
        unsent = connection.unsent
        run: list[bytes | bytearray | memoryview] = []
        gathered = 0
        while unsent and gathered < bytes_max:
            part: Part = unsent[0]
            if isinstance(part, FileRange):
                if part.length > COPIED_RANGE_BYTES_MAX:
                    break
                copied = self._disk.read(part.file, part.length, part.position)
                if len(copied) < part.length:
                    raise _too_short(part)
                run.append(copied)
            else:
                run.append(part)
            gathered += len(run[-1])
            unsent.popleft()
        return run[0] if len(run) == 1 else b"".join(run)


def _too_short(part: FileRange) -> OSError:
    return OSError(
        f"a segment file ends before position {part.position + part.length}, where {part.length} bytes from position "
        f"{part.position} were to be sent: run headrace log verify"
    )


def _is_large(connection: Connection) -> bool:
    length = 0
    for part in connection.unsent:  # HOT: the sum of a generator takes twice as long
        if isinstance(part, FileRange):
            length += part.length
    return length > LARGE_RESPONSE_BYTES
