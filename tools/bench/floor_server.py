"""Server with the bare loops of a broker: the cost of the system calls alone from Python.

    python -m tools.bench.floor_server append FILE BATCH_AT BATCH_BYTES ANSWER_BYTES
        receives Produce frames, computes the checksum, writes the batch, responds; no offsets, limits or protocol
    python -m tools.bench.floor_server sendfile FILE TOTAL_BYTES
    python -m tools.bench.floor_server send FILE TOTAL_BYTES
        send a file, or one buffer repeatedly, to the first client, then print the CPU seconds

The first line on stdout is `listening on HOST:PORT`. `append` runs until it is terminated.
"""

import os
import select
import socket
import sys
from resource import RUSAGE_SELF, getrusage
from struct import Struct

import crc32c

CHUNK_BYTES = 1 << 20
BUFFER_BYTES = 2 << 20
LARGE_FRAME_BYTES = 256 << 10
BACKLOG = 128

_CORRELATION_AT = 8
_CRC_AT, _CRC_COVERS_FROM = 17, 21
_CRC = Struct(">I")
_SIZE = Struct(">i")


class Appender:
    """Writes frames of equal length from any number of connections to one file."""

    def __init__(self, listener: socket.socket, path: str, batch_at: int, batch_bytes: int, answer_bytes: int) -> None:
        self._listener = listener
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT)
        self._written = 0
        self._batch_at = batch_at
        self._batch_bytes = batch_bytes
        self._answer_head = _SIZE.pack(answer_bytes - _SIZE.size)
        self._answer_tail = bytes(answer_bytes - 2 * _SIZE.size)
        self._frame_bytes = 0
        self._poller = select.epoll()
        self._connections: dict[int, _Connection] = {}

    def run(self) -> None:
        accepting = self._listener.fileno()
        self._poller.register(accepting, select.EPOLLIN)
        while True:
            for descriptor, _ in self._poller.poll():
                if descriptor == accepting:
                    self._accept()
                else:
                    self._serve(self._connections[descriptor])

    def _accept(self) -> None:
        peer, _ = self._listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[peer.fileno()] = _Connection(peer)
        self._poller.register(peer.fileno(), select.EPOLLIN)

    def _serve(self, connection: "_Connection") -> None:
        # Reads exactly the rest of a large frame, so that no bytes have to be moved.
        end = self._frame_bytes if self._frame_bytes > LARGE_FRAME_BYTES else BUFFER_BYTES
        count = connection.peer.recv_into(connection.view[connection.have : end])
        if not count:
            del self._connections[connection.peer.fileno()]
            connection.peer.close()
            return
        connection.have += count
        if not self._frame_bytes:
            self._frame_bytes = _SIZE.size + int.from_bytes(connection.view[: _SIZE.size], "big")
        if connection.have >= self._frame_bytes:
            connection.peer.sendall(self._take_frames(connection))

    def _take_frames(self, connection: "_Connection") -> bytes:
        view, at = connection.view, 0
        answers: list[bytes] = []
        while connection.have - at >= self._frame_bytes:
            start = at + self._batch_at
            batch = view[start : start + self._batch_bytes]
            if crc32c.crc32c(batch[_CRC_COVERS_FROM:]) != _CRC.unpack_from(batch, _CRC_AT)[0]:
                raise SystemExit("a batch with a wrong checksum")
            self._written += os.pwrite(self._file, batch, self._written)
            answers += (self._answer_head, bytes(view[at + _CORRELATION_AT : at + _CORRELATION_AT + 4]))
            answers.append(self._answer_tail)
            at += self._frame_bytes
        left = connection.have - at
        view[:left] = view[at : connection.have]
        connection.have = left
        return b"".join(answers)


class _Connection:
    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.view = memoryview(bytearray(BUFFER_BYTES))
        self.have = 0


def give(listener: socket.socket, path: str, total_bytes: int, *, by_sendfile: bool) -> None:
    peer, _ = listener.accept()
    file = os.open(path, os.O_RDONLY)
    buffer = memoryview(os.pread(file, CHUNK_BYTES, 0))
    before = _cpu_seconds()
    sent = 0
    while sent < total_bytes:
        wanted = min(CHUNK_BYTES, total_bytes - sent)
        sent += os.sendfile(peer.fileno(), file, sent, wanted) if by_sendfile else peer.send(buffer[:wanted])
    peer.close()
    sys.stdout.write(f"{_cpu_seconds() - before}\n")


def _cpu_seconds() -> float:
    used = getrusage(RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> None:
    mode, path, *numbers = arguments
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        sys.stdout.write(f"listening on 127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        if mode == "append":
            batch_at, batch_bytes, answer_bytes = map(int, numbers)
            Appender(listener, path, batch_at, batch_bytes, answer_bytes).run()
        else:
            give(listener, path, int(numbers[0]), by_sendfile=mode == "sendfile")


if __name__ == "__main__":
    main(sys.argv[1:])
