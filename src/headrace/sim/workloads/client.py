"""What every simulated client does: connect, ask, take answers, and begin again when the connection is gone."""

from collections.abc import Callable
from typing import Any

from headrace.sim.context import RunContext
from headrace.sim.node import HOST, PORT
from headrace.sim.workloads.connection import KafkaConnection
from headrace.wire.apis import ApiKey

RECONNECT_MS_MAX = 500
REQUEST_MS_MAX = 35_000
"""Longer than any wait that a request may ask of the node: then the client gives the connection up."""

Handler = Callable[[Any], None]


class Client:
    """A subclass says what to do when connected, with every turn, and when the connection is gone."""

    def __init__(self, context: RunContext, name: str) -> None:
        self.context = context
        self.name = name
        self.entropy = context.world.entropy.branch(f"client {name}")
        self.connection: KafkaConnection | None = None
        self.silent = False
        """Half-closed: it only takes the answers that still come."""
        self.excused = False
        """Whether the disk was in trouble while this connection stood: then storage errors are honest answers."""
        self.stopped = False
        """Begins nothing new any more, and waits for what is under way."""
        self._retry_ms = 0.0

    @property
    def now_ms(self) -> float:
        return self.context.world.time.now_ms

    # For subclasses

    def connected(self) -> None:
        """A fresh connection stands."""

    def work(self) -> None:
        """Once a turn, with a connection."""

    def lost(self) -> None:
        """The connection is gone; what was asked on it gets no answer."""

    def hurry(self) -> None:
        """Everything is healed: do what shows progress."""

    def has_progressed(self) -> bool:
        """Whether it got on since it hurries."""
        return True

    @property
    def settled(self) -> bool:
        """Whether nothing is under way."""
        return True

    def ask(self, api_key: ApiKey, version: int, request: object, handle: Handler) -> None:
        """Send a request; `handle` gets the answer, unless the connection is lost before."""
        if self.connection is not None and not self.silent:
            try:
                self.connection.send(api_key, version, request, handle)
            except BrokenPipeError:
                self.drop()

    def tell(self, api_key: ApiKey, version: int, request: object) -> None:
        """Send a request that has no answer."""
        if self.connection is not None and not self.silent:
            try:
                self.connection.send(api_key, version, request, answered=False)
            except BrokenPipeError:
                self.drop()

    def drop(self) -> None:
        """Give the connection up; what was on its way to the node never arrives."""
        if self.connection is not None:
            self.connection.wire.reset()
            self._forget_connection()

    # The turn

    def step(self) -> None:
        if self.connection is None:
            self._connect()
        connection = self.connection
        if connection is None:
            return
        self.excused = self.excused or self.context.disk_trouble
        for handle, message in connection.poll():
            handle(message)
            if self.connection is not connection:
                return
        waiting_since_ms = connection.waiting_since_ms
        if connection.is_closed():
            self._forget_connection()
        elif waiting_since_ms is not None and self.now_ms - waiting_since_ms > REQUEST_MS_MAX:
            self.drop()
        elif not self.silent:
            self.work()

    def _connect(self) -> None:
        if self.now_ms < self._retry_ms or not self.context.virtual.serves:
            return
        try:
            self.connection = KafkaConnection(self.context.world, HOST, PORT)
        except ConnectionRefusedError:
            self._retry_later()
            return
        self.excused = False
        self.connected()

    def _forget_connection(self) -> None:
        self.connection = None
        self.silent = False
        self._retry_later()
        self.lost()

    def _retry_later(self) -> None:
        self._retry_ms = self.now_ms + self.entropy.below(RECONNECT_MS_MAX)
