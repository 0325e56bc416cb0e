"""The network of a world: it knows all hosts and listeners, and moves the bytes of all connections piece by piece."""

import errno
import zlib
from collections import deque
from typing import Protocol

from headrace.sim.clock import VirtualTime
from headrace.sim.connections import Handshake, VirtualClient, VirtualEndpoint, os_error
from headrace.sim.entropy import SeededEntropy
from headrace.sim.links import VirtualLinks
from headrace.sim.streams import WHOLE_EIGHTHS, Stream
from headrace.sim.trace import Trace

BACKLOG_CONNECTIONS_MAX = 128
FIRST_FREE_PORT = 40_000
LOOPBACK = "127.0.0.1"
"""The host that clients connect from unless a test names another."""
TO_THE_LISTENER = ">"


class FabricListener(Protocol):
    host: str
    port: int
    machine: str
    """The machine that listens."""
    backlog: deque[VirtualEndpoint]

    def reset(self) -> None: ...


class Fabric:
    def __init__(self, time: VirtualTime, entropy: SeededEntropy, trace: Trace) -> None:
        self._entropy = entropy
        self.trace = trace
        self.links = VirtualLinks(time, entropy.branch("links"), trace)
        self.whole_eighths = WHOLE_EIGHTHS
        """The number out of eight deliveries that bring everything."""
        self._machines: dict[str, bool] = {}
        """The machines by host name, and whether each has power."""
        self._listeners: dict[tuple[str, int], FabricListener] = {}
        self._streams: list[tuple[str, Stream, Stream]] = []
        """Every direction of every connection, with the opposite direction."""
        self._handshakes: list[Handshake] = []
        self._connections = 0
        self._next_port = FIRST_FREE_PORT

    # Hosts

    def set_power(self, machine: str, *, is_on: bool) -> None:
        """Note that a machine has power or not; a machine without power does not even refuse a connection."""
        self._machines[machine] = is_on

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def add(self, listener: FabricListener) -> None:
        key = (listener.host, listener.port)
        if key in self._listeners:
            raise os_error(errno.EADDRINUSE)
        self._listeners[key] = listener

    def remove(self, listener: FabricListener) -> None:
        """Remove a listener. This may be called twice; by then the address may belong to another listener."""
        key = (listener.host, listener.port)
        if self._listeners.get(key) is listener:
            del self._listeners[key]
        listener.reset()

    # Connections

    def connect(self, host: str, port: int, *, from_host: str = LOOPBACK) -> VirtualClient:
        """Connect a client that is no machine, at once."""
        listener = self._open_listener(host, port)
        there, back = self._pair(from_host, listener.machine)
        self._admit(listener, there, back, from_host=from_host)
        return VirtualClient(VirtualEndpoint(f"{host}:{port}", back, there))

    def begin(self, host: str, port: int, *, from_host: str) -> VirtualEndpoint:
        """Return the calling machine's side of a new connection, which may still be connecting."""
        if host not in self._machines:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
        there, back = self._pair(from_host, host)
        endpoint = VirtualEndpoint(f"{host}:{port}", back, there, between_machines=True)
        if self._machines[host] and there.link.is_instant and back.link.is_instant:
            listener = self._open_listener(host, port)
            self._admit(listener, there, back, from_host=from_host, between_machines=True)
        else:
            endpoint.is_connected = False
            self._handshakes.append(Handshake(endpoint, host=host, port=port, from_host=from_host))
        return endpoint

    def _pair(self, from_host: str, to_host: str) -> tuple[Stream, Stream]:
        return Stream(self.links.between(from_host, to_host)), Stream(self.links.between(to_host, from_host))

    def _open_listener(self, host: str, port: int) -> FabricListener:
        listener = self._listeners.get((host, port))
        if listener is None or len(listener.backlog) >= BACKLOG_CONNECTIONS_MAX:
            raise os_error(errno.ECONNREFUSED)
        return listener

    def _admit(
        self, listener: FabricListener, there: Stream, back: Stream, *, from_host: str, between_machines: bool = False
    ) -> None:
        """Let a new connection wait in the listener's backlog."""
        number = self._connections
        self._connections += 1
        self._streams += [(f"{number}{TO_THE_LISTENER}", there, back), (f"{number}<", back, there)]
        listener.backlog.append(
            VirtualEndpoint(f"{from_host}:{number}", there, back, between_machines=between_machines)
        )
        self.trace.record(f"network connect {number} {listener.host}:{listener.port}")

    def _shake_hands(self) -> None:
        for handshake in self._handshakes:
            if not handshake.is_over and handshake.is_due:
                self._shake(handshake)
        self._handshakes = [handshake for handshake in self._handshakes if not handshake.is_over]

    def _shake(self, handshake: Handshake) -> None:
        endpoint, listener = handshake.endpoint, self._listeners.get((handshake.host, handshake.port))
        if not handshake.passes or not self._machines[handshake.host]:
            handshake.retry()
        elif listener is None or len(listener.backlog) >= BACKLOG_CONNECTIONS_MAX:
            endpoint.failure = errno.ECONNREFUSED
            self.trace.record(f"network refused {handshake.host}:{handshake.port}")
        else:
            endpoint.is_connected = True
            self._admit(
                listener, endpoint.outgoing, endpoint.incoming, from_host=handshake.from_host, between_machines=True
            )

    # Bytes

    def deliver(self) -> None:
        """Move a drawn piece of every stream that has bytes in flight."""
        if self._handshakes:
            self._shake_hands()
        some_ended = False
        for name, stream, opposite in self._streams:
            if not stream.on_the_way:  # most of them, most of the time
                some_ended = some_ended or stream.finished
            elif stream.reader_is_gone:
                self._refuse_bytes(name, stream, opposite)
            elif delivered := stream.deliver(self._entropy, self.whole_eighths):
                self.trace.record(f"network {name} {len(delivered)} {zlib.crc32(delivered):08x}")
                if name[-1] == TO_THE_LISTENER and stream.is_within_a_frame():
                    self.trace.count_fault("frame cut in the middle")
                if stream.link.resets():
                    stream.reset()
                    opposite.reset()
        if some_ended:
            self._streams = [each for each in self._streams if not each[1].at_end()]

    def _refuse_bytes(self, name: str, stream: Stream, opposite: Stream) -> None:
        """Reset the connection of bytes that reach a host where nothing reads them, if it has power to do so."""
        if stream.link.is_cut or opposite.link.is_cut or not self._machines.get(stream.link.to, True):
            return
        self.trace.record(f"network {name} reset")
        stream.reset()
        if not opposite.finished:  # the process ended with its machine: nothing more will come
            opposite.reset()

    def is_moving(self) -> bool:
        return any(stream.is_moving() for _, stream, _ in self._streams)
