"""Hostile frames by the hundred thousand at one broker that is never restarted, beside a healthy client.

Frames begin as valid requests of every served API; sizes, keys, versions, counts, tags and contents are then mutated
by seed. They leave whole or in pieces, pipelined, on connections that are kept, closed or reset.
"""

import random
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Self

from headrace.broker.api.registry import SERVED
from headrace.wire.apis import APIS, ApiKey
from headrace.wire.frames import request_frame
from tests.hostile import frames
from tests.hostile.ground import ATTACK_S_MAX, Ground, percentile
from tests.wire import samples
from tools.fuzz.mutation import Mutator

CONNECTIONS = 32
FRAMES_PER_SEND_MAX = 3
ANSWER_S_MAX = 0.05
CONNECT_S_MAX = 60.0
PIECE_BYTES_MAX = 64
RESET_SHARE, CLOSE_SHARE, PIECES_SHARE = 0.02, 0.02, 0.1
READ_BYTES = 1 << 16
SAMPLES_PER_VERSION = 2
RESIDENT_GROWTH_MAX = 64 << 20
PACE_FRAMES = 2_000
"""Frames between two looks at the healthy client."""

WAITING_MS_MAX = 50
"""Waits are mutated, too; a template asks for short ones, so that connections are not all parked."""

_RESET = Struct("ii").pack(1, 0)
_SIZE = Struct(">i")


def templates(source: random.Random) -> list[bytes]:
    """Valid frames: every served API and version with fields of all kinds, and the requests of ordinary clients."""
    found = [
        frames.api_versions(),
        frames.metadata(["target"]),
        frames.metadata(None),
        frames.fetch("target", range(8), wait_ms=WAITING_MS_MAX, bytes_min=1),
        *(
            frames.frame(ApiKey.PRODUCE, version, frames.produce_request("target", bytes(frames.good_batch())))
            for version in range(3, 13)
        ),
    ]
    for api in SERVED:
        message = next(m for name, m in samples.MESSAGES.items() if name == _request_name(api.key))
        for version in range(api.min_version, api.max_version + 1):
            for _ in range(SAMPLES_PER_VERSION):
                body = samples.encode(message, samples.sample(message, version, source), version)
                found.append(request_frame(api.key, version, 7, "fuzz", body))
    return found


def _request_name(key: int) -> str:
    return next(
        name for name, table in samples.MODULES.items() if table == APIS[key].module and name.endswith("Request")
    )


class _Hostile:
    """One connection that sends, waits a little for an answer or its end, and throws away what it gets."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, CONNECT_S_MAX)
        self.socket.setblocking(False)
        self.waits_until_s = 0.0

    def send(self, payload: bytes, pieces: Iterator[int] | None) -> None:
        """Send, and drop what the broker does not take at once: that is the rest of a frame that never comes."""
        if pieces is None:
            self.socket.send(payload)
        else:
            position = 0
            while position < len(payload):
                position += self.socket.send(payload[position : position + next(pieces)])
        self.waits_until_s = time.monotonic() + ANSWER_S_MAX

    def may_send(self) -> bool:
        """Return whether the last frames were answered, or long enough ago. OSError when the broker has closed."""
        try:
            if self.socket.recv(READ_BYTES) == b"":
                raise ConnectionResetError("closed by the broker")
        except BlockingIOError:
            return time.monotonic() >= self.waits_until_s
        return True

    def close(self, *, reset: bool = False) -> None:
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.socket.close()


class SocketCampaign:
    def __init__(self, *, seed: int) -> None:
        self._random = random.Random(seed)
        self._folder = tempfile.TemporaryDirectory()
        self._ground = Ground(Path(self._folder.name), settings={"auto.create.topics.enable": "false"})
        self._templates = templates(self._random)
        self._mutator = Mutator(f"{seed} sockets", [template[4:] for template in self._templates])
        self._connections: list[_Hostile] = []
        self.frames = 0
        self._closed_by_broker = self._reconnected = 0
        self._elapsed_s = 0.0

    def __enter__(self) -> Self:
        self._ground.__enter__()
        self._warm_up()
        self._ground.measure_alone()
        self._before = self._ground.metrics()
        self._resident_before = self._ground.resident_bytes()
        self._window = self._ground.window(0)
        self._connections = [_Hostile(self._ground.address) for _ in range(CONNECTIONS)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()
        self._ground.__exit__(kind, error, traceback)
        self._folder.cleanup()

    def _warm_up(self) -> None:
        """A broker imports what serves an API at its first request, which is not what is measured here."""
        for template in self._templates:
            hostile = _Hostile(self._ground.address)
            hostile.socket.settimeout(ANSWER_S_MAX)
            try:
                hostile.socket.sendall(template)
                hostile.socket.recv(READ_BYTES)
            except OSError:
                pass  # refused, or a request that waits
            hostile.close()

    # Sending

    def send(self, count: int, *, until: float = float("inf")) -> None:
        """Send this number of further frames."""
        began_s, goal = time.monotonic(), self.frames + count
        while self.frames < goal and time.monotonic() < until:
            place = int(self._random.random() * CONNECTIONS)
            self._send_some(place, min(1 + int(self._random.random() * FRAMES_PER_SEND_MAX), goal - self.frames))
            if self.frames % PACE_FRAMES < FRAMES_PER_SEND_MAX:
                assert not self._ground.healthy.trouble, self._ground.healthy.trouble
                assert self._ground.is_alive(), self._ground.broker.complaints()
        self._elapsed_s += time.monotonic() - began_s

    def _send_some(self, place: int, count: int) -> None:
        connection = self._connections[place]
        draw = self._random.random()
        try:
            if not connection.may_send():
                return
            payload = b"".join(self._frame() for _ in range(count))
            self.frames += count
            connection.send(payload, self._pieces() if draw < PIECES_SHARE else None)
        except BlockingIOError:
            return
        except OSError:
            self._closed_by_broker += 1
            self._replace(place)
            return
        if draw > 1 - RESET_SHARE - CLOSE_SHARE:
            self._replace(place, reset=draw > 1 - RESET_SHARE)

    def _pieces(self) -> Iterator[int]:
        while True:
            yield 1 + int(self._random.random() * PIECE_BYTES_MAX)

    def _replace(self, place: int, *, reset: bool = False) -> None:
        self._connections[place].close(reset=reset)
        self._connections[place] = _Hostile(self._ground.address)
        self._reconnected += 1

    def _frame(self) -> bytes:
        """Mutated contents under a true size mostly; sometimes the size itself lies, or nothing does."""
        draw = self._random.random()
        if draw < 0.1:
            return self._templates[int(self._random.random() * len(self._templates))]
        body = self._mutator.next()
        if draw < 0.15:
            return _SIZE.pack(int(self._random.random() * 2**32) - 2**31) + body
        return _SIZE.pack(len(body)) + body

    # Looking

    def wait_until_counted(self, name: str, more_than: float) -> None:
        """The broker may be behind with what was sent."""
        self._ground.wait_until(lambda found: self._grown(found, name) > more_than, f"{more_than} in {name}")

    def report(self) -> dict[str, object]:
        self._ground.healthy.wait_for(self._window.began + 1, ATTACK_S_MAX)
        found, latencies = self._ground.metrics(), self._window.latencies_ms
        alone, beside = self._ground.alone_p99_ms, percentile(latencies, 0.99)
        return {
            "frames": self.frames,
            "frames_per_s": round(self.frames / max(self._elapsed_s, 1e-9)),
            "connections_made": self._reconnected + CONNECTIONS,
            "closed_by_broker": self._closed_by_broker,
            "protocol_errors": self._grown(found, "headrace_protocol_errors_total"),
            "requests_served": self._grown(found, "headrace_requests_total"),
            "handler_failures": self._grown(found, "headrace_handler_failures_total"),
            "resident_growth_mb": round((self._ground.resident_bytes() - self._resident_before) / 1e6, 1),
            "healthy_rounds": len(latencies),
            "healthy_p50_ms": round(percentile(latencies, 0.5), 3),
            "healthy_p99_ms": round(beside, 3),
            "healthy_p99_alone_ms": round(alone, 3),
            "healthy_p99_times": round(beside / alone, 2),
            "longest_turn_ms": round(1000 * found["headrace_loop_lag_max_seconds"], 1),
        }

    def complaints(self) -> list[str]:
        """Return the broken promises, in words."""
        report = self.report()
        wrong = []
        if report["handler_failures"]:
            wrong.append(f"{report['handler_failures']} requests failed inside the broker: {self._last_words()}")
        if not report["protocol_errors"]:
            wrong.append("no protocol error was counted")
        growth = self._ground.resident_bytes() - self._resident_before
        if growth > RESIDENT_GROWTH_MAX:
            wrong.append(f"memory grew by {growth} bytes over {self.frames} frames")
        if suffered := self._ground.check_served(self._window):
            wrong.append(suffered)
        if "Traceback" in self._ground.broker.complaints():
            wrong.append(self._last_words())
        return wrong

    def _grown(self, found: dict[str, float], name: str) -> int:
        return int(found.get(name, 0.0) - self._before.get(name, 0.0))

    def _last_words(self) -> str:
        return self._ground.broker.complaints()[-4000:]
