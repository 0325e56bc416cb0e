"""Answers leave in the order of their requests: one send per connection and turn, files by sendfile."""

from headrace.broker.net.connection import Connection, Part
from headrace.model.limits import COPIED_SLICE_BYTES_MAX
from headrace.ports.disk import Disk, Slice


class Sender:
    def __init__(self, disk: Disk, *, more_flag: int) -> None:
        self._disk = disk
        self._more_flag = more_flag

    def send_ready(self, connection: Connection) -> int:
        """Send the answers that are ready, up to the first that is not; bytes sent. What the peer has no room for
        stays in `connection.unsent`. Raises OSError when the connection is broken."""
        answers = connection.answers
        if not answers or answers[0].waits:
            return 0
        frame = answers[0].parts
        if len(answers) == 1 and type(frame) is bytes:  # HOT: a client that has one request in flight
            answers.clear()
            connection.held_bytes = 0
        else:
            ready = self._take_ready(connection)
            if connection.unsent:
                connection.unsent.extend(ready)
                return self.send_unsent(connection)
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
        """The answers up to the first that waits; up to the last with parts of files they go to `unsent`."""
        answers = connection.answers
        ready: list[bytes | bytearray] = []
        while answers and not answers[0].waits:
            parts = answers.popleft().parts
            if isinstance(parts, list):
                if connection.held_bytes:
                    connection.held_bytes = max(0, connection.held_bytes - sum(map(len, ready)))
                connection.unsent.extend(ready)
                connection.unsent.extend(parts)
                ready.clear()
            else:
                assert parts is not None
                ready.append(parts)
        if connection.held_bytes:
            connection.held_bytes = max(0, connection.held_bytes - sum(map(len, ready))) if answers else 0
        return ready

    def send_unsent(self, connection: Connection) -> int:
        """Send parts in order until all are gone or the peer has no room."""
        unsent = connection.unsent
        total = 0
        while unsent:
            part = unsent[0]
            if isinstance(part, Slice) and part.length > COPIED_SLICE_BYTES_MAX:
                sent = self._send_slice(connection, part)
                left = part.length - sent
            else:
                run = self._gather(connection)
                sent = self._send_run(connection, run)
                left = len(run) - sent
            total += sent
            if left:
                break
        return total

    def _send_slice(self, connection: Connection, part: Slice) -> int:
        try:
            sent = connection.transport.send_slice(part)
        except BlockingIOError:
            return 0
        if sent == 0:
            raise OSError("a segment ended before the bytes promised from it")
        if sent < part.length:
            connection.unsent[0] = Slice(part.file, part.position + sent, part.length - sent)
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

    def _gather(self, connection: Connection) -> bytes | bytearray | memoryview:
        """Take the parts up to the next one worth a sendfile, as one run of bytes."""
        unsent = connection.unsent
        run: list[bytes | bytearray | memoryview] = []
        while unsent:
            part: Part = unsent[0]
            if isinstance(part, Slice):
                if part.length > COPIED_SLICE_BYTES_MAX:
                    break
                copied = self._disk.read(part.file, part.length, part.position)
                if len(copied) < part.length:
                    raise OSError("a segment ended before the bytes promised from it")
                run.append(copied)
            else:
                run.append(part)
            unsent.popleft()
        return run[0] if len(run) == 1 else b"".join(run)
